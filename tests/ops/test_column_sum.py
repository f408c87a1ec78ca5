"""column_sum: the gradient of a bias, added to what is there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import LOCAL_SIZES, VERSIONS, assert_within, expected, rounded

EDGES = st.sampled_from((1, 2, 7, 31, 64, 67, 131))


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@given(rows=EDGES, n=EDGES)
def test_equals_numpy_at_any_size(engine, local_size, rows, n):
    engine.local_size = local_size
    engine.program.most = 5 * local_size  # groups of 1, 3, 8, 20 and 64 rows
    rng = np.random.default_rng(rows * 1000 + n)
    x, start = rounded(rng, rows, n), rounded(rng, n)
    args = [np.zeros((rows, 1)), np.zeros((1, n)), x, np.zeros((1, n)), start]
    want, bound = expected("linear_backward", args, 2, written=(3, 4))
    for versions in VERSIONS:
        engine.use(versions)
        total = engine.from_host(start)
        engine.launch_columns("column_sum", "column_sum", n, engine.from_host(x), total, rows, n)
        assert_within(engine.to_host(total), want, bound)
    engine.check_guards()
