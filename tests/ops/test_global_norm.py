"""sum_squares and global_norm: one norm for all tensors, and the flag that stops everything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import (
    LOCAL_SIZES,
    assert_rejected,
    assert_within,
    at_any_size,
    check_operations,
    expected,
    rounded,
)

from llmcl import reference
from llmcl.versions import GPU

LOSS = np.array([2.5])


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("sum_squares", "global_norm"), size, seed, local_size)


@pytest.mark.parametrize("local_size", (*LOCAL_SIZES, 2, 5, 33, 127))
@given(n=st.integers(1, 5000))
def test_the_tree_is_right_for_any_group(engine, local_size, n):
    engine.use(GPU)  # on a CPU one work-item takes a whole stretch, and there is no tree
    engine.local_size = local_size
    x = rounded(np.random.default_rng(n), n)
    got = engine.to_host(engine.sum_squares(engine.from_host(x)))
    assert_within(got, *expected("sum_squares", [x]))
    engine.check_guards()


def norm_of(engine, grads, max_norm, loss=LOSS, step=1, before=None):
    moved = [engine.from_host(np.asarray(g, np.float64)) for g in grads]
    before = None if before is None else engine.from_host(np.asarray(before, np.float64))
    return engine.to_host(engine.global_norm(moved, engine.from_host(loss), max_norm, step, before))


def test_one_norm_for_all_tensors_keeps_the_direction(any_engine):
    status = norm_of(any_engine, [[3, 4], [12]], 1.0)
    np.testing.assert_allclose(status, [13, 1 / 13, 1, 2.5, 0], rtol=1e-6)
    clipped = status[1] * np.array([3, 4, 12])
    np.testing.assert_allclose(clipped, [0.230769, 0.307692, 0.923077], atol=1e-6)


def test_a_norm_below_the_limit_changes_nothing(any_engine):
    np.testing.assert_allclose(norm_of(any_engine, [[0.3], [0.4]], 1.0)[:2], [0.5, 1], rtol=1e-6)


def test_gradients_of_zero_stay_zero(any_engine):
    np.testing.assert_array_equal(norm_of(any_engine, [[0, 0], [0]], 1.0), [0, 1, 1, 2.5, 0])
    np.testing.assert_array_equal(norm_of(any_engine, [[0, 0], [0]], 0.0)[:3], [0, 1, 1])


@pytest.mark.parametrize("bad", (np.nan, np.inf, -np.inf))
def test_a_gradient_that_is_no_number_is_flagged_with_its_step(any_engine, bad):
    status = norm_of(any_engine, [[3, 4], [0, bad, 0]], 1.0, step=7)
    assert status[2] == 0 and status[4] == 7 and not np.isfinite(status[0])


@pytest.mark.parametrize("bad", (np.nan, np.inf))
def test_a_loss_that_is_no_number_is_flagged_with_its_step(any_engine, bad):
    status = norm_of(any_engine, [[3, 4]], 1.0, loss=np.array([bad]), step=3)
    np.testing.assert_allclose(status[:3], [5, 0.2, 0], rtol=1e-6)
    assert status[4] == 3


def test_the_flag_stays_and_names_the_first_bad_step(any_engine):
    before = [5, 1, 0, np.nan, 3]
    status = norm_of(any_engine, [[3, 4]], 1.0, step=9, before=before)
    assert status[2] == 0 and status[4] == 3 and status[3] == 2.5
    healthy = norm_of(any_engine, [[3, 4]], 1.0, step=9, before=[5, 1, 1, 2.5, 0])
    assert healthy[2] == 1 and healthy[4] == 0


def test_clipping_each_tensor_alone_and_a_norm_without_its_root_are_rejected():
    grads = [np.array([3.0, 4]), np.array([12.0])]
    args = [grads, LOSS, 1.0]
    want, bound = expected("global_norm", args)
    for wrong in (13.0, 12, 5 + 12, 169):
        status = want.copy()
        status[0] = wrong
        accepted = wrong == 13.0
        assert (np.abs(status - want) <= bound).all() == accepted
    assert_rejected("global_norm", args, np.array([13, 1 / 5, 1, 2.5, 0]))
    assert_rejected("global_norm", args, np.array([13, 1, 1, 2.5, 0]))
    assert_rejected("sum_squares", [grads[0]], np.array([7.0]))


def test_the_norm_of_many_tensors_is_the_norm_of_their_concatenation():
    rng = np.random.default_rng(1)
    grads = [rng.normal(size=shape) for shape in ((3, 4), (5,), (1, 1))]
    norm = reference.global_norm(grads, LOSS, 1e9)[0]
    assert norm == pytest.approx(np.linalg.norm(np.concatenate([g.ravel() for g in grads])))
