"""AdamW (Loshchilov and Hutter 2019, algorithm 2)."""

from ..reference.shapes import check_adamw


def adamw(w, grad, m, v, status, *, rate, beta1, beta2, epsilon, decay, step, n_decay):
    """Updates w, m and v (all of one shape) in place by one step; step counts from 1.

    The first n_decay elements decay. status (5,) is global_norm's: its clip scales the gradient,
    and where it is not finite nothing changes.
    """
    check_adamw(w, grad, m, v, status)
    correction1, correction2 = 1 / (1 - beta1**step), 1 / (1 - beta2**step)
    w.engine.launch_wide(
        "adamw", "adamw", w.size, w, grad, m, v, status,
        rate, 1 - beta1, 1 - beta2, epsilon, decay, correction1, correction2, n_decay, w.size,
    )  # fmt: skip
