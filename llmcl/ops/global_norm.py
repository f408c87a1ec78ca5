"""The norm of all gradients together, and the clip that it asks for."""

from ..reference.shapes import check_global_norm


def _groups(engine) -> int:
    """How many groups share a tensor; each leaves one partial sum.

    A compute unit of a GPU holds several at once, and needs them all while one waits for memory.
    """
    return 8 * engine.device.info.compute_units if engine.groups else 32


def _partial_sums(x, partial, offset, groups):
    engine = x.engine
    if engine.wide:
        args = x, partial, offset, groups, x.size
        engine.program.kernel("global_norm", "sum_squares_wide")((groups,), (1,), *args)
        return
    kernel = engine.program.kernel("global_norm", "sum_squares_groups")
    local = min(engine.local_size, kernel.max_group)
    kernel((groups * local,), (local,), x, partial, 4 * local, offset, x.size)


def sum_squares(x):
    """The sum of all squares of a tensor, (1,)."""
    engine, groups = x.engine, _groups(x.engine)
    partial, total = engine.empty((groups,)), engine.empty((1,))
    _partial_sums(x, partial, 0, groups)
    engine.launch("global_norm", "sum_partials", 1, partial, total, groups)
    return total


def global_norm(grads, loss, max_norm, step=1, before=None):
    """status (5,) = [norm, clip, finite, loss, bad step]; the gradient is multiplied by clip.

    grads: list of tensors. clip is max_norm / norm where the norm is above max_norm, else 1. finite
    is 1 when norm and loss are finite numbers, in this step and in all before it, else 0, and then
    no weight is changed; bad step is the first one that was not, or 0. before: the last status.
    Pascanu, Mikolov and Bengio 2013.
    """
    check_global_norm(loss, before)
    engine, groups = loss.engine, _groups(loss.engine)
    count = groups * len(grads)
    partial, status = engine.empty((count,)), engine.empty((5,))
    for i, grad in enumerate(grads):
        _partial_sums(grad, partial, i * groups, groups)
    engine.launch_rows(
        "global_norm", "global_norm_status", 1,
        partial, loss, before, status, count, float(max_norm), step, length=count, wide=False,
    )  # fmt: skip
    return status
