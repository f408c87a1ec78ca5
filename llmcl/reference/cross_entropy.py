"""Cross-entropy of the next token, over the places that count."""

import numpy as np

from .shapes import check_cross_entropy, check_shapes


def cross_entropy(logits, targets):
    """(loss (1,), log_sum (rows)): the mean surprise in nats over targets that are not -1.

    logits (..., V), targets (...) of int32. log_sum is the logarithm of the sum of exponentials of
    each row that counts, kept for backward; 0 elsewhere.
    """
    count = check_cross_entropy(logits, targets, targets)
    rows, wanted = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    counted = wanted >= 0
    largest = rows.max(axis=-1)
    log_total = np.log(np.exp(rows - largest[:, None]).sum(axis=-1))
    right = rows[np.arange(len(rows)), np.where(counted, wanted, 0)]
    row_loss = np.where(counted, log_total + (largest - right), 0)
    log_sum = np.where(counted, largest + log_total, 0).astype(logits.dtype)
    return (row_loss.sum() / count).astype(logits.dtype).reshape(1), log_sum


def cross_entropy_backward(logits, targets, log_sum):
    """dlogits (..., V): the shares minus one at the target, over the count; 0 where not counted."""
    count = check_cross_entropy(logits, targets, targets)
    check_shapes("cross_entropy_backward", log_sum=(log_sum, (targets.size,)))
    rows, wanted = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    counted = np.flatnonzero(wanted >= 0)
    d = np.zeros_like(rows)
    d[counted] = np.exp(rows[counted] - log_sum[counted, None])
    d[counted, wanted[counted]] -= 1
    d /= logits.dtype.type(count)
    return d.reshape(logits.shape)
