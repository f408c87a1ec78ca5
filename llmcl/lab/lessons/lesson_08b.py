"""Lesson 08b, Backprop: the hard ones."""

import numpy as np

from ... import reference
from ...data import IGNORED
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


# ---- softmax with loss ----


def _logits_backward(logits, targets, divide=True, pads="zero", hot=1.0, softmax=True):
    seen = targets != IGNORED
    d = reference.softmax(logits) if softmax else logits.copy()
    rows = np.arange(len(d)) if pads == "last token" else np.flatnonzero(seen)
    d[rows, targets[rows]] -= hot
    if pads == "zero":
        d[~seen] = 0
    return d / {True: seen.sum(), False: 1, "rows": len(d), "all": d.size}[divide]


def _hot_columns(logits, targets):
    seen = targets != IGNORED
    d = reference.softmax(logits)
    d[:, targets[seen]] -= 1
    d[~seen] = 0
    return d / seen.sum()


def _hot_columns_of_all(logits, targets, count):
    seen = targets != IGNORED
    d = np.zeros_like(logits)
    d[seen] = reference.softmax(logits[seen])
    d[:, targets] -= 1
    return d / count


def _targets(*numbers):
    return np.array(numbers, np.int32)


def _scores(seed, *targets, V=7):
    return 2 * _exact(_numbers(seed, len(targets), V)), _targets(*targets)


def _rows_case(seed, *targets, V=7):
    logits, targets = 2 * _numbers(seed, len(targets), V), _targets(*targets)
    log_sum = reference.cross_entropy(_exact(logits), targets)[1]
    return logits, targets, log_sum.astype(np.float32)


def _shares(engine, kernel, logits, targets, log_sum):
    (rows, V), d = logits.shape, blank(engine, *logits.shape)
    there = [engine.from_host(array) for array in (logits, targets, log_sum)]
    kernel((rows,), (4,), *there, d, rows, V, int((targets >= 0).sum()))
    return engine.to_host(d)


def _shares_want(logits, targets, log_sum):
    exact = _exact(logits), targets, _exact(log_sum)
    return reference.cross_entropy_backward(*exact), bounds.cross_entropy_backward(*exact)[0]


SHARES = KernelTask(
    """
__kernel void share_minus_one_hot(__global const float *logits,   // (rows, V)
                                  __global const int *targets,    // (rows)
                                  __global const float *log_sum,  // (rows)
                                  __global float *dlogits,        // (rows, V)
                                  const int rows, const int V, const int count)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    const float log_total = log_sum[row];
    for (int v = 0; v < V; ++v) {
        const float share = exp(logits[row * V + v] - log_total);
        const float hit = v == target ? 1.0f : 0.0f;
        dlogits[row * V + v] = target < 0 ? 0.0f : (share - hit) / count;
    }
}
""",
    "share_minus_one_hot",
    _shares,
    _shares_want,
    cases=[_rows_case(1, 2, -1, 0, 6, -1), _rows_case(2, 4, 1, 3, V=5)],
    mistakes=[
        (" / count", " / rows", "The mean is over the places with a target. How many are there?"),
        (" / count", "", "The loss is a mean. By what is each row divided?"),
        ("target < 0 ? 0.0f : (share", "(share", "May a logit of a pad change the loss?"),
        ("share - hit", "hit - share", "If a wrong token's score grows, does the loss grow?"),
        ("share - hit", "share + hit", "Share, one-hot: which is taken away from which?"),
        ("share - hit", "share", "Where is the one-hot taken away?"),
        ("v] - log_total)", "v]) - log_total", "Does exp get the difference, or the score alone?"),
        ("v] - log_total)", "v])", "What turns an exponential into a share?"),
        ("v == target", "v == row", "Whose number is compared with v: the row's, or its target's?"),
        ("    if (row >= rows) return;\n", "", "Which work-items have no row of their own, and do "
         "they leave?"),
        ("    const float log_total", "    if (target < 0) return;\n    const float log_total",
         "A pad's row is 0. Who writes these zeros?"),
        ("v == target", "row == target", "Which token does this logit belong to: row, or v?"),
        ("(share - hit) / count", "share - hit / count", "Which part of the row is divided?"),
        ("exp(logits[row * V + v]", "exp(logits[v * V + row]", "How long is a row of logits, and "
         "how many rows lie before yours?"),
        ("dlogits[row * V + v]", "dlogits[row + v]", "How long is a row of dlogits?"),
    ],
)  # fmt: skip

# ---- layer norm ----


def _norm_backward(g, xhat, rstd, common=True, louder=True, axis=-1, scale=True):
    d = g - common * g.mean(axis=axis, keepdims=True)
    d = d - louder * xhat * (g * xhat).mean(axis=axis, keepdims=True)
    return d * rstd if scale else d


def _norm_case(seed, rows, c):
    x, g = _exact(_numbers(seed, rows, c)), _exact(_numbers(seed + 50, rows, c))
    away = x - x.mean(axis=-1, keepdims=True)
    rstd = 1 / np.sqrt((away**2).mean(axis=-1, keepdims=True) + 1e-5)
    return g, away * rstd, rstd


def _wrong(**how):
    return lambda g, xhat, rstd: _norm_backward(g, xhat, rstd, **how)


def _rows_of_norm(x, gamma, dy):
    ones = np.ones_like(_exact(gamma))
    mean, rstd = reference.layer_norm(_exact(x), ones, ones)[1:]
    return x, gamma, mean.astype(np.float32), rstd.astype(np.float32), dy


def _norm_back(engine, kernel, x, gamma, mean, rstd, dy):
    (rows, c), dx = x.shape, blank(engine, *x.shape)
    there = [engine.from_host(array) for array in (x, gamma, mean, rstd, dy)]
    kernel((rows,), (4,), *there, dx, rows, c)
    return engine.to_host(dx)


def _norm_back_want(*arrays):
    exact = [_exact(array) for array in arrays]
    c = exact[1].size
    args = *exact, np.zeros(c), np.zeros(c)
    return reference.layer_norm_backward(*args), bounds.layer_norm_backward(*args)[0]


NORM_BACK = KernelTask(
    kernel_file("layer_norm"),
    "layer_norm_backward_input",
    _norm_back,
    _norm_back_want,
    cases=[_rows_of_norm(_numbers(11, 3, 7), _numbers(12, 7), _numbers(13, 3, 7))],
)

# ---- the look-up ----


def _look_up_case(seed, ids, V, C):
    ids = _targets(*ids)
    return ids, _numbers(seed, len(ids), C), _numbers(seed + 1, V, C)


def _gather(engine, kernel, ids, dx, dtable):
    (places, c), V = dx.shape, len(dtable)
    there = [engine.from_host(array) for array in (ids, dx, dtable)]
    # As many work-items as a kernel for places needs, too.
    kernel((c, max(V, places)), (2, 2), *there, places, V, c)
    return engine.to_host(there[2])


def _gather_want(ids, dx, dtable):
    want = _exact(dtable)
    np.add.at(want, ids, _exact(dx))
    unused = np.zeros((len(ids), dx.shape[1]))
    args = ids[None], _exact(dx)[None], _exact(dtable), unused
    return want, bounds.embedding_backward(*args)[0]


GATHER = KernelTask(
    """
__kernel void gather(__global const int *ids,       // (places)
                     __global const float *dx,      // (places, C)
                     __global float *dtable,        // (V, C), added to
                     const int places, const int V, const int C)
{
    const int c = get_global_id(0), v = get_global_id(1);
    if (c >= C || v >= V) return;
    for (int place = 0; place < places; ++place)
        if (ids[place] == v) dtable[v * C + c] += dx[place * C + c];
}
""",
    "gather",
    _gather,
    _gather_want,
    cases=[
        _look_up_case(21, [3, 1, 3, 0, 3], V=5, C=3),
        _look_up_case(23, [2, 0, 2, 2, 1, 6, 2], V=9, C=5),
    ],
    mistakes=[
        ("dtable[v * C + c] +=", "dtable[v * C + c] -=", "The ways of a token add up. Do yours?"),
        ("dx[place * C + c]", "dx[v * C + c]", "Which row of dx speaks for this place?"),
        ("dtable[v * C + c] +=", "dtable[c] +=", "Which row does this work-item own?"),
        ("dtable[v * C + c] +=", "dtable[v * C + c] = 2 *", "Twice the last one is not the sum. "
         "What happens to the earlier places?"),
        ("+= dx", "=+ dx", "Is the second place of a token added, or does it replace the first?"),
        ("dtable[v * C + c] += dx[place * C + c];", "{ dtable[v * C + c] += dx[place * C + c]; "
         "break; }", "How many places may one token have?"),
        ("    for (int place = 0; place < places; ++place)\n        if (ids[place] == v) "
         "dtable[v * C + c] += dx[place * C + c];", "    float sum = 0.0f;\n    for (int place = "
         "0; place < places; ++place)\n        if (ids[place] == v) { sum += dx[place * C + c]; "
         "dtable[v * C + c] = sum; }", "The table may hold something already. Is it added to, or "
         "lost?"),
        ("        if (ids[place] == v) dtable", "        dtable", "That line asked whose place it "
         "is. Does every token get every place now?"),
    ],
    given=("+=", "="),
)  # fmt: skip


def _positions_backward(dx, P):
    d = np.zeros((P, dx.shape[2]))
    d[: dx.shape[1]] = dx.sum(axis=0)
    return d


def _positions_wrong_axis(dx, P):
    d = np.zeros((P, dx.shape[2]))
    d[: dx.shape[0]] = dx.sum(axis=1)
    return d


# ---- what the lesson asks ----

EXERCISES = {
    "08b.2": Exercise(
        _logits_backward,
        cases=[_scores(31, 2, -1, 0, 6, -1), _scores(32, 4, 1, 3, V=5), _scores(33, -1, 2, V=3)],
        mistakes=[
            (lambda z, y: _logits_backward(z, y, divide="rows"), "The mean is over the places with "
             "a target. How many are there?"),
            (lambda z, y: _logits_backward(z, y, divide=False), "The loss is a mean. By what is "
             "each row divided?"),
            (lambda z, y: _logits_backward(z, y, divide="all"), "By the number of places, or by "
             "the number of logits?"),
            (lambda z, y: _logits_backward(z, y, pads="share"), "May a logit of a pad change the "
             "loss?"),
            (lambda z, y: _logits_backward(z, y, pads="last token"), "A pad's target is -1, and "
             "NumPy counts that from the end. What belongs into its row?"),
            (lambda z, y: _logits_backward(z, y, hot=0), "Where is the one-hot taken away?"),
            (lambda z, y: _logits_backward(z, y, hot=-1), "Share, one-hot: which is taken away "
             "from which?"),
            (lambda z, y: -_logits_backward(z, y), "If a wrong token's score grows, does the loss "
             "grow?"),
            (lambda z, y: _logits_backward(z, y, softmax=False), "Are these shares, or still "
             "scores?"),
            *((lambda z, y, by=by: _hot_columns_of_all(z, y, by(y)), "`d[:, targets]` takes 1 away "
               "in every row. How is one element of each row named?")
              for by in (lambda y: (y != IGNORED).sum(), len)),
            (_hot_columns, "`d[:, targets]` takes 1 away in every row. How is one element of each "
             "row named?"),
        ],
    ),
    "08b.3": SHARES,
    "08b.4": Exercise(
        _norm_backward,
        cases=[_norm_case(41, 3, 5), _norm_case(42, 4, 4)],
        mistakes=[
            (_wrong(louder=False), "Which way is missing: directly, through the mean, or through "
             "the spread?"),
            (_wrong(common=False), "Nudge one number, and the mean moves. Where is that?"),
            (_wrong(scale=False), "A loud row feels a nudge less. Where does rstd come in?"),
            (_wrong(axis=0), "Is it the mean of each row, or of each column?"),
            (lambda g, xhat, rstd: rstd * (g - g.mean(axis=0) - xhat * (g * xhat).mean(
                -1, keepdims=True)), "Is it the mean of each row, or of each column?"),
            (lambda g, xhat, rstd: rstd * (g - g.mean(axis=0) - xhat * g.mean(
                -1, keepdims=True)), "Is it the mean of each row, or of each column?"),
            (lambda g, xhat, rstd: rstd * g - g.mean(-1, keepdims=True) - xhat * (g * xhat).mean(
                -1, keepdims=True), "What is multiplied by rstd: g alone, or all three?"),
            (_wrong(axis=None), "Has each row means of its own?"),
            (lambda g, xhat, rstd: rstd * (g - g.mean(-1, keepdims=True) - xhat * g.mean(
                -1, keepdims=True)), "The mean of what stands beside xhat?"),
            (lambda g, xhat, rstd: rstd * (g - g.mean(-1, keepdims=True) - (g * xhat).mean(
                -1, keepdims=True)), "Those above the mean move one way, those below it the other "
             "way. What makes that difference?"),
            (lambda g, xhat, rstd: rstd * (g - g.mean(-1, keepdims=True) + xhat * (g * xhat).mean(
                -1, keepdims=True)), "Is the wish to be louder taken out, or doubled?"),
            (lambda g, xhat, rstd: rstd * (g - g.sum(-1, keepdims=True) - xhat * (g * xhat).sum(
                -1, keepdims=True)), "Sums or means?"),
        ],
    ),
    "08b.6": Exercise(
        lambda: "CBAE",
        cases=[()],
        mistakes=[
            (lambda: "DBAE", "Does a work-item that gathers own a place, or a row of the table?"),
            (lambda: "CABE", "Can `place` be asked before the loop has it?"),
            (lambda: "BCAE", "Are the ids asked for once, or once for each place?"),
            (lambda: "BACE", "Are the ids asked for once, or once for each place?"),
            (lambda: "CBADE", "One line makes a place of the work-item. Who owns what, when it "
             "gathers?"),
            (lambda: "CBEA", "What decides whether a place is added?"),
            (lambda: "CBDAE", "One line makes a place of the work-item. Who owns what, when it "
             "gathers?"),
        ],
        secret=True,
    ),
    "08b.7": GATHER,
    "08b.8": Exercise(
        _positions_backward,
        cases=[(_exact(_numbers(51, 3, 4, 2)), 6), (_exact(_numbers(52, 2, 5, 3)), 5)],
        mistakes=[
            (lambda dx, P: dx.sum(axis=0), "How many rows has the table, used or not?"),
            (_positions_wrong_axis, "Who shares row t: the places of a sentence, or the sentences "
             "of a batch?"),
            (lambda dx, P: _positions_backward(dx[:1], P), "Does only one sentence use row t?"),
            (lambda dx, P: _positions_backward(dx, P) / len(dx), "Ways add up. Is a mean a sum?"),
        ],
    ),
}  # fmt: skip

QUESTIONS = {
    "08b.q1": Question("B", {
        "A": "that is the share; the right token has a 1 taken away from it",
        "B": "0.9 minus 1: it is pulled up by the share that it lacks",
        "C": "the more of the share it has, the less is left to ask for",
    }),
    "08b.q2": Question("C", {
        "A": "it is more: every row looks at every place",
        "B": "it would be right the other way round, too",
        "C": "nobody else writes to a row that has an owner, and the order is always the same",
    }),
    "08b.q3": Question("A", {
        "A": "(k, rows) times (rows, n): the shape of W, and a sum over all rows",
        "B": "that is the gradient of x, which goes further back",
        "C": "that is the gradient of a bias",
    }),
    "08b.q4": Question("C", {
        "A": "the spread is ten times as large as well, and it is divided by the spread",
        "B": "the mean is taken away, so it cannot move",
        "C": "loudness is divided out; so backward takes the wish to be louder out of g",
    }),
    "08b.q5": Question("B", {
        "A": "the largest exponential becomes 1; it is still divided by the sum",
        "B": "only differences count, and the largest exponential is 1",
        "C": "differences stay, and so do shares",
    }),
}  # fmt: skip

BROKEN = {
    "08b.no_spread": Broken(
        NORM_BACK,
        " - xhat * gx_mean",
        "",
        tries=[
            ("gamma and dy all 1", _rows_of_norm(
                _numbers(61, 3, 7), np.ones(7, np.float32), np.ones((3, 7), np.float32))),
            ("random numbers", _rows_of_norm(
                _numbers(61, 3, 7), _numbers(62, 7), _numbers(63, 3, 7))),
        ],
        finder="check",
        reason="A wish that is common to the row has nothing along xhat, so the term is 0 there.",
    ),
    "08b.scatter": Broken(
        GATHER,
        """const int c = get_global_id(0), v = get_global_id(1);
    if (c >= C || v >= V) return;
    for (int place = 0; place < places; ++place)
        if (ids[place] == v) dtable[v * C + c] += dx[place * C + c];""",
        """const int c = get_global_id(0), place = get_global_id(1);
    if (c >= C || place >= places) return;
    dtable[ids[place] * C + c] += dx[place * C + c];""",
        tries=[
            ("each token once", _look_up_case(71, [3, 1, 4, 0], V=5, C=3)),
            ("a token three times", _look_up_case(73, [3, 1, 3, 0, 3], V=5, C=3)),
        ],
        finder="data race",
        reason="Two places of one token add to the same row, and nothing says who comes first.",
    ),
    "08b.wrong_count": Broken(
        SHARES,
        " / count",
        " / rows",
        tries=[
            ("every place has a target", _rows_case(81, 2, 5, 0, 6, 3)),
            ("two of five places are pads", _rows_case(82, 2, -1, 0, 6, -1)),
        ],
        finder="check",
        reason="Without pads both counts are the same.",
    ),
}  # fmt: skip
