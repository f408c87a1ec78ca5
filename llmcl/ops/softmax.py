"""Softmax, plain and causal."""

from ..reference.shapes import check_causal, check_same


def softmax(scores):
    """Rows of shares: (..., n) -> (..., n), positive, each row sums to 1.

    A score of minus infinity gets the share 0; a row of nothing else has no shares and becomes NaN.
    """
    n = scores.shape[-1]
    rows = scores.size // n
    shares = scores.engine.empty(scores.shape)
    scores.engine.launch_rows(
        "softmax", "softmax_forward", rows, scores, shares, rows, n, length=n, wide=False
    )
    return shares


def causal_softmax(scores, first=0):
    """Softmax of scores (..., Q, n) where row i sees the columns 0 .. first + i only.

    The shares of the other columns are 0.
    """
    check_causal(scores, first)
    t, n = scores.shape[-2:]
    rows = scores.size // n
    shares = scores.engine.empty(scores.shape)
    scores.engine.launch_rows(
        "softmax", "softmax_causal", rows,
        scores, shares, rows, t, n, first, length=n, wide=False,
    )  # fmt: skip
    return shares


def softmax_backward(shares, dshares):
    """dscores for shares = softmax(scores), plain or causal."""
    check_same("softmax_backward", shares, dshares)
    n = shares.shape[-1]
    rows = shares.size // n
    dscores = shares.engine.empty(shares.shape)
    shares.engine.launch_rows(
        "softmax", "softmax_backward", rows,
        shares, dshares, dscores, rows, n, length=n, wide=False,
    )  # fmt: skip
    return dscores
