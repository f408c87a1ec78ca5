"""roofline: the two measurements of `llmcl bench` do the work that is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import LOCAL_SIZES, assert_within

from llmcl.reference.bounds import U


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@pytest.mark.parametrize(("name", "each"), [("roofline_copy", 4), ("roofline_copy_wide", 8)])
@given(n=st.integers(1, 200))
def test_every_number_is_copied_and_nothing_else(engine, local_size, name, each, n):
    engine.local_size = local_size
    x = np.arange(n, dtype=np.float32)
    y = engine.from_host(np.full(n, -1.0))
    engine.launch("roofline", name, -(-n // each), engine.from_host(x), y, n)
    np.testing.assert_array_equal(engine.to_host(y), x)
    engine.check_guards()


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@pytest.mark.parametrize("rounds", (0, 1, 50))
def test_every_chain_makes_its_rounds(engine, local_size, rounds):
    engine.local_size = local_size
    y = engine.empty((67,))
    engine.launch("roofline", "roofline_arithmetic", 67, y, 67, rounds, 0.75)
    chains = np.arange(67.0)[:, None, None] + np.arange(12.0)[:, None] + np.arange(16.0)
    for _ in range(rounds):
        chains = 0.75 * chains + 1
    want = chains.sum(axis=(1, 2))
    assert_within(engine.to_host(y), want, (2 * rounds + 20) * U * want)
    engine.check_guards()
