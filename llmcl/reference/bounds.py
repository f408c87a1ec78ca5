"""How far a float32 result may lie from the float64 one: a bound for every operation.

Each function takes the arguments of the operation of its name (NumPy float64, as the operation got
them) and returns one array for each output, in the order: what is returned, then what is added to.

The rule (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1): a sum of n terms,
in any order, is off by at most n u times the sum of their magnitudes, where u = 2^-24 is half the
distance from 1 to the next float32. Elementary functions add a few u of their own: OpenCL 1.2
(section 7.4) allows 3 ulp for exp, log and sqrt and 2.5 for a division, written here as FEW.
"""

import numpy as np

from .attention import attention_mix as mix_of
from .attention import attention_scores as scores_of
from .attention import join_heads, split_heads
from .cross_entropy import cross_entropy_backward as dlogits_of
from .gelu import CUBE, ROOT
from .softmax import causal_softmax as causal_shares_of
from .softmax import seen_columns
from .softmax import softmax as shares_of
from .softmax import softmax_backward as dscores_of

U = 2.0**-24
FEW = 8
TINY = 1e-36  # results below the smallest float32 may be flushed to zero


def matmul(a, b, transpose_a=False, transpose_b=False):
    a, b = np.abs(a.T if transpose_a else a), np.abs(b.T if transpose_b else b)
    return [(a.shape[1] + 1) * U * (a @ b)]


def linear(x, w, b, plus=0.0):
    return [(w.shape[0] + 3) * U * (np.abs(x) @ np.abs(w) + np.abs(b) + np.abs(plus))]


def linear_backward(x, w, dy, dw, db):
    rows_x, rows_dy = np.abs(x.reshape(-1, w.shape[0])), np.abs(dy.reshape(-1, w.shape[1]))
    rows = len(rows_x)
    return [
        (w.shape[1] + 1) * U * (np.abs(dy) @ np.abs(w.T)),
        (rows + 2) * U * (rows_x.T @ rows_dy + np.abs(dw)),
        (rows + 2) * U * (rows_dy.sum(axis=0) + np.abs(db)),
    ]


def embedding(ids, tokens, positions, first=0):
    return [2 * U * (np.abs(tokens[ids]) + np.abs(positions[first : first + ids.shape[1]]))]


def embedding_backward(ids, dx, dtokens, dpositions):
    tokens, positions = np.abs(dtokens), np.abs(dpositions)
    np.add.at(tokens, ids, np.abs(dx))
    positions[: dx.shape[1]] += np.abs(dx).sum(axis=0)
    return [(ids.size + 1) * U * tokens, (ids.shape[0] + 1) * U * positions]


def unembedding(x, tokens):
    return [(x.shape[-1] + 1) * U * (np.abs(x) @ np.abs(tokens.T))]


def unembedding_backward(x, tokens, dlogits, dtokens):
    up = np.abs(dlogits.reshape(-1, len(tokens)))
    rows = np.abs(x.reshape(-1, x.shape[-1]))
    return [
        (len(tokens) + 1) * U * (np.abs(dlogits) @ np.abs(tokens)),
        (len(rows) + 2) * U * (up.T @ rows + np.abs(dtokens)),
    ]


def _gate(x):
    """w = 2u, s = 1 / (1 + exp(-w)), 1 - s without cancellation, and the error of s."""
    w = np.clip(2 * ROOT * (x + CUBE * x**3), -700, 700)
    s, rest = 1 / (1 + np.exp(-w)), 1 / (1 + np.exp(w))
    return s, rest, U * s * (rest * FEW * (np.abs(w) + 1) + FEW)


def gelu(x):
    s, _, s_error = _gate(x)
    return [np.abs(x) * (s_error + U * s + TINY)]


def gelu_backward(x, dy):
    s, rest, s_error = _gate(x)
    steep = 2 * ROOT * (1 + 3 * CUBE * x * x) * np.abs(x)
    product = s_error * rest + s * (s_error + U * rest) + FEW * U * s * rest
    slope = s_error + steep * product + 2 * U * (s + steep * s * rest)
    return [np.abs(dy) * (slope + TINY * (1 + steep))]


def layer_norm(x, gamma, beta, epsilon=1e-5):
    n = x.shape[-1]
    mean = x.mean(axis=-1, keepdims=True)
    centered = np.abs(x - mean)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    mean_error = (n + 1) * U * np.abs(x).mean(axis=-1, keepdims=True)
    centered_error = mean_error + U * centered
    squares = 2 * centered * centered_error + centered_error**2
    variance_error = squares.mean(axis=-1, keepdims=True) + (n + 2) * U * variance
    rstd = 1 / np.sqrt(variance + epsilon)
    rstd_relative = 0.5 * variance_error / (variance + epsilon) + FEW * U
    xhat_error = rstd * (centered_error + centered * (rstd_relative + 2 * U))
    y = np.abs(gamma) * (xhat_error + 2 * U * centered * rstd) + 2 * U * np.abs(beta)
    return [y, mean_error[..., 0], (rstd * rstd_relative)[..., 0]]


def layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta):
    n, rows = x.shape[-1], x.size // x.shape[-1]
    r = rstd[..., None]
    xhat = np.abs((x - mean[..., None]) * r)
    up, g = np.abs(dy), np.abs(dy * gamma)
    g_mean = g.mean(axis=-1, keepdims=True)
    gx_mean = (g * xhat).mean(axis=-1, keepdims=True)
    over = tuple(range(x.ndim - 1))
    return [
        (n + FEW) * U * r * (g + g_mean + xhat * gx_mean),
        (rows + FEW) * U * ((up * xhat).sum(axis=over) + np.abs(dgamma)),
        (rows + 2) * U * (up.sum(axis=over) + np.abs(dbeta)),
    ]


def residual(x, branch):
    return [U * np.abs(x + branch)]


def _softmax_error(shares, scores, scores_error=0.0):
    """The error of shares whose scores are off by scores_error; masked shares are exact."""
    seen = shares > 0
    largest = np.where(seen, scores, -np.inf).max(axis=-1, keepdims=True)
    off = np.where(seen, U * (np.abs(scores - largest) + FEW) + scores_error, 0)
    total = (shares * off).sum(axis=-1, keepdims=True) + (scores.shape[-1] + FEW) * U
    return shares * (off + total) + np.where(seen, TINY, 0)


def softmax(scores):
    return [_softmax_error(shares_of(scores), scores)]


def causal_softmax(scores, first=0):
    return [_softmax_error(causal_shares_of(scores, first), scores)]


def softmax_backward(shares, dshares):
    p, dp = np.abs(shares), np.abs(dshares)
    return [(p.shape[-1] + 3) * U * p * (dp + (p * dp).sum(axis=-1, keepdims=True))]


def attention_scores(qkv, n_heads, first=0, length=None):
    magnitude = scores_of(np.abs(qkv), n_heads, first, length)
    return [(qkv.shape[-1] // 3 // n_heads + 4) * U * magnitude]


def attention_mix(qkv, shares, first=0):
    return [(shares.shape[-1] + 1) * U * mix_of(np.abs(qkv), shares, first)]


def attention(qkv, n_heads, first=0, length=None):
    scores = scores_of(qkv, n_heads, first, length)
    shares = causal_shares_of(scores, first)
    off = _softmax_error(shares, scores, attention_scores(qkv, n_heads, first, length)[0])
    heard = mix_of(np.abs(qkv), off, first)
    return [heard + attention_mix(qkv, shares, first)[0], off]


def attention_backward(qkv, shares, dy):
    heads, c = shares.shape[1], dy.shape[-1]
    t, d, scale = shares.shape[-1], c // heads, (c // heads) ** -0.5
    q, k, v = (split_heads(np.abs(qkv[..., i * c : (i + 1) * c]), heads) for i in range(3))
    up = split_heads(np.abs(dy), heads)
    dshares = split_heads(dy, heads) @ split_heads(qkv[..., 2 * c :], heads).swapaxes(-1, -2)
    dshares_error = (d + 1) * U * (up @ v.swapaxes(-1, -2))
    mixed = (shares * dshares_error).sum(axis=-1, keepdims=True)
    off = softmax_backward(shares, dshares)[0] + shares * (dshares_error + mixed)
    total = off + (t + 4) * U * np.abs(dscores_of(shares, dshares))
    parts = (total @ k * scale, total.swapaxes(-1, -2) @ q * scale)
    values = (t + 1) * U * (shares.swapaxes(-1, -2) @ up)
    return [np.concatenate([join_heads(part) for part in (*parts, values)], axis=-1)]


def fused_attention(qkv, n_heads, first=0, length=None):
    scores = scores_of(qkv, n_heads, first, length)
    shares = causal_shares_of(scores, first)
    scores_error = attention_scores(qkv, n_heads, first, length)[0]
    off = _softmax_error(shares, scores, scores_error)
    heard, all_heard = mix_of(np.abs(qkv), off, first), mix_of(np.abs(qkv), shares, first)
    shown = np.where(shares > 0, scores, -np.inf)
    largest = shown.max(axis=-1)
    log_total = np.log(np.exp(shown - largest[..., None]).sum(axis=-1))
    relative = (shares * (scores_error + U * np.abs(scores - largest[..., None]))).sum(axis=-1)
    log_error = relative + (2 * shares.shape[-1] + FEW) * U * (1 + np.abs(log_total))
    # Each block of keys shrinks both sums once more than attention() does.
    y_error = heard + (2 * shares.shape[-1] + FEW) * U * all_heard
    return [y_error, log_error + U * np.abs(largest + log_total)]


def fused_attention_backward(qkv, y, log_sum, dy):
    heads, c = log_sum.shape[1], dy.shape[-1]
    t, d, scale = qkv.shape[1], c // heads, (c // heads) ** -0.5
    parts = [split_heads(part, heads) for part in np.split(qkv, 3, axis=-1)]
    q, k, v = (np.abs(part) for part in parts)
    up = split_heads(dy, heads)
    scores = scores_of(qkv, heads)
    shares = np.where(seen_columns(t, t), np.exp(scores - log_sum[..., None]), 0)
    away = np.abs(scores - log_sum[..., None])
    off = shares * (attention_scores(qkv, heads)[0] + U * (away + FEW)) + TINY
    heard = split_heads(np.abs(dy * y), heads).sum(axis=-1, keepdims=True)
    delta = (up * split_heads(y, heads)).sum(axis=-1, keepdims=True)
    dshares = up @ parts[2].swapaxes(-1, -2)
    inner = np.abs(dshares - delta)
    inner_error = (d + 3) * U * (np.abs(up) @ v.swapaxes(-1, -2) + heard)
    dscores_error = off * (inner + inner_error) + shares * (inner_error + U * inner)
    total = dscores_error + (t + 4) * U * shares * inner
    values = (off + (t + 1) * U * shares).swapaxes(-1, -2) @ np.abs(up)
    dq, dk = total @ k * scale, total.swapaxes(-1, -2) @ q * scale
    return [np.concatenate([join_heads(part) for part in (dq, dk, values)], axis=-1)]


def cross_entropy(logits, targets):
    rows, wanted = logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
    counted = wanted >= 0
    largest = rows.max(axis=-1)
    below = largest[:, None] - rows
    shares = shares_of(rows)
    total = (shares * U * (below + FEW)).sum(axis=-1) + (rows.shape[1] + 2) * U
    log_total = np.log(np.exp(-below).sum(axis=-1))
    log_error = total + FEW * U * np.abs(log_total)
    log_sum = log_error + U * np.abs(largest + log_total)
    right = below[np.arange(len(rows)), np.where(counted, wanted, 0)]
    row_error = np.where(counted, log_error + 2 * U * (right + np.abs(log_total)), 0)
    mean = np.where(counted, log_total + right, 0).sum() / counted.sum()
    loss = row_error.sum() / counted.sum() + (len(rows) + 2) * U * mean
    return [loss.reshape(1), np.where(counted, log_sum, 0)]


def cross_entropy_backward(logits, targets, log_sum):
    exact = np.abs(dlogits_of(logits, targets, log_sum))
    count = (targets >= 0).sum()
    rows = log_sum.reshape(*targets.shape, 1)
    counted = (targets >= 0)[..., None]
    shares = np.where(counted, np.exp(np.where(counted, logits - rows, 0)), 0)
    return [U * (shares * (np.abs(logits - rows) + FEW) / count + 3 * exact) + TINY]


def sum_squares(x):
    return [((x.size + 2) * U * (x * x).sum()).reshape(1)]


def global_norm(grads, loss, max_norm, step=1, before=None):
    squares = sum((g * g).sum() for g in grads)
    norm, count = np.sqrt(squares), sum(g.size for g in grads)
    relative = (0.5 * (count + 2) + FEW) * U
    clip = max_norm / norm if norm > max_norm else 1.0
    return [np.array([norm * relative, clip * relative, 0.0, U * np.abs(loss[0]), 0.0])]


def adamw(w, grad, m, v, status, *, rate, beta1, beta2, epsilon, decay, step, n_decay):
    g = np.abs(grad * status[1])
    take1, take2 = 1 - beta1, 1 - beta2
    m_new = m + take1 * (grad * status[1] - m)
    v_new = v + take2 * (g * g - v)
    m_error = U * (np.abs(m_new) + 4 * take1 * (g + np.abs(m)))
    v_error = U * (v_new + 5 * take2 * (g * g + v))
    c1, c2 = 1 / (1 - beta1**step), 1 / (1 - beta2**step)
    below = np.sqrt(v_new * c2) + epsilon
    relative = 0.5 * v_error / v_new + FEW * U
    move = (m_error + np.abs(m_new) * relative) * c1 / below
    decays = np.arange(w.size).reshape(w.shape) < n_decay
    pull = np.where(decays, decay * np.abs(w), 0)
    moved = rate * (np.abs(m_new) * c1 / below + pull)
    return [rate * (move + 3 * U * pull) + 3 * U * (np.abs(w) + moved), m_error, v_error]


def fill(x, value):
    return [np.full(x.shape, U * abs(value))]


def pair_counts(ids, vocab_size):
    return [np.zeros((vocab_size, vocab_size))]
