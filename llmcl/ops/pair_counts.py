"""How often each pair of neighbors occurs: BPE's question."""

from ..reference.shapes import check_pieces
from ..tensor import INT32


def pair_counts(ids, vocab_size):
    """(V, V) int32: entry [a, b] says how often b follows a in ids (n,); -1 separates pieces."""
    check_pieces(ids, ids.host, vocab_size)
    counts = ids.engine.zeros((vocab_size, vocab_size), INT32)
    counts.host = None  # the zeros that were uploaded are about to change
    ids.engine.launch("pair_counts", "pair_counts", ids.size, ids, counts, ids.size, vocab_size)
    return counts
