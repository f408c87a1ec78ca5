"""attention: scores, mix, their backward passes, a cache's view of it, and what it may not see."""

import numpy as np
import pytest
from ops_helpers import (
    LOCAL_SIZES,
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

NAMES = ("attention_scores", "attention_mix", "attention", "attention_backward")


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, NAMES, size, seed, local_size)


@pytest.mark.parametrize("T", (2, 31, 64, 71, 256))
def test_it_stays_finite_and_right_at_real_lengths(engine, T):
    qkv = rounded(np.random.default_rng(T), 1, T, 3 * 2 * 5, scale=3)
    y, shares = engine.attention(engine.from_host(qkv), 2)
    assert_within(engine.to_host(y), *expected("attention", [qkv, 2]))
    assert_within(engine.to_host(shares), *expected("attention", [qkv, 2], 1))
    engine.check_guards()


def test_scores_are_scaled_by_the_width_of_a_head(any_engine):
    qkv = np.ones((1, 1, 3 * 32))
    scores = any_engine.to_host(any_engine.attention_scores(any_engine.from_host(qkv), 4))
    assert scores.shape == (1, 4, 1, 1)
    # q . k is 8 in each head of 8 channels, and 1/sqrt(8) = 0.353553.
    np.testing.assert_allclose(scores, 8 * 0.35355339, rtol=1e-6)


def test_one_head_by_hand(any_engine):
    # Two places, one head of one channel: q = 1, 2   k = 3, 4   v = 10, 20
    qkv = np.array([[[1.0, 3, 10], [2, 4, 20]]])
    y, shares = any_engine.attention(any_engine.from_host(qkv), 1)
    late = np.exp(8.0) / (np.exp(6.0) + np.exp(8.0))  # the second place: scores 6 and 8
    want = [[[[1, 0], [1 - late, late]]]]
    np.testing.assert_allclose(any_engine.to_host(shares), want, rtol=1e-6)
    np.testing.assert_allclose(any_engine.to_host(y)[0, :, 0], [10, 10 + 10 * late], rtol=1e-6)


def test_heads_do_not_mix(any_engine):
    rng = np.random.default_rng(1)
    qkv = rounded(rng, 2, 5, 3 * 2 * 3)
    first = np.concatenate([qkv[..., i * 6 : i * 6 + 3] for i in range(3)], axis=-1)
    both = any_engine.to_host(any_engine.attention(any_engine.from_host(qkv), 2)[0])
    alone = any_engine.to_host(any_engine.attention(any_engine.from_host(first), 1)[0])
    np.testing.assert_array_equal(both[..., :3], alone)


def test_a_place_hears_nothing_of_its_future(any_engine):
    rng = np.random.default_rng(2)
    qkv = rounded(rng, 1, 7, 3 * 2 * 3)
    y = any_engine.to_host(any_engine.attention(any_engine.from_host(qkv), 2)[0])
    for t in range(7):
        changed = qkv.copy()
        changed[:, t + 1 :] = 100 * rng.normal(size=changed[:, t + 1 :].shape)
        again = any_engine.to_host(any_engine.attention(any_engine.from_host(changed), 2)[0])
        np.testing.assert_array_equal(again[:, : t + 1], y[:, : t + 1])


def test_the_newest_rows_alone_hear_what_they_hear_among_all(any_engine):
    """With a cache only rows first .. length-1 ask, and rows behind them are not filled yet."""
    qkv = rounded(np.random.default_rng(3), 2, 9, 3 * 2 * 3)
    y, shares = any_engine.attention(any_engine.from_host(qkv[:, :6]), 2)
    qkv[:, 6:] = np.nan
    newest, new_shares = any_engine.attention(any_engine.from_host(qkv), 2, 4, 6)
    want_y, want_shares = any_engine.to_host(y)[:, 4:], any_engine.to_host(shares)[:, :, 4:]
    np.testing.assert_allclose(any_engine.to_host(newest), want_y, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(any_engine.to_host(new_shares), want_shares, rtol=1e-6, atol=1e-6)


def test_backward_agrees_with_central_differences():
    rng = np.random.default_rng(4)
    qkv, up = rng.normal(size=(2, 4, 3 * 2 * 3)), rng.normal(size=(2, 4, 6))

    def loss():
        return float((reference.attention(qkv, 2)[0] * up).sum())

    gradient = reference.attention_backward(qkv, reference.attention(qkv, 2)[1], up)
    check_gradient(loss, qkv, gradient, rng, entries=144)
    assert remainder_ratio(loss, qkv, gradient, rng) == pytest.approx(4, abs=0.4)


def test_each_half_of_backward_agrees_with_central_differences():
    rng = np.random.default_rng(5)
    qkv, shares = rng.normal(size=(2, 4, 18)), rng.normal(size=(2, 2, 4, 4)) * np.tri(4)
    up, up_scores = rng.normal(size=(2, 4, 6)), rng.normal(size=(2, 2, 4, 4))
    dqkv = np.full_like(qkv, np.nan)
    dshares = reference.attention_mix_backward(qkv, shares, up, dqkv)
    reference.attention_scores_backward(qkv, up_scores, dqkv)

    def mixed():
        return float((reference.attention_mix(qkv, shares) * up).sum())

    def both():
        return mixed() + float((reference.attention_scores(qkv, 2) * up_scores).sum())

    check_gradient(mixed, shares, dshares, rng, entries=64)
    check_gradient(both, qkv, dqkv, rng, entries=144)  # nothing of it was left as NaN


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(6)
    qkv = rounded(rng, 2, 5, 3 * 2 * 3)
    scores = reference.attention_scores(qkv, 2)
    assert_rejected("attention_scores", [qkv, 2], scores * np.sqrt(3) / np.sqrt(6))  # d_model
    assert_rejected("attention_scores", [qkv, 2], scores * np.sqrt(3))  # no scale at all
    assert_rejected("attention_scores", [qkv, 2], scores.swapaxes(-1, -2))
    assert_rejected("attention_scores", [qkv, 2], scores[:, ::-1])
    leaks = reference.softmax(np.where(np.tri(5, k=1, dtype=bool), scores, -np.inf))
    assert_rejected("attention", [qkv, 2], reference.attention_mix(qkv, leaks))
    unmasked = reference.softmax(scores)
    assert_rejected("attention", [qkv, 2], reference.attention_mix(qkv, unmasked))
    shares = reference.attention(qkv, 2)[1].astype(np.float32).astype(np.float64)
    mixed_up = shares @ qkv[..., 12:].reshape(2, 5, 3, 2).transpose(0, 3, 1, 2)
    assert_rejected("attention_mix", [qkv, shares], mixed_up.reshape(2, 5, 6))


def test_a_backward_without_scale_or_with_queries_and_keys_swapped_is_rejected():
    rng = np.random.default_rng(7)
    qkv, dy = rounded(rng, 2, 5, 18), rounded(rng, 2, 5, 6)
    shares = reference.attention(qkv, 2)[1].astype(np.float32).astype(np.float64)
    right = reference.attention_backward(qkv, shares, dy)
    for wrong in (
        np.concatenate([right[..., :12] * np.sqrt(3), right[..., 12:]], axis=-1),
        np.concatenate([right[..., 6:12], right[..., :6], right[..., 12:]], axis=-1),
        np.concatenate([right[..., :12], np.zeros((2, 5, 6))], axis=-1),
        np.concatenate([right[..., :12], right[..., :1:-1][..., :6]], axis=-1),
    ):
        assert_rejected("attention_backward", [qkv, shares, dy], wrong)


def test_sizes_that_do_not_fit_are_named(any_engine):
    qkv = any_engine.from_host(np.zeros((1, 4, 18)))
    with pytest.raises(ShapeError, match="18 is not 3 times 4 equal heads"):
        any_engine.attention(qkv, 4)
    with pytest.raises(ShapeError, match="17 is not 3 times"):
        any_engine.attention(any_engine.from_host(np.zeros((1, 4, 17))), 1)
    for first, length in ((4, 4), (0, 5), (-1, 3)):
        with pytest.raises(ShapeError, match=f"rows {first} to {length} do not lie in 0 to 4"):
            any_engine.attention(qkv, 2, first, length)
    with pytest.raises(ShapeError, match=r"qkv must be \(batch, time, 3 d_model\)"):
        any_engine.attention(any_engine.from_host(np.zeros((4, 18))), 2)
