"""gelu and gelu_backward: the tanh form, both rungs, and far from zero."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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

ERF_FORM = np.vectorize(lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))))


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("gelu", "gelu_backward"), size, seed, local_size)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@given(n=st.integers(1, 200))
def test_every_remainder_of_groups_and_eights(engine, versions, local_size, n):
    engine.use(versions)
    engine.local_size = local_size
    rng = np.random.default_rng(n)
    x, dy = rounded(rng, n, scale=3), rounded(rng, n)
    for name, args in (("gelu", [x]), ("gelu_backward", [x, dy])):
        got = engine.to_host(getattr(engine, name)(*map(engine.from_host, args)))
        assert_within(got, *expected(name, args), name)
    engine.check_guards()


def test_known_values_are_those_of_the_tanh_form(any_engine):
    x = np.array([1.0, -1, 3, 0])
    y = any_engine.to_host(any_engine.gelu(any_engine.from_host(x)))
    np.testing.assert_allclose(y, [0.8411920, -0.1588080, 2.9963626, 0], atol=1e-7)


def test_the_erf_form_is_rejected_where_the_two_part_most():
    sweep = np.linspace(-6, 6, 1001)
    gap = np.abs(ERF_FORM(sweep) - reference.gelu(sweep))
    assert gap.max() == pytest.approx(4.73e-4, rel=1e-2)
    assert abs(sweep[gap.argmax()]) == pytest.approx(2.70, abs=0.05)
    x = np.array([1.0, -1, 2.7, 3]).astype(np.float32).astype(np.float64)
    assert_rejected("gelu", [x], ERF_FORM(x))


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
def test_a_hundred_thousand_points_stay_within_the_bound_and_the_standard(engine, versions):
    engine.use(versions)
    x = np.linspace(-20, 20, 100_003).astype(np.float32).astype(np.float64)
    for name, args in (("gelu", [x]), ("gelu_backward", [x, np.ones_like(x)])):
        got = engine.to_host(getattr(engine, name)(*map(engine.from_host, args)))
        want, bound = expected(name, args)
        assert_within(got, want, bound, name)
        assert np.all(np.abs(got - want) <= 2e-6 + 2e-5 * np.abs(want))


@pytest.mark.filterwarnings("ignore:overflow")
def test_far_from_zero_it_is_zero_or_x(any_engine):
    x = np.array([-1e9, -1e4, -100, 100, 1e4, 1e9])
    moved = any_engine.from_host(x)
    np.testing.assert_array_equal(any_engine.to_host(any_engine.gelu(moved)), np.maximum(x, 0))
    slope = any_engine.to_host(any_engine.gelu_backward(moved, any_engine.from_host(np.ones(6))))
    np.testing.assert_array_equal(slope, [0, 0, 0, 1, 1, 1])


def test_a_nan_is_passed_on(any_engine):
    y = any_engine.to_host(any_engine.gelu(any_engine.from_host(np.array([np.nan, 1.0]))))
    assert np.isnan(y[0]) and y[1] == pytest.approx(0.8411920)


def test_backward_agrees_with_central_differences():
    rng = np.random.default_rng(1)
    x, up = 2 * rng.normal(size=(3, 7)), rng.normal(size=(3, 7))

    def loss():
        return float((reference.gelu(x) * up).sum())

    gradient = reference.gelu_backward(x, up)
    check_gradient(loss, x, gradient, rng, entries=21)
    assert remainder_ratio(loss, x, gradient, rng) == pytest.approx(4, abs=0.4)


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(2)
    x, dy = rounded(rng, 5, 7), rounded(rng, 5, 7)
    u = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    assert_rejected("gelu", [x], x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.04472 * x**3))))
    assert_rejected("gelu", [x], x / 2 * (1 + np.tanh(0.8 * (x + 0.044715 * x**3))))
    assert_rejected("gelu", [x], x / (1 + np.exp(-1.702 * x)))
    s = (1 + np.tanh(u)) / 2
    assert_rejected("gelu_backward", [x, dy], dy * s)
    without_cube = dy * (s + x * s * (1 - s) * 2 * np.sqrt(2 / np.pi))
    assert_rejected("gelu_backward", [x, dy], without_cube)


def test_both_arguments_of_backward_must_have_one_shape(any_engine):
    x, dy = any_engine.from_host(np.zeros((2, 3))), any_engine.from_host(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(3, 2\) differ"):
        any_engine.gelu_backward(x, dy)
