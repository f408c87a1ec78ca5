"""fill: one value everywhere, and nowhere else."""

import numpy as np
import pytest
from ops_helpers import LOCAL_SIZES, assert_rejected, at_any_size, check_operations


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("fill",), size, seed, local_size)


@pytest.mark.parametrize("value", (0, 0.0, -1.5, np.float32(2), np.inf, np.nan))
def test_any_number_may_be_filled_in(any_engine, value):
    x = any_engine.from_host(np.arange(7.0))
    any_engine.fill(x, value)
    np.testing.assert_array_equal(any_engine.to_host(x), np.full(7, value))


def test_a_gap_at_the_end_is_rejected():
    x = np.arange(7.0)
    wrong = np.full(7, 0.5)
    wrong[-1] = 6
    assert_rejected("fill", [x, 0.5], wrong, written=(0,))
