"""Cross-entropy of the next token, over the places that count."""

from ..reference.shapes import check_cross_entropy, check_shapes


def cross_entropy(logits, targets):
    """(loss (1,), log_sum (rows)): the mean surprise in nats over targets that are not -1.

    logits (..., V), targets (...) of int32. log_sum is the logarithm of the sum of exponentials of
    each row that counts, kept for backward; 0 elsewhere.
    """
    count = check_cross_entropy(logits, targets, _host(targets))
    v, rows, engine = logits.shape[-1], targets.size, logits.engine
    row_loss, log_sum, loss = engine.empty((rows,)), engine.empty((rows,)), engine.empty((1,))
    engine.launch_rows(
        "cross_entropy", "cross_entropy_rows", rows,
        logits, targets, row_loss, log_sum, rows, v, length=v, wide=False,
    )  # fmt: skip
    engine.launch_rows(
        "cross_entropy", "cross_entropy_mean", 1,
        row_loss, loss, rows, count, length=rows, wide=False,
    )  # fmt: skip
    return loss, log_sum


def cross_entropy_backward(logits, targets, log_sum):
    """dlogits (..., V): the shares minus one at the target, over the count; 0 where not counted."""
    count = check_cross_entropy(logits, targets, _host(targets))
    v, rows = logits.shape[-1], targets.size
    check_shapes("cross_entropy_backward", log_sum=(log_sum, (rows,)))
    dlogits = logits.engine.empty(logits.shape)
    logits.engine.launch_rows(
        "cross_entropy", "cross_entropy_backward", rows,
        logits, targets, log_sum, dlogits, rows, v, count, length=v, wide=False,
    )  # fmt: skip
    return dlogits


def _host(targets):
    return targets.host if targets.host is not None else targets.engine.to_host(targets)
