"""transpose: the kernel that the blocked product turns its operands with; nothing is rounded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

EDGES = st.sampled_from((1, 2, 7, 15, 16, 17, 31, 33, 67))


@pytest.mark.parametrize("local", [(1, 1), (3, 2), (1, 7)])
@given(rows=EDGES, cols=EDGES)
def test_every_element_moves_to_its_place(engine, local, rows, cols):
    x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    y = engine.empty((cols, rows))
    kernel = engine.program.kernel("transpose", "transpose")
    kernel((-(-rows // 16), -(-cols // 16)), local, engine.from_host(x), y, rows, cols)
    np.testing.assert_array_equal(engine.to_host(y), x.T)
    engine.check_guards()
