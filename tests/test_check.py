"""check.py: comparisons that pass and fail for a reason, and cases that reach every operation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcl import ops, reference
from llmcl.check import Case, Sizes, check_all, compare, make_cases


def test_an_error_up_to_the_bound_passes_and_one_above_it_fails():
    assert compare([1.0, 2.5], [1.0, 2.0], 0.5).ok
    assert not compare([1.0, 2.5], [1.0, 2.0], 0.4999).ok


def test_the_worst_element_is_the_one_nearest_to_its_own_bound():
    got, want, bound = [1.3, 2.02, 3.0], [1.0, 2.0, 3.0], [1.0, 0.03, 0.1]
    found = compare(got, want, bound)
    assert found.ok and found.where == (1,)
    assert (found.got, found.want, found.bound) == (2.02, 2.0, 0.03)
    assert found.error == pytest.approx(0.02)
    assert str(found) == "error 2.0e-02 below its bound 3.0e-02 at (1,)"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("got", [3e38, 1.7e308, np.inf, np.nan])
def test_a_number_of_any_size_fails_without_a_warning(got):
    found = compare([0.0, got], [0.0, -1e308], 0)
    assert not found.ok and found.where == (1,)


def test_a_failure_says_where_and_what_was_expected():
    got = np.zeros((2, 3))
    got[1, 2] = 5
    assert str(compare(got, np.zeros((2, 3)), 1e-6)) == (
        "at (1, 2) you have 5, expected 0: error 5.0e+00 above its bound 1.0e-06"
    )


def test_where_no_error_is_allowed_none_is():
    assert compare([1, 2], [1, 2], 0).ok
    assert not compare([1, 2], [1, 3], 0).ok
    assert compare([1, 2], [1, 2], [np.nan, 0]).ok  # a bound that is no number allows nothing
    assert not compare([1, 2.5], [1, 2], [0, np.nan]).ok


def test_what_is_no_number_only_passes_where_none_is_expected():
    nan, inf = np.nan, np.inf
    assert compare([nan, 1], [nan, 1], 0.1).ok
    for got, want in (([nan, 1], [0, 1]), ([0, 1], [nan, 1]), ([inf, 1], [0, 1]), ([0], [inf])):
        assert not compare(got, want, 0.1).ok, (got, want)
    assert not compare([nan, 1], [1, 1], np.inf).ok


def test_another_shape_is_never_right():
    assert not compare(np.zeros((2, 3)), np.zeros((3, 2)), 1.0).ok
    found = compare(np.zeros(1), np.zeros(()), 1.0)
    assert not found.ok and str(found) == "the shape is (1,), expected ()"
    assert compare(np.float64(2.0), 2.0, 0.0).ok  # two single numbers


@given(st.integers(0, 2**32 - 1))
def test_one_wrong_element_among_many_is_found(seed):
    rng = np.random.default_rng(seed)
    want = rng.normal(size=(3, 5, 7))
    bound = np.full(want.shape, 1e-3)
    where = tuple(int(rng.integers(n)) for n in want.shape)
    got = want + rng.uniform(-9e-4, 9e-4, size=want.shape)
    got[where] = want[where] + 1.1e-3
    found = compare(got, want, bound)
    assert not found.ok and found.where == where


def test_sizes_are_odd_different_and_fit_together():
    s = Sizes()
    assert s.C == s.H * s.d
    assert len({s.B, s.T, s.C, s.V, s.F, s.d}) == 6
    assert all(n % 8 for n in (s.T, s.C, s.V, s.F))


def test_the_same_seed_makes_the_same_cases():
    first, second = (make_cases(np.random.default_rng(5)) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert a.name == b.name
        for x, y in zip(a.args, b.args, strict=True):
            if isinstance(x, np.ndarray):
                np.testing.assert_array_equal(x, y)


def test_a_case_leaves_its_own_arrays_alone():
    for case in make_cases(np.random.default_rng(0)):
        before = [np.array(a) for a in case.args if isinstance(a, np.ndarray)]
        case.run(reference.Engine())
        after = [a for a in case.args if isinstance(a, np.ndarray)]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old, new)


def test_a_case_brings_back_what_is_returned_and_then_what_is_written():
    x, w, dy = (np.ones(shape, np.float32) for shape in ((2, 3), (3, 4), (2, 4)))
    args = (x, w, dy, np.zeros((3, 4), np.float32), np.zeros(4, np.float32))
    dx, dw, db = Case("linear_backward", args, (3, 4)).run(reference.Engine())
    assert (dx == 4).all() and (dw == 2).all() and (db == 2).all()


def test_gradients_start_from_something_so_that_overwriting_shows():
    for case in make_cases(np.random.default_rng(0)):
        if case.name.endswith("_backward"):
            for i in case.written:
                assert np.count_nonzero(case.args[i]) > 0.9 * case.args[i].size


def test_check_all_reaches_every_operation_and_passes_on_numpy():
    found = list(check_all(reference.Engine(np.float32)))
    for case, comparisons, seconds in found:
        assert comparisons and all(c.ok for c in comparisons), case.name
        assert seconds >= 0
    names = {operation.__name__ for operation in ops.OPERATIONS}
    assert names - {case.name for case, *_ in found} == {
        "attention_mix_backward", "attention_scores_backward",  # inside attention_backward
    }  # fmt: skip


def test_check_all_fails_for_the_one_operation_that_is_wrong():
    engine = reference.Engine(np.float32)
    engine.gelu = lambda x: 1.001 * reference.gelu(x)
    failed = {case.name for case, found, _ in check_all(engine) if not all(c.ok for c in found)}
    assert failed == {"gelu"}
