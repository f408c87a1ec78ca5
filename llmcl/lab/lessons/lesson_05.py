"""Lesson 05, Feed-forward."""

import math

import numpy as np

from ... import reference
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file

U = bounds.U
STEEPEST = 1.13  # no slope of GELU is larger


def _numbers(seed, *shape, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- the two forms of GELU, and what is taken for them ----

ROOT = np.sqrt(2 / np.pi)


def _tanh_form(x):
    return x / (1 + np.exp(-2 * ROOT * (x + 0.044715 * x**3)))


def _erf_form(x):
    return x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x / np.sqrt(2)))


def _of_u(make):
    """A wrong GELU: make(x, u) instead of x / (1 + exp(-2u))."""
    return lambda x: make(x, ROOT * (x + 0.044715 * x**3))


def _in_float32(form):
    return lambda x: form(np.asarray(x, np.float64)).astype(np.float32)


def _relu(x):
    return np.maximum(x, 0)


def _quick(x):
    return x / (1 + np.exp(-1.702 * x))


def _right_above_zero(x):
    return np.where(x < 0, 0, _tanh_form(x))


LINE = np.linspace(-6, 6, 1201)


def _which(curve, places=LINE, tolerance=1e-5, neither="neither"):
    got = np.asarray(curve(places), np.float64)
    for name, form in (("tanh", _tanh_form), ("erf", _erf_form)):
        if np.abs(got - form(places)).max() <= tolerance:
            return name
    return neither


# ---- kernels ----


def _linear(engine, kernel, x, w, b):
    (rows, k), n = x.shape, w.shape[1]
    y = blank(engine, rows, n)
    there = [engine.from_host(array) for array in (x, w, b)]
    kernel((rows, n), (4, 4), *there, y, rows, n, k)
    return engine.to_host(y)


def _linear_want(x, w, b):
    exact = [_exact(array) for array in (x, w, b)]
    return reference.linear(*exact), bounds.linear(*exact)[0]


def _layer(seed, rows, k, n):
    return _numbers(seed, rows, k), _numbers(seed + 1, k, n), _numbers(seed + 2, n)


LINEAR = KernelTask(
    """
__kernel void linear(__global const float *x,    // (rows, k)
                     __global const float *w,    // (k, n)
                     __global const float *b,    // (n)
                     __global float *y,          // (rows, n)
                     const int rows, const int n, const int k)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= rows || col >= n) return;
    float sum = b[col];
    for (int p = 0; p < k; ++p) sum += x[row * k + p] * w[p * n + col];
    y[row * n + col] = sum;
}
""",
    "linear",
    _linear,
    _linear_want,
    cases=[_layer(1, 3, 5, 7), _layer(4, 6, 2, 1), _layer(7, 1, 3, 2)],
    mistakes=[
        ("b[col]", "b[row]", "Whose bias is it: that of the row, or of the column?"),
        ("sum = b[col]", "sum = 0.0f", "Where does the bias come in?"),
        ("sum += x[row * k + p]", "sum += b[col] + x[row * k + p]",
         "How often is the bias added to one number?"),
        ("    if (row >= rows || col >= n) return;\n", "", "Which work-items have no number of "
         "their own, and do they leave?"),
        ("w[p * n + col]", "w[col * k + p]", "w lies row after row, and a row of w has n numbers."),
        ("y[row * n + col]", "y[row * k + col]", "How long is a row of y?"),
    ],
)  # fmt: skip


def _fused_want(x, w, b):
    y, off = _linear_want(x, w, b)
    return reference.gelu(y), bounds.gelu(y)[0] + STEEPEST * off


FUSED = KernelTask(
    """
__kernel void linear_gelu(__global const float *x, __global const float *w,
                          __global const float *b, __global float *y,
                          const int rows, const int n, const int k)
{
    const int row = get_global_id(0);
    const int col = get_global_id(1);
    if (row >= rows || col >= n) return;
    float v = b[col];
    for (int p = 0; p < k; ++p) v += x[row * k + p] * w[p * n + col];
    y[row * n + col] = v / (1.0f + exp(-1.5957691f * (v + 0.044715f * v * v * v)));
}
""",
    "linear_gelu",
    _linear,
    _fused_want,
    cases=[_layer(11, 3, 5, 7), _layer(14, 6, 2, 1)],
    mistakes=[
        ("float v = b[col];", "float v = 0.0f;", "Where does the bias come in?"),
        ("float v = b[col];", "float v = b[row];", "Whose bias is it: that of the row, or of the "
         "column?"),
        ("exp(-1.5957691f", "exp(1.5957691f", "GELU of a large number is that number. What is "
         "yours?"),
        ("-1.5957691f", "-0.79788456f", "In the exponent stands -2u, and not -u."),
        ("y[row * n + col] = v / (1.0f + exp(-1.5957691f * (v + 0.044715f * v * v * v)));",
         "y[row * n + col] = v;", "Where does the bend come in?"),
    ],
)  # fmt: skip


def _of_a_line(engine, kernel, x):
    y = blank(engine, len(x))
    kernel((len(x),), (4,), engine.from_host(x), y, len(x))
    return engine.to_host(y)


def _by_eights(engine, kernel, x):
    y = blank(engine, len(x))
    kernel((-(-len(x) // 8),), (1,), engine.from_host(x), y, len(x))
    return engine.to_host(y)


def _gelu_want(x):
    return reference.gelu(_exact(x)), bounds.gelu(_exact(x))[0]


def _tanh_want(x):
    # 1 + tanh cancels below zero, so the error is that of a tanh (5 ulp) times half of x.
    return reference.gelu(_exact(x)), 16 * U * np.abs(_exact(x))


HALF = KernelTask(
    """
__kernel void gelu_tanh(__global const float *x, __global float *y, const int n)
{
    const int i = get_global_id(0);
    if (i >= n) return;
    const float v = x[i];
    const float u = 0.79788456f * (v + 0.044715f * v * v * v);
    y[i] = 0.5f * v * (1.0f + tanh(u));
}
""",
    "gelu_tanh",
    _of_a_line,
    _tanh_want,
    cases=[(_numbers(17, 13, scale=2),), (_numbers(18, 8, scale=2),)],
    mistakes=[
        ("0.5f * v", "v", "What has become of the half?"),
        ("0.5f * v", "1.0f * v", "What has become of the half?"),
        ("0.5f * v * (1.0f + tanh(u))", "0.5f * v * 1.0f + tanh(u)",
         "Is the whole bracket multiplied by v?"),
        ("0.5f * v", "(1 / 2) * v", "In C, what is 1 / 2 of two whole numbers?"),
        ("0.5f * v", "0.5f * u", "Which of the two is the number, and which its bent twin?"),
    ],
    given=("0.5f * v", "1 / 2 * v"),
)  # fmt: skip

PLAIN = KernelTask(
    kernel_file("gelu"), "gelu_forward", _of_a_line, _gelu_want, cases=[(_numbers(19, 13),)]
)
WIDE = KernelTask(
    kernel_file("gelu"), "gelu_forward_wide", _by_eights, _gelu_want, cases=[(_numbers(20, 13),)]
)


def _tiled(engine, kernel, x, w, b):
    (rows, k), n = x.shape, w.shape[1]
    y = blank(engine, rows, n)
    there = [engine.from_host(array) for array in (x, w, b)]
    kernel((n, rows), (16, 16), *there, None, y, rows, n, k, k, 1, n, 1)
    return engine.to_host(y)


TILED = KernelTask(
    kernel_file("matmul"), "matmul_tiled", _tiled, _linear_want, cases=[_layer(21, 3, 5, 7)]
)

# ---- what the lesson asks ----

EXERCISES = {
    "05.2": Exercise(
        _tanh_form,
        cases=[
            (np.array([1.0, -1.0, 3.0]),),
            (np.linspace(-4, 4, 17),),
            (_exact(_numbers(22, 3, 5)),),
        ],
        mistakes=[
            (_erf_form, "That is the form with erf. Which one does this exercise ask for?"),
            (_of_u(lambda x, u: x / (1 + np.exp(2 * u))), "GELU of 3 is nearly 3. What is yours?"),
            (_of_u(lambda x, u: x / (1 + np.exp(-u))), "In the exponent stands -2u, and not -u."),
            (_of_u(lambda x, u: 1 / (1 + np.exp(-2 * u))), "That is the share. What is it a share "
             "of?"),
            (lambda x: x / (1 + np.exp(-2 * ROOT * x)), "Where is the term with x cubed?"),
            (lambda x: x / (1 + np.exp(-2 * (x + 0.044715 * x**3))), "Where is the root of 2/pi?"),
            (_of_u(lambda x, u: x / 1 + np.exp(-2 * u)), "What stands below the bar?"),
            (_relu, "That is ReLU, the bend with a corner."),
        ],
    ),
    "05.3": LINEAR,
    "05.4": Exercise(
        _which,
        cases=[
            (_tanh_form,),
            (_erf_form,),
            (_in_float32(_tanh_form),),
            (_in_float32(_erf_form),),
            (_relu,),
            (_quick,),
            (_right_above_zero,),
        ],
        mistakes=[
            (lambda f: _which(f, tolerance=1e-3), "Is your tolerance smaller than the gap between "
             "the two?"),
            (lambda f: _which(f, tolerance=0), "In float32, GELU is off by rounding. Does yours "
             "still count as one?"),
            (lambda f: _which(f, tolerance=1e-9), "In float32, GELU is off by rounding. Does yours "
             "still count as one?"),
            (lambda f: _which(f, places=np.zeros(1)), "At which numbers do the two differ at all?"),
            (lambda f: _which(f, places=np.full(1, 2.7)), "A curve may be right at some numbers. "
             "Did you look below zero, too?"),
            (lambda f: _which(f, places=np.linspace(0, 6, 601)), "A curve may be right at some "
             "numbers. Did you look below zero, too?"),
            (lambda f: _which(f, neither="erf"), "What do you say to a curve that is neither?"),
        ],
    ),
    "05.5": Exercise(
        lambda: "DBFA",
        cases=[()],
        mistakes=[
            (lambda: "DBF", "Each of the two layers has a bias. Where is the second?"),
            (lambda: "DBAF", "The last line gives the row its old width back. Which one is that?"),
            (lambda: "BDFA", "What is bent, if nothing is wide yet?"),
            (lambda: "DFBA", "What lies between two layers, so that they are not one?"),
            (lambda: "DFA", "What lies between two layers, so that they are not one?"),
            *(
                (lambda order=order: order, "One line lets places listen to each other. Does a "
                 "feed-forward do that?")
                for order in ("CDBFA", "DCBFA", "DBCFA", "DBFCA", "DCFA", "CDFA")
            ),
            *(
                (lambda order=order: order, "Which matrix takes F columns back to C?")
                for order in ("EBFA", "DBEA", "EDBFA", "DEBFA", "DBFEA", "DBEFA")
            ),
        ],
        secret=True,
    ),
    "05.6": HALF,
    "05.7": FUSED,
}  # fmt: skip

QUESTIONS = {
    "05.q1": Question("B", {
        "A": "more layers of this kind are still one layer, as the sum of sums is a sum",
        "B": "without a bend, two linear layers are one linear layer with other numbers",
        "C": "a bias shifts the numbers; it bends nothing",
    }),
    "05.q2": Question("A", {
        "A": "the gap is 4.7e-4 at most, so a tolerance of 1e-3 never sees it; the bound does",
        "B": "both are called GELU, and they differ by up to 4.7e-4, far above rounding",
        "C": "the file has no place for the form; llama.cpp computes the one with tanh",
    }),
    "05.q3": Question("B", {
        "A": "that is the width of all heads together; each query has only its own part",
        "B": "96 numbers shared by 3 heads: 32 products are added up in a score",
        "C": "3 is how many heads there are; a score is a sum over the width of one",
    }),
    "05.q4": Question("C", {
        "A": "a kernel cannot ask; it sees bytes, and takes four of them for a number",
        "B": "the bytes are read as they lie, and nobody compares their type",
        "C": "each id takes two places: its lower half, and 0; so every second id is 0",
    }),
    "05.q5": Question("C", {
        "A": "it may be right a thousand times, when the work-items happen to be in order",
        "B": "nothing is reported; only the strict device sees a race",
        "C": "who is late reads an old number; whether somebody is late is luck",
    }),
}  # fmt: skip

_LEVEL = _numbers(24, 3, 5), _numbers(25, 5, 7), np.full(7, 0.5, np.float32)

BROKEN = {
    "05.other_gelu": Broken(
        PLAIN,
        "v / (1.0f + exp(-TWO_ROOT * (v + CUBE * v * v * v)));",
        "0.5f * v * (1.0f + erf(0.70710678f * v));",
        tries=[
            ("numbers below 0.01", (np.linspace(-0.01, 0.01, 13).astype(np.float32),)),
            ("numbers up to 4", (np.linspace(-4, 4, 13).astype(np.float32),)),
        ],
        finder="check",
        reason="It is the form with erf, and 4.7e-4 away from the other one at worst.",
    ),
    "05.bias_row": Broken(
        TILED,
        "sum += bias[col];",
        "sum += bias[row];",
        tries=[
            ("a bias of equal numbers", _LEVEL),
            ("3 rows, 7 columns", _layer(21, 3, 5, 7)),
            ("7 rows, 3 columns", _layer(26, 7, 5, 3)),
        ],
        finder="invalid read",
        reason="A bias belongs to a column; with more rows than columns, it ends too early.",
    ),
    "05.no_rest": Broken(
        WIDE,
        "    if (i + 8 <= n) {\n",
        "    {\n",
        tries=[("16 numbers", (_numbers(27, 16),)), ("13 numbers", (_numbers(28, 13),))],
        finder="invalid write",
        reason="The last work-item takes eight numbers where only five are left.",
    ),
}
