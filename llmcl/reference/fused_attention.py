"""Attention that keeps one number a row instead of the table of shares.

In NumPy the table is made and forgotten; on OpenCL it is never made.
"""

import numpy as np

from .attention import attention_mix, attention_scores, join_heads, split_heads
from .shapes import check_fused_backward
from .softmax import seen_columns


def _shown(scores, first):
    return np.where(seen_columns(*scores.shape[-2:], first), scores, -np.inf)


def fused_attention(qkv, n_heads, first=0, length=None):
    """(y, log_sum): what each place hears (B, Q, C), and its log of summed exponentials (B, H, Q).

    Arguments are those of attention(). Dao et al. 2022, algorithm 1.
    """
    scores = _shown(attention_scores(qkv, n_heads, first, length), first)
    largest = scores.max(axis=-1)
    log_sum = largest + np.log(np.exp(scores - largest[..., None]).sum(axis=-1))
    return attention_mix(qkv, np.exp(scores - log_sum[..., None]), first), log_sum


def fused_attention_backward(qkv, y, log_sum, dy):
    """dqkv (B, T, 3C) for y, log_sum = fused_attention(qkv, n_heads) over whole sequences."""
    n_heads, c = log_sum.shape[1], check_fused_backward(qkv, y, log_sum, dy)[2]
    scale = qkv.dtype.type(1 / np.sqrt(c // n_heads))
    q, k, v = (split_heads(part, n_heads) for part in np.split(qkv, 3, axis=-1))
    up = split_heads(dy, n_heads)
    delta = (up * split_heads(y, n_heads)).sum(axis=-1, keepdims=True)
    shares = np.exp(_shown(attention_scores(qkv, n_heads), 0) - log_sum[..., None])
    dscores = shares * (up @ v.swapaxes(-1, -2) - delta)
    dq = dscores @ k * scale
    dk = dscores.swapaxes(-1, -2) @ q * scale
    dv = shares.swapaxes(-1, -2) @ up
    return np.concatenate([join_heads(part) for part in (dq, dk, dv)], axis=-1)
