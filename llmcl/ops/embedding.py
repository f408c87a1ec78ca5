"""Look-up of tokens and positions, and the output head that is tied to the token table."""

from ..reference.shapes import (
    check_embedding,
    check_embedding_backward,
    check_unembedding,
    check_unembedding_backward,
)
from .linear import multiply


def embedding(ids, tokens, positions, first=0):
    """tokens[ids] + positions: (B, T) ids -> (B, T, C). `first` is the position of column 0."""
    check_embedding(ids, tokens, positions, first, ids.host)
    (b, t), c, engine = ids.shape, tokens.shape[1], ids.engine
    x = engine.empty((b, t, c))
    engine.launch2d(
        "embedding", "embedding_forward", c, b * t, ids, tokens, positions, x, b, t, c, first
    )
    return x


def embedding_backward(ids, dx, dtokens, dpositions):
    """Adds to dtokens (V, C) and dpositions (P, C) what dx (B, T, C) says."""
    check_embedding_backward(ids, dx, dtokens, dpositions, ids.host)
    (b, t, c), v, engine = dx.shape, dtokens.shape[0], dx.engine
    if engine.groups:
        kernel = engine.program.kernel("embedding_gpu", "embedding_backward_tokens_group")
        size = min(128, kernel.max_group)
        kernel((b * t * size, -(-c // size)), (size, 1), ids, dx, dtokens, b * t, c)
    else:
        _rows_of_the_table(ids, dx, dtokens, b * t, v, c)
    engine.launch2d("embedding", "embedding_backward_positions", c, t, dx, dpositions, b, t, c)


def _rows_of_the_table(ids, dx, dtokens, places, v, c):
    engine = dx.engine
    width = c if engine.wide else 1
    kernel = engine.program.kernel("embedding", "embedding_backward_tokens")
    kernel((-(-c // width), v), (1, 1), ids, dx, dtokens, places, v, c, width)


def unembedding(x, tokens):
    """The logits: (B, T, C) against every row of the table (V, C) -> (B, T, V)."""
    check_unembedding(x, tokens)
    v, c = tokens.shape
    logits = x.engine.empty((*x.shape[:-1], v))
    multiply(x, tokens, logits, x.size // c, v, c, transpose_b=True)
    return logits


def unembedding_backward(x, tokens, dlogits, dtokens):
    """dx (B, T, C); adds to dtokens (V, C), on top of what the look-up adds there."""
    check_unembedding_backward(x, tokens, dlogits, dtokens)
    v, c = tokens.shape
    rows = x.size // c
    multiply(dlogits, x, dtokens, v, c, rows, transpose_a=True, add=True)
    dx = x.engine.empty(x.shape)
    multiply(dlogits, tokens, dx, rows, c, v)
    return dx
