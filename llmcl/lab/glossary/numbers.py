"""Numbers and tables of numbers: types, rounding, shapes."""

from .entry import Term

# A term to four lines or so, so that the list can be read through.
# fmt: off
TERMS = (
    Term("int", "정수형(int)",
         "A whole number in C, with 32 bits in OpenCL: from about −2.1 to 2.1 billion. Dividing "
         "two of them cuts off what comes behind the point.",
         "00a"),
    Term("float", "실수형(float)",
         "A number with a fraction, in 32 bits in OpenCL C. Python's own `float` has 64.",
         "00a"),
    Term("cast", "형 변환(cast)",
         "To turn a number of one type into another, in C by the type in brackets before it. Going "
         "to a whole number, the fraction is cut off.",
         "00a", formula="(float)7 / 2 is 3.5"),
    Term("loop", "반복문(loop)",
         "Lines that run again and again, with a counter that changes each time.",
         "00a", formula="for (int i = 0; i < n; i++) { … }"),
    Term("float32", "단정밀도(float32)",
         "A number in 32 bits with 24 binary digits, about 7 decimal ones. The kernels use it.",
         "01a", also=("single precision",)),
    Term("float64", "배정밀도(float64)",
         "A number in 64 bits with 53 binary digits, about 16 decimal ones. Many devices are slow "
         "with it, or do without; NumPy takes it for references.",
         "01a", also=("double precision",)),
    Term("rounding", "반올림 오차(rounding error)",
         "What is lost when a result does not fit a number's digits, and the nearest number that "
         "does is taken. Each operation may lose a little.",
         "08a"),
    Term("truncation", "절단 오차(truncation error)",
         "What is lost because a formula stops early: a central difference takes a small step "
         "where one without any length is meant.",
         "08a"),
    Term("eps", "기계 엡실론(eps)",
         "The distance from 1 to the next larger number of a type: about 1.2e-7 in float32 and "
         "2.2e-16 in float64.",
         "08a", also=("machine epsilon",)),
    Term("NaN", "숫자 아님(NaN)",
         "What stands in place of a number where there is none, such as 0/0 or ∞ − ∞. Whatever is "
         "computed with it becomes NaN too.",
         "04a", also=("not a number",)),
    Term("bound", "오차 한계(bound)",
         "The largest error that rounding can explain, derived from a formula for each element. "
         "An error above it is a fault.",
         "00", also=("error bound",)),
    Term("check", "점검(check)",
         "Compares two results, element by element, and asks that no error is larger than its "
         "bound.",
         "00"),
    Term("reference", "기준 구현(reference)",
         "The same operation in plain NumPy, slow and easy to read. The kernels are compared with "
         "it.",
         "00"),
    Term("shape", "형상(shape)",
         "How long an array is in each direction, such as (5, 12) for 5 rows of 12.",
         "00b"),
    Term("matrix product", "행렬 곱(matrix product)",
         "Each row of the first table meets each column of the second: their numbers are "
         "multiplied pair by pair and added up. (m, k) and (k, n) give (m, n).",
         "01a", also=("matmul",), formula="c[i][j] = Σ_k a[i][k] · b[k][j]"),
    Term("broadcasting", "브로드캐스팅(broadcasting)",
         "NumPy's rule for two shapes that are not equal: where a length is missing or 1, the "
         "numbers are used again and again.",
         "00b"),
    Term("reshape", "형상 변경(reshape)",
         "The same numbers in the same order under another shape. Nothing moves in memory.",
         "04b"),
    Term("transpose", "전치(transpose)",
         "Rows become columns: the numbers change their order, or their index does.",
         "04b", formula="aᵀ[j][i] = a[i][j]"),
    Term("weighted average", "가중 평균(weighted average)",
         "An average in which each number counts as much as its share; the shares add up to 1.",
         "08c", formula="Σ share_i · x_i"),
    Term("variance", "분산(variance)",
         "How far numbers lie from their mean: the mean of the squared distances. Its root is the "
         "standard deviation.",
         "06", formula="Σ (x_i − mean)² / n"),
    Term("rstd", "표준편차의 역수(rstd)",
         "One divided by the spread of a row, as layer norm uses it; kept for the way back.",
         "08b", formula="1 / √(variance + epsilon)"),
    Term("median", "중앙값(median)",
         "The middle one of sorted numbers. One slow run among many does not change it, as it "
         "would the mean.",
         "13"),
)
