"""Layer normalization (Ba, Kiros and Hinton 2016)."""

import numpy as np

from .shapes import check_layer_norm, check_layer_norm_backward


def layer_norm(x, gamma, beta, epsilon=1e-5):
    """(y, mean, rstd): each row of x (..., C) at mean 0 and variance 1, times gamma, plus beta.

    The variance is divided by C; epsilon stands inside the root. mean and rstd lie (...).
    """
    check_layer_norm(x, gamma, beta)
    mean = x.mean(axis=-1)
    centered = x - mean[..., None]
    rstd = 1 / np.sqrt((centered * centered).mean(axis=-1) + epsilon)
    return centered * rstd[..., None] * gamma + beta, mean, rstd


def layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta):
    """dx (..., C); adds to dgamma (C) and dbeta (C)."""
    check_layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta)
    xhat = (x - mean[..., None]) * rstd[..., None]
    rows = tuple(range(x.ndim - 1))
    dgamma += (dy * xhat).sum(axis=rows)
    dbeta += dy.sum(axis=rows)
    g = dy * gamma
    g_mean = g.mean(axis=-1, keepdims=True)
    gx_mean = (g * xhat).mean(axis=-1, keepdims=True)
    return rstd[..., None] * (g - g_mean - xhat * gx_mean)
