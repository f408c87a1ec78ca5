"""How often each pair of neighbors occurs: BPE's question."""

import numpy as np

from .shapes import check_pieces


def pair_counts(ids, vocab_size):
    """(V, V) int32: entry [a, b] says how often b follows a in ids (n,); -1 separates pieces."""
    check_pieces(ids, ids, vocab_size)
    left, right = ids[:-1], ids[1:]
    inside = (left >= 0) & (right >= 0)
    pairs = left[inside].astype(np.int64) * vocab_size + right[inside]
    counts = np.bincount(pairs, minlength=vocab_size * vocab_size)
    return counts.astype(np.int32).reshape(vocab_size, vocab_size)
