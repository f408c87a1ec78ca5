"""The bounds themselves: loose enough for rounding, tight enough to notice a mistake."""

import numpy as np
import pytest
from ops_helpers import at_any_size

from llmcl import reference
from llmcl.check import Sizes, compare, make_cases

CASES = make_cases(np.random.default_rng(0), Sizes())
WIDE = make_cases(np.random.default_rng(1), Sizes(B=2, T=71, H=4, d=23, V=131, F=97))
ids = [f"{case.name}-{i}" for i, case in enumerate(CASES)]


def outputs(case):
    """(the float64 result, its bound) of every output of a case that holds fractions."""
    wants = case.run(reference.Engine())
    return [(w, b) for w, b in zip(wants, case.bounds(), strict=True) if w.dtype.kind == "f"]


@pytest.mark.parametrize("case", CASES + WIDE, ids=[*ids, *(f"{i}-wide" for i in ids)])
def test_an_error_of_one_in_a_hundred_is_always_noticed(case):
    for want, bound in outputs(case):
        sure = np.isfinite(want) & (want != 0)
        typical = np.abs(want) >= 0.1 * np.sqrt(np.mean(want[sure] ** 2)) if sure.any() else sure
        noticed = np.abs(0.01 * want) > np.broadcast_to(bound, want.shape)
        assert noticed[sure & typical].all()
        if sure.any() and case.name != "global_norm":
            assert not compare(want * 1.01, want, bound).ok


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_a_bound_is_a_finite_positive_number_for_every_element(case):
    for want, bound in zip(case.run(reference.Engine()), case.bounds(), strict=True):
        assert np.shape(bound) == want.shape
        allowed = np.asarray(bound)[np.isfinite(want)]
        assert np.isfinite(allowed).all() and (allowed >= 0).all()


@at_any_size
def test_numpy_in_float32_stays_within_the_bounds_as_well(size, seed):
    engine = reference.Engine(np.float32)
    for case in make_cases(np.random.default_rng(seed), size):
        for comparison in case.check(engine):
            assert comparison.ok, f"{case.name}, {size}: {comparison}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_the_truth_rounded_to_float32_passes(case):
    for want, bound in outputs(case):
        assert compare(want.astype(np.float32), want, bound).ok


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_one_element_exchanged_with_its_neighbor_is_noticed(case):
    for want, bound in outputs(case):
        if want.size < 4 or np.ptp(want) == 0:
            continue
        swapped = want.copy().reshape(-1)
        order = np.argsort(swapped)
        lowest, highest = order[0], order[-1]
        swapped[[lowest, highest]] = swapped[[highest, lowest]]
        assert not compare(swapped.reshape(want.shape), want, bound).ok
