"""softmax, causal_softmax, softmax_backward: shares, their mask, and the way back."""

import numpy as np
import pytest
from ops_helpers import (
    LOCAL_SIZES,
    VERSIONS,
    assert_rejected,
    assert_within,
    at_any_size,
    check_gradient,
    check_operations,
    expected,
    remainder_ratio,
    rounded,
)

from llmcl import reference
from llmcl.errors import ShapeError

NAMES = ("softmax", "causal_softmax", "softmax_backward")


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, NAMES, size, seed, local_size)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("n", (967, 1301))
def test_a_long_row_is_shared_by_a_group_of_its_size(engine, versions, n):
    engine.use(versions)
    rng = np.random.default_rng(n)
    scores, up = rounded(rng, 3, n, scale=5), rounded(rng, 3, n)
    shares = reference.softmax(scores).astype(np.float32).astype(np.float64)
    seen = rounded(rng, 1, 3, n, scale=5)
    cases = (
        ("softmax", [scores]), ("softmax_backward", [shares, up]), ("causal_softmax", [seen, n - 3])
    )  # fmt: skip
    for name, args in cases:
        moved = [engine.from_host(a) if isinstance(a, np.ndarray) else a for a in args]
        got = engine.to_host(getattr(engine, name)(*moved))
        assert_within(got, *expected(name, args), name)
    engine.check_guards()


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("T", (2, 31, 64, 71, 256))
def test_the_mask_is_right_at_real_lengths_too(engine, versions, T):
    engine.use(versions)
    scores = rounded(np.random.default_rng(T), 2, 3, T, T, scale=5)
    got = engine.to_host(engine.causal_softmax(engine.from_host(scores)))
    assert_within(got, *expected("causal_softmax", [scores]))
    assert np.all(got[..., ~np.tri(T, dtype=bool)] == 0)
    engine.check_guards()


def test_large_and_masked_scores_give_the_known_shares(any_engine):
    scores = [[0, -np.inf, -np.inf], [1000, 1000, 1000], [1000, 999, 998], [-1e30, 1e30, 0]]
    shares = any_engine.to_host(any_engine.softmax(any_engine.from_host(np.array(scores))))
    e = np.exp([0.0, -1, -2])
    want = [[1, 0, 0], [1 / 3] * 3, e / e.sum(), [0, 1, 0]]
    np.testing.assert_allclose(shares, want, rtol=1e-6)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("n", (2, 8, 9, 67))
@pytest.mark.parametrize("most", (None, 7))  # items of a group
def test_the_largest_score_may_stand_anywhere_and_lie_far_below_zero(engine, versions, n, most):
    engine.use(versions)
    engine.program.most = most
    peaks = 1000 * np.eye(n) - 2000  # row p has its largest score at p
    shares = engine.to_host(engine.softmax(engine.from_host(peaks)))
    np.testing.assert_array_equal(shares, np.eye(n))
    # Sequence p has it at p in all its rows; the rows before p do not see it.
    scores = np.broadcast_to(peaks[:, None], (n, n, n))
    shares = engine.to_host(engine.causal_softmax(engine.from_host(scores)))
    row, peak = np.indices((n, n))
    np.testing.assert_array_equal(shares[peak, row, peak], row >= peak)
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_row_that_sees_nothing_gives_nan_in_that_row_only(any_engine):
    scores = np.array([[1.0, 2, 3], [-np.inf] * 3, [3, 2, 1]])
    shares = any_engine.to_host(any_engine.softmax(any_engine.from_host(scores)))
    assert np.isnan(shares[1]).all()
    assert np.isfinite(shares[[0, 2]]).all()


def test_what_is_masked_is_never_read(any_engine):
    scores = np.zeros((1, 3, 3))
    scores[0, 0, 1:] = np.inf, np.nan
    scores[0, 1, 2] = np.inf
    shares = any_engine.to_host(any_engine.causal_softmax(any_engine.from_host(scores)))
    want = [[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3]
    np.testing.assert_allclose(shares[0], want, rtol=1e-6)


def test_a_row_may_not_see_more_columns_than_there_are(any_engine):
    scores = any_engine.from_host(np.zeros((2, 3, 4)))
    with pytest.raises(ShapeError, match="row 2 would see 5 columns of 4"):
        any_engine.causal_softmax(scores, 2)
    with pytest.raises(ShapeError, match="rows, columns"):
        any_engine.causal_softmax(any_engine.from_host(np.zeros(4)))


@pytest.mark.parametrize("causal", (False, True))
def test_backward_agrees_with_central_differences(causal):
    rng = np.random.default_rng(1)
    scores, up = 2 * rng.normal(size=(2, 3, 4, 4)), rng.normal(size=(2, 3, 4, 4))
    forward = reference.causal_softmax if causal else reference.softmax

    def loss():
        return float((forward(scores) * up).sum())

    gradient = reference.softmax_backward(forward(scores), up)
    check_gradient(loss, scores, gradient, rng, entries=24)
    assert remainder_ratio(loss, scores, gradient, rng) == pytest.approx(4, abs=0.4)
    if causal:
        assert np.all(gradient[..., ~np.tri(4, dtype=bool)] == 0)


def test_wrong_masks_and_a_wrong_sum_are_rejected():
    rng = np.random.default_rng(2)
    scores = rounded(rng, 2, 5, 5, scale=2)
    off_by_one = np.where(np.tri(5, k=1, dtype=bool), scores, -np.inf)
    assert_rejected("causal_softmax", [scores], reference.softmax(off_by_one))
    too_strict = np.where(np.tri(5, k=-1, dtype=bool), scores, -1e9)
    assert_rejected("causal_softmax", [scores], reference.softmax(too_strict))
    assert_rejected("causal_softmax", [scores], np.tri(5) * reference.softmax(scores))
    assert_rejected("softmax", [scores], reference.softmax(scores.swapaxes(-1, -2)))
    e = np.exp(scores)
    assert_rejected("softmax", [scores], e / (e.sum(-1, keepdims=True) + 1e-3))


def test_a_backward_without_its_second_term_is_rejected():
    rng = np.random.default_rng(3)
    shares, dshares = reference.softmax(rounded(rng, 3, 7)), rounded(rng, 3, 7)
    args = [shares.astype(np.float32).astype(np.float64), dshares]
    assert_rejected("softmax_backward", args, args[0] * dshares)
    assert_rejected("softmax_backward", args, args[0] * (1 - args[0]) * dshares)
