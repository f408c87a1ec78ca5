"""Lesson 13, Faster."""

import numpy as np

from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank


def _numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


def _exact(a, b):
    exact = a.astype(np.float64), b.astype(np.float64)
    return exact[0] @ exact[1], bounds.matmul(*exact)[0]


# ---- 13.2: operations per byte ----


def _intensity(m, k, n, work=2, bytes_each=4, matrices="abc"):
    numbers = {"a": m * k, "b": k * n, "c": m * n}
    return work * m * n * k / (bytes_each * sum(numbers[name] for name in matrices))


def _other(**changes):
    return lambda m, k, n: _intensity(m, k, n, **changes)


# ---- 13.3: four rows of one column ----


def _launch_rows(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = blank(engine, m, n)
    kernel((n, -(-m // 4)), (4, 2), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


_LAST = "What if only two of the four rows are there?"

FOUR_ROWS = KernelTask(
    """
__kernel void four_rows(__global const float *restrict a, __global const float *restrict b,
                        __global float *restrict c, const int m, const int n, const int k)
{
    const int col = get_global_id(0), row = 4 * get_global_id(1);
    if (row >= m || col >= n) return;
    int at[4];
    float sum[4];
    for (int r = 0; r < 4; ++r) {
        at[r] = min(row + r, m - 1) * k;
        sum[r] = 0.0f;
    }
    for (int p = 0; p < k; ++p) {
        const float right = b[p * n + col];
        for (int r = 0; r < 4; ++r) sum[r] += a[at[r] + p] * right;
    }
    for (int r = 0; r < 4; ++r)
        if (row + r < m) c[(row + r) * n + col] = sum[r];
}
""",
    "four_rows",
    _launch_rows,
    _exact,
    cases=[_numbers(1, (8, 5), (5, 4)), _numbers(2, (6, 7), (7, 3)), _numbers(3, (5, 3), (3, 2))],
    mistakes=[
        ("        if (row + r < m) c[", "        c[", _LAST),
        ("min(row + r, m - 1)", "(row + r)", _LAST),
        ("row >= m || col >= n", "row + 3 >= m || col >= n", "Who computes the last rows, when m "
         "is no multiple of four?"),
        ("    const int col = get_global_id(0), row = 4 * get_global_id(1);",
         "    const int col = get_global_id(0), row = get_global_id(1);",
         "A work-item owns four rows. Which is its first one?"),
        ("        sum[r] = 0.0f;\n", "", "What lies in a variable that nobody has set?"),
        ("b[p * n + col]", "b[p * k + col]", "Which place is read? A row of b has n numbers, and "
         "at[r] is a place already."),
        ("b[p * n + col]", "b[col * n + p]", "b: is p its row, or its column?"),
        ("m - 1) * k;", "m - 1);", "Where in a does row 1 begin: at place 1, or at place k?"),
        ("m - 1) * k", "m - 1) * n", "How long is a row of a?"),
        ("a[at[r] + p]", "a[at[0] + p]", "Do all four sums use the same row of a?"),
        ("sum[r] += a", "sum[r] = a", "Is the last product the sum?"),
        ("c[(row + r) * n + col]", "c[row * n + r + col]", "Do the four results lie side by side, "
         "or below each other?"),
    ],
)  # fmt: skip


# ---- 13.4: four results an item, over tiles ----


def _launch_tall(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = blank(engine, m, n)
    kernel((n, -(-m // 4)), (4, 4), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


TALL_TILES = KernelTask(
    """
#ifndef T
#define T 4
#endif
__kernel void tall_tiles(__global const float *restrict a, __global const float *restrict b,
                         __global float *restrict c, const int m, const int n, const int k)
{
    __local float ta[4 * T * T], tb[T * T];
    const int x = get_local_id(0), y = get_local_id(1);
    const int col = get_global_id(0), row = 4 * T * get_group_id(1) + y;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int start = 0; start < k; start += T) {
        for (int r = 0; r < 4; ++r) {
            const int at = row + r * T;
            ta[(r * T + y) * T + x] = at < m && start + x < k ? a[at * k + start + x] : 0.0f;
        }
        tb[y * T + x] = start + y < k && col < n ? b[(start + y) * n + col] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < T; ++p) {
            const float right = tb[p * T + x];
            for (int r = 0; r < 4; ++r) sum[r] += ta[(r * T + y) * T + p] * right;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int r = 0; r < 4; ++r)
        if (row + r * T < m && col < n) c[(row + r * T) * n + col] = sum[r];
}
""",
    "tall_tiles",
    _launch_tall,
    _exact,
    cases=[_numbers(4, (18, 6), (6, 5)), _numbers(5, (5, 9), (9, 7))],
    mistakes=[
        ("tb[p * T + x];", "tb[x * T + p];", "The tile of b: is p its row or its column?"),
        ("ta[(r * T + y) * T + p] *", "ta[(r * T + p) * T + y] *", "The tile of a: is p its row or "
         "its column?"),
        ("ta[(r * T + y) * T + p] *", "ta[(r + y) * T + p] *", "How far apart are the four rows of "
         "a work-item?"),
        ("tb[p * T + x];", "tb[p * T + y];", "The column of the result is that of x. And here?"),
        ("ta[(r * T + y) * T + p] *", "ta[(r * T + y) * T + x] *", "Each p is another term of the "
         "sum. Which column of the tile is it?"),
        ("ta[(r * T + y) * T + p] *", "ta[(r * T + x) * T + p] *", "The row of the result is that "
         "of y. And here?"),
        ("ta[(r * T + y) * T + p] *", "ta[y * T + p] *", "Do all four sums use the same row?"),
        ("ta[(r * T + y) * T + p] *", "ta[(4 * y + r) * T + p] *", "How far apart are the four "
         "rows of a work-item?"),
        ("sum[r] += ta", "sum[r] = ta", "Is the last product the sum?"),
        ("p < T; ++p)", "p < k; ++p)", "How many steps of the sum are in a tile?"),
    ],
)  # fmt: skip


# ---- 13.7: online softmax ----


def _one_pass(scores, values, total_shrinks=True, heard_shrinks=True, other_way=False,
              new_shrinks=False):  # fmt: skip
    largest, total, heard = -np.inf, 0.0, np.zeros(values.shape[1])
    for score, value in zip(scores, values, strict=True):
        larger = max(largest, score)
        with np.errstate(over="ignore", invalid="ignore"):  # the other way: infinity times 0
            shrink = np.exp(larger - largest if other_way else largest - larger)
            weight = np.exp(score - larger)
            total = (total * shrink if total_shrinks else total) + weight
            new = weight * value * (shrink if new_shrinks else 1)
            heard = (heard * shrink if heard_shrinks else heard) + new
        largest = larger
    return heard / total


def _weights_only(scores, values):
    e = np.exp(scores - scores.max())
    return e @ values


def _places(seed, count, width):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 3, count), rng.normal(size=(count, width))


# ---- 13.8: four rows of sixteen columns ----


def _launch_wide(engine, kernel, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = blank(engine, m, n)
    grid = (n // 16, -(-m // 4))
    kernel(grid, (1, 1), engine.from_host(a), engine.from_host(b), c, m, n, k)
    return engine.to_host(c)


WIDE_ROWS = KernelTask(
    """
typedef float16 float16u __attribute__((aligned(4)));
__kernel void wide_rows(__global const float *restrict a, __global const float *restrict b,
                        __global float *restrict c, const int m, const int n, const int k)
{
    const int col = 16 * get_global_id(0), row = 4 * get_global_id(1);
    if (row >= m || col >= n) return;
    int at[4];
    float16 sum[4];
    for (int r = 0; r < 4; ++r) {
        at[r] = min(row + r, m - 1) * k;
        sum[r] = 0.0f;
    }
    for (int p = 0; p < k; ++p) {
        const float16 right = *(__global const float16u *)(b + p * n + col);
#pragma unroll
        for (int r = 0; r < 4; ++r) sum[r] += a[at[r] + p] * right;
    }
#pragma unroll
    for (int r = 0; r < 4; ++r)
        if (row + r < m) *(__global float16u *)(c + (row + r) * n + col) = sum[r];
}
""",
    "wide_rows",
    _launch_wide,
    _exact,
    cases=[_numbers(6, (8, 5), (5, 32)), _numbers(7, (6, 3), (3, 16))],
    mistakes=[
        ("col = 16 * get_global_id(0)", "col = get_global_id(0)", "A work-item owns sixteen "
         "columns. Which is its first one?"),
        ("        if (row + r < m) *", "        *", _LAST),
        ("min(row + r, m - 1)", "(row + r)", _LAST),
        ("col >= n", "col + 16 >= n", "Where do the last sixteen columns begin?"),
        ("(b + p * n + col)", "(b + p * 16 + col)", "How long is a row of b?"),
        ("const float16 right = *(__global const float16u *)(b + p * n + col);",
         "const float16 right = b[p * n + col];", "Are sixteen numbers of b loaded, or is one of "
         "them used sixteen times?"),
        ("*(__global float16u *)(c + (row + r) * n + col) = sum[r]",
         "c[(row + r) * n + col] = sum[r].s0", "How many results does each of the four rows have?"),
    ],
)  # fmt: skip


# ---- what the lesson asks ----

EXERCISES = {
    "13.2": Exercise(
        _intensity,
        cases=[(384, 384, 384), (1, 384, 100), (800, 128, 7)],
        mistakes=[
            (_other(work=1), "A term of a sum is multiplied, and then? And how many bytes has a "
             "float32?"),
            (_other(bytes_each=1), "How many bytes does a float have?"),
            (_other(matrices="ab"), "The result is carried as well. Where is it?"),
            (_other(work=1, bytes_each=1), "A term is two operations, and a number four bytes."),
            (lambda m, k, n: 1 / _intensity(m, k, n), "Operations per byte, or bytes per "
             "operation?"),
            (lambda m, k, n: 2 * m * n * k / (8 * m * n * k), "Those are the bytes that naive asks "
             "for. How many numbers do the three matrices hold?"),
            (lambda m, k, n: 0.5, "How many numbers do the three matrices hold, each counted "
             "once?"),
            (lambda m, k, n: 2 * m * n * k / (4 * (m + k + n)), "m, k and n are lengths. How many "
             "numbers has a matrix?"),
            (lambda m, k, n: 2 * m * n / (4 * (m * k + k * n + m * n)), "How many terms has each "
             "of the m · n sums?"),
        ],
    ),
    "13.3": FOUR_ROWS,
    "13.4": TALL_TILES,
    "13.6": Exercise(
        lambda: "CEABF",
        cases=[()],
        mistakes=[
            (lambda: "CABEF", "When a larger score turns up, to whom are the old sums relative?"),
            (lambda: "CAEBF", "When a larger score turns up, to whom are the old sums relative?"),
            (lambda: "CEBAF", "The block's weights are by the new largest already. Are the sums, "
             "when they are added?"),
            (lambda: "CEABD", "One step would need a table with a row for each place that asks."),
            (lambda: "CEABDF", "One step would need a table with a row for each place that asks."),
            (lambda: "CEABFD", "One step would need a table with a row for each place that asks."),
            (lambda: "CDEABF", "One step would need a table with a row for each place that asks."),
            (lambda: "ECABF", "Can the sums be scaled to a score that is not known yet?"),
            (lambda: "CEFAB", "When is the division due, at each block or at the end?"),
            (lambda: "CEAB", "Are those shares, or still sums?"),
        ],
        secret=True,
    ),
    "13.7": Exercise(
        _one_pass,
        cases=[_places(1, 6, 3), _places(2, 9, 2), (np.array([5.0, 1.0]), np.eye(2))],
        mistakes=[
            (lambda s, v: _one_pass(s, v, total_shrinks=False), "The weighted sum of values "
             "shrinks. And the sum of the weights?"),
            (lambda s, v: _one_pass(s, v, False, False), "When a larger score turns up, is what "
             "was summed before still in the right measure?"),
            (lambda s, v: _one_pass(s, v, new_shrinks=True), "The new value's weight is by the new "
             "largest already. What has to shrink?"),
            (lambda s, v: _one_pass(s, v, heard_shrinks=False, new_shrinks=True), "Which of the "
             "two is old: `heard`, or what is added to it?"),
            (lambda s, v: _one_pass(s, v, other_way=True), "Should old weights grow or shrink, "
             "when a larger score turns up?"),
            (_weights_only, "Do the weights sum to one by now?"),
            (lambda s, v: v.mean(axis=0), "Does every place get the same share?"),
        ],
        given=lambda s, v: _one_pass(s, v, heard_shrinks=False),
    ),
    "13.8": WIDE_ROWS,
}  # fmt: skip

QUESTIONS = {
    "13.q1": Question("B", {
        "A": "it would compute faster what it still has to wait for",
        "B": "the slanted part of the roof is its limit, and only fewer bytes move it to the right",
        "C": "more of them would wait for the same road",
    }),
    "13.q2": Question("C", {
        "A": "that is the table which it does not write",
        "B": "the shares are computed again from the scores",
        "C": "with the logarithm of the row's sum, each share is one exponential away",
    }),
    "13.q3": Question("B", {
        "A": "it compares shapes, and a square has the same shape both ways",
        "B": "nothing in the file says which way round it lies; only the logits show it",
        "C": "it cannot know what was meant",
    }),
    "13.q4": Question("A", {
        "A": "an earlier place sees no later token, so nothing about it can change",
        "B": "they differ from place to place",
        "C": "the weights stay the same with and without it",
    }),
    "13.q5": Question("C", {
        "A": "the last one to write would win, and the other would be lost",
        "B": "ways add up; they are not averaged",
        "C": "both ways lead to the same numbers, so what they bring is added",
    }),
}  # fmt: skip

BROKEN = {
    "13.one_barrier": Broken(
        TALL_TILES,
        """            for (int r = 0; r < 4; ++r) sum[r] += ta[(r * T + y) * T + p] * right;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
""",
        """            for (int r = 0; r < 4; ++r) sum[r] += ta[(r * T + y) * T + p] * right;
        }
""",
        tries=[
            ("a sum of 4 terms, one pair of tiles", _numbers(8, (16, 4), (4, 4))),
            ("a sum of 12 terms, three pairs", _numbers(9, (16, 12), (12, 4))),
        ],
        finder="data race",
        reason="A quick work-item loads the next tile while a slow one still reads this one.",
    ),
}  # fmt: skip
