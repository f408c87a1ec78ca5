"""Lesson 06, Norm and residual."""

import numpy as np

from ... import reference
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file

U, FEW = bounds.U, bounds.FEW


def _numbers(seed, *shape, scale=1.0, mean=0.0):
    return (mean + scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- layer norm in NumPy, and how it goes wrong ----


def _layer_norm(x, gamma, beta, epsilon, ddof=0, axis=-1, place="inside", center=True):
    away = x - x.mean(axis=axis, keepdims=True) if center else x
    variance = x.var(axis=axis, keepdims=True, ddof=ddof)
    root = {
        "inside": lambda: np.sqrt(variance + epsilon),
        "outside": lambda: np.sqrt(variance) + epsilon,
        "nowhere": lambda: np.sqrt(variance),
        "no root": lambda: variance + epsilon,
    }[place]()
    return away / root * gamma + beta


def _one_pass(x, gamma, beta, epsilon):
    mean = x.mean(axis=-1, keepdims=True)
    variance = (x * x).mean(axis=-1, keepdims=True) - mean * mean
    return (x - mean) / np.sqrt(np.abs(variance) + epsilon) * gamma + beta


def _wrong_norm(**how):
    """A wrong layer norm that does not print NumPy's warnings of a division by 0."""

    def run(x, gamma, beta, epsilon):
        with np.errstate(all="ignore"):
            return _layer_norm(x, gamma, beta, epsilon, **how)

    return run


def _case(seed, rows, columns, scale=1.0, mean=0.0):
    rng = np.random.default_rng(seed)
    x = mean + scale * rng.normal(size=(rows, columns))
    return x, rng.normal(size=columns), rng.normal(size=columns), 1e-5


_CASES = [
    _case(1, 3, 5, scale=0.01),
    _case(2, 4, 4),
    (np.full((2, 3), 0.5), np.array([1.0, 2, 3]), np.array([3.0, 2, 1]), 1e-5),
    _case(3, 2, 6, mean=1e9),
]

# ---- a block ----


def _block(x, norm1, attention, norm2, feed_forward):
    h = x + attention(norm1(x))
    return h + feed_forward(norm2(h))


def _norm1(x):
    return 3 * (x - x.mean(axis=-1, keepdims=True))


def _norm2(x):
    return x / (1 + np.abs(x).max(axis=-1, keepdims=True)) + 0.5


def _mix(x):
    return np.cumsum(x, axis=0) / 2


def _bend(x):
    return np.maximum(x - 0.25, 0) * 3


_PARTS = _norm1, _mix, _norm2, _bend
_X = _exact(_numbers(4, 3, 4))


def _block_weights(c, norms=2, biases=True, qkv=3, wide=4, output=1):
    matrices = (qkv + output) * c * c + 2 * wide * c * c
    return matrices + biases * ((qkv + output) * c + (wide + 1) * c) + norms * 2 * c


# ---- kernels ----


def _norm(engine, kernel, x, gamma, beta):
    (rows, c), y = x.shape, blank(engine, *x.shape)
    there = [engine.from_host(array) for array in (x, gamma, beta)]
    kernel((rows,), (4,), *there, y, blank(engine, rows), blank(engine, rows), rows, c, 1e-5)
    return engine.to_host(y)


def _norm_want(x, gamma, beta):
    exact = [_exact(array) for array in (x, gamma, beta)]
    return reference.layer_norm(*exact)[0], bounds.layer_norm(*exact)[0]


def _rows(seed, rows, c, scale=1.0, mean=0.0):
    return _numbers(seed, rows, c, scale=scale, mean=mean), *(_numbers(seed + i, c) for i in (1, 2))


def _fresh(seed, rows, c):
    return _numbers(seed, rows, c), np.ones(c, np.float32), np.zeros(c, np.float32)


NORM = KernelTask(
    kernel_file("layer_norm"), "layer_norm_forward", _norm, _norm_want, cases=[_rows(11, 3, 7)]
)


def _stretch(engine, kernel, x, gamma, beta):
    (rows, c), y = x.shape, blank(engine, *x.shape)
    there = [engine.from_host(array) for array in (x, gamma, beta)]
    kernel((rows,), (4,), *there, y, rows, c, 1e-5)
    return engine.to_host(y)


STRETCH = KernelTask(
    """
__kernel void norm_row(__global const float *x, __global const float *gamma,
                       __global const float *beta, __global float *y,
                       const int rows, const int C, const float epsilon)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = x + row * C;
    __global float *out = y + row * C;

    float sum = 0.0f;
    for (int c = 0; c < C; ++c) sum += in[c];
    const float m = sum / C;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c) squares += (in[c] - m) * (in[c] - m);
    const float r = 1.0f / sqrt(squares / C + epsilon);

    for (int c = 0; c < C; ++c) out[c] = (in[c] - m) * r * gamma[c] + beta[c];
}
""",
    "norm_row",
    _stretch,
    _norm_want,
    cases=[_fresh(21, 3, 7), _rows(22, 3, 7), _rows(25, 5, 4)],
    mistakes=[
        ("gamma[c] + beta[c]", "gamma[row] + beta[row]", "And beta: has each row its own, or each "
         "column?"),
        ("gamma[c] + beta[c]", "gamma[0] + beta[c]", "Does every column use the same gamma?"),
        (" * gamma[c]", "", "What stretches the columns now?"),
        ("gamma[c] + beta[c]", "gamma[row * C + c] + beta[c]", "How many numbers has gamma: C, or "
         "one for every element of x?"),
        ("squares / C", "squares / (C - 1)", "That line was right. By how many is divided?"),
    ],
    given=("gamma[c]", "gamma[row]"),
)  # fmt: skip


def _rms(engine, kernel, x, gamma):
    (rows, c), y = x.shape, blank(engine, *x.shape)
    kernel((rows,), (4,), engine.from_host(x), engine.from_host(gamma), y, rows, c, 1e-5)
    return engine.to_host(y)


def _rms_want(x, gamma):
    x, gamma = _exact(x), _exact(gamma)
    y = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * gamma
    return y, (x.shape[1] / 2 + FEW + 5) * U * np.abs(y)


RMS = KernelTask(
    """
__kernel void rms_norm(__global const float *x,        // (rows, C)
                       __global const float *gamma,    // (C)
                       __global float *y,              // (rows, C)
                       const int rows, const int C, const float epsilon)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    float squares = 0.0f;
    for (int c = 0; c < C; ++c) squares += x[row * C + c] * x[row * C + c];
    const float r = 1.0f / sqrt(squares / C + epsilon);
    for (int c = 0; c < C; ++c) y[row * C + c] = x[row * C + c] * r * gamma[c];
}
""",
    "rms_norm",
    _rms,
    _rms_want,
    cases=[
        (_numbers(31, 3, 7, scale=0.01), _numbers(32, 7)),
        (_numbers(33, 5, 4), _numbers(34, 4)),
    ],
    mistakes=[
        ("sqrt(squares / C + epsilon)", "(sqrt(squares / C) + epsilon)", "Does epsilon stand "
         "inside of the root?"),
        ("squares / C", "squares", "Is it the sum of the squares, or their mean?"),
        ("gamma[c]", "gamma[row]", "Has each row its own gamma, or each column?"),
        (" * gamma[c]", "", "Where does gamma come in?"),
        ("    if (row >= rows) return;\n", "", "Which work-items have no row of their own, and do "
         "they leave?"),
        ("squares += x[row * C + c] * x[row * C + c]", "squares += x[row * C + c]",
         "What is added up: the numbers, or their squares?"),
        ("1.0f / sqrt(", "sqrt(", "A row of large numbers should become smaller. Does yours?"),
    ],
)  # fmt: skip

# ---- what the lesson asks ----

EXERCISES = {
    "06.2": Exercise(
        _layer_norm,
        cases=_CASES,
        mistakes=[
            (_wrong_norm(ddof=1), "By how many is the sum of squares divided: by C, or by C - 1?"),
            (_wrong_norm(place="outside"), "Does epsilon stand inside of the root?"),
            (_wrong_norm(place="nowhere"), "What happens to a row of equal numbers?"),
            (_wrong_norm(place="no root"), "The variance is a square. What makes it a spread?"),
            (lambda x, g, b, e: _layer_norm(x, g, b, e, center=False), "Is the mean taken away?"),
            (lambda x, g, b, e: _layer_norm(x, 1, b, e), "Where does gamma come in?"),
            (lambda x, g, b, e: _layer_norm(x, g, 0, e), "Where does beta come in?"),
            (lambda x, g, b, e: _layer_norm(x, g, 0, e) + b * g, "Is beta stretched by "
             "gamma, too?"),
            (lambda x, g, b, e: _layer_norm(x, g, b, e, axis=0), "Is it the mean of each row, or "
             "of each column?"),
            (lambda x, g, b, e: _layer_norm(x, g, b, e, axis=None), "Has each row a mean of its "
             "own?"),
            (_one_pass, "The mean of the squares minus the square of the mean: what if the mean is "
             "a billion?"),
        ],
    ),
    "06.3": Exercise(
        _block,
        cases=[(_X, *_PARTS), (2 * _X, _norm2, _bend, _norm1, _mix)],
        mistakes=[
            (lambda x, n1, a, n2, f: x + f(n2(x + a(n1(x)))), "What does the second branch start "
             "from, and what is it added to?"),
            (lambda x, n1, a, n2, f: x + a(n1(x)) + f(n2(x)), "Does the feed-forward see what the "
             "attention has brought?"),
            (lambda x, n1, a, n2, f: n2(n1(x + a(x)) + f(n1(x + a(x)))), "That is post-norm. In a "
             "pre-norm block, does anything stand on the road itself?"),
            (lambda x, n1, a, n2, f: f(n2(a(n1(x)))), "Where is the bypass?"),
            (lambda x, n1, a, n2, f: _block(x, lambda y: y, a, lambda y: y, f), "Where are the two "
             "norms?"),
            (lambda x, n1, a, n2, f: _block(x, n1, a, lambda y: y, f), "Where is the second norm?"),
            (lambda x, n1, a, n2, f: _block(x, lambda y: n1(a(y)), lambda y: y, n2, f), "Does the "
             "norm come before its branch, or after?"),
            (lambda x, n1, a, n2, f: _block(x, lambda y: n1(a(y)), lambda y: y,
                                            lambda y: n2(f(y)), lambda y: y),
             "Does the norm come before its branch, or after?"),
            (lambda x, n1, a, n2, f: _block(x, n2, a, n1, f), "Which norm is for which branch?"),
            (lambda x, n1, a, n2, f: _block(x, n1, a, n1, f), "Which norm is for which branch?"),
            (lambda x, n1, a, n2, f: n1(x) + a(n1(x)) + f(n2(n1(x) + a(n1(x)))), "Is x itself on "
             "the road, or its normed twin?"),
        ],
    ),
    "06.4": Exercise(
        _block_weights,
        cases=[(8,), (96,), (768,)],
        mistakes=[
            (lambda c: _block_weights(c, norms=0), "Have you counted both norms, gamma and beta?"),
            (lambda c: _block_weights(c, norms=1), "How many norms has a block?"),
            (lambda c: _block_weights(c, biases=False), "Have you counted the biases?"),
            (lambda c: 12 * c * c, "Have you counted what has only C or 4 C numbers?"),
            (lambda c: _block_weights(c, output=0), "What comes after the heads are joined?"),
            (lambda c: _block_weights(c, wide=1), "How wide is the feed-forward inside?"),
            (lambda c: _block_weights(c, qkv=1), "Query, key and value: how many tables is that?"),
        ],
        tolerance=0,
    ),
    "06.5": Exercise(
        lambda: "CFADB",
        cases=[()],
        mistakes=[
            (lambda: "CAFDB", "Can distances be squared before there is a mean?"),
            (lambda: "FCADB", "What is divided by C, if nothing was added up yet?"),
            (lambda: "CFDAB", "What is under the root, if no squares were added up yet?"),
            (lambda: "CFABD", "Can the row be written before r is known?"),
            *(
                (lambda order=order: order, "One line squares the wrong thing. Distances from "
                 "what are squared?")
                for order in ("CFEDB", "CEFDB", "ECFDB", "CFAEDB", "CFEADB", "CEFADB", "ECFADB")
            ),
        ],
        secret=True,
    ),
    "06.6": STRETCH,
    "06.7": RMS,
}  # fmt: skip

QUESTIONS = {
    "06.q1": Question("A", {
        "A": "it then limits the factor to 316, and it is where GPT-2 and llama.cpp have it",
        "B": "then the factor can reach 100,000, and rounding of a nearly constant row is blown up",
        "C": "that changes every result, and a row of equal numbers is still 0/0",
    }),
    "06.q2": Question("C", {
        "A": "the norm sees to that: each row comes back to one size",
        "B": "the norm sees to that too: nothing can grow",
        "C": "attention takes the mean of the places again and again, and no row keeps its own",
    }),
    "06.q3": Question("B", {
        "A": "all places use the same weights",
        "B": "each place is computed from its own row alone; attention is what lets places talk",
        "C": "a bend is what makes it more than one linear layer",
    }),
    "06.q4": Question("A", {
        "A": "a sum of d products grows with the root of d, and softmax would give all to one key",
        "B": "the mask hides the future; the division has nothing to do with it",
        "C": "softmax makes them sum to 1, whatever the scores are",
    }),
    "06.q5": Question("B", {
        "A": "it is not about time: choosing takes as long with a rule as without",
        "B": "two machines could learn two vocabularies, and an id would mean two things",
        "C": "bytes are never lost, whichever pair is merged",
    }),
}  # fmt: skip

BROKEN = {
    "06.epsilon_outside": Broken(
        NORM,
        "1.0f / sqrt(squares / C + epsilon);",
        "1.0f / (sqrt(squares / C) + epsilon);",
        tries=[
            ("rows that spread by 1000", _rows(12, 3, 7, scale=1000)),
            ("rows that spread by 0.1", _rows(13, 3, 7, scale=0.1)),
            ("rows that spread by 0.001", _rows(14, 3, 7, scale=0.001)),
        ],
        finder="check",
        reason="The smaller the spread, the more epsilon counts, and outside it counts more.",
    ),
    "06.n_minus_1": Broken(
        NORM,
        "squares / C + epsilon",
        "squares / (C - 1) + epsilon",
        tries=[
            ("2 rows of 4096", _rows(15, 2, 4096)),
            ("3 rows of 7", _rows(16, 3, 7)),
            ("2 rows of 1", _rows(17, 2, 1)),
        ],
        finder="check",
        reason="In a long row n and n - 1 are nearly the same; in a short one they are not.",
    ),
    "06.one_pass": Broken(
        NORM,
        """    for (int c = 0; c < C; ++c) {
        const float d = in[c] - m;
        squares += d * d;
    }
""",
        """    for (int c = 0; c < C; ++c) squares += in[c] * in[c];
    squares -= C * m * m;
""",
        tries=[
            ("rows around 0", _rows(18, 3, 7)),
            ("rows around 1000", _rows(19, 3, 7, mean=1000)),
            ("rows around 100000", _rows(20, 3, 7, mean=100_000)),
        ],
        finder="check",
        reason="Two large numbers that are nearly equal: their difference has lost its digits.",
    ),
}
