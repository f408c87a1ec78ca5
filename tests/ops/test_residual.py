"""residual: the sum that every block ends in."""

import numpy as np
import pytest
from ops_helpers import LOCAL_SIZES, assert_rejected, at_any_size, check_operations, rounded

from llmcl.errors import ShapeError


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("residual",), size, seed, local_size)


def test_a_tensor_may_be_added_to_itself(any_engine):
    x = any_engine.from_host(np.arange(7.0))
    np.testing.assert_array_equal(any_engine.to_host(any_engine.residual(x, x)), 2 * np.arange(7))


def test_a_branch_that_is_lost_is_rejected():
    rng = np.random.default_rng(1)
    x, branch = rounded(rng, 3, 5), rounded(rng, 3, 5)
    assert_rejected("residual", [x, branch], x)
    assert_rejected("residual", [x, branch], x - branch)


def test_both_must_have_one_shape(any_engine):
    x, branch = any_engine.from_host(np.zeros((2, 3))), any_engine.from_host(np.zeros((3,)))
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(3,\) differ"):
        any_engine.residual(x, branch)
