"""Layer normalization (Ba, Kiros and Hinton 2016)."""

from ..reference.shapes import check_layer_norm, check_layer_norm_backward


def layer_norm(x, gamma, beta, epsilon=1e-5):
    """(y, mean, rstd): each row of x (..., C) at mean 0 and variance 1, times gamma, plus beta.

    The variance is divided by C; epsilon stands inside the root. mean and rstd lie (...).
    """
    check_layer_norm(x, gamma, beta)
    c, engine = x.shape[-1], x.engine
    rows = x.size // c
    y = engine.empty(x.shape)
    mean, rstd = engine.empty(x.shape[:-1]), engine.empty(x.shape[:-1])
    engine.launch_rows(
        "layer_norm", "layer_norm_forward", rows,
        x, gamma, beta, y, mean, rstd, rows, c, epsilon,
    )  # fmt: skip
    return y, mean, rstd


def layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta):
    """dx (..., C); adds to dgamma (C) and dbeta (C)."""
    check_layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta)
    c, engine = x.shape[-1], x.engine
    rows = x.size // c
    dx = engine.empty(x.shape)
    engine.launch_columns(
        "layer_norm", "layer_norm_backward_parameters", c,
        x, mean, rstd, dy, dgamma, dbeta, rows, c,
    )  # fmt: skip
    engine.launch_rows(
        "layer_norm", "layer_norm_backward_input", rows,
        x, gamma, mean, rstd, dy, dx, rows, c,
    )  # fmt: skip
    return dx
