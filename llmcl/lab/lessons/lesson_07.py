"""Lesson 07, The model."""

import numpy as np

from ... import reference
from ...data import IGNORED
from ...reference import bounds
from . import Broken, Exercise, KernelTask, Question, blank, kernel_file


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _exact(array):
    return np.asarray(array, np.float64)


def _targets(*numbers):
    return np.array(numbers, np.int32)


# ---- rows ----


def _windows(ids, most):
    pieces = [ids[start : start + most + 1] for start in range(0, len(ids) - 1, most)]
    return [(piece[:-1], piece[1:]) for piece in pieces]


def _windows_that_lose_a_pair(ids, most):
    pieces = [ids[start : start + most + 1] for start in range(0, len(ids) - 1, most + 1)]
    return [(piece[:-1], piece[1:]) for piece in pieces]


def _windows_too_short(ids, most):
    pieces = [ids[start : start + most] for start in range(0, len(ids) - 1, most)]
    return [(piece[:-1], piece[1:]) for piece in pieces]


def _windows_that_slide(ids, most):
    pieces = [ids[start : start + most + 1] for start in range(len(ids) - 1)]
    return [(piece[:-1], piece[1:]) for piece in pieces]


def _windows_with_an_empty_row(ids, most):
    pieces = [ids[start : start + most + 1] for start in range(0, len(ids), most)]
    return [(piece[:-1], piece[1:]) for piece in pieces]


def _cut(ids, starts, length, pair=lambda piece: (piece[:-1], piece[1:])):
    return [pair(ids[start : start + length]) for start in starts]


def _windows_to_the_end_that_lose_a_pair(ids, most):
    return _cut(ids, range(0, len(ids), most + 1), most + 1)


def _windows_too_short_to_the_end(ids, most):
    return _cut(ids, range(0, len(ids), most), most)


def _windows_twice_the_same(ids, most):
    return _cut(ids, range(0, len(ids) - 1, most), most + 1, lambda piece: (piece, piece))


def _windows_with_an_input_too_many(ids, most):
    starts = range(0, len(ids) - 1, most)
    return [(ids[start : start + most], ids[start + 1 : start + most + 1]) for start in starts]


def _windows_with_inputs_too_many(ids, most):
    starts = range(0, len(ids), most)
    return [(ids[start : start + most], ids[start + 1 : start + most + 1]) for start in starts]


def _windows_not_shifted(ids, most):
    return [(inputs, inputs) for inputs, _ in _windows(ids, most)]


def _windows_without_the_rest(ids, most):
    return [row for row in _windows(ids, most) if len(row[0]) == most]


# ---- the model ----


def _logits(ids, tokens, positions, blocks, norm):
    x = tokens[ids] + positions[: ids.shape[1]]
    for block in blocks:
        x = block(x)
    return norm(x) @ tokens.T


def _without_the_norm(ids, tokens, positions, blocks, norm):
    return _logits(ids, tokens, positions, blocks, lambda x: x)


def _without_positions(ids, tokens, positions, blocks, norm):
    return _logits(ids, tokens, 0 * positions, blocks, norm)


def _the_norm_too_early(ids, tokens, positions, blocks, norm):
    x = norm(tokens[ids] + positions[: ids.shape[1]])
    for block in blocks:
        x = block(x)
    return x @ tokens.T


def _each_block_on_the_first_rows(ids, tokens, positions, blocks, norm):
    return _logits(ids, tokens, positions, blocks[-1:], norm)


def _rows_for_logits(ids, tokens, positions, blocks, norm):
    x = tokens[ids] + positions[: ids.shape[1]]
    for block in blocks:
        x = block(x)
    return norm(x)


def _positions_by_id(ids, tokens, positions, blocks, norm):
    x = tokens[ids] + positions[ids]
    for block in blocks:
        x = block(x)
    return norm(x) @ tokens.T


def _no_row_kept(ids, tokens, positions, blocks, norm):
    return _logits(ids, tokens, positions, [], norm)


def _the_norm_too_late(ids, tokens, positions, blocks, norm):
    return norm(_logits(ids, tokens, positions, blocks, lambda x: x))


def _a_norm_behind_each_block(ids, tokens, positions, blocks, norm):
    each = [lambda x, block=block: norm(block(x)) for block in blocks]
    return _logits(ids, tokens, positions, each, lambda x: x)


def _residual_twice(ids, tokens, positions, blocks, norm):
    each = [lambda x, block=block: x + block(x) for block in blocks]
    return _logits(ids, tokens, positions, each, norm)


def _shares_of_tokens(ids, tokens, positions, blocks, norm):
    return reference.softmax(_logits(ids, tokens, positions, blocks, norm))


def _double_and_bend(x):
    return 2 * x + np.sin(x)


def _turn(x):
    return x + x[..., ::-1] ** 2


def _center(x):
    return x - x.mean(axis=-1, keepdims=True)


def _tables(seed, rows, places, v, c):
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, v, (rows, places))
    # As many positions as tokens, so that positions[ids] gives numbers, and no error.
    return ids, rng.normal(size=(v, c)), rng.normal(size=(max(places + 2, v), c))


# ---- the loss ----


def _row_losses(logits, targets):
    largest = logits.max(axis=-1, keepdims=True)
    log_total = np.log(np.exp(logits - largest).sum(axis=-1))
    return log_total + largest[..., 0] - np.take_along_axis(logits, targets[..., None], -1)[..., 0]


def _mean_loss(logits, targets):
    seen = targets != IGNORED
    return _row_losses(logits[seen], targets[seen]).mean()


def _divided_by_all(logits, targets):
    return _mean_loss(logits, targets) * (targets != IGNORED).mean()


def _minus_one_as_an_index(logits, targets):
    return _row_losses(logits, targets % logits.shape[-1]).mean()


def _sum_for_mean(logits, targets):
    return _mean_loss(logits, targets) * (targets != IGNORED).sum()


def _nothing_taken_out(logits, targets):
    seen = targets != IGNORED
    right = np.take_along_axis(logits[seen], targets[seen][:, None], -1)[:, 0]
    with np.errstate(all="ignore"):
        return (np.log(np.exp(logits[seen]).sum(axis=-1)) - right).mean()


def _only_the_logit(logits, targets):
    seen = targets != IGNORED
    return -np.take_along_axis(logits[seen], targets[seen][:, None], -1).mean()


def _seen(logits, targets):
    seen = targets != IGNORED
    return logits[seen], targets[seen]


def _all_rows_of_a_column(logits, targets):
    z, wanted = _seen(logits, targets)
    largest = z.max(axis=-1)
    return (np.log(np.exp(z - largest[:, None]).sum(axis=-1)) + largest).mean() - (
        z[:, wanted].mean()
    )


def _the_largest_of_all(logits, targets):
    z, wanted = _seen(logits, targets)
    z = z - z.max()
    with np.errstate(all="ignore"):
        return (np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(z)), wanted]).mean()


def _not_put_back(logits, targets):
    return _mean_loss(logits, targets) - _seen(logits, targets)[0].max(axis=-1).mean()


def _the_sum_of_all_rows(logits, targets):
    z, wanted = _seen(logits, targets)
    with np.errstate(all="ignore"):
        return (np.log(np.exp(z).sum()) - z[np.arange(len(z)), wanted]).mean()


def _the_sum_of_all_rows_without_overflow(logits, targets):
    z, wanted = _seen(logits, targets)
    z = z - z.max(axis=-1, keepdims=True)
    return (np.log(np.exp(z).sum()) - z[np.arange(len(z)), wanted]).mean()


def _without_the_logarithm(logits, targets):
    z, wanted = _seen(logits, targets)
    z = z - z.max(axis=-1, keepdims=True)
    return (np.exp(z).sum(axis=-1) - z[np.arange(len(z)), wanted]).mean()


def _other_sign(logits, targets):
    return -_mean_loss(logits, targets)


def _zero_ignored(logits, targets):
    return _mean_loss(logits, np.where(targets == 0, IGNORED, targets))


def _with_targets(seed, targets, v):
    targets = np.array(targets)
    return 2 * np.random.default_rng(seed).normal(size=(*targets.shape, v)), targets


# ---- kernels ----


def _rows(engine, kernel, logits, targets):
    rows, v = logits.shape
    row_loss, log_sum = blank(engine, rows), blank(engine, rows)
    there = engine.from_host(logits), engine.from_host(targets)
    kernel((rows,), (4,), *there, row_loss, log_sum, rows, v)
    return engine.to_host(row_loss)


def _rows_want(logits, targets):
    exact, wanted, bound = _exact(logits), np.where(targets < 0, 0, targets), []
    losses = np.where(targets < 0, 0, _row_losses(exact, wanted))
    for row in range(len(targets)):
        off = bounds.cross_entropy(exact[row : row + 1], wanted[row : row + 1])[0][0]
        bound.append(0.0 if targets[row] < 0 else off)
    return losses, np.array(bound)


ROWS = KernelTask(
    kernel_file("cross_entropy"),
    "cross_entropy_rows",
    _rows,
    _rows_want,
    cases=[(_numbers(1, 5, 11), _targets(3, 0, 10, -1, -1))],
)


def _mean(engine, kernel, row_loss, count):
    loss = blank(engine, 1)
    kernel((1,), (1,), engine.from_host(row_loss), loss, len(row_loss), count)
    return engine.to_host(loss)


def _mean_want(row_loss, count):
    exact = _exact(row_loss)
    return exact.sum(keepdims=True) / count, (len(exact) + 2) * bounds.U * exact.sum() / count


_LOSSES = np.array([4, 6, 5, 0, 0, 0], np.float32)

MEAN = KernelTask(
    kernel_file("cross_entropy"),
    "cross_entropy_mean",
    _mean,
    _mean_want,
    cases=[(_LOSSES, 3)],
)


def _counted(engine, kernel, row_loss, targets):
    loss = blank(engine, 1)
    there = engine.from_host(row_loss), engine.from_host(targets)
    kernel((1,), (1,), *there, loss, len(row_loss))
    return engine.to_host(loss)


COUNTED = KernelTask(
    """
__kernel void mean_counted(__global const float *row_loss,   // (rows), 0 where not counted
                           __global const int *targets,      // (rows)
                           __global float *loss,             // (1)
                           const int rows)
{
    if (get_global_id(0) > 0) return;
    float sum = 0.0f;
    int count = 0;
    for (int row = 0; row < rows; ++row) {
        sum += row_loss[row];
        if (targets[row] >= 0) ++count;
    }
    loss[0] = sum / count;
}
""",
    "mean_counted",
    _counted,
    lambda row_loss, targets: _mean_want(row_loss, int((targets >= 0).sum())),
    cases=[
        (_LOSSES, _targets(2, 0, 7, -1, -1, -1)),
        (_LOSSES[:3], _targets(1, 1, 3)),
        (_LOSSES[[0, 3, 1]], _targets(0, -1, 0)),
        (_LOSSES[[0, 3, 1]], _targets(0, 5, 0)),
    ],
    given=("if (targets[row] >= 0) ++count;", "++count;"),
    mistakes=[
        (">= 0", "> 0", "Token 0 is a token like any other. Does it count?"),
        (">= 0", "< 0", "Which places does this count: those with a target, or the others?"),
        ("sum / count", "sum", "A mean is a sum, and then?"),
        ("int count = 0;", "int count = 1;", "How many are counted before the first row?"),
        ("sum / count", "sum / rows", "The sum was right before. By what is it divided?"),
        ("targets[row] >= 0", "row_loss[row] > 0", "May a place that counts have a loss of 0?"),
        (
            "targets[row] >= 0",
            "targets[row]",
            "Here every target but 0 is counted. Is -1, and should it be? Is 0, and should it be?",
        ),
    ],
)


def _row_loss(engine, kernel, logits, targets):
    rows, v = logits.shape
    loss = blank(engine, rows)
    kernel((rows,), (4,), engine.from_host(logits), engine.from_host(targets), loss, rows, v)
    return engine.to_host(loss)


ROW_LOSS = KernelTask(
    """
__kernel void row_loss(__global const float *logits,   // (rows, V)
                       __global const int *targets,    // (rows)
                       __global float *loss,           // (rows)
                       const int rows, const int V)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    loss[row] = 0.0f;
    if (target < 0) return;
    __global const float *in = logits + row * V;
    float largest = in[0];
    for (int v = 1; v < V; ++v) largest = fmax(largest, in[v]);
    float total = 0.0f;
    for (int v = 0; v < V; ++v) total += exp(in[v] - largest);
    loss[row] = log(total) + (largest - in[target]);
}
""",
    "row_loss",
    _row_loss,
    _rows_want,
    cases=[
        (_numbers(2, 5, 7), _targets(-1, 3, 0, -1, 6)),
        (50 * _numbers(3, 3, 11), _targets(10, 5, -1)),
        (_numbers(4, 6, 1), _targets(0, 0, -1, 0, 0, 0)),
        (_numbers(5, 2, 7) - np.float32(300), _targets(3, -1)),
    ],
    mistakes=[
        (
            "    if (target < 0) return;\n",
            "",
            "What does the pointer reach at place -1, and should that row be read at all?",
        ),
        (
            "    loss[row] = 0.0f;\n",
            "",
            "Who writes the loss of a row that does not count?",
        ),
        (
            "    if (row >= rows) return;\n",
            "",
            "Which work-items have no row of their own, and do they leave?",
        ),
        ("logits + row * V", "logits + row", "How many numbers lie before this row's first one?"),
        ("largest - in[target]", "largest - target", "The target is an id. Where is its logit?"),
        ("log(total) + (largest - ", "log(total) - (", "The largest was taken out of the "
         "exponentials. Where does it come in again?"),
        ("total += exp(in[v] - largest)", "total += in[v] - largest", "What makes the numbers "
         "positive before they are added up?"),
        ("log(total) + ", "", "Is that the loss, or the distance to the largest logit?"),
        ("exp(in[v] - largest)", "exp(in[v])", "The largest comes in again in the last line. Where "
         "was it taken out?"),
        ("exp(in[v] - largest);\n    loss[row] = log(total) + (largest - in[target])",
         "exp(in[v]);\n    loss[row] = log(total) - in[target]", "How large may an exponential "
         "become before a float is inf? What is taken out first?"),
        ("    for (int v = 1; v < V; ++v) largest = fmax(largest, in[v]);\n", "", "Is the first "
         "logit of a row its largest?"),
        ("largest = in[0]", "largest = 0.0f", "What if all logits of a row are far below 0?"),
        ("row * V", "row * rows", "How long is a row of logits: V numbers, or one for each row?"),
    ],
)  # fmt: skip

# ---- what the lesson asks ----

_EXTRA = "One line does not belong. Are a row's channels ever shares of anything?"

EXERCISES = {
    "07.1": Exercise(
        _windows,
        cases=[
            ([5, 7, 9, 4], 8),
            ([5, 7, 9, 4, 2], 4),
            ([5, 7, 9, 4, 2, 8], 4),
            (list(range(20, 33)), 4),
            ([3, 1], 1),
        ],
        mistakes=[
            (_windows_that_lose_a_pair, "Is the last token of a piece also an input, in the next?"),
            (_windows_too_short, "How many tokens does a row of `most` inputs need?"),
            (_windows_that_slide, "How often is each token the target?"),
            (_windows_with_an_empty_row, "Can a piece of a single token be a row?"),
            (
                _windows_to_the_end_that_lose_a_pair,
                "Is the last token of a piece also an input, in the next?",
            ),
            (
                _windows_too_short_to_the_end,
                "How many tokens does a row of `most` inputs need, and can a single one be a row?",
            ),
            (_windows_not_shifted, "Does the model see its answer?"),
            (_windows_twice_the_same, "Does the model see its answer?"),
            (
                _windows_with_an_input_too_many,
                "Is the last token of all an input? What would be its target?",
            ),
            (
                _windows_with_inputs_too_many,
                "Is the last token of all an input? What would be its target?",
            ),
            (lambda ids, most: [(ids[:-1], ids[1:])], "How many inputs may a window have?"),
            (_windows_without_the_rest, "What becomes of the last, shorter piece?"),
        ],
    ),
    "07.2": Exercise(
        _logits,
        cases=[
            (*_tables(5, 2, 3, 7, 4), [_double_and_bend, _turn], _center),
            (*_tables(6, 1, 5, 3, 2), [_turn, _turn, _double_and_bend], _center),
        ],
        mistakes=[
            (_without_the_norm, "What happens between the last block and the head?"),
            (_without_positions, "How does the model know which place a token stands at?"),
            (_the_norm_too_early, "Is the last norm before the blocks, or behind them?"),
            (_each_block_on_the_first_rows, "What goes into the second block?"),
            (_positions_by_id, "Which place a token stands at: does its id know that?"),
            (_no_row_kept, "A block returns new rows. Who keeps them?"),
            (_the_norm_too_late, "What is normed: the rows of channels, or the scores?"),
            (
                _a_norm_behind_each_block,
                "The last norm stands there once. Is it inside of the loop?",
            ),
            (_residual_twice, "A block adds its residual itself. Is it added once more?"),
            (_shares_of_tokens, "Logits are asked for. Are these still scores, or shares?"),
            (_rows_for_logits, "That is a row of channels. Where do the tokens' scores come from?"),
        ],
    ),
    "07.3": Exercise(
        _mean_loss,
        cases=[
            _with_targets(7, [[3, 0, 1], [2, -1, -1]], 5),
            _with_targets(8, [[-1, 6, -1, 0]], 7),
            _with_targets(9, [[1], [0], [2]], 3),
            (np.array([[1000.0, 998.0], [-1000.0, -1001.0]]), np.array([1, 0])),
        ],
        mistakes=[
            (_divided_by_all, "By how many places is the sum divided?"),
            (_minus_one_as_an_index, "Which token is `logits[..., -1]` in NumPy?"),
            (_sum_for_mean, "Is that the sum over the places, or the mean?"),
            (_nothing_taken_out, "What is exp(1000)? Which number is taken away first?"),
            (_only_the_logit, "The loss has two terms. Where is the logarithm of the sum?"),
            (_other_sign, "Can a loss be below 0?"),
            (
                _all_rows_of_a_column,
                "`z[:, wanted]` takes these columns of every row. How is one of each row named?",
            ),
            (
                _the_largest_of_all,
                "Whose largest logit is taken away: that of each row, or of the whole batch?",
            ),
            (
                _not_put_back,
                "The largest is gone from the exponentials. Is it gone from the target's logit?",
            ),
            (_the_sum_of_all_rows, "Which exponentials are added up: those of one row, or all?"),
            (
                _the_sum_of_all_rows_without_overflow,
                "Which exponentials are added up: those of one row, or all?",
            ),
            (_without_the_logarithm, "What is done with the sum, before the logit is taken away?"),
            (_zero_ignored, "Token 0 is a token like any other. Does it count?"),
        ],
    ),
    "07.5": Exercise(
        lambda V, P, C, L: (V + P) * C + L * (12 * C * C + 13 * C) + 2 * C,
        cases=[(40, 16, 8, 2), (512, 256, 96, 2), (50257, 1024, 768, 12)],
        mistakes=[
            (
                lambda V, P, C, L: (V + P) * C + L * (12 * C * C + 13 * C),
                "What stands between the last block and the head?",
            ),
            (
                lambda V, P, C, L: (2 * V + P) * C + L * (12 * C * C + 13 * C) + 2 * C,
                "Has the head a table of its own?",
            ),
            (
                lambda V, P, C, L: V * C + L * (12 * C * C + 13 * C) + 2 * C,
                "Where is the table of positions?",
            ),
            (
                lambda V, P, C, L: (V + P) * C + 12 * C * C + 13 * C + 2 * C,
                "How many blocks are there?",
            ),
            (
                lambda V, P, C, L: (V + P) * C + L * (12 * C * C + 13 * C) + C,
                "A norm has a gamma. What else?",
            ),
            (
                lambda V, P, C, L: (V + P) * C + L * 12 * C * C + 2 * C,
                "Those are the products of a block. Which of its numbers are missing?",
            ),
            (
                lambda V, P, C, L: (V + P) * C + L * 12 * C * C + 13 * C + 2 * C,
                "What belongs to every block? Where do the brackets stand?",
            ),
            (
                lambda V, P, C, L: (V + P) * C + L * (12 * C * C + 13 * C) + 2,
                "How many gammas has a norm: one, or one for each channel?",
            ),
            (
                lambda V, P, C, L: (V + P) * C + L * (12 * C * C + 13 * C + 2 * C),
                "How often does the last norm stand there?",
            ),
            (
                lambda V, P, C, L: V * P * C + L * (12 * C * C + 13 * C) + 2 * C,
                "Two tables lie side by side. Is one multiplied by the other?",
            ),
        ],
    ),
    "07.6": Exercise(
        lambda: "CAFBDE",
        cases=[()],
        mistakes=[
            (lambda: "CFABDE", "Is the last norm before the blocks, or behind them?"),
            (lambda: "CABDEF", "What goes into the head: rows of any size, or normed ones?"),
            (lambda: "CABFDE", "What goes into the head: rows of any size, or normed ones?"),
            (lambda: "CAFDBE", "Can there be a loss before there are logits?"),
            (lambda: "CAFBED", "What is the mean taken of?"),
            (lambda: "ACFBDE", "What do the blocks work on: ids, or rows?"),
            *(
                (lambda order=order: order, _EXTRA)
                for order in ("CAGFBDE", "CAFGBDE", "CGAFBDE", "CAFBGDE", "CAFBDGE", "CAFBDEG")
            ),
        ],
        secret=True,
    ),
    "07.7": COUNTED,
    "07.8": ROW_LOSS,
}

QUESTIONS = {
    "07.q1": Question("C", {
        "A": "then the loss would fall with every pad, whatever the model says",
        "B": "the end token is the pad, and every sentence has to learn where it ends",
        "C": "a place counts if somebody wants an answer there, whatever id stands in the input",
    }),
    "07.q2": Question("A", {
        "A": "a fresh model with a tied head says what it sees; that helps only if the target is "
             "what it sees",
        "B": "it has learned nothing yet, so it cannot be good; somebody shows it the answers",
        "C": "all fresh models have about the same loss, whatever the seed",
    }),
    "07.q3": Question("B", {
        "A": "a norm keeps the size steady; alone, it makes all places the same after a while",
        "B": "what was there before passes through the sum unchanged",
        "C": "the sum has no weights at all",
    }),
    "07.q4": Question("B", {
        "A": "the same size would come out, and that is why no error tells",
        "B": "the same line of numbers is cut elsewhere, and the pieces belong to other places",
        "C": "a reshape moves nothing, and that is the trouble",
    }),
    "07.q5": Question("C", {
        "A": "the loss of a model of pairs is far below that already",
        "B": "that line belongs to models that know nothing",
        "C": "whoever looks back one token cannot get below it on these sentences",
    }),
}  # fmt: skip

BROKEN = {
    "07.pads_count": Broken(
        ROWS,
        "    if (target < 0) return;\n",
        "",
        tries=[
            ("no padding", (_numbers(1, 5, 11), _targets(3, 0, 10, 7, 2))),
            ("two pads", (_numbers(1, 5, 11), _targets(3, 0, 10, -1, -1))),
        ],
        finder="check",
        reason="A row with target -1 gets a loss, with the number before its row as its logit.",
    ),
    "07.mean_of_all": Broken(
        MEAN,
        "sum / count;",
        "sum / rows;",
        tries=[("no padding", (_LOSSES[:3], 3)), ("three pads", (_LOSSES, 3))],
        finder="check",
        reason="The sum of three losses is divided by six places.",
    ),
}
