"""Softmax, plain and causal."""

import numpy as np

from .shapes import check_causal, check_same


def softmax(scores):
    """Rows of shares: (..., n) -> (..., n), positive, each row sums to 1."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def causal_softmax(scores, first=0):
    """Softmax of scores (..., Q, n) where row i sees the columns 0 .. first + i only.

    The shares of the other columns are 0.
    """
    check_causal(scores, first)
    rows, columns = scores.shape[-2:]
    seen = np.arange(columns)[None, :] <= first + np.arange(rows)[:, None]
    return softmax(np.where(seen, scores, -np.inf))


def softmax_backward(shares, dshares):
    """dscores for shares = softmax(scores), plain or causal."""
    check_same("softmax_backward", shares, dshares)
    return shares * (dshares - (shares * dshares).sum(axis=-1, keepdims=True))
