"""A model that counts: which token comes next, by how often each followed the last one in a text.

It looks back a single token. What it reaches on the training text is the line that a model with a
longer memory has to get below.
"""

import numpy as np

from .data import IGNORED
from .errors import ShapeError


def bigram_counts(inputs, targets, vocab_size: int) -> np.ndarray:
    """(V, V) whole numbers: [a, b] says how often b is the target where a is the input.

    inputs and targets are as data.batch makes them, (B, T); places with IGNORED are left out.
    Raises ShapeError for ids outside the vocabulary, and for two different shapes.
    """
    left, right = _places(inputs, targets, vocab_size)
    counts = np.zeros((vocab_size, vocab_size), np.int64)
    np.add.at(counts, (left, right), 1)  # += would count a pair once that is there twice
    return counts


def bigram_shares(counts, extra: float = 0.0) -> np.ndarray:
    """(V, V) shares: each row of counts, with `extra` added to every entry, divided by its sum.

    A row whose sum is 0 says nothing about what follows: all tokens get the same share.
    """
    counts = np.asarray(counts, np.float64) + extra
    sums = counts.sum(axis=1, keepdims=True)
    same = np.full_like(counts, 1 / counts.shape[1])
    return np.divide(counts, sums, out=same, where=sums > 0)


def bigram_loss(inputs, targets, vocab_size: int, extra: float = 0.0) -> float:
    """The mean loss in nats on the very places that were counted: -log of each target's share.

    With extra = 0 no table of shares for the next token, given the last one, has a lower loss on
    them. Raises ShapeError as bigram_counts does, and if there is no place with a target.
    """
    left, right = _places(inputs, targets, vocab_size)
    if not left.size:
        raise ShapeError("no place has a target, so there is no loss; give at least one sentence.")
    shares = bigram_shares(bigram_counts(inputs, targets, vocab_size), extra)
    return float(np.log(1 / shares[left, right]).mean())


def _places(inputs, targets, vocab_size) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and the targets of all places that have a target."""
    inputs, targets = np.asarray(inputs), np.asarray(targets)
    if inputs.shape != targets.shape:
        raise ShapeError(f"inputs {inputs.shape} and targets {targets.shape} differ in shape.")
    seen = targets != IGNORED
    left, right = inputs[seen], targets[seen]
    for name, ids in (("input", left), ("target", right)):
        if ids.size and not 0 <= ids.min() <= ids.max() < vocab_size:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise ShapeError(f"the {name} {wrong} is no id of a vocabulary of {vocab_size} tokens.")
    return left, right
