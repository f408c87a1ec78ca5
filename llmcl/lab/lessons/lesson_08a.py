"""Lesson 08a, Backprop: linear."""

import numpy as np

from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file

U = bounds.U


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(*arrays):
    return [np.asarray(array, np.float64) for array in arrays]


# ---- dW: one work-item, one number ----


def _weight(engine, kernel, x, dy, start):
    (rows, k), n = x.shape, dy.shape[1]
    dw = engine.from_host(start)
    kernel((n, k), (4, 4), engine.from_host(x), engine.from_host(dy), dw, rows, k, n)
    return engine.to_host(dw)


def _weight_want(x, dy, start):
    x, dy, start = _exact(x, dy, start)
    terms = np.abs(x).T @ np.abs(dy) + np.abs(start)
    return start + x.T @ dy, (len(x) + 2) * U * terms


def _weight_case(seed, rows, k, n):
    return _numbers(seed, rows, k), _numbers(seed + 1, rows, n), _numbers(seed + 2, k, n)


WEIGHT = KernelTask(
    """
__kernel void weight_gradient(__global const float *x,    // (rows, k)
                              __global const float *dy,   // (rows, n)
                              __global float *dw,         // (k, n), added to
                              const int rows, const int k, const int n)
{
    const int col = get_global_id(0), p = get_global_id(1);
    if (col >= n || p >= k) return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row)
        sum += x[row * k + p] * dy[row * n + col];
    dw[p * n + col] += sum;
}
""",
    "weight_gradient",
    _weight,
    _weight_want,
    cases=[_weight_case(1, 7, 3, 5), _weight_case(4, 6, 4, 2), _weight_case(7, 4, 4, 4)],
    mistakes=[
        ("dw[p * n + col] += sum", "dw[p * n + col] = sum",
         "dw may hold something already. Is it added to, or lost?"),
        ("    if (col >= n || p >= k) return;\n", "", "Which work-items have no number of their "
         "own, and do they leave?"),
        ("x[row * k + p]", "x[p * k + row]", "x lies row after row. In which row and which column "
         "is the number that you want?"),
        ("x[row * k + p]", "x[row * n + p]", "How long is a row of x, and how long is one of dy?"),
        ("dy[row * n + col]", "dy[row * k + col]", "How long is a row of x, and how long is one of "
         "dy?"),
        ("row < rows", "row < k", "Over what does the sum run, and how many of those are there?"),
        ("row < rows", "row < n", "Over what does the sum run, and how many of those are there?"),
        ("dw[p * n + col]", "dw[p * k + col]", "How long is a row of dw?"),
        ("col = get_global_id(0), p = get_global_id(1)", "p = get_global_id(0), "
         "col = get_global_id(1)", "Which id is the column, and which one is p?"),
        ("dy[row * n + col]", "dy[col * n + row]", "dy lies row after row. In which row and which "
         "column is the number that you want?"),
        ("        sum += x[row * k + p] * dy[row * n + col];\n    dw[p * n + col] += sum;",
         "    {\n        sum += x[row * k + p] * dy[row * n + col];\n        dw[p * n + col] += "
         "sum;\n    }", "How often is the sum added to dw: for each row, or once at the end?"),
        ("dw[p * n + col]", "dw[col * k + p]", "Is p the row of dw, or the column?"),
        ("float sum = 0.0f", "float sum = dw[p * n + col]", "How often is what lay in dw before "
         "counted?"),
        ("        sum += x[row * k + p] * dy[row * n + col];\n    dw[p * n + col] += sum;",
         "        sum += dy[row * n + col];\n    dw[p * n + col] += sum;",
         "How far does a bit more of this weight move y? By a number of x."),
    ],
)  # fmt: skip


# ---- dx: a transpose that is missing ----


def _input(engine, kernel, w, dy):
    (k, n), rows = w.shape, len(dy)
    dx = blank(engine, rows, k)
    kernel((k, rows), (4, 4), engine.from_host(w), engine.from_host(dy), dx, rows, k, n)
    return engine.to_host(dx)


def _input_want(w, dy):
    w, dy = _exact(w, dy)
    return dy @ w.T, (w.shape[1] + 1) * U * (np.abs(dy) @ np.abs(w).T)


INPUT = KernelTask(
    """
__kernel void input_gradient(__global const float *w,    // (k, n)
                             __global const float *dy,   // (rows, n)
                             __global float *dx,         // (rows, k)
                             const int rows, const int k, const int n)
{
    const int p = get_global_id(0), row = get_global_id(1);
    if (p >= k || row >= rows) return;
    float sum = 0.0f;
    for (int col = 0; col < n; ++col)
        sum += dy[row * n + col] * w[p * n + col];
    dx[row * k + p] = sum;
}
""",
    "input_gradient",
    _input,
    _input_want,
    cases=[(_numbers(11, 4, 4), _numbers(12, 4, 4)), (_numbers(13, 3, 5), _numbers(14, 7, 5))],
    given=("w[p * n + col]", "w[col * k + p]"),
    mistakes=[
        ("w[p * n + col]", "w[col * n + p]", "Which two numbers of w are side by side in memory: "
         "those of one row, or those of one column?"),
        ("w[p * n + col]", "w[p * k + col]", "How long is a row of w?"),
        ("w[p * n + col]", "w[row * n + col]", "Which row of w belongs to dx[row][p]?"),
        ("dy[row * n + col] * w[p * n + col]", "dy[col * n + row] * w[p * n + col]",
         "dy was right. Which of the two matrices is turned around in dy times w transposed?"),
        ("dy[row * n + col] * w[p * n + col]", "dy[col * n + row] * w[col * k + p]",
         "dy was right. Which of the two matrices is turned around in dy times w transposed?"),
    ],
)  # fmt: skip


# ---- dW and db in one go ----


def _both(engine, kernel, x, dy, start_w, start_b):
    (rows, k), n = x.shape, dy.shape[1]
    dw, db = engine.from_host(start_w), engine.from_host(start_b)
    kernel((n, k), (4, 4), engine.from_host(x), engine.from_host(dy), dw, db, rows, k, n)
    return np.concatenate([engine.to_host(dw).ravel(), engine.to_host(db)])


def _both_want(x, dy, start_w, start_b):
    want, bound = _weight_want(x, dy, start_w)
    dy, start_b = _exact(dy, start_b)
    off = (len(dy) + 2) * U * (np.abs(dy).sum(axis=0) + np.abs(start_b))
    want_b = start_b + dy.sum(axis=0)
    return np.concatenate([want.ravel(), want_b]), np.concatenate([bound.ravel(), off])


def _both_case(seed, rows, k, n):
    return *_weight_case(seed, rows, k, n), _numbers(seed + 3, n)


BOTH = KernelTask(
    """
__kernel void weight_and_bias(__global const float *x, __global const float *dy,
                              __global float *dw,         // (k, n), added to
                              __global float *db,         // (n), added to
                              const int rows, const int k, const int n)
{
    const int col = get_global_id(0), p = get_global_id(1);
    if (col >= n || p >= k) return;
    float sum = 0.0f, total = 0.0f;
    for (int row = 0; row < rows; ++row) {
        sum += x[row * k + p] * dy[row * n + col];
        total += dy[row * n + col];
    }
    dw[p * n + col] += sum;
    if (p == 0) db[col] += total;
}
""",
    "weight_and_bias",
    _both,
    _both_want,
    cases=[_both_case(15, 7, 3, 5), _both_case(19, 2, 6, 4)],
    mistakes=[
        ("if (p == 0) db", "db", "Which work-items add to db[col]? It should be one for each "
         "column."),
        ("if (p == 0) db", "if (col == 0) db", "Which work-items add to "
         "db[col]? It should be one for each column."),
        ("db[col] += total", "db[col] = total", "db may hold something already. Is it added to, "
         "or lost?"),
        ("db[col] += total", "db[col] += sum", "By how much does a bit more of a bias move y? Is "
         "x a part of that?"),
        ("if (p == 0) db[col]", "if (p == 0) db[p]", "How many biases are there, and which one is "
         "this column's?"),
        ("    if (p == 0) db[col] += total;", "", "Who adds to db?"),
        ("total += dy[row * n + col]", "total += x[row * k + p]", "A bias was added to y. Whose "
         "column is its gradient the sum of?"),
        ("dw[p * n + col] +=", "dw[p * n + col] =", "dw may hold something already. Is it added "
         "to, or lost?"),
    ],
)  # fmt: skip


COLUMNS_CASES = {
    "even": (np.ones((4, 4), np.float32), np.zeros(4, np.float32)),
    "square": (_numbers(23, 4, 4), np.zeros(4, np.float32)),
    "wide": (_numbers(24, 3, 7), np.zeros(7, np.float32)),
    "clear": (_numbers(25, 7, 5), np.zeros(5, np.float32)),
    "full": (_numbers(25, 7, 5), _numbers(26, 5)),
}


def _columns(engine, kernel, x, start):
    rows, n = x.shape
    total = engine.from_host(start)
    kernel((n,), (4,), engine.from_host(x), total, rows, n)
    return engine.to_host(total)


def _columns_want(x, start):
    x, start = _exact(x, start)
    return start + x.sum(axis=0), (len(x) + 2) * U * (np.abs(x).sum(axis=0) + np.abs(start))


COLUMNS = KernelTask(
    kernel_file("column_sum"), "column_sum", _columns, _columns_want, cases=[COLUMNS_CASES["full"]]
)


# ---- NumPy ----


def _input_gradient(w, dy):
    return dy @ w.T


def _slope(f, w, place, h):
    up, down = w.copy(), w.copy()
    up[place] += h
    down[place] -= h
    return (f(up) - f(down)) / (2 * h)


def _one_sided(f, w, place, h):
    up = w.copy()
    up[place] += h
    return (f(up) - f(w)) / h


def _backward_sided(f, w, place, h):
    down = w.copy()
    down[place] -= h
    return (f(w) - f(down)) / h


def _all_at_once(f, w, place, h):
    return (f(w + h) - f(w - h)) / (2 * h)


def _one_number_alone(f, w, place, h):
    return (f(w[place] + h) - f(w[place] - h)) / (2 * h)


def _replaced(f, w, place, h):
    up, down = w.copy(), w.copy()
    up[place], down[place] = h, -h
    return (f(up) - f(down)) / (2 * h)


def _one_is_no_copy(f, w, place, h):
    return (f(_moved(w, place, h)) - f(w)) / (2 * h)


def _moved(w, place, by):
    moved = w.copy()
    moved[place] += by
    return moved


def _cubes(w):
    return float((np.arange(1, w.size + 1).reshape(w.shape) * w**3).sum())


def _product(w):
    return float(np.prod(w + 2.0))


def _of_its_kind(w):
    """A sum that tells float32 from float64: the V-curve needs all numbers in one kind."""
    return w.dtype.itemsize * float(w.sum())


EXERCISES = {
    "08a.2": Exercise(
        _input_gradient,
        # Squares on purpose: a transpose that is missing gives numbers there, and no error.
        cases=[_exact(_numbers(s, 3, 3), _numbers(s + 1, 3, 3)) for s in (31, 33)],
        mistakes=[
            (lambda w, dy: dy @ w, "Over what does your product add: over the columns of y?"),
            (lambda w, dy: w @ dy, "Which comes first? The rows of dx are the rows of dy."),
            (lambda w, dy: w.T @ dy, "Which comes first? The rows of dx are the rows of dy."),
            (lambda w, dy: w @ dy.T, "That is dx turned around: its rows should be places."),
            (lambda w, dy: dy.T @ w, "Which of the two has to be turned, so that the columns of y "
             "meet?"),
            (lambda w, dy: dy.T @ w.T, "Which of the two has to be turned, so that the columns of "
             "y meet?"),
            (lambda w, dy: dy * w, "A product of matrices is @, and * multiplies place by place."),
            (lambda w, dy: dy * w.T, "A product of matrices is @, and * multiplies place by "
             "place."),
        ],
    ),
    "08a.3": Exercise(
        _slope,
        cases=[
            (_cubes, np.array([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0]]), (0, 1), 0.5),
            (_cubes, np.array([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0]]), (1, 2), 0.25),
            (_product, np.array([1.0, -1.0, 4.0]), (2,), 0.001),
            (_of_its_kind, np.ones(3, np.float32), (1,), 0.5),
        ],
        mistakes=[
            (_one_sided, "Where is the step down?"),
            (_backward_sided, "Where is the step up?"),
            (lambda f, w, place, h: 2 * _slope(f, w, place, h),
             "How far apart are the two places where you asked?"),
            (lambda f, w, place, h: _slope(f, w, place, h) / 2,
             "How far apart are the two places where you asked?"),
            (lambda f, w, place, h: _slope(f, w, place, h) * 2 * h,
             "How far apart are the two places where you asked?"),
            (lambda f, w, place, h: -_slope(f, w, place, h), "Which one is taken from which?"),
            (lambda f, w, place, h: _slope(f, w, place, h) * h * h,
             "In / 2 * h, Python divides by 2 and then multiplies. Where do brackets belong?"),
            (lambda f, w, place, h: _slope(f, w.astype(np.float64), place, h),
             "If w is float32, is your copy float32, too?"),
            (_one_number_alone, "What does f take: a single number, or the whole array?"),
            (_replaced, "Does the number at `place` move by h, or does it become h?"),
            (_one_is_no_copy, "Were both moved, and is each a copy of its own? `up = w` is another "
             "name, not a copy."),
            (_all_at_once, "Is one number nudged, or are all of them?"),
            (lambda f, w, place, h: 0.0, "Do both calls get the same numbers? `up = w` is another "
             "name, not a copy."),
        ],
        tolerance=1e-5,
    ),
    "08a.4": WEIGHT,
    "08a.6": Exercise(
        lambda: "BADEC",
        cases=[()],
        mistakes=[
            (lambda: "ADEBC", "If everything is set to 0 there, what is left for the step?"),
            (lambda: "ADECB", "What does dw hold in the very first step, if nobody cleared it "
             "before?"),
            (lambda: "ADEC", "What does dw still hold from the step before?"),
            (lambda: "ADEFC", "x is the data. Does training change the data?"),
            (lambda: "BADEF", "x is the data. Does training change the data?"),
            (lambda: "BADEFC", "x is the data. Does training change the data?"),
            (lambda: "BADECF", "x is the data. Does training change the data?"),
            (lambda: "BADCE", "Can a weight move before its gradient is there?"),
            (lambda: "BACDE", "Can a weight move before its gradient is there?"),
            (lambda: "BAEDC", "Which line needs dy, and which one makes it?"),
            (lambda: "BDAEC", "Which line needs y, and which one makes it?"),
            (lambda: "ABDEC", "That works, too. But begin with the line that must come before "
             "anything is added."),
            (lambda: "ADBEC", "That works, too. But begin with the line that must come before "
             "anything is added."),
        ],
        secret=True,
    ),
    "08a.7": INPUT,
    "08a.8": BOTH,
}  # fmt: skip

QUESTIONS = {
    "08a.q1": Question("B", {
        "A": "rows times rows give (rows, rows): who listens to whom, and no weight",
        "B": "(k, rows) times (rows, n) gives (k, n), the shape of W, and adds over the rows",
        "C": "its shape fits by chance if k, n and rows are equal, and its numbers do not",
    }),
    "08a.q2": Question("C", {
        "A": "that helps the left side, rounding; the error was the same at every step",
        "B": "float64 makes rounding smaller; this error is not rounding",
        "C": "a V has two sides; an error that no step changes lies in the formula",
    }),
    "08a.q3": Question("B", {
        "A": "a place without a target says nothing about the model, so it must not count",
        "B": "the sum runs over places with a target, and so does the count",
        "C": "a long sentence has more to say than a short one; places are what is counted",
    }),
    "08a.q4": Question("A", {
        "A": "one for each column; so its gradient is a sum over the rows that share it",
        "B": "all rows share the same biases, or the layer could not take a longer text",
        "C": "one for each weight would be a second W; a bias is added to a finished sum",
    }),
    "08a.q5": Question("B", {
        "A": "a shuffled row is another id; a look-up takes the row as it is",
        "B": "a row with a single 1 picks one row of the table",
        "C": "that would be the mean of all tokens, the same for every id",
    }),
}  # fmt: skip

BROKEN = {
    "08a.twice": Broken(
        COLUMNS,
        "float total = 0.0f;",
        "float total = sum[col];",
        tries=[
            ("sum begins at 0", COLUMNS_CASES["clear"]),
            ("sum begins with numbers", COLUMNS_CASES["full"]),
        ],
        finder="check",
        reason="What lay in sum before is counted twice; at 0 nobody sees it.",
    ),
    "08a.no_transpose": Broken(
        WEIGHT,
        "x[row * k + p]",
        "x[p * k + row]",
        tries=[
            ("all ones, 4 x 4", (np.ones((4, 4), np.float32),) * 2 + (np.zeros((4, 4)),)),
            ("4 x 4", _weight_case(27, 4, 4, 4)),
            ("3 rows, k = 5", _weight_case(30, 3, 5, 4)),
        ],
        finder="invalid read",
        reason="x is read along a row, as if it were turned already.",
    ),
    "08a.wrong_axis": Broken(
        COLUMNS,
        "x[row * n + col]",
        "x[col * n + row]",
        tries=[
            ("all ones, 4 x 4", COLUMNS_CASES["even"]),
            ("4 x 4", COLUMNS_CASES["square"]),
            ("3 rows, 7 columns", COLUMNS_CASES["wide"]),
        ],
        finder="invalid read",
        reason="It adds up row number col, and there are fewer rows than columns.",
    ),
}
