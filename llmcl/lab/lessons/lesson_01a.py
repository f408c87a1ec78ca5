"""Lesson 01a, A first kernel."""

import numpy as np

from ...reference import bounds
from ..items import get_global_id
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file

U = bounds.U


def mystery(a, b, c, m, n, k):
    """The riddle's item: the product, its row from id 1 and its column from id 0."""
    col = get_global_id(0)
    row = get_global_id(1)
    if row >= m or col >= n:
        return
    total = 0.0
    for p in range(k):
        total += a[row * k + p] * b[p * n + col]
    c[row * n + col] = total


def _numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def _product(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = blank(engine, m, n)
    kernel((m, n), (4, 4), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


def _exact(a, b):
    exact = a.astype(np.float64), b.astype(np.float64)
    return exact[0] @ exact[1], bounds.matmul(*exact)[0]


PRODUCT = KernelTask(
    kernel_file("matmul"),
    "matmul_naive",
    _product,
    _exact,
    cases=[_numbers(1, (3, 5), (5, 7)), _numbers(2, (6, 1), (1, 2))],
)


# ---- 01a.3: scale ----


def _scale(engine, kernel, x, factor):
    y = blank(engine, len(x))
    kernel((len(x),), (4,), engine.from_host(x), y, factor, len(x))
    return engine.to_host(y)


def _scaled(x, factor):
    want = factor * x.astype(np.float64)
    return want, U * np.abs(want)


SCALE = KernelTask(
    """
__kernel void scale(__global const float *x, __global float *y,
                    const float factor, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    y[i] = factor * x[i];
}
""",
    "scale",
    _scale,
    _scaled,
    cases=[(*_numbers(4, 7), 3.0), (*_numbers(5, 8), -0.5), (*_numbers(6, 1), 2.0)],
    mistakes=[
        ("    if (i >= n) return;\n", "", "Which work-items have no element of their own, and do "
         "they leave?"),
        ("i >= n", "i > n", "Which work-items have no element of their own, and do they leave?"),
        ("factor * x[i]", "factor * i", "Is i the number, or the place where the number is?"),
        ("factor * x[i]", "x[i]", "Where does the factor come in?"),
        ("factor * x[i]", "factor + x[i]", "Is it plus, or times?"),
        ("y[i] = factor", "y[0] = factor", "Does every work-item write to a place of its own?"),
    ],
)  # fmt: skip


# ---- 01a.4: a launch ----


def _scaled_by_hand(x, factor):
    return (np.float32(factor) * x.astype(np.float32)).astype(np.float32)


def _bytes_misread(x, factor):
    return np.float32(factor) * np.frombuffer(x.tobytes(), np.float32)[: len(x)]


# ---- 01a.6: a table ----


def _table(engine, kernel, x, y):
    z = blank(engine, len(x), len(y))
    kernel((len(x), len(y)), (4, 4), engine.from_host(x), engine.from_host(y), z, len(x), len(y))
    return engine.to_host(z)


def _outer(x, y):
    want = np.outer(x.astype(np.float64), y.astype(np.float64))
    return want, U * np.abs(want)


TABLE = KernelTask(
    """
__kernel void table(__global const float *x, __global const float *y,
                    __global float *z, const int rows, const int cols)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= rows || col >= cols) return;
    z[row * cols + col] = x[row] * y[col];
}
""",
    "table",
    _table,
    _outer,
    given=("||", "&&"),
    cases=[_numbers(7, 3, 5), _numbers(8, 6, 1)],
    mistakes=[
        (" || col >= cols", "", "And a work-item whose column lies outside?"),
        ("row >= rows || ", "", "And a work-item whose row lies outside?"),
        ("row >= rows || col >= cols", "row * cols + col >= rows * cols", "Is a place inside of z "
         "always the place of this row? Try row 0, column 5, with 5 columns."),
        ("row >= rows || col >= cols", "row > rows || col > cols", "Is there a row with the number "
         "`rows`, when the first one is row 0?"),
    ],
)  # fmt: skip


# ---- 01a.7: flip ----


def _flip(engine, kernel, x):
    rows, cols = x.shape
    y = blank(engine, cols, rows)
    kernel((rows, cols), (4, 4), engine.from_host(x), y, rows, cols)
    return engine.to_host(y)


FLIP = KernelTask(
    """
__kernel void flip(__global const float *x, __global float *y, const int rows, const int cols)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= rows || col >= cols) return;
    y[col * rows + row] = x[row * cols + col];
}
""",
    "flip",
    _flip,
    lambda x: (x.T.astype(np.float64), 0.0),
    cases=[_numbers(9, (3, 5)), _numbers(10, (6, 2)), _numbers(11, (1, 7))],
    mistakes=[
        ("y[col * rows + row]", "y[row * cols + col]", "Has anything changed its place?"),
        ("y[col * rows + row]", "y[col * cols + row]", "How long is a row of y?"),
        ("x[row * cols + col]", "x[row * rows + col]", "How long is a row of x?"),
        ("y[col * rows + row] = x[row * cols + col]", "y[row * cols + col] = x[col * rows + row]",
         "How long is a row of x, and how long is one of y?"),
        ("    if (row >= rows || col >= cols) return;\n", "", "Which work-items have no element of "
         "their own, and do they leave?"),
        ("row = get_global_id(0)", "row = get_global_id(1)", "Which id counts the rows, and which "
         "the columns?"),
    ],
)  # fmt: skip


# ---- 01a.8: the product with a matrix on its side ----


def _product_t(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[0]
    c = blank(engine, m, n)
    kernel((m, n), (4, 4), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


PRODUCT_T = KernelTask(
    """
__kernel void product_t(__global const float *a, __global const float *b,
                        __global float *c, const int m, const int n, const int k)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[col * k + p];
    c[row * n + col] = sum;
}
""",
    "product_t",
    _product_t,
    lambda a, b: _exact(a, b.T),
    cases=[_numbers(12, (3, 5), (7, 5)), _numbers(13, (6, 2), (1, 2))],
    mistakes=[
        ("b[col * k + p]", "b[p * n + col]", "Does b still lie as in matmul_naive?"),
        ("b[col * k + p]", "b[p * k + col]", "Which row of b belongs to column col of the result?"),
        ("b[col * k + p]", "b[col * n + p]", "How long is a row of b: n or k?"),
        ("c[row * n + col]", "c[row * k + col]", "How long is a row of c?"),
        ("sum += a", "sum = a", "Does the sum keep what was there before?"),
    ],
)

EXERCISES = {
    "01a.2": Exercise(
        lambda: "DCFAEB",
        cases=[()],
        mistakes=[
            (lambda: "CDFAEB", "A context is made for a device. Where does the device come from?"),
            (lambda: "DFCAEB", "A program lives in a context. Is there one yet?"),
            (lambda: "DCAFEB", "A kernel is one function of a compiled text. Is it compiled yet?"),
            (lambda: "DCFABE", "Can a result be fetched before the kernel is launched?"),
            (lambda: "DCFEAB", "What is launched, if the kernel is not there yet?"),
            (lambda: "DCFAE", "And how does the result come back?"),
            *(
                (lambda order=order: order, "One step does not belong. Which one asks a question?")
                for order in ("GCFAEB", "DGFAEB", "DGCFAEB", "GDCFAEB", "DCGFAEB", "GFAEB",
                              "DCFAEBG")
            ),
        ],
        secret=True,
    ),
    "01a.3": SCALE,
    "01a.4": Exercise(
        _scaled_by_hand,
        cases=[
            (*_numbers(14, 7), 3.0),
            (*_numbers(15, 1), -1),
            (np.random.default_rng(16).normal(size=10), 0.5),
        ],
        mistakes=[
            (_bytes_misread, "Of which type are the numbers of x, and which one does the kernel "
             "read?"),
            (lambda x, factor: np.zeros(len(x), np.float32), "Has the result been copied back from "
             "the device?"),
            (lambda x, factor: x.astype(np.float32), "Is it y that comes back, or x?"),
        ],
    ),
    "01a.5": Exercise(
        lambda terms: len(terms) * U * np.abs(terms).sum(),
        cases=[
            (np.array([3.0, -1.0, 2.0]),),
            (np.array([1e8, 1.0, -1e8]),),
            (np.random.default_rng(17).normal(size=50),),
        ],
        mistakes=[
            (lambda terms: len(terms) * U * abs(terms.sum()), "Is the sign taken away before the "
             "sum, or after it?"),
            (lambda terms: len(terms) * U * terms.sum(), "Can an error be negative?"),
            (lambda terms: (len(terms) - 1) * U * np.abs(terms).sum(), "That holds, too, and is a "
             "little lower. Which of the two stands above: n, or n - 1?"),
            (lambda terms: len(terms) * 2 * U * np.abs(terms).sum(), "Is u the gap between two "
             "neighbours, or half of it?"),
            (lambda terms: len(terms) / U * np.abs(terms).sum(), "Is u a large number or a small "
             "one: 2**24, or 2**-24?"),
            (lambda terms: U * np.abs(terms).sum(), "How often is something rounded?"),
            (lambda terms: len(terms) * U, "How large are the totals that are rounded?"),
            (lambda terms: len(terms) * np.abs(terms).sum(), "By which share of itself is a number "
             "rounded?"),
        ],
    ),
    "01a.6": TABLE,
    "01a.7": FLIP,
    "01a.8": PRODUCT_T,
}  # fmt: skip

QUESTIONS = {
    "01a.e1": Question("A", {
        "A": "neighbours in the first dimension share a row now, and each has a column of its own",
        "B": "then neighbours would still lie in rows of their own, from the last column on",
        "C": "then the result would be wrong, and it is right",
    }),
    "01a.q1": Question("B", {
        "A": "10 is not made of whole groups of 4, so the launch is refused",
        "B": "three groups of 4 are 12, and the work-items 10 and 11 have no number",
        "C": "rounding goes up, not down: with 8, two numbers would have nobody",
    }),
    "01a.q2": Question("A", {
        "A": "how many roundings, times u, times what the totals can grow to",
        "B": "the totals along the way can be far larger than the result",
        "C": "something is rounded at every one of the 100 terms",
    }),
    "01a.q3": Question("B", {
        "A": "speed has nothing to do with it; odd shapes are rather slower",
        "B": "with m = n = k, or with equal numbers, a swapped index gives the same result",
        "C": "the bound follows the numbers; the shape does not make it smaller",
    }),
    "01a.q4": Question("C", {
        "A": "a word is chosen from the scores, in a later step",
        "B": "there is one number for every token of the vocabulary, and any size is allowed",
        "C": "and softmax makes shares of the scores",
    }),
    "01a.q5": Question("A", {
        "A": "and the optimizer moves each weight against it",
        "B": "that is the loss; the gradient says how to make it smaller",
        "C": "that is what the whole model learns; the gradient is about its weights",
    }),
}  # fmt: skip

_SQUARE = ("4 x 4 times 4 x 4", _numbers(3, (4, 4), (4, 4)))

BROKEN = {
    "01a.no_guard": Broken(
        PRODUCT,
        "    if (row >= m || col >= n) return;\n",
        "",
        # Whole groups of columns: one too many would make the result depend on what it reads there.
        tries=[_SQUARE, ("3 x 5 times 5 x 8", _numbers(1, (3, 5), (5, 8)))],
        finder="invalid write",
        reason="Sizes are rounded up to whole groups, so some work-items have no element.",
    ),
    "01a.swapped_ids": Broken(
        PRODUCT,
        "    const int row = get_global_id(0);\n    const int col = get_global_id(1);\n",
        "    const int row = get_global_id(1);\n    const int col = get_global_id(0);\n",
        tries=[_SQUARE, ("3 x 5 times 5 x 7", _numbers(1, (3, 5), (5, 7)))],
        finder="check",
        reason="The launch gives rows to id 0; with other ids, some columns have nobody.",
    ),
}
