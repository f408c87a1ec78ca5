"""GELU in its tanh form (Hendrycks and Gimpel 2016)."""

from ..reference.shapes import check_same


def gelu(x):
    """x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3), element by element."""
    y = x.engine.empty(x.shape)
    x.engine.launch_wide("gelu", "gelu_forward", x.size, x, y, x.size)
    return y


def gelu_backward(x, dy):
    """dx for y = gelu(x)."""
    check_same("gelu_backward", x, dy)
    dx = x.engine.empty(x.shape)
    x.engine.launch_wide("gelu", "gelu_backward", x.size, x, dy, dx, x.size)
    return dx
