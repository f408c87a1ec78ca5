"""The residual connection."""

from ..reference.shapes import check_same


def residual(x, branch):
    """x + branch. Backward is the same sum: the gradient of x gets what both ways bring."""
    check_same("residual", x, branch)
    y = x.engine.empty(x.shape)
    x.engine.launch_wide("residual", "residual_add", x.size, x, branch, y, x.size)
    return y
