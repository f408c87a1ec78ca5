"""Matrix product, and the linear layer y = x W + b."""

from .shapes import check_linear, check_linear_backward, check_matmul


def matmul(a, b, transpose_a=False, transpose_b=False):
    """a b for matrices, either of them transposed on request."""
    check_matmul(a, b, transpose_a, transpose_b)
    return (a.T if transpose_a else a) @ (b.T if transpose_b else b)


def linear(x, w, b, plus=None):
    """x w + b (+ plus): x (..., K), w (K, N), b (N) -> (..., N); plus (..., N) is a residual."""
    check_linear(x, w, b, plus)
    return x @ w + b if plus is None else x @ w + b + plus


def linear_backward(x, w, dy, dw, db):
    """dx (..., K); adds to dw (K, N) and db (N).

    dx = dy w^T, dw = x^T dy summed over all rows, db = the sum of dy over all rows.
    """
    check_linear_backward(x, w, dy, dw, db)
    rows_x, rows_dy = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dw += rows_x.T @ rows_dy
    db += rows_dy.sum(axis=0)
    return dy @ w.T
