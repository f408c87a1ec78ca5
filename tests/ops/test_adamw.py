"""adamw: one step by hand, decay beside the moments, and a flag under which nothing moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_helpers import LOCAL_SIZES, assert_rejected, at_any_size, check_operations, rounded

from llmcl.errors import ShapeError

HEALTHY, FAILED = [1.0, 1.0, 1.0, 2.5, 0.0], [np.nan, 1.0, 0.0, 2.5, 4.0]
ADAM = dict(rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.1, step=1, n_decay=1)


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("adamw",), size, seed, local_size)


def step(engine, w, grad, status=HEALTHY, m=None, v=None, **changed):
    """(w, m, v) after one step."""
    w, grad = np.atleast_1d(np.asarray(w, np.float64)), np.atleast_1d(np.asarray(grad, np.float64))
    m, v = np.zeros_like(w) if m is None else m, np.zeros_like(w) if v is None else v
    tensors = [engine.from_host(part) for part in (w, grad, m, v, np.asarray(status, np.float64))]
    engine.adamw(*tensors, **(ADAM | changed))
    return [engine.to_host(tensors[i]) for i in (0, 2, 3)]


def test_the_first_step_of_one_weight(any_engine):
    w, m, v = step(any_engine, 1.0, 0.1)
    # 1 - 0.01 (0.1 / 0.1 + 0.1): the corrected moments make the first step one rate long.
    assert w[0] == pytest.approx(0.9890000, abs=2e-7)
    assert m[0] == pytest.approx(0.01) and v[0] == pytest.approx(1e-5)


def test_epsilon_stands_outside_the_root(any_engine):
    """A gradient as small as epsilon makes half a step; inside the root it would make none."""
    w = step(any_engine, 0.0, 1e-8, decay=0)[0]
    assert w[0] == pytest.approx(-0.01 * 0.5, rel=1e-5)
    many = step(any_engine, np.zeros(19), np.full(19, 1e-8), decay=0)[0]
    np.testing.assert_allclose(many, -0.01 * 0.5, rtol=1e-5)


def test_without_a_gradient_only_decay_acts(any_engine):
    assert step(any_engine, 1.0, 0.0)[0][0] == pytest.approx(0.999, abs=1e-7)
    assert step(any_engine, 1.0, 0.0, n_decay=0)[0][0] == 1


def test_decay_ends_after_the_first_n_elements(any_engine):
    w = np.arange(1.0, 8)
    after = step(any_engine, w, np.zeros(7), n_decay=3)[0]
    np.testing.assert_allclose(after[:3], w[:3] * (1 - 0.01 * 0.1), rtol=1e-6)
    np.testing.assert_array_equal(after[3:], w[3:])


@given(n=st.integers(1, 40), n_decay=st.integers(0, 45))
def test_decay_may_end_anywhere_inside_a_vector(any_engine, n, n_decay):
    w = np.arange(1.0, n + 1)
    after = step(any_engine, w, np.zeros(n), n_decay=n_decay)[0]
    np.testing.assert_allclose(after[:n_decay], w[:n_decay] * (1 - 0.01 * 0.1), rtol=1e-6)
    np.testing.assert_array_equal(after[n_decay:], w[n_decay:])


def test_the_gradient_is_scaled_by_the_clip(any_engine):
    clipped = step(any_engine, [1.0, 2], [3, 4], [13, 1 / 13, 1, 2.5, 0])
    by_hand = step(any_engine, [1.0, 2], [3 / 13, 4 / 13])
    for got, want in zip(clipped, by_hand, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_where_the_step_is_flagged_nothing_is_written(any_engine):
    start = np.array([1.0, 2, 3]), np.array([0.5, 0.25, 2]), np.array([1.0, 4, 9])
    grad = np.array([np.nan, np.inf, 1])
    after = step(any_engine, start[0], grad, FAILED, start[1], start[2])
    for got, want in zip(after, start, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["grad", "m", "v", "status"])
def test_a_shape_that_does_not_fit_is_named(any_engine, name):
    shapes = {"w": (7,), "grad": (7,), "m": (7,), "v": (7,), "status": (5,)} | {name: (6,)}
    tensors = [any_engine.from_host(np.ones(shape)) for shape in shapes.values()]
    with pytest.raises(ShapeError, match=rf"adamw: {name} has the shape \(6,\)"):
        any_engine.adamw(*tensors, **ADAM)


def test_a_thousand_steps_down_a_bowl_reach_its_bottom(any_engine):
    w, m, v = np.array([3.0, -5.0]), None, None
    for k in range(1, 1001):
        w, m, v = step(any_engine, w, w - 1, m=m, v=v, rate=0.05, decay=0, step=k)
    np.testing.assert_allclose(w, 1, atol=0.02)


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(1)
    w, grad, m, v = (rounded(rng, 5, 7) for _ in range(4))
    v, status = v * v, np.array(HEALTHY)
    v = v.astype(np.float32).astype(np.float64)
    options = ADAM | {"step": 3, "n_decay": 35}

    def adam(grad, pull, correct=True, beta2=0.999, root_first=False):
        new_m, new_v = 0.9 * m + 0.1 * grad, beta2 * v + (1 - beta2) * grad**2
        c1, c2 = (1 - 0.9**3, 1 - beta2**3) if correct else (1, 1)
        below = np.sqrt(new_v / c2 + 1e-8) if root_first else np.sqrt(new_v / c2) + 1e-8
        return w - 0.01 * (new_m / c1 / below + pull)

    for wrong in (
        adam(grad + 0.1 * w, 0),  # decay through the moments: Adam + L2
        adam(grad, 0.1 * w, correct=False),
        adam(grad, 0),
        adam(grad, w),
        adam(grad, 0.1 * w, beta2=0.99),
        adam(-grad, 0.1 * w),
    ):
        args = [w, grad, m, v, status]
        assert_rejected("adamw", args, wrong, written=(0, 2, 3), **options)


def test_one_minus_beta2_keeps_its_digits(any_engine):
    """In float32, 1 - 0.999 is off by 5e-5 of itself; the host computes it in double."""
    v = step(any_engine, 0.0, 1.0)[2]
    assert v[0] == pytest.approx(0.001, rel=1e-6)
    assert abs(np.float32(1) - np.float32(0.999) - 0.001) > 1e-8
