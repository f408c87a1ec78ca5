"""Matrix product, and the linear layer y = x W + b."""

from ..reference.shapes import check_linear, check_linear_backward, check_matmul
from ..versions import BLOCKS, TILE, choose_tile

OPTIONS = BLOCKS[0].options


def multiply(
    a, b, c, m, n, k, *, transpose_a=False, transpose_b=False, bias=None, plus=None, add=False
):  # fmt: skip
    """Writes a (m, k) times b (k, n), plus a bias (n) and plus (m, n), into c, or adds it to c.

    Transposed operands lie (k, m) and (n, k).
    """
    engine = c.engine
    if engine.product == "grouped":
        _grouped(a, b, c, m, n, k, transpose_a, transpose_b, bias, plus, add)
        return
    if engine.product == "tiled":
        strides = *((1, m) if transpose_a else (k, 1)), *((1, k) if transpose_b else (n, 1))
        name = "matmul_tiled_add" if add else "matmul_tiled"
        kernel = engine.program.kernel("matmul", name, OPTIONS)
        start = () if add else (bias, plus)
        kernel((n, m), (TILE, TILE), a, b, *start, c, m, n, k, *strides)
        return
    if transpose_a != add:  # the kernel that adds wants a (k, m), the others (m, k)
        a = _transposed(a, k, m) if transpose_a else _transposed(a, m, k)
    if transpose_b and add:
        b = _transposed(b, n, k)
    name = "matmul_packed_add" if add else "matmul_packed" if transpose_b else "matmul_blocked"
    kernel = engine.program.kernel("matmul", name, engine.block.options)
    start = () if add else (bias, plus)
    kernel(engine.block.grid(name, m, n), (1, 1), a, b, *start, c, m, n, k)


def _grouped(a, b, c, m, n, k, transpose_a, transpose_b, bias, plus, add):
    engine = c.engine
    tile, parts = choose_tile(m, n, k, engine.device.info.compute_units)
    options = tile.options(m, n, k, transpose_a, transpose_b)
    groups = -(-n // tile.n) * tile.items, -(-m // tile.m)
    kernel = engine.program.kernel("matmul_gpu", "matmul_group", options)
    local = (tile.items, 1, 1)
    if parts == 1:
        kernel((*groups, 1), local, a, b, bias, plus, c, m, n, k, k, int(add))
        return
    share = -(-k // parts)
    step = -(-share // tile.k) * tile.k  # whole tiles
    parts = -(-k // step)
    sums = engine.empty((parts, m, n))
    kernel((*groups, parts), local, a, b, None, None, sums, m, n, k, step, 0)
    finish = engine.program.kernel("matmul_gpu", "matmul_parts", options)
    finish((m * n,), (128,), sums, bias, plus, c, m, n, parts, int(add))


def _transposed(x, rows, cols):
    y = x.engine.empty((cols, rows))
    kernel = x.engine.program.kernel("transpose", "transpose")
    kernel((-(-rows // 16), -(-cols // 16)), (1, 1), x, y, rows, cols)
    return y


def matmul(a, b, transpose_a=False, transpose_b=False):
    """a b for matrices, either of them transposed on request."""
    m, n, k = check_matmul(a, b, transpose_a, transpose_b)
    c = a.engine.empty((m, n))
    multiply(a, b, c, m, n, k, transpose_a=transpose_a, transpose_b=transpose_b)
    return c


def linear(x, w, b, plus=None):
    """x w + b (+ plus): x (..., K), w (K, N), b (N) -> (..., N); plus (..., N) is a residual."""
    check_linear(x, w, b, plus)
    k, n = w.shape
    y = x.engine.empty((*x.shape[:-1], n))
    multiply(x, w, y, x.size // k, n, k, bias=b, plus=plus)
    return y


def linear_backward(x, w, dy, dw, db):
    """dx (..., K); adds to dw (K, N) and db (N).

    dx = dy w^T, dw = x^T dy summed over all rows, db = the sum of dy over all rows.
    """
    check_linear_backward(x, w, dy, dw, db)
    k, n = w.shape
    rows, engine = x.size // k, x.engine
    multiply(x, dy, dw, k, n, rows, transpose_a=True, add=True)
    engine.launch_columns("column_sum", "column_sum", n, dy, db, rows, n)
    dx = engine.empty(x.shape)
    multiply(dy, w, dx, rows, k, n, transpose_b=True)
    return dx
