"""Lesson 10, Tuning."""

import numpy as np

from ...data import IGNORED
from . import Broken, Exercise, KernelTask, Question
from .lesson_07 import ROWS


def _numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _targets(*numbers):
    return np.array(numbers, np.int32)


# ---- rows ----


def _answer_row(asked, answered, end_id):
    return asked + answered, [IGNORED] * (len(asked) - 1) + answered + [end_id]


def _one_masked_too_many(asked, answered, end_id):
    return asked + answered, [IGNORED] * len(asked) + answered + [end_id]


def _first_token_masked(asked, answered, end_id):
    return asked + answered, [IGNORED] * len(asked) + answered[1:] + [end_id]


def _without_the_end(asked, answered, end_id):
    return (asked + answered)[:-1], [IGNORED] * (len(asked) - 1) + answered


def _end_masked(asked, answered, end_id):
    return asked + answered, [IGNORED] * (len(asked) - 1) + answered + [IGNORED]


def _question_counts(asked, answered, end_id):
    return asked + answered, (asked + answered + [end_id])[1:]


def _not_shifted(asked, answered, end_id):
    return asked + answered + [end_id], [IGNORED] * len(asked) + answered + [end_id]


def _end_as_input(asked, answered, end_id):
    row = _answer_row(asked, answered, end_id)
    return row[0] + [end_id], row[1]


# ---- what is known ----


def _known(logits, targets):
    return ((logits.argmax(axis=-1) == targets) | (targets == IGNORED)).all(axis=-1)


def _known_case(seed, wrong, rows=4, places=5, v=7):
    """Random logits and their best tokens, some masked; row r asks for another at wrong[r]."""
    logits = _numbers(seed, rows, places, v)
    targets = logits.argmax(axis=-1)
    targets[:, :2] = IGNORED
    for row, place in wrong.items():
        targets[row, place] = (targets[row, place] + 1) % v
    return logits, targets


def _worst_tokens(seed):
    logits = _numbers(seed, 2, 5, 7)
    targets = logits.argmin(axis=-1)
    targets[:, 0] = IGNORED
    return logits, targets


def _place_known(engine, kernel, logits, targets):
    rows, v = logits.shape
    known = engine.from_host(np.full(rows, -7, np.int32))
    kernel((rows,), (4,), engine.from_host(logits), engine.from_host(targets), known, rows, v)
    return engine.to_host(known)


def _place_known_want(logits, targets):
    right = (logits.argmax(axis=-1) == targets) | (targets < 0)
    return right.astype(np.float64), np.zeros(len(targets))


def _place_case(seed, *targets, v=7):
    """Random logits; a target of None asks for the best token of its row, others for that token."""
    logits = _numbers(seed, len(targets), v)
    best = logits.argmax(axis=-1)
    return logits, _targets(*(b if t is None else t for t, b in zip(targets, best, strict=True)))


def _with_ties():
    logits = np.zeros((5, 6), np.float32)
    logits[0, [1, 4]] = logits[1, [2, 5]] = 3
    logits[2, 0] = logits[3, 0] = 2
    return logits, _targets(1, 5, 0, 3, -1)


PLACE_KNOWN = KernelTask(
    """
__kernel void place_known(__global const float *logits,   // (rows, V)
                          __global const int *targets,    // (rows)
                          __global int *known,            // (rows)
                          const int rows, const int V)
{
    const int row = get_global_id(0);
    if (row >= rows) return;
    const int target = targets[row];
    known[row] = 1;
    if (target < 0) return;
    __global const float *in = logits + row * V;
    int best = 0;
    for (int v = 1; v < V; ++v) if (in[v] > in[best]) best = v;
    known[row] = best == target;
}
""",
    "place_known",
    _place_known,
    _place_known_want,
    cases=[_place_case(1, -1, None, 3, None, -1, 0), _with_ties(), _place_case(2, None, v=1)],
    mistakes=[
        (
            "    if (target < 0) return;\n",
            "",
            "No token has the id -1. Can a place that asks nothing spoil its text?",
        ),
        ("    known[row] = 1;\n", "", "Who writes the number of a place where nobody asks?"),
        ("    if (row >= rows) return;\n", "", "Which work-items have no element of their own, "
         "and do they leave?"),
        ("in[v] > in[best]", "in[v] >= in[best]", "Two logits are equal. Which does argmax take?"),
        ("in[v] > in[best]", "in[v] < in[best]", "The best token is the one with which logit?"),
        ("best == target", "in[best] == target", "The target is an id. Is `in[best]` one?"),
        ("best == target", "best", "That is the best token. Is it the wanted one?"),
        ("logits + row * V", "logits + row", "How many numbers lie before this row's first one?"),
        ("logits + row * V", "logits + row * rows", "How many numbers has a row of logits?"),
        ("v < V;", "v <= V;", "There are V tokens, from 0. Which is the last one?"),
        ("best = v;", "best = in[v];", "Is `best` a token, or its logit?"),
        ("in[v] > in[best]", "in[v] > best", "`best` is a token. What is its logit?"),
        ("known[row] = best == target;", "if (best == target) known[row] = 1;", "A 1 stands there "
         "already. Who writes the 0?"),
        ("best == target", "best = target", "One sign stores, two compare. Which is this?"),
    ],
)  # fmt: skip

# ---- the end token ----


def _ends_taught(targets, end_id):
    return all(row[row != IGNORED][-1] == end_id for row in targets)


def _mask_pads(ids, lengths, end_id):
    return np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, IGNORED)


def _ends_masked(ids, lengths, end_id):
    return np.where(ids != end_id, ids, IGNORED)


_TEXTS = np.array([[4, 2, 7, 9, 9], [5, 9, 9, 9, 9], [1, 3, 8, 6, 9]])

# Targets for kernels/cross_entropy.cl: -1 is a question's place, and token 10 of 11 the end.
_QUESTION_AND_ANSWER = _targets(-1, -1, 3, 0, 7)
_WITH_ITS_END = _targets(-1, -1, 3, 0, 10)

# ---- what the lesson asks ----

_EXTRA = "One line does not belong. Which target, other than a pad's, has the pad's id?"

EXERCISES = {
    "10.1": Exercise(
        _answer_row,
        cases=[([5, 7, 9], [4, 2], 0), ([8], [3], 1), ([2, 6, 6, 1], [7, 7, 3], 9)],
        mistakes=[
            (_one_masked_too_many, "Are inputs and targets equally long?"),
            (_first_token_masked, "Where does the model learn the first token of the answer?"),
            (_without_the_end, "What should the model say behind the last token of the answer?"),
            (_end_masked, "Who teaches the model to stop?"),
            (_question_counts, "Whose words are the question's, and does the model have to say "
             "them?"),
            (_not_shifted, "Does the model see its answer? A target is the token that follows."),
            (_end_as_input, "Does anything follow the end token?"),
            (lambda a, b, end: (a + b, [IGNORED] * len(a) + b), "Not shifted, and nobody asks for "
             "the end. What should the model say behind the last token of the question?"),
            (lambda a, b, end: (a + b, [IGNORED] * (len(a) - 1) + b), "What should the model say "
             "behind the last token of the answer?"),
            (lambda a, b, end: (a + [end] + b, [IGNORED] * len(a) + b + [end]), "Does an end stand "
             "between question and answer?"),
            (lambda a, b, end: (b, b[1:] + [end]), "Can the model answer a question that it does "
             "not see?"),
            (lambda a, b, end: (a + b, [0] * (len(a) - 1) + b + [end]), "0 is a token. Which "
             "number says that nobody asks?"),
        ],
    ),
    "10.2": Exercise(
        _known,
        cases=[
            _known_case(3, {}),
            _known_case(4, {1: 2, 3: 4}),
            _known_case(5, {0: 3}, rows=2, places=6, v=6),
            _worst_tokens(6),
        ],
        mistakes=[
            (lambda z, y: (z.argmax(axis=-1) == y).all(axis=-1), "No token has the id -1. Is a "
             "masked place answered wrong?"),
            (lambda z, y: ((z.argmax(-1) == y) | (y == IGNORED)).any(-1), "Is a text known when "
             "one of its tokens is?"),
            (lambda z, y: ((z.argmax(-1) == y) | (y == IGNORED)).all(), "One answer, or one for "
             "each row?"),
            (lambda z, y: ((z.argmax(-1) == y) | (y == IGNORED)).mean(-1), "A share of the places "
             "is no answer. When is a text known?"),
            (lambda z, y: ((z.argmin(-1) == y) | (y == IGNORED)).all(-1), "The largest logit, or "
             "the smallest?"),
            (lambda z, y: (z.argmax(-1) == y) | (y == IGNORED), "That is an answer for each place. "
             "When is the whole row known?"),
            (lambda z, y: ((z.argmax(-1) == y) | (y == IGNORED)).all(0), "All places of a row, or "
             "all rows of a place? Which axis is it?"),
            (lambda z, y: ((z.argmax(-1) == y) | (y == IGNORED)).sum(-1), "That counts places. "
             "When is a text known?"),
            (lambda z, y: ((z.argmax(-1) == y) & (y != IGNORED)).any(-1), "Is a text known when "
             "one of its tokens is?"),
        ],
    ),
    "10.3": PLACE_KNOWN,
    "10.7": Exercise(
        _ends_taught,
        cases=[
            (np.array([[-1, 4, 2, 9, -1], [-1, -1, 3, 5, 9]]), 9),
            (np.array([[-1, 4, 2, -1, -1], [-1, -1, 3, 5, -1]]), 9),
            (np.array([[-1, 4, 2, 9, -1], [-1, -1, 3, 5, -1]]), 9),
            (np.array([[-1, 9, 2, 4], [-1, -1, 3, 9]]), 9),
            (np.array([[-1, 9, 2, 4], [-1, 3, 9, 5]]), 9),
            (np.array([[-1, 4, 0], [3, 0, -1]]), 0),
        ],
        mistakes=[
            (lambda y, end: bool((y == end).any()), "Is one row with an end token enough?"),
            (lambda y, end: bool((y == end).any(axis=-1).all()), "It stands somewhere in each row. "
             "Is it the last target?"),
            (lambda y, end: bool((y[:, -1] == end).all()), "What stands in the last column of a "
             "short row?"),
            (lambda y, end: not _ends_taught(y, end), "True if all end, or if one does not?"),
            (lambda y, end: any(row[row != IGNORED][-1] == end for row in y), "Any row, or all of "
             "them?"),
            (lambda y, end: [row[row != IGNORED][-1] == end for row in y], "That is an answer for "
             "each row. And for all of them?"),
            (lambda y, end: bool(y[y != IGNORED][-1] == end), "That is the last row. And the "
             "others?"),
        ],
    ),
    "10.8": Exercise(
        _mask_pads,
        cases=[
            (_TEXTS, np.array([4, 2, 5]), 9),
            (np.array([[6, 0, 1, 0, 0], [2, 4, 5, 7, 0]]), np.array([4, 5]), 0),
        ],
        mistakes=[
            (lambda ids, n, end: np.where(np.arange(ids.shape[1]) <= n[:, None], ids, IGNORED),
             "Places are counted from 0. Is place `length` still in the text?"),
            (lambda ids, n, end: np.where(np.arange(ids.shape[1]) < n[:, None] - 1, ids, IGNORED),
             "The length counts the end token. Is it still a target?"),
            (lambda ids, n, end: np.where(np.arange(ids.shape[1]) >= n[:, None], ids, IGNORED),
             "Which side of the length is the text?"),
            (lambda ids, n, end: ids, "Who masks the pads now?"),
            (lambda ids, n, end: np.where(ids == end, ids, IGNORED), "Now only ends are left. "
             "Which of them are pads, and where is the text?"),
            (lambda ids, n, end: np.where(
                (ids != end) | (np.arange(ids.shape[1]) == n[:, None]), ids, IGNORED
             ), "Places are counted from 0. At which place does a text of this length end?"),
            (lambda ids, n, end: np.where(
                (ids != end) | (np.arange(ids.shape[1]) == n[:, None] - 1), ids, IGNORED
             ), "A long dialogue has several ends. Which of them do you keep?"),
        ],
        given=_ends_masked,
    ),
    "10.9": Exercise(
        lambda: "BCADFE",
        cases=[()],
        mistakes=[
            (lambda: "CBADFE", "What is turned into ids, before there is a text?"),
            (lambda: "BCDAFE", "Who masks first: the function that makes a row, or the one that "
             "makes a batch of rows?"),
            (lambda: "BCADEF", "What is the loss computed from?"),
            *(
                (lambda order=order: order, "Can targets be masked, before there are ids?")
                for order in ("BACDFE", "ABCDFE")
            ),
            *(
                (lambda order=order: order, "The model takes a whole batch. Are its rows equally "
                 "long without pads?")
                for order in ("BCAFDE", "BCAFED", "BCFADE", "BCFDAE")
            ),
            *(
                (lambda order=order: order, "Which function masks: one that makes rows, or the "
                 "model?")
                for order in ("BCDFAE", "BCDFEA")
            ),
            *(
                (lambda order=order: order, "Of which text, and of which ids?")
                for order in ("CABDFE", "DBCAFE", "CADBFE")
            ),
            *(
                (lambda order=order: order, _EXTRA)
                for order in ("BCAGDFE", "BCADGFE", "BCGADFE", "BCADFGE", "BCADFEG", "BCGDFE",
                              "BCDGFE")
            ),
        ],
        secret=True,
    ),
}  # fmt: skip

QUESTIONS = {
    "10.q1": Question("A", {
        "A": "a target is the token that follows, and behind the question follows the answer",
        "B": "there it is the input already; a target is the token that follows",
        "C": "there its successor is the target, or the one behind that",
    }),
    "10.q2": Question("C", {
        "A": "with a wrong rate, the loss would not be fine",
        "B": "a question that counts costs steps; it does not keep an answer from ending",
        "C": "if there are none, nobody taught it to stop, and no loss will tell",
    }),
    "10.q3": Question("A", {
        "A": "one factor for all: the direction stays, and only the length changes",
        "B": "that would change the direction, as short tensors would become as loud as long ones",
        "C": "that would change the direction, too",
    }),
    "10.q4": Question("B", {
        "A": "then a batch with many pads, or long questions, would count for less",
        "B": "only they are in the mean",
        "C": "the vocabulary is in the sum of exponentials, and not in the mean",
    }),
    "10.q5": Question("A", {
        "A": "a row of equal numbers has the variance 0, and the root of epsilon is what it is "
             "divided by",
        "B": "that would keep from a division by 0 as well, but with other numbers than llama.cpp",
        "C": "the mean is taken away; nothing is divided by it",
    }),
}  # fmt: skip

BROKEN = {
    "10.end_is_pad": Broken(
        ROWS,
        "if (target < 0) return;",
        "if (target < 0 || target == V - 1) return;",
        tries=[
            ("an answer without its end", (_numbers(11, 5, 11), _QUESTION_AND_ANSWER)),
            ("an answer with its end", (_numbers(11, 5, 11), _WITH_ITS_END)),
        ],
        finder="check",
        reason="The last token of the vocabulary is the end token, and it asks for nothing now.",
    ),
}
