"""linear and linear_backward: y = x W + b, and the three gradients."""

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
    rounded,
)

from llmcl import reference
from llmcl.errors import ShapeError


@pytest.mark.parametrize("local_size", LOCAL_SIZES)
@at_any_size
def test_equals_numpy_at_any_size(engine, local_size, size, seed):
    check_operations(engine, ("linear", "linear_backward"), size, seed, local_size)


@pytest.mark.parametrize("versions", VERSIONS, ids=str)
@pytest.mark.parametrize("n", (7, 8, 52))  # one number at a time, and four
def test_what_is_there_already_stays_in_the_sum(engine, versions, n):
    engine.use(versions)
    rng = np.random.default_rng(n)
    x, w = rounded(rng, 5, 9), rounded(rng, 9, n)
    args = [x, w, rounded(rng, n), rounded(rng, 5, n)]
    y = engine.linear(*map(engine.from_host, args))
    assert_within(engine.to_host(y), *expected("linear", args))
    args = [x, w, rounded(rng, 5, n), rounded(rng, 9, n), rounded(rng, n)]
    moved = [engine.from_host(array) for array in args]
    engine.linear_backward(*moved)
    for i, place in ((1, 3), (2, 4)):
        want, bound = expected("linear_backward", args, i, written=(3, 4))
        assert_within(engine.to_host(moved[place]), want, bound)
    engine.check_guards()


def test_one_row_by_hand(any_engine):
    x, w, b = ([[1.0, 2]], [[1.0, 2, 3], [4, 5, 6]], [10.0, 20, 30])
    y = any_engine.linear(*(any_engine.from_host(np.array(part)) for part in (x, w, b)))
    np.testing.assert_array_equal(any_engine.to_host(y), [[19, 32, 45]])


def test_backward_agrees_with_central_differences_and_adds():
    rng = np.random.default_rng(1)
    x, w, b = rng.normal(size=(2, 3, 5)), rng.normal(size=(5, 4)), rng.normal(size=4)
    up = rng.normal(size=(2, 3, 4))
    start_w, start_b = rng.normal(size=w.shape), rng.normal(size=b.shape)
    dw, db = start_w.copy(), start_b.copy()

    def loss():
        return float((reference.linear(x, w, b) * up).sum())

    dx = reference.linear_backward(x, w, up, dw, db)
    for array, gradient in ((x, dx), (w, dw - start_w), (b, db - start_b)):
        check_gradient(loss, array, gradient, rng, entries=10)


def test_gradients_that_are_not_cleared_come_out_twice(any_engine):
    rng = np.random.default_rng(2)
    x, w, dy = (any_engine.from_host(rounded(rng, *shape)) for shape in ((6, 5), (5, 4), (6, 4)))
    once = any_engine.zeros((5, 4)), any_engine.zeros((4,))
    twice = any_engine.zeros((5, 4)), any_engine.zeros((4,))
    any_engine.linear_backward(x, w, dy, *once)
    any_engine.linear_backward(x, w, dy, *twice)
    any_engine.linear_backward(x, w, dy, *twice)
    for single, double in zip(once, twice, strict=True):
        want = 2 * any_engine.to_host(single)
        np.testing.assert_allclose(any_engine.to_host(double), want, rtol=1e-5)


def test_plausible_mistakes_are_rejected():
    rng = np.random.default_rng(3)
    x, w, b = rounded(rng, 3, 5), rounded(rng, 5, 5), rounded(rng, 5)
    assert_rejected("linear", [x, w, b], x @ w)
    assert_rejected("linear", [x, w, b], x @ w.T + b)
    dy, dw, db = rounded(rng, 3, 5), rounded(rng, 5, 5), rounded(rng, 5)
    args = [x, w, dy, dw, db]
    assert_rejected("linear_backward", args, dy @ w, 0, written=(3, 4))
    assert_rejected("linear_backward", args, x.T @ dy, 1, written=(3, 4))  # forgot to add
    assert_rejected("linear_backward", args, dw + dy.T @ x, 1, written=(3, 4))
    assert_rejected("linear_backward", args, db + dy.mean(axis=0), 2, written=(3, 4))


def test_shapes_that_do_not_fit_are_named(any_engine):
    x, w, b = (any_engine.from_host(np.zeros(shape)) for shape in ((2, 3), (4, 5), (5,)))
    with pytest.raises(ShapeError, match=r"x \(2, 3\), w \(4, 5\) and b \(5,\) do not fit"):
        any_engine.linear(x, w, b)
    x, plus = (any_engine.from_host(np.zeros(shape)) for shape in ((2, 4), (3, 5)))
    with pytest.raises(ShapeError, match=r"plus has the shape \(3, 5\); it must be \(2, 5\)"):
        any_engine.linear(x, w, b, plus)
