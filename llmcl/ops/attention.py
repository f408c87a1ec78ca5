"""Causal multi-head attention: scores, softmax, weighted sum (Vaswani et al. 2017)."""

from ..reference.shapes import attention_sizes, check_attention_backward, check_mix
from .softmax import causal_softmax, softmax_backward


def attention_scores(qkv, n_heads, first=0, length=None):
    """q . k / sqrt(d_head): qkv (B, T, 3C) -> (B, H, Q, length).

    Rows first .. length-1 ask (Q of them), rows 0 .. length-1 are asked.
    """
    b, t, _, d, length, asking = attention_sizes(qkv, n_heads, first, length)
    scores = qkv.engine.empty((b, n_heads, asking, length))
    qkv.engine.launch2d(
        "attention", "attention_scores", length, b * n_heads * asking,
        qkv, scores, b, t, n_heads, d, first, length, d**-0.5,
    )  # fmt: skip
    return scores


def attention_mix(qkv, shares, first=0):
    """The shares' sum of values: shares (B, H, Q, length) -> (B, Q, C)."""
    n_heads = shares.shape[1]
    b, t, c, d, length, asking = check_mix(qkv, shares, first)
    y = qkv.engine.empty((b, asking, c))
    qkv.engine.launch2d(
        "attention", "attention_mix", c, b * asking,
        qkv, shares, y, b, t, n_heads, d, first, length,
    )  # fmt: skip
    return y


def attention(qkv, n_heads, first=0, length=None):
    """(y, shares): what each place hears (B, Q, C), and from whom (B, H, Q, length)."""
    shares = causal_softmax(attention_scores(qkv, n_heads, first, length), first)
    return attention_mix(qkv, shares, first), shares


def attention_mix_backward(qkv, shares, dy, dqkv):
    """dshares (B, H, T, T); writes the values' part of dqkv (B, T, 3C)."""
    n_heads, engine = shares.shape[1], qkv.engine
    b, t, c, d, _, _ = check_attention_backward(qkv, shares, dqkv, dy)
    dshares = engine.empty(shares.shape)
    sizes = b, t, n_heads, d
    engine.launch2d(
        "attention", "attention_mix_backward_values", c, b * t, shares, dy, dqkv, *sizes
    )
    engine.launch2d(
        "attention", "attention_mix_backward_shares", t, b * n_heads * t, qkv, dy, dshares, *sizes
    )
    return dshares


def attention_scores_backward(qkv, dscores, dqkv):
    """Writes the queries' and keys' parts of dqkv (B, T, 3C)."""
    n_heads = dscores.shape[1]
    b, t, c, d, _, _ = check_attention_backward(qkv, dscores, dqkv)
    qkv.engine.launch2d(
        "attention", "attention_scores_backward", c, b * t,
        qkv, dscores, dqkv, b, t, n_heads, d, d**-0.5,
    )  # fmt: skip


def attention_backward(qkv, shares, dy):
    """dqkv (B, T, 3C) for y, shares = attention(qkv, n_heads) over whole sequences."""
    dqkv = qkv.engine.empty(qkv.shape)
    dshares = attention_mix_backward(qkv, shares, dy, dqkv)
    attention_scores_backward(qkv, softmax_backward(shares, dshares), dqkv)
    return dqkv
