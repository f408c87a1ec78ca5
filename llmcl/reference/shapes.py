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
    limits = np.iinfo(np.int32)
    outside = (array < limits.min) | (array > limits.max)
    if np.any(outside):
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise ShapeError(f"{array[where]} at {where} does not fit into 32 bits.")
    return np.ascontiguousarray(array, dtype=np.int32).reshape(array.shape)


def check_same(name, x, y):
    """Both must have one shape."""
    need(x.shape == y.shape, f"{name}: shapes {x.shape} and {y.shape} differ; they must be equal.")


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


def check_unembedding(x, tokens):
    """x (..., C), tokens (V, C)."""
    need(
        x.shape[-1] == tokens.shape[-1],
        f"unembedding: rows of {x.shape[-1]} cannot meet a table of rows of {tokens.shape[-1]}.",
    )


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


def check_linear(x, w, b):
    """x (..., K), w (K, N), b (N)."""
    need(
        len(w.shape) == 2 and x.shape[-1] == w.shape[0] and b.shape == w.shape[1:],
        f"linear: x {x.shape}, w {w.shape} and b {b.shape} do not fit; "
        "they must be (..., K), (K, N) and (N,).",
    )


def check_layer_norm(x, gamma, beta):
    """x (..., C), gamma (C), beta (C)."""
    need(
        gamma.shape == beta.shape == x.shape[-1:],
        f"layer_norm: gamma {gamma.shape} and beta {beta.shape} must be ({x.shape[-1]},).",
    )


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


def check_cross_entropy(logits, targets, host):
    """The number of targets that count; a target is -1 or an id of the vocabulary."""
    need(
        targets.shape == logits.shape[:-1],
        f"cross_entropy: targets {targets.shape} must be {logits.shape[:-1]}, one for each row.",
    )
    check_ids(targets, host, logits.shape[-1], lowest=-1)
    count = int((host >= 0).sum())
    if count == 0:
        raise DataError("no target counts (all are -1), so there is no loss; give at least one.")
    return count
