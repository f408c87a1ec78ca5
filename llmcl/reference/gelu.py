"""GELU in its tanh form (Hendrycks and Gimpel 2016)."""

import numpy as np

from .shapes import check_same

ROOT = float(np.sqrt(2 / np.pi))  # a plain float: float32 stays float32
CUBE = 0.044715


def _gate(x):
    """s = 1 / (1 + exp(-2u)), which is (1 + tanh u) / 2 without the cancellation below zero."""
    with np.errstate(over="ignore"):  # 1 / (1 + infinity) is 0, as it should be
        return 1 / (1 + np.exp(-2 * ROOT * (x + CUBE * x**3)))


def gelu(x):
    """x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3), element by element."""
    return x * _gate(x)


def gelu_backward(x, dy):
    """dx for y = gelu(x)."""
    check_same("gelu_backward", x, dy)
    s = _gate(x)
    return dy * (s + x * s * (1 - s) * 2 * ROOT * (1 + 3 * CUBE * x * x))
