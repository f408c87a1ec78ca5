"""The norm of all gradients together, and the clip that it asks for."""

import numpy as np

from .shapes import check_global_norm


def sum_squares(x):
    """The sum of all squares of a tensor, (1,)."""
    return (x * x).sum().reshape(1)


def global_norm(grads, loss, max_norm, step=1, before=None):
    """status (5,) = [norm, clip, finite, loss, bad step]; the gradient is multiplied by clip.

    grads: list of tensors. clip is max_norm / norm where the norm is above max_norm, else 1. finite
    is 1 when norm and loss are finite numbers, in this step and in all before it, else 0, and then
    no weight is changed; bad step is the first one that was not, or 0. before: the last status.
    Pascanu, Mikolov and Bengio 2013.
    """
    check_global_norm(loss, before)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = np.sqrt(sum(sum_squares(g)[0] for g in grads))
    clip = max_norm / norm if norm > max_norm else 1.0
    bad_step = 0 if before is None else before[4]
    if bad_step == 0 and not (np.isfinite(norm) and np.isfinite(loss[0])):
        bad_step = step
    return np.array([norm, clip, bad_step == 0, loss[0], bad_step], dtype=loss.dtype)
