"""cross_entropy: its value, what does not count, and a gradient check that needs no tolerance."""

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
from llmcl.errors import DataError, ShapeError

NAMES = ("cross_entropy", "cross_entropy_backward")


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, NAMES, size, seed, local_size)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("V", [967, 4201])  # for smaller and for larger groups
def test_a_long_row_is_read_in_many_pieces(engine, versions, rising, V):
    engine.use(versions)
    rng = np.random.default_rng(3)
    logits, targets = 4 * rounded(rng, 5, V), np.array([0, -1, V // 2, V - 1, 255], np.int32)
    logits = np.sort(logits, axis=-1) if rising else logits  # then every piece has a new largest
    value, log_sum = engine.cross_entropy(engine.from_host(logits), engine.from_host(targets))
    assert_within(engine.to_host(value), *expected("cross_entropy", [logits, targets]))
    assert_within(engine.to_host(log_sum), *expected("cross_entropy", [logits, targets], 1))
    engine.check_guards()


def loss_of(engine, logits, targets):
    value, log_sum = engine.cross_entropy(engine.from_host(logits), engine.from_host(targets))
    return float(engine.to_host(value)[0]), engine.to_host(log_sum)


def gradient_of(engine, logits, targets):
    moved, wanted = engine.from_host(logits), engine.from_host(targets)
    _, log_sum = engine.cross_entropy(moved, wanted)
    return engine.to_host(engine.cross_entropy_backward(moved, wanted, log_sum))


def test_a_model_that_knows_nothing_is_surprised_by_ln_v(any_engine):
    loss, log_sum = loss_of(any_engine, np.full((2, 3, 40), 7.0), np.zeros((2, 3), np.int32))
    assert loss == pytest.approx(3.688879, rel=1e-6)
    np.testing.assert_allclose(log_sum, 7 + np.log(40), rtol=1e-6)


@pytest.mark.parametrize("pads", (0, 1, 5, 20))
def test_padding_changes_neither_the_loss_nor_the_gradient(any_engine, pads):
    """Token 0 is a real token: what does not count is -1, not an id."""
    rng = np.random.default_rng(1)
    logits, targets = rounded(rng, 1, 4, 6), np.array([[0, 5, 0, 2]])
    padded = np.concatenate([logits, rounded(rng, 1, pads, 6)], axis=1)
    wanted = np.concatenate([targets, np.full((1, pads), -1)], axis=1)
    loss, log_sum = loss_of(any_engine, padded, wanted)
    assert loss == loss_of(any_engine, logits, targets)[0]
    gradient = gradient_of(any_engine, padded, wanted)
    np.testing.assert_array_equal(gradient[:, :4], gradient_of(any_engine, logits, targets))
    assert np.all(gradient[:, 4:] == 0) and np.all(log_sum[4:] == 0)


def test_huge_logits_neither_overflow_nor_lose_the_answer(any_engine):
    logits = np.array([[1e4, 0, -1e4], [3e38, 3e38, -3e38]])
    loss, _ = loss_of(any_engine, logits, np.array([0, 1], np.int32))
    assert loss == pytest.approx(np.log(2) / 2, rel=1e-6)
    loss, _ = loss_of(any_engine, logits[:1], np.array([2], np.int32))
    assert loss == pytest.approx(2e4, rel=1e-6)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("V", (2, 8, 9, 67, 521))
@pytest.mark.parametrize("most", (None, 7))  # items of a group
def test_the_largest_logit_may_stand_anywhere_and_lie_far_below_zero(engine, versions, V, most):
    engine.use(versions)
    engine.program.most = most
    logits, targets = 1000 * np.eye(V) - 2000, np.arange(V)
    loss, log_sum = loss_of(engine, logits, targets)
    assert loss == 0 and np.all(log_sum == -1000)
    assert np.all(gradient_of(engine, logits, targets) == 0)


def test_a_nan_logit_gives_a_nan_loss(any_engine):
    logits = np.array([[0.0, np.nan, 1], [0, 1, 2]])
    assert np.isnan(loss_of(any_engine, logits, np.array([0, 1], np.int32))[0])


def test_the_gradient_of_every_row_sums_to_zero(any_engine):
    rng = np.random.default_rng(2)
    gradient = gradient_of(any_engine, rounded(rng, 3, 5, 71), rng.integers(0, 71, size=(3, 5)))
    np.testing.assert_allclose(gradient.sum(axis=-1), 0, atol=1e-7)


def test_backward_agrees_with_central_differences():
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=(2, 3, 5)), np.array([[4, -1, 0], [2, 2, -1]])

    def loss():
        return float(reference.cross_entropy(logits, targets)[0][0])

    _, log_sum = reference.cross_entropy(logits, targets)
    gradient = reference.cross_entropy_backward(logits, targets, log_sum)
    check_gradient(loss, logits, gradient, rng, entries=30)


def test_the_remainder_shrinks_with_the_square_of_the_step_only_for_a_right_gradient():
    """Linear, softmax, cross-entropy, 8 x 16 x 32: a check of gradients without a tolerance."""
    rng = np.random.default_rng(4)
    x, w, b = rng.normal(size=(8, 16)), rng.normal(size=(16, 32)), rng.normal(size=32)
    targets = rng.integers(0, 32, size=8)

    def loss():
        return float(reference.cross_entropy(reference.linear(x, w, b), targets)[0][0])

    logits = reference.linear(x, w, b)
    log_sum = reference.cross_entropy(logits, targets)[1]
    up = reference.cross_entropy_backward(logits, targets, log_sum)
    dw, db = np.zeros_like(w), np.zeros_like(b)
    dx = reference.linear_backward(x, w, up, dw, db)
    for array, gradient in ((x, dx), (w, dw), (b, db)):
        assert remainder_ratio(loss, array, gradient, rng) == pytest.approx(4, abs=0.2)
        assert remainder_ratio(loss, array, 1.03 * gradient, rng) < 2.5


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(5)
    logits, targets = rounded(rng, 6, 7), np.array([1, 2, -1, 0, 6, -1], np.int32)
    args = [logits, targets]
    total = reference.cross_entropy(logits, targets)[0] * 4
    assert_rejected("cross_entropy", args, total / 6)  # divided by all rows
    assert_rejected("cross_entropy", args, total)
    masked_zero = reference.cross_entropy(logits, np.where(targets == 0, -1, targets))[0]
    assert_rejected("cross_entropy", args, masked_zero)
    assert_rejected("cross_entropy", args, total / 4 / np.log(2))  # bits, not nats
    log_sum = reference.cross_entropy(logits, targets)[1].astype(np.float32).astype(np.float64)
    args = [logits, targets, log_sum]
    right = reference.cross_entropy_backward(*args)
    assert_rejected("cross_entropy_backward", args, right * 4 / 6)
    assert_rejected("cross_entropy_backward", args, -right)
    shares = reference.softmax(logits) / 4
    assert_rejected("cross_entropy_backward", args, shares * (targets >= 0)[:, None])
    pads_learn = right + (targets < 0)[:, None] * shares
    assert_rejected("cross_entropy_backward", args, pads_learn)


def test_targets_must_be_ids_of_the_vocabulary_one_for_each_row(any_engine):
    logits = any_engine.from_host(np.zeros((2, 3, 5)))
    with pytest.raises(DataError, match=r"5 at \(1, 0\) is outside the vocabulary of 5"):
        any_engine.cross_entropy(logits, any_engine.from_host(np.array([[0, 1, 2], [5, 0, 0]])))
    with pytest.raises(DataError, match=r"-2 at \(0, 2\)"):
        any_engine.cross_entropy(logits, any_engine.from_host(np.array([[0, 1, -2], [0, 0, 0]])))
    with pytest.raises(ShapeError, match=r"targets \(3, 2\) must be \(2, 3\)"):
        any_engine.cross_entropy(logits, any_engine.from_host(np.zeros((3, 2), np.int32)))
    with pytest.raises(ShapeError, match="whole numbers"):
        any_engine.cross_entropy(logits, any_engine.from_host(np.zeros((2, 3))))


def test_without_any_target_there_is_no_loss(any_engine):
    logits, targets = np.zeros((2, 5)), np.full(2, -1)
    with pytest.raises(DataError, match="no target counts"):
        loss_of(any_engine, logits, targets)


def test_targets_that_were_made_on_the_device_are_read_back(engine):
    source, targets = engine.from_host(np.array([[1, 2]])), engine.empty((1, 2), np.int32)
    engine.copy(targets, source)
    logits = engine.from_host(np.zeros((1, 2, 4)))
    assert engine.to_host(engine.cross_entropy(logits, targets)[0])[0] == pytest.approx(np.log(4))
