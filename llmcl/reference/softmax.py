"""Softmax, plain and causal."""

import numpy as np

from .shapes import check_causal, check_same


def softmax(scores):
    """Rows of shares: (..., n) -> (..., n), positive, each row sums to 1.

    A score of minus infinity gets the share 0; a row of nothing else has no shares and becomes NaN.
    """
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def seen_columns(rows, columns, first=0):
    """The causal mask (rows, columns): row i sees the columns 0 .. first + i."""
    return np.arange(columns)[None, :] <= first + np.arange(rows)[:, None]


def causal_softmax(scores, first=0):
    """Softmax of scores (..., Q, n) where row i sees the columns 0 .. first + i only.

    The shares of the other columns are 0.
    """
    check_causal(scores, first)
    return softmax(np.where(seen_columns(*scores.shape[-2:], first), scores, -np.inf))


def softmax_backward(shares, dshares):
    """dscores for shares = softmax(scores), plain or causal."""
    check_same("softmax_backward", shares, dshares)
    return shares * (dshares - (shares * dshares).sum(axis=-1, keepdims=True))
