"""Lesson 14, Beyond one machine."""

import numpy as np

from . import Exercise, KernelTask, Question


def _numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


# ---- 14.2: rows, dealt as cards ----


def _deal(rows, rank, size):
    return rows[rank::size]


def _slices(rows, rank, size):
    share = len(rows) // size
    return rows[rank * share : (rank + 1) * share]


# ---- 14.3: one gradient of several ----


def _weighted(gradients, counts):
    total = sum(counts)
    return sum(g * (n / total) for g, n in zip(gradients, counts, strict=True))


def _ranks(seed, *counts):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=5) if n else np.zeros(5) for n in counts], list(counts)


# ---- 14.4: a rank's share, added ----


def _launch_share(engine, kernel, total, grad, n, total_n):
    sums = engine.from_host(total)
    kernel((total.size,), (4,), sums, engine.from_host(grad), n, total_n, total.size)
    return engine.to_host(sums)


def _want_share(total, grad, n, total_n):
    exact = total.astype(np.float64) + grad.astype(np.float64) * n / total_n
    return exact, 8 * 2.0**-24 * (np.abs(total) + np.abs(grad) * n / total_n)


ADD_SHARE = KernelTask(
    """
__kernel void add_share(__global float *total, __global const float *grad,
                        const int n, const int all_n, const int size)
{
    const int i = get_global_id(0);
    if (i >= size) return;
    total[i] += grad[i] * ((float)n / all_n);
}
""",
    "add_share",
    _launch_share,
    _want_share,
    cases=[(*_numbers(1, 10, 10), 3, 12), (*_numbers(2, 7, 7), 5, 7)],
    mistakes=[
        ("    if (i >= size) return;\n", "", "Which work-items leave, when there are more of them "
         "than numbers? The last number has the place size - 1."),
        ("total[i] +=", "total[i] =", "Are the shares of the ranks before this one still there?"),
        ("((float)n / all_n)", "(n / all_n)", "What does 3/12 give in C, when both are whole "
         "numbers?"),
        (" * ((float)n / all_n)", "", "Does a rank with few targets count as much as one with "
         "many?"),
        ("((float)n / all_n)", "n", "The sum over all targets is there now. And their mean?"),
    ],
)  # fmt: skip


# ---- 14.5: the second half of a ring ----


def _copy_round(pieces, step, first=1, adds=False, back=False):
    n, new = len(pieces), pieces.copy()
    for r in range(n):
        piece, to = (r + first - step) % n, (r - 1 if back else r + 1) % n
        new[to, piece] = pieces[r, piece] + (new[to, piece] if adds else 0)
    return new


def _other_round(**changes):
    return lambda pieces, step: _copy_round(pieces, step, **changes)


def _pieces(seed, n):
    return np.random.default_rng(seed).normal(size=(n, n, 2))


# ---- 14.6: what a step costs ----


def _step_seconds(n, compute, fixed, latency, carry):
    return compute / n + fixed + 2 * (n - 1) * latency + 2 * (n - 1) / n * carry


# ---- what the lesson asks ----

EXERCISES = {
    "14.2": Exercise(
        _deal,
        cases=[(np.arange(7), r, 3) for r in range(3)]
        + [(np.arange(2), r, 4) for r in (0, 1, 3)],
        mistakes=[
            (lambda rows, rank, size: rows[rank:size], "Which number of a slice says where it "
             "ends, and which how far apart its rows are?"),
            (lambda rows, rank, size: rows[size::rank + 1], "Where does the rank begin, and how "
             "far is its next row?"),
            (lambda rows, rank, size: rows[rank::rank + 1], "How many players are there between "
             "two of my cards?"),
            (lambda rows, rank, size: np.array_split(rows, size)[rank], "All rows are dealt now, "
             "but in one stretch each. How are cards dealt?"),
            (lambda rows, rank, size: rows, "Does every rank do all of the work?"),
        ],
        given=_slices,
    ),
    "14.3": Exercise(
        _weighted,
        cases=[_ranks(1, 3, 1), _ranks(2, 40, 2, 7), _ranks(3, 5, 0)],
        mistakes=[
            (lambda g, n: sum(g) / len(g), "That is the mean of the means. Has every rank equally "
             "many targets?"),
            (lambda g, n: sum(g), "A sum of means: how large would it be with a hundred ranks?"),
            (lambda g, n: sum(a * b for a, b in zip(g, n, strict=True)), "That is the sum over all "
             "targets. And the mean?"),
            (lambda g, n: sum(g) / sum(n), "Each of them is a mean already. What has it been "
             "divided by?"),
            (lambda g, n: sum(a * b for a, b in zip(g, n, strict=True)) / len(n), "Divide by the "
             "number of ranks, or by the number of targets?"),
            (lambda g, n: sum(a / b for a, b in zip(g, n, strict=True) if b), "Multiply a mean by "
             "its count to get the sum back, or divide?"),
        ],
    ),
    "14.4": ADD_SHARE,
    "14.5": Exercise(
        _copy_round,
        cases=[(_pieces(1, 4), 0), (_pieces(2, 4), 2), (_pieces(3, 3), 1), (_pieces(4, 2), 0)],
        mistakes=[
            (_other_round(adds=True), "The piece that comes is whole. Is anything to be added?"),
            (_other_round(first=0), "After the first half, which piece has rank r whole: r, or "
             "r + 1?"),
            (_other_round(back=True), "To whom does rank r send?"),
            (_other_round(first=0, adds=True), "That is the first half again."),
            (lambda pieces, step: pieces.copy(), "Is anything sent?"),
        ],
    ),
    "14.6": Exercise(
        _step_seconds,
        cases=[(1, 8.0, 1.0, 0.25, 3.0), (2, 8.0, 1.0, 0.25, 3.0), (16, 8.0, 1.0, 0.25, 3.0)],
        mistakes=[
            (lambda n, c, f, lat, car: c + f + 2 * (n - 1) * lat + 2 * (n - 1) / n * car,
             "Who does the computing, one rank or all together?"),
            (lambda n, c, f, lat, car: (c + f) / n + 2 * (n - 1) * lat + 2 * (n - 1) / n * car,
             "AdamW changes every weight in every rank. Is that shared?"),
            (lambda n, c, f, lat, car: c / n + f + 2 * (n - 1) * (lat + car),
             "How long is a piece, beside the whole gradient?"),
            (lambda n, c, f, lat, car: c / n + f + (n - 1) * lat + (n - 1) / n * car,
             "The pieces go round the ring how often?"),
            (lambda n, c, f, lat, car: c / n + f + 2 * n * lat + 2 * car,
             "Does one rank alone send anything?"),
            (lambda n, c, f, lat, car: c / n + f + 2 * (n - 1) / n * (lat + car),
             "Is a short message n times as quick to start?"),
        ],
    ),
    "14.7": Exercise(
        lambda: "CAFBED",
        cases=[()],
        mistakes=[
            (lambda: "CAFEBD", "What would each rank clip by, before it has the gradient of all?"),
            (lambda: "CAEFBD", "What would each rank clip by, before it has the gradient of all?"),
            (lambda: "CABFED", "After the sum nobody can tell the ranks apart. When is a share "
             "weighed?"),
            (lambda: "CAFBEDG", "Equal weights and one gradient: what would averaging the weights "
             "change?"),
            (lambda: "CAFBEGD", "Equal weights and one gradient: what would averaging the weights "
             "change?"),
            (lambda: "CAGFBED", "Equal weights and one gradient: what would averaging the weights "
             "change?"),
            (lambda: "CAFBDE", "Does clipping help after the step?"),
            (lambda: "ACFBED", "Whose loss, before the rows are dealt?"),
        ],
        secret=True,
    ),
}  # fmt: skip

QUESTIONS = {
    "14.q1": Question("B", {
        "A": "that is how it should be; the mean of the means gives each rank a third",
        "B": "a third, shared by 2 targets, beside a third shared by 40",
        "C": "they weigh more, not less: few share what a whole rank gets",
    }),
    "14.q2": Question("C", {
        "A": "its gradient goes out once as a sum and once more as a copy, nearly whole each time",
        "B": "that is what passes through rank 0 when it does all the adding",
        "C": "2 (n - 1) / n times the gradient, and that stays below twice",
    }),
    "14.q3": Question("A", {
        "A": "hardly any operation for each byte: it lies on the slanted part of the roof",
        "B": "it would, if it made many operations for each byte",
        "C": "one launch of a long list costs next to nothing",
    }),
    "14.q4": Question("C", {
        "A": "that is without the scale",
        "B": "that is F16: two bytes for each number",
        "C": "32 numbers of one byte, and a scale of two bytes for all",
    }),
    "14.q5": Question("A", {
        "A": "one norm and one factor, so that the direction stays",
        "B": "then the direction would change, and the norm could still be above 1",
        "C": "then each tensor would shrink by another factor, and the direction would change",
    }),
}  # fmt: skip
