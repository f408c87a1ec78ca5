"""AdamW (Loshchilov and Hutter 2019, algorithm 2)."""

import numpy as np

from .shapes import check_adamw


def adamw(w, grad, m, v, status, *, rate, beta1, beta2, epsilon, decay, step, n_decay):
    """Updates w, m and v (all of one shape) in place by one step; step counts from 1.

    The first n_decay elements decay. status (5,) is global_norm's: its clip scales the gradient,
    and where it is not finite nothing changes.
    """
    check_adamw(w, grad, m, v, status)
    if status[2] == 0:
        return
    flat_w, flat_m, flat_v = w.reshape(-1), m.reshape(-1), v.reshape(-1)
    g = grad.reshape(-1) * status[1]
    flat_m += (1 - beta1) * (g - flat_m)
    flat_v += (1 - beta2) * (g * g - flat_v)
    pull = np.where(np.arange(flat_w.size) < n_decay, decay * flat_w, 0)
    corrected = flat_m / (1 - beta1**step)
    scale = np.sqrt(flat_v / (1 - beta2**step)) + epsilon
    flat_w -= rate * (corrected / scale + pull)
