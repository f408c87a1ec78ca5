"""layer_norm and layer_norm_backward: divisor, epsilon, large means, and all three gradients."""

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


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("layer_norm", "layer_norm_backward"), size, seed, local_size)


def test_the_variance_is_divided_by_n(any_engine):
    x, one, zero = np.array([[1.0, 2, 3, 4]]), np.ones(4), np.zeros(4)
    y, mean, rstd = any_engine.layer_norm(*map(any_engine.from_host, (x, one, zero)), 1e-5)
    y = any_engine.to_host(y)
    np.testing.assert_allclose(y[0], [-1.341635, -0.447212, 0.447212, 1.341635], atol=1e-6)
    assert any_engine.to_host(mean)[0] == 2.5
    assert any_engine.to_host(rstd)[0] == pytest.approx(1 / np.sqrt(1.25 + 1e-5), rel=1e-6)


def test_a_constant_row_becomes_beta(any_engine):
    x, gamma, beta = np.full((2, 5), 7.0), np.full(5, 3.0), np.arange(5.0)
    y, _, rstd = any_engine.layer_norm(*map(any_engine.from_host, (x, gamma, beta)), 1e-5)
    np.testing.assert_array_equal(any_engine.to_host(y), [beta, beta])
    np.testing.assert_allclose(any_engine.to_host(rstd), 1e-5**-0.5, rtol=1e-6)


@pytest.mark.parametrize("mean", (1e2, 1e4, 1e6))
def test_a_large_mean_costs_no_more_than_the_bound_says(engine, mean):
    rng = np.random.default_rng(1)
    x = (mean + rng.normal(size=(17, 67))).astype(np.float32).astype(np.float64)
    args = [x, rounded(rng, 67), rounded(rng, 67)]
    got = engine.layer_norm(*map(engine.from_host, args))
    for i, part in enumerate(got):
        assert_within(engine.to_host(part), *expected("layer_norm", args, i))
    # The short cut, mean of squares less square of mean, in float32, is far outside.
    if mean == 1e4:
        narrow = x.astype(np.float32)
        cut = (narrow * narrow).mean(-1) - narrow.mean(-1) ** 2
        rstd, bound = expected("layer_norm", args, 2)
        assert (np.abs(1 / np.sqrt(np.abs(cut) + 1e-5) - rstd) > bound).any()


def test_backward_agrees_with_central_differences_and_adds():
    rng = np.random.default_rng(2)
    x, up = rng.normal(size=(2, 3, 5)) + 1, rng.normal(size=(2, 3, 5))
    gamma, beta = rng.normal(size=5), rng.normal(size=5)

    def loss():
        return float((reference.layer_norm(x, gamma, beta)[0] * up).sum())

    _, mean, rstd = reference.layer_norm(x, gamma, beta)
    start = rng.normal(size=(2, 5))
    dgamma, dbeta = start.copy()
    dgamma, dbeta = dgamma.copy(), dbeta.copy()
    dx = reference.layer_norm_backward(x, gamma, mean, rstd, up, dgamma, dbeta)
    gradients = (x, dx), (gamma, dgamma - start[0]), (beta, dbeta - start[1])
    for array, gradient in gradients:
        check_gradient(loss, array, gradient, rng, entries=30)
    assert remainder_ratio(loss, x, dx, rng) == pytest.approx(4, abs=0.4)


def test_the_gradient_of_a_row_sums_to_zero(engine):
    """A row moved as a whole, or stretched (up to epsilon), keeps its output."""
    rng = np.random.default_rng(3)
    x, gamma, up = rounded(rng, 9, 31), rounded(rng, 31), rounded(rng, 9, 31)
    _, mean, rstd = (engine.from_host(part) for part in reference.layer_norm(x, gamma, gamma))
    moved = engine.from_host(x), engine.from_host(gamma), mean, rstd, engine.from_host(up)
    dx = engine.layer_norm_backward(*moved, engine.zeros((31,)), engine.zeros((31,)))
    dx = engine.to_host(dx).astype(np.float64)
    assert np.abs(dx.sum(-1)).max() < 1e-5
    assert np.abs((dx * x).sum(-1)).max() < 1e-4


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(4)
    x, gamma, beta = rounded(rng, 6, 29), rounded(rng, 29), rounded(rng, 29)
    centered, variance = x - x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    args = [x, gamma, beta]
    unbiased = centered / np.sqrt(x.var(-1, ddof=1, keepdims=True) + 1e-5) * gamma + beta
    assert_rejected("layer_norm", args, unbiased)
    outside = centered / (np.sqrt(variance) + 1e-5) * gamma + beta
    # 1e-5 beside a variance near 1 is no more than rounding in a few elements; enough of it is.
    assert_rejected("layer_norm", args, outside)
    assert_rejected("layer_norm", args, x / np.sqrt(variance + 1e-5) * gamma + beta)
    assert_rejected("layer_norm", args, centered / np.sqrt(variance + 1e-5) * (1 + gamma) + beta)
    assert_rejected("layer_norm", args, 1 / np.sqrt(variance[:, 0]), output=2)


def test_a_backward_that_forgets_a_term_is_rejected():
    rng = np.random.default_rng(5)
    x, gamma, dy = rounded(rng, 6, 29), rounded(rng, 29), rounded(rng, 6, 29)
    mean, rstd = x.mean(-1), 1 / np.sqrt(x.var(-1) + 1e-5)
    mean, rstd = (part.astype(np.float32).astype(np.float64) for part in (mean, rstd))
    dgamma, dbeta = rounded(rng, 29), rounded(rng, 29)
    args, written = [x, gamma, mean, rstd, dy, dgamma, dbeta], (5, 6)
    g, r = dy * gamma, rstd[:, None]
    xhat = (x - mean[:, None]) * r
    g_mean, gx_mean = g.mean(-1, keepdims=True), (g * xhat).mean(-1, keepdims=True)
    for wrong in (
        r * (g - g_mean),
        r * (g - xhat * gx_mean),
        r * g,
        r * (dy - dy.mean(-1, keepdims=True) - xhat * (dy * xhat).mean(-1, keepdims=True)),
    ):
        assert_rejected("layer_norm_backward", args, wrong, written=written)
    forgot = (dy * x).sum(0) + dgamma
    assert_rejected("layer_norm_backward", args, forgot, 1, written=written)
    assert_rejected("layer_norm_backward", args, dy.sum(0), 2, written=written)


def test_shapes_that_do_not_fit_are_named(any_engine):
    x, gamma, beta = (any_engine.from_host(np.zeros(shape)) for shape in ((2, 3), (3,), (4,)))
    with pytest.raises(ShapeError, match=r"gamma \(3,\) and beta \(4,\) must be \(3,\)"):
        any_engine.layer_norm(x, gamma, beta)


@pytest.mark.parametrize("name", ["gamma", "mean", "rstd", "dy", "dgamma", "dbeta"])
def test_a_shape_that_does_not_fit_backward_is_named(any_engine, name):
    shapes = dict(x=(2, 3), gamma=(3,), mean=(2,), rstd=(2,), dy=(2, 3), dgamma=(3,), dbeta=(3,))
    moved = [any_engine.from_host(np.ones(s)) for s in (shapes | {name: (5,)}).values()]
    with pytest.raises(ShapeError, match=rf"\b{name} has the shape \(5,\)"):
        any_engine.layer_norm_backward(*moved)
