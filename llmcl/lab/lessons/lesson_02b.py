"""Lesson 02b, Counting pairs."""

import numpy as np

from ...bigram import bigram_shares
from . import Exercise, Question


def _mean_loss(shares, left, right):
    return -np.log(shares[left, right]).mean()


def _shifted_once(inputs, targets):
    return list(inputs[1:]) == list(targets[:-1])


def _array(*rows):
    return np.array(rows, np.float64)


_SHARES = _array([0.5, 0.25, 0.25], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6])
_SPOT = "What must be known before it can be done?"
_ODD = "One line does not belong. Which of them would need a memory?"

EXERCISES = {
    "02b.2": Exercise(
        bigram_shares,
        cases=[(_array([3, 1, 0], [0, 2, 2], [1, 1, 1]), 0.0),
               (_array([3, 1, 0], [0, 2, 2], [0, 0, 5]), 0.5),
               (_array([0, 4], [1, 0]), 1.0)],
        mistakes=[
            (lambda counts, extra: (counts + extra) / (counts + extra).sum(axis=0),
             "Do the rows sum to 1, or the columns?"),
            (lambda counts, extra: (counts + extra) / (counts + extra).sum(axis=1),
             "Without `keepdims=True` the sums lie in a row. Which of them divides which column?"),
            (lambda counts, extra: (counts + extra) / (counts + extra).sum(),
             "Is each row divided by its own sum, or everything by the sum of everything?"),
            (lambda counts, extra: counts / counts.sum(axis=1, keepdims=True),
             "Where does `extra` come in?"),
            (lambda counts, extra: (counts + extra) / counts.sum(axis=1, keepdims=True),
             "Is the sum taken before `extra` is added, or after?"),
            (lambda counts, extra: counts / counts.sum(axis=1, keepdims=True) + extra,
             "Is `extra` added to counts, or to shares? Do the rows still sum to 1?"),
        ],
    ),
    "02b.3": Exercise(
        _mean_loss,
        cases=[(_SHARES, np.array([0, 1, 1, 2]), np.array([0, 1, 2, 1])),
               (_SHARES, np.array([2]), np.array([0])),
               (_SHARES, np.array([1, 1, 0, 0, 2]), np.array([0, 0, 1, 2, 2]))],
        mistakes=[
            (lambda shares, left, right: np.log(shares[left, right]).mean(),
             "The logarithm of a share is negative. Is a loss?"),
            (lambda shares, left, right: -np.log(shares[left, right]).sum(),
             "Is that the sum over all places, or the mean?"),
            (lambda shares, left, right: -np.log2(shares[left, right]).mean(),
             "Which logarithm counts in nats: the natural one, or the one to the base 2?"),
            (lambda shares, left, right: -np.log(shares[left, right].mean()),
             "What comes first, the logarithm of each share, or the mean?"),
            (lambda shares, left, right: -np.log(shares[right, left]).mean(),
             "Which one chooses the row: the token that stands there, or the one that follows?"),
            (lambda shares, left, right: -np.log(shares[left, right]),
             "That is the loss at each place. How do they become one number?"),
            (lambda shares, left, right: -np.log(shares).mean(),
             "The table has a share for every pair. Which of them belong to the right tokens?"),
            (lambda shares, left, right: -np.log(shares[left][right]).mean(),
             "`shares[left][right]` picks rows, then rows of these. What picks single numbers?"),
            (lambda shares, left, right: 1 - shares[left, right].mean(),
             "Is there a logarithm in it?"),
        ],
    ),
    "02b.5": Exercise(
        lambda: "CFADB",
        cases=[()],
        mistakes=[
            (lambda: "FCADB", _SPOT),
            (lambda: "CAFDB", _SPOT),
            (lambda: "CFDAB", "Which token is looked at, before there is a new one?"),
            (lambda: "CADFB", _SPOT),
            (lambda: "CFBAD", _SPOT),
            (lambda: "CFABD", "When is there a reason to stop?"),
            *((lambda order=order: order, _ODD)
              for order in ("ECFADB", "CEFADB", "CFEADB", "CFAEDB", "CFADEB", "CFADBE", "EFADB")),
        ],
        secret=True,
    ),
    "02b.4": Exercise(
        _shifted_once,
        cases=[([1, 2, 3, 4], [2, 3, 4, 5]), ([1, 2, 3, 4], [1, 2, 3, 4]),
               ([1, 2, 3, 4], [3, 4, 5, 6]), ([7, 8, 7, 8], [8, 7, 8, 7]),
               ([7, 8, 7, 8], [8, 7, 9, 7]), ([2, 2, 2], [2, 2, 5])],
        mistakes=[
            (lambda inputs, targets: list(inputs) == list(targets),
             "That holds for targets that were never shifted. Where does the target stand again?"),
            (lambda inputs, targets: list(inputs) != list(targets),
             "Targets that were shifted twice differ from the inputs, too. What must be equal?"),
            (lambda inputs, targets: list(inputs[:-1]) == list(targets[1:]),
             "Was that shifted to the left, or to the right?"),
            (lambda inputs, targets: list(inputs[2:]) == list(targets[:-2]),
             "By how many places are they compared?"),
            (lambda inputs, targets: inputs[1] == targets[0],
             "And at the other places?"),
            (lambda inputs, targets: list(inputs[1:]) == list(targets),
             "Which of the two lists is longer now? Which target has no next input?"),
        ],
    ),
}  # fmt: skip

QUESTIONS = {
    "02b.q1": Question("C", {
        "A": "that takes a model with a larger memory; this one is as good as any that looks back "
             "one token",
        "B": "ln V is what knowing nothing costs; pairs do better",
        "C": "several tokens follow ` the`, and only earlier words could tell which",
    }),
    "02b.q2": Question("B", {
        "A": "the loss of the training text only grows by it",
        "B": "a share of 0 has an infinite loss, and a few made-up counts prevent it",
        "C": "the table keeps its size; every entry gets a little more",
    }),
    "02b.q3": Question("A", {
        "A": "and so the ids of one text are the same on every machine",
        "B": "the lengths would stay much the same; it is the numbers that change their meaning",
        "C": "without a rule it works, too; but each time with other numbers",
    }),
    "02b.q4": Question("C", {
        "A": "nothing is rounded when nothing is there; the place is outside of the buffer",
        "B": "OpenCL does not check where a kernel writes; that is why there are guards",
        "C": "sizes are rounded up to whole groups, and somebody else's numbers lie there",
    }),
    "02b.q5": Question("B", {
        "A": "softmax gives shares, as counting does; that is where the two are alike",
        "B": "training moves the weights until the loss is small; here one division is enough",
        "C": "it counts nothing, and it sees the whole beginning, not two tokens or three",
    }),
}  # fmt: skip
