"""Medians of functions that take turns, and the launches of a piece of work."""

import numpy as np
import pytest

from llmcl import reference
from llmcl.engine import get_engine
from llmcl.errors import LlmclError
from llmcl.lab import launches, medians, timing


class Clock:
    """A clock that stands still unless somebody sleeps or works."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(timing, "time", made)
    return made


def worker(clock, order, name, *seconds):
    """A function that takes these times, one after the other, and then the last one again."""
    left = list(seconds)

    def work():
        order.append(name)
        clock.now += left.pop(0) if len(left) > 1 else left[0]

    return work


def test_they_take_turns_and_the_middle_time_counts(clock):
    order = []
    slow = worker(clock, order, "slow", 50, 3, 9, 4)  # the first run is not timed
    found = medians({"slow": slow, "fast": worker(clock, order, "fast", 70, 1)}, turns=3)
    assert found == {"slow": 4, "fast": 1}
    assert order == ["slow", "fast"] * 4


def test_after_a_rest_a_turn_begins_with_runs_that_are_not_timed(clock):
    order = []
    found = medians({"a": worker(clock, order, "a", 9, 0.06, 0.06, 0.01)}, turns=1, rest=0.2)
    assert found == {"a": pytest.approx(0.01)}
    assert len(order) == 4  # one at the start, two until WARM is over, one that counts


def test_no_turn_is_no_measurement():
    with pytest.raises(LlmclError, match="0 turns"):
        medians({}, turns=0)


def test_launches_are_noted_by_name_and_only_inside():
    engine = get_engine()
    x = engine.from_host(np.ones((3, 5), np.float32))
    engine.gelu(x)
    with launches(engine) as names:
        engine.residual(engine.gelu(x), x)
        assert len(names) == 2
    engine.gelu(x)
    assert [name.split("_")[0] for name in names] == ["gelu", "residual"]
    assert engine.to_host(engine.residual(x, x)).tolist() == [[2.0] * 5] * 3


def test_after_an_error_nothing_is_noted_any_more():
    engine = get_engine()
    with pytest.raises(ZeroDivisionError), launches(engine) as names:
        raise ZeroDivisionError
    engine.zeros((2,))
    engine.fill(engine.empty((2,)), 1.0)
    assert names == []


def test_numpy_has_no_launches():
    with (
        pytest.raises(LlmclError, match="NumPy launches no kernels"),
        launches(reference.Engine(np.float32)),
    ):
        pass
