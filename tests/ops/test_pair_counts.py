"""pair_counts: every neighbor counted once, none across a separator."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import LOCAL_SIZES, assert_rejected, at_any_size, check_operations

from llmcl.errors import DataError, ShapeError


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("pair_counts",), size, seed, local_size)


@given(ids=st.lists(st.integers(-1, 8), min_size=1, max_size=200))
def test_equals_a_plain_count(any_engine, ids):
    counts = any_engine.to_host(any_engine.pair_counts(any_engine.from_host(ids), 9))
    pairs = Counter((a, b) for a, b in zip(ids, ids[1:], strict=False) if a >= 0 and b >= 0)
    assert counts.dtype == np.int32 and counts.sum() == pairs.total()
    assert all(counts[pair] == n for pair, n in pairs.items())


def test_no_pair_crosses_a_separator(any_engine):
    ids = any_engine.from_host(np.array([5, 7, 5, 7, -1, 5]))
    counts = any_engine.to_host(any_engine.pair_counts(ids, 8))
    assert counts[5, 7] == 2 and counts[7, 5] == 1 and counts.sum() == 3


def test_many_work_items_on_one_pair_lose_none(engine):
    ids = engine.from_host(np.zeros(100_001, np.int32))
    for _ in range(5):
        assert engine.to_host(engine.pair_counts(ids, 3))[0, 0] == 100_000
    engine.check_guards()


def test_plausible_mistakes_are_rejected():
    ids = np.array([5, 7, 5, 7, -1, 5], np.int32)
    right = np.zeros((8, 8))
    right[5, 7], right[7, 5] = 2, 1
    assert_rejected("pair_counts", [ids, 8], right.T)
    assert_rejected("pair_counts", [ids, 8], np.minimum(right, 1))
    across = right.copy()
    across[7, 5] = 2
    assert_rejected("pair_counts", [ids, 8], across)


def test_ids_must_be_one_row_of_the_vocabulary(any_engine):
    with pytest.raises(DataError, match=r"8 at \(1,\) is outside the vocabulary of 8"):
        any_engine.pair_counts(any_engine.from_host(np.array([1, 8])), 8)
    with pytest.raises(ShapeError, match=r"one row \(n,\), and are \(2, 2\)"):
        any_engine.pair_counts(any_engine.from_host(np.zeros((2, 2), np.int32)), 8)
