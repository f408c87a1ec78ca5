"""What the operations of both engines check before they run: shapes, ids, sizes.

Only `.shape` is looked at, so NumPy arrays and device tensors are checked by the same lines.
"""

import numpy as np

from ..errors import DataError, ShapeError


def need(condition: bool, message: str) -> None:
    """Raises ShapeError with the message unless the condition holds."""
    if not condition:
        raise ShapeError(message)


def to_int32(array: np.ndarray) -> np.ndarray:
    """The whole numbers of an array as int32; ShapeError names the first that does not fit."""
    lowest, highest = -(2**31), 2**31 - 1
    if array.size and not (lowest <= array.min() and array.max() <= highest):
        where = tuple(int(i) for i in np.argwhere((array < lowest) | (array > highest))[0])
        raise ShapeError(f"{array[where]} at {where} does not fit into 32 bits.")
    return np.ascontiguousarray(array, dtype=np.int32).reshape(array.shape)


def check_same(name, x, y):
    """Both must have one shape."""
    need(x.shape == y.shape, f"{name}: shapes {x.shape} and {y.shape} differ; they must be equal.")


def check_shapes(name, **parts):
    """Each part is (tensor, the shape that it must have)."""
    for part, (tensor, wanted) in parts.items():
        if tensor.shape != wanted:
            raise ShapeError(f"{name}: {part} has the shape {tensor.shape}; it must be {wanted}.")


def check_ids(ids, host, vocab_size, lowest=0):
    """Every id must lie in lowest .. vocab_size - 1; `host` is the NumPy copy, or None."""
    if ids.dtype.kind not in "iu":
        raise ShapeError(f"token ids must be whole numbers, and are {ids.dtype}.")
    if host is None or not host.size:
        return
    if lowest <= host.min() and host.max() < vocab_size:
        return
    where = tuple(int(i) for i in np.argwhere((host < lowest) | (host >= vocab_size))[0])
    raise DataError(
        f"token id {host[where]} at {where} is outside the vocabulary of {vocab_size}; "
        "encode the text with this model's own tokenizer."
    )


def check_pieces(ids, host, vocab_size):
    """ids (n,) of the vocabulary, or -1."""
    need(len(ids.shape) == 1, f"pair_counts: ids must be one row (n,), and are {ids.shape}.")
    check_ids(ids, host, vocab_size, lowest=-1)


def check_embedding(ids, tokens, positions, first, host=None):
    """ids (B, T), tokens (V, C), positions (P, C); first + T must not pass P."""
    need(len(ids.shape) == 2, f"embedding: ids must be (batch, time), and are {ids.shape}.")
    need(
        len(tokens.shape) == len(positions.shape) == 2 and tokens.shape[1] == positions.shape[1],
        f"embedding: tables {tokens.shape} and {positions.shape} must have rows of one width.",
    )
    length = first + ids.shape[1]
    if first < 0 or length > positions.shape[0]:
        raise DataError(
            f"{length} tokens do not fit into the context of {positions.shape[0]}; "
            "give a shorter text, or keep its last tokens."
        )
    check_ids(ids, ids if host is None and isinstance(ids, np.ndarray) else host, tokens.shape[0])


def check_embedding_backward(ids, dx, dtokens, dpositions, host=None):
    """ids (B, T), dx (B, T, C), dtokens (V, C), dpositions (P, C)."""
    check_embedding(ids, dtokens, dpositions, 0, host)
    check_shapes("embedding_backward", dx=(dx, (*ids.shape, dtokens.shape[1])))


def check_unembedding(x, tokens):
    """x (..., C), tokens (V, C)."""
    need(
        len(tokens.shape) == 2 and x.shape[-1] == tokens.shape[1],
        f"unembedding: x {x.shape} and the table {tokens.shape} do not fit; "
        "they must be (..., C) and (V, C).",
    )


def check_unembedding_backward(x, tokens, dlogits, dtokens):
    """x (..., C), tokens and dtokens (V, C), dlogits (..., V)."""
    check_unembedding(x, tokens)
    wanted = (*x.shape[:-1], tokens.shape[0])
    check_shapes("unembedding_backward", dlogits=(dlogits, wanted), dtokens=(dtokens, tokens.shape))


def check_matmul(a, b, transpose_a, transpose_b):
    """The sizes (m, n, k) of a product of two matrices."""
    need(
        len(a.shape) == len(b.shape) == 2,
        f"matmul: two matrices are needed; the shapes are {a.shape} and {b.shape}.",
    )
    (m, k) = a.shape[::-1] if transpose_a else a.shape
    (inner, n) = b.shape[::-1] if transpose_b else b.shape
    need(k == inner, f"matmul: ({m}, {k}) and ({inner}, {n}) do not fit; {k} must equal {inner}.")
    return m, n, k


def check_linear(x, w, b, plus=None):
    """x (..., K), w (K, N), b (N), plus (..., N) or None."""
    need(
        len(w.shape) == 2 and x.shape[-1] == w.shape[0] and b.shape == w.shape[1:],
        f"linear: x {x.shape}, w {w.shape} and b {b.shape} do not fit; "
        "they must be (..., K), (K, N) and (N,).",
    )
    if plus is not None:
        check_shapes("linear", plus=(plus, (*x.shape[:-1], w.shape[1])))


def check_linear_backward(x, w, dy, dw, db):
    """x (..., K), w and dw (K, N), dy (..., N), db (N)."""
    check_linear(x, w, db)
    wanted = (*x.shape[:-1], w.shape[1])
    check_shapes("linear_backward", dy=(dy, wanted), dw=(dw, w.shape))


def check_layer_norm(x, gamma, beta):
    """x (..., C), gamma (C), beta (C)."""
    need(
        gamma.shape == beta.shape == x.shape[-1:],
        f"layer_norm: gamma {gamma.shape} and beta {beta.shape} must be ({x.shape[-1]},).",
    )


def check_layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta):
    """x and dy (..., C), mean and rstd (...), gamma, dgamma and dbeta (C)."""
    rows, c = x.shape[:-1], x.shape[-1:]
    check_shapes(
        "layer_norm_backward", gamma=(gamma, c), mean=(mean, rows), rstd=(rstd, rows),
        dy=(dy, x.shape), dgamma=(dgamma, c), dbeta=(dbeta, c),
    )  # fmt: skip


def check_causal(scores, first):
    """scores (..., Q, n); the last row may see no more than the n columns there are."""
    need(len(scores.shape) >= 2, f"causal_softmax: scores need (rows, columns): {scores.shape}.")
    rows, columns = scores.shape[-2:]
    need(
        first >= 0 and first + rows <= columns,
        f"causal_softmax: row {rows - 1} would see {first + rows} columns of {columns}.",
    )


def attention_sizes(qkv, n_heads, first, length):
    """(B, T, C, d_head, length, Q) of an attention over qkv (B, T, 3C)."""
    need(len(qkv.shape) == 3, f"attention: qkv must be (batch, time, 3 d_model): {qkv.shape}.")
    b, t, width = qkv.shape
    c = width // 3
    need(
        width % 3 == 0 and c % n_heads == 0,
        f"attention: a width of {width} is not 3 times {n_heads} equal heads.",
    )
    length = t if length is None else length
    need(0 <= first < length <= t, f"attention: rows {first} to {length} do not lie in 0 to {t}.")
    return b, t, c, c // n_heads, length, length - first


def check_mix(qkv, shares, first):
    """The sizes of attention_sizes, for qkv (B, T, 3C) and shares (B, H, Q, length)."""
    need(len(shares.shape) == 4, f"attention: shares must be (B, H, Q, length): {shares.shape}.")
    sizes = attention_sizes(qkv, shares.shape[1], first, shares.shape[3])
    b, _, _, _, length, asking = sizes
    check_shapes("attention_mix", shares=(shares, (b, shares.shape[1], asking, length)))
    return sizes


def check_attention_backward(qkv, shares, dqkv, dy=None):
    """The sizes of attention_sizes, for whole sequences: shares (B, H, T, T), dy (B, T, C)."""
    need(len(shares.shape) == 4, f"attention: the gradient needs (B, H, T, T): {shares.shape}.")
    sizes = attention_sizes(qkv, shares.shape[1], 0, None)
    b, t, c = sizes[:3]
    wanted = {"shares": (shares, (b, shares.shape[1], t, t)), "dqkv": (dqkv, qkv.shape)}
    check_shapes("attention_backward", **wanted)
    if dy is not None:
        check_shapes("attention_backward", dy=(dy, (b, t, c)))
    return sizes


def check_fused_backward(qkv, y, log_sum, dy):
    """The sizes of attention_sizes: qkv (B, T, 3C), y and dy (B, T, C), log_sum (B, H, T)."""
    need(len(log_sum.shape) == 3, f"fused_attention: log_sum must be (B, H, T): {log_sum.shape}.")
    sizes = attention_sizes(qkv, log_sum.shape[1], 0, None)
    b, t, c = sizes[:3]
    rows = {"y": (y, (b, t, c)), "dy": (dy, (b, t, c))}
    check_shapes("fused_attention", log_sum=(log_sum, (b, log_sum.shape[1], t)), **rows)
    return sizes


def check_cross_entropy(logits, targets, host):
    """The number of targets that count; a target is -1 or an id of the vocabulary."""
    need(
        targets.shape == logits.shape[:-1],
        f"cross_entropy: targets {targets.shape} must be {logits.shape[:-1]}, one for each row.",
    )
    check_ids(targets, host, logits.shape[-1], lowest=-1)
    count = int(np.count_nonzero(host >= 0))
    if count == 0:
        raise DataError("no target counts (all are -1), so there is no loss; give at least one.")
    return count


def check_global_norm(loss, before):
    """loss (1,), before (5,) or None."""
    check_shapes("global_norm", loss=(loss, (1,)))
    if before is not None:
        check_shapes("global_norm", before=(before, (5,)))


def check_adamw(w, grad, m, v, status):
    """w, grad, m and v of one shape, status (5,)."""
    check_shapes(
        "adamw", grad=(grad, w.shape), m=(m, w.shape), v=(v, w.shape), status=(status, (5,))
    )
