"""fused_attention: the same result as attention, without its table, forward and backward."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import (
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
from llmcl.versions import ATTENTION_TILES, CPU, GPU, choose_attention_tile


@at_any_size
def test_equals_numpy_at_any_size(engine, size, seed):
    check_operations(engine, ("fused_attention", "fused_attention_backward"), size, seed, 16)


@given(T=st.integers(1, 40), first=st.integers(0, 39), length=st.integers(1, 40))
def test_every_remainder_of_lanes_and_blocks_of_keys(engine, T, first, length):
    first, length = min(first, T - 1), min(max(length, first + 1), T)
    qkv = rounded(np.random.default_rng(T * 1600 + first * 40 + length), 2, T, 3 * 2 * 5)
    if first >= length:
        return
    got = engine.fused_attention(engine.from_host(qkv), 2, first, length)
    for i, part in enumerate(got):
        want, bound = expected("fused_attention", [qkv, 2, first, length], i)
        assert_within(engine.to_host(part), want, bound, f"output {i}")
    engine.check_guards()


@pytest.mark.parametrize("versions", (CPU, GPU), ids=str)
@pytest.mark.parametrize("T", (2, 31, 64, 71, 256))
def test_it_stays_finite_and_right_at_real_lengths(engine, versions, T):
    engine.use(versions)
    rng = np.random.default_rng(T)
    qkv, dy = rounded(rng, 1, T, 3 * 2 * 5, scale=3), rounded(rng, 1, T, 10)
    y, log_sum = engine.fused_attention(engine.from_host(qkv), 2)
    assert_within(engine.to_host(y), *expected("fused_attention", [qkv, 2]))
    args = [qkv, *(part.astype(np.float32).astype(float) for part in _forward(qkv)), dy]
    got = engine.fused_attention_backward(*map(engine.from_host, args))
    assert_within(engine.to_host(got), *expected("fused_attention_backward", args))
    engine.check_guards()


@pytest.mark.parametrize("rows, d", [(5, 65), (67, 33), (35, 68), (67, 100), (5, 131)])
def test_every_tile_of_a_gpu_is_right(engine, rows, d):
    """Short and long, narrow and wide heads; above 128 channels the CPU's kernel takes over."""
    engine.use(GPU)
    rng = np.random.default_rng(rows + d)
    qkv, dy = rounded(rng, 1, rows, 3 * d), rounded(rng, 1, rows, d)
    for i, got in enumerate(engine.fused_attention(engine.from_host(qkv), 1)):
        assert_within(engine.to_host(got), *expected("fused_attention", [qkv, 1], i))
    args = [qkv, *(part.astype(np.float32).astype(float) for part in _forward(qkv, 1)), dy]
    got = engine.fused_attention_backward(*map(engine.from_host, args))
    assert_within(engine.to_host(got), *expected("fused_attention_backward", args))
    engine.check_guards()


def test_the_tile_is_chosen_by_rows_and_channels():
    sizes = [(1, 128), (32, 1), (33, 32), (1024, 33), (1024, 64), (33, 65), (1024, 128)]
    chosen = [choose_attention_tile(rows, d) for rows, d in sizes]
    short, narrow, middle, wide = (tile for _, _, tile in ATTENTION_TILES)
    assert chosen == [short, short, narrow, middle, middle, wide, wide]
    assert choose_attention_tile(5, 129) is None
    assert [tile.items for tile in (short, narrow, middle, wide)] == [64, 128, 128, 128]


def _forward(qkv, n_heads=2):
    return reference.fused_attention(qkv, n_heads)


def test_it_is_attention_without_the_table():
    rng = np.random.default_rng(1)
    qkv, dy = rng.normal(size=(2, 7, 18)), rng.normal(size=(2, 7, 6))
    y, shares = reference.attention(qkv, 2)
    fused, log_sum = _forward(qkv)
    np.testing.assert_allclose(fused, y, rtol=1e-12)
    want = reference.attention_backward(qkv, shares, dy)
    got = reference.fused_attention_backward(qkv, fused, log_sum, dy)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    scores = reference.attention_scores(qkv, 2)
    np.testing.assert_allclose(np.exp(scores - log_sum[..., None]) * np.tri(7), shares, rtol=1e-10)


def test_scores_far_apart_neither_overflow_nor_vanish(any_engine):
    # One channel: the second key's score is 10,000 above the first one's, the third one's below.
    qkv = np.array([[[100.0, 0, 1], [100, 100, 2], [100, -100, 3]]])
    y, log_sum = any_engine.fused_attention(any_engine.from_host(qkv), 1)
    np.testing.assert_array_equal(any_engine.to_host(y)[0, :, 0], [1, 2, 2])
    np.testing.assert_allclose(any_engine.to_host(log_sum)[0, 0], [0, 10_000, 10_000])


@pytest.mark.parametrize("versions", (CPU, GPU), ids=str)
@pytest.mark.parametrize("T", (2, 9, 17, 67))
def test_the_largest_score_may_stand_anywhere_and_lie_far_below_zero(engine, versions, T):
    engine.use(versions)
    row, peak = np.indices((T, T))
    qkv = np.empty((T, T, 3))  # one channel; in text p the key of row p is the only near one
    qkv[..., 0], qkv[..., 1], qkv[..., 2] = 100, 10 * np.eye(T) - 20, np.arange(1, T + 1)
    y, log_sum = map(engine.to_host, engine.fused_attention(engine.from_host(qkv), 1))
    np.testing.assert_array_equal(y[peak, row, 0][row >= peak], peak[row >= peak] + 1)
    np.testing.assert_array_equal(log_sum[peak, 0, row][row >= peak], -1000)
    np.testing.assert_allclose(y[peak, row, 0][row < peak], row[row < peak] / 2 + 1, rtol=1e-5)


def test_a_place_hears_nothing_of_its_future(any_engine):
    rng = np.random.default_rng(2)
    qkv = rounded(rng, 1, 19, 18)
    y = any_engine.to_host(any_engine.fused_attention(any_engine.from_host(qkv), 2)[0])
    for t in range(19):
        changed = qkv.copy()
        changed[:, t + 1 :] = 100 * rng.normal(size=changed[:, t + 1 :].shape)
        again = any_engine.to_host(any_engine.fused_attention(any_engine.from_host(changed), 2)[0])
        np.testing.assert_array_equal(again[:, : t + 1], y[:, : t + 1])


def test_the_newest_rows_alone_hear_what_they_hear_among_all(any_engine):
    """With a cache only rows first .. length-1 ask, and rows behind them are not filled yet."""
    qkv = rounded(np.random.default_rng(3), 2, 21, 18)
    y, log_sum = any_engine.fused_attention(any_engine.from_host(qkv[:, :17]), 2)
    qkv[:, 17:] = np.nan
    newest, sums = any_engine.fused_attention(any_engine.from_host(qkv), 2, 14, 17)
    want, want_sums = any_engine.to_host(y)[:, 14:], any_engine.to_host(log_sum)[:, :, 14:]
    np.testing.assert_allclose(any_engine.to_host(newest), want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(any_engine.to_host(sums), want_sums, rtol=1e-6)


def test_backward_agrees_with_central_differences():
    rng = np.random.default_rng(4)
    qkv, up = rng.normal(size=(2, 4, 18)), rng.normal(size=(2, 4, 6))

    def loss():
        return float((_forward(qkv)[0] * up).sum())

    gradient = reference.fused_attention_backward(qkv, *_forward(qkv), up)
    check_gradient(loss, qkv, gradient, rng, entries=144)
    assert remainder_ratio(loss, qkv, gradient, rng) == pytest.approx(4, abs=0.4)


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(5)
    qkv, dy = rounded(rng, 2, 9, 18), rounded(rng, 2, 9, 6)
    scores = reference.attention_scores(qkv, 2)
    leaks = reference.softmax(np.where(np.tri(9, k=1, dtype=bool), scores, -np.inf))
    assert_rejected("fused_attention", [qkv, 2], reference.attention_mix(qkv, leaks))
    by_width = reference.causal_softmax(scores * np.sqrt(3) / np.sqrt(6))
    assert_rejected("fused_attention", [qkv, 2], reference.attention_mix(qkv, by_width))
    largest = np.where(np.tri(9, dtype=bool), scores, -np.inf).max(axis=-1)
    assert_rejected("fused_attention", [qkv, 2], largest, output=1)
    y, log_sum = (part.astype(np.float32).astype(float) for part in _forward(qkv))
    args = [qkv, y, log_sum, dy]
    no_delta = reference.fused_attention_backward(qkv, np.zeros_like(y), log_sum, dy)
    assert_rejected("fused_attention_backward", args, no_delta)
    right = reference.fused_attention_backward(*args)
    for part in range(3):
        wrong = right.copy()
        wrong[..., 6 * part : 6 * part + 6] *= np.sqrt(3)
        assert_rejected("fused_attention_backward", args, wrong)


def test_sizes_that_do_not_fit_are_named(any_engine):
    qkv = any_engine.from_host(np.zeros((1, 4, 18)))
    with pytest.raises(ShapeError, match="18 is not 3 times 4 equal heads"):
        any_engine.fused_attention(qkv, 4)
    with pytest.raises(ShapeError, match="rows 0 to 5 do not lie in 0 to 4"):
        any_engine.fused_attention(qkv, 2, 0, 5)
