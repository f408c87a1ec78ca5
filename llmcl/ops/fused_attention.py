"""Attention in one kernel, which never stores the table of shares."""

from ..reference.shapes import attention_sizes, check_fused_backward
from ..versions import choose_attention_tile

LANES = 8


def _launch(engine, name, d, rows, heads, *args):
    tile = choose_attention_tile(rows, d) if engine.groups else None
    if tile:
        kernel = engine.program.kernel("fused_attention_gpu", f"{name}_group", tile.options(d))
        kernel((heads * tile.items, -(-rows // tile.rows)), (tile.items, 1), *args)
        return
    kernel = engine.program.kernel("fused_attention", name, (f"-DD_HEAD={d}",))
    kernel((-(-rows // LANES), heads), (1, 1), *args)


def fused_attention(qkv, n_heads, first=0, length=None):
    """(y, log_sum): what each place hears (B, Q, C), and its log of summed exponentials (B, H, Q).

    Arguments are those of attention().
    """
    b, t, c, d, length, asking = attention_sizes(qkv, n_heads, first, length)
    engine = qkv.engine
    y, log_sum = engine.empty((b, asking, c)), engine.empty((b, n_heads, asking))
    _launch(
        engine, "fused_attention_forward", d, asking, b * n_heads,
        qkv, y, log_sum, b, t, n_heads, first, length, d**-0.5,
    )  # fmt: skip
    return y, log_sum


def fused_attention_backward(qkv, y, log_sum, dy):
    """dqkv (B, T, 3C) for y, log_sum = fused_attention(qkv, n_heads) over whole sequences."""
    n_heads, engine = log_sum.shape[1], qkv.engine
    b, t, _, d, _, _ = check_fused_backward(qkv, y, log_sum, dy)
    dqkv, delta = engine.empty(qkv.shape), engine.empty(log_sum.shape)
    sizes = b, t, n_heads, d**-0.5
    _launch(
        engine, "fused_attention_backward_q", d, t, b * n_heads,
        qkv, y, log_sum, dy, dqkv, delta, *sizes,
    )  # fmt: skip
    _launch(
        engine, "fused_attention_backward_kv", d, t, b * n_heads,
        qkv, log_sum, dy, delta, dqkv, *sizes,
    )  # fmt: skip
    return dqkv
