"""Causal multi-head attention: scores, softmax, weighted sum (Vaswani et al. 2017)."""

import numpy as np

from .shapes import attention_sizes, check_attention_backward, check_mix
from .softmax import causal_softmax, softmax_backward


def split_heads(part, n_heads):
    """(B, T, C) -> (B, H, T, d): split the channels, then bring the heads forward."""
    b, t, c = part.shape
    return part.reshape(b, t, n_heads, c // n_heads).transpose(0, 2, 1, 3)


def join_heads(heads):
    """(B, H, T, d) -> (B, T, C), the reverse of split_heads."""
    b, h, t, d = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(b, t, h * d)


def attention_scores(qkv, n_heads, first=0, length=None):
    """q . k / sqrt(d_head): qkv (B, T, 3C) -> (B, H, Q, length).

    Rows first .. length-1 ask (Q of them), rows 0 .. length-1 are asked.
    """
    _, _, c, d, length, _ = attention_sizes(qkv, n_heads, first, length)
    q = split_heads(qkv[:, first:length, :c], n_heads)
    k = split_heads(qkv[:, :length, c : 2 * c], n_heads)
    return q @ k.swapaxes(-1, -2) * qkv.dtype.type(1 / np.sqrt(d))


def attention_mix(qkv, shares, first=0):
    """The shares' sum of values: shares (B, H, Q, length) -> (B, Q, C)."""
    _, _, c, _, length, _ = check_mix(qkv, shares, first)
    return join_heads(shares @ split_heads(qkv[:, :length, 2 * c :], shares.shape[1]))


def attention(qkv, n_heads, first=0, length=None):
    """(y, shares): what each place hears (B, Q, C), and from whom (B, H, Q, length)."""
    shares = causal_softmax(attention_scores(qkv, n_heads, first, length), first)
    return attention_mix(qkv, shares, first), shares


def attention_mix_backward(qkv, shares, dy, dqkv):
    """dshares (B, H, T, T); writes the values' part of dqkv (B, T, 3C)."""
    n_heads, c = shares.shape[1], check_attention_backward(qkv, shares, dqkv, dy)[2]
    up = split_heads(dy, n_heads)
    dqkv[..., 2 * c :] = join_heads(shares.swapaxes(-1, -2) @ up)
    return up @ split_heads(qkv[..., 2 * c :], n_heads).swapaxes(-1, -2)


def attention_scores_backward(qkv, dscores, dqkv):
    """Writes the queries' and keys' parts of dqkv (B, T, 3C)."""
    n_heads, c = dscores.shape[1], check_attention_backward(qkv, dscores, dqkv)[2]
    scale = qkv.dtype.type(1 / np.sqrt(c // n_heads))
    q, k = split_heads(qkv[..., :c], n_heads), split_heads(qkv[..., c : 2 * c], n_heads)
    dqkv[..., :c] = join_heads(dscores @ k) * scale
    dqkv[..., c : 2 * c] = join_heads(dscores.swapaxes(-1, -2) @ q) * scale


def attention_backward(qkv, shares, dy):
    """dqkv (B, T, 3C) for y, shares = attention(qkv, n_heads) over whole sequences."""
    dqkv = np.empty_like(qkv)
    dshares = attention_mix_backward(qkv, shares, dy, dqkv)
    attention_scores_backward(qkv, softmax_backward(shares, dshares), dqkv)
    return dqkv
