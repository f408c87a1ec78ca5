"""Look-up of tokens and positions, and the output head that is tied to the token table."""

import numpy as np

from .shapes import (
    check_embedding,
    check_embedding_backward,
    check_unembedding,
    check_unembedding_backward,
)


def embedding(ids, tokens, positions, first=0):
    """tokens[ids] + positions: (B, T) ids -> (B, T, C). `first` is the position of column 0."""
    check_embedding(ids, tokens, positions, first)
    return tokens[ids] + positions[first : first + ids.shape[1]]


def embedding_backward(ids, dx, dtokens, dpositions):
    """Adds to dtokens (V, C) and dpositions (P, C) what dx (B, T, C) says.

    np.add.at adds once for every occurrence; `dtokens[ids] += dx` would add once for each
    distinct token.
    """
    check_embedding_backward(ids, dx, dtokens, dpositions)
    np.add.at(dtokens, ids, dx)
    dpositions[: dx.shape[1]] += dx.sum(axis=0)


def unembedding(x, tokens):
    """The logits: (B, T, C) against every row of the table (V, C) -> (B, T, V)."""
    check_unembedding(x, tokens)
    return x @ tokens.T


def unembedding_backward(x, tokens, dlogits, dtokens):
    """dx (B, T, C); adds to dtokens (V, C), on top of what the look-up adds there."""
    check_unembedding_backward(x, tokens, dlogits, dtokens)
    rows = dlogits.reshape(-1, dlogits.shape[-1])
    dtokens += rows.T @ x.reshape(-1, x.shape[-1])
    return dlogits @ tokens
