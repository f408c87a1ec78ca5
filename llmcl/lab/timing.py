"""Who is faster, as a median of turns, and which kernels a piece of work launches.

A clock's answer differs from run to run, so compare only what took turns in one run.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..errors import LlmclError

WARM = 0.1  # seconds of unmeasured runs after a rest, in which threads wake up and find a core


def medians(
    contestants: Mapping[str, Callable], turns: int = 5, rest: float = 0.0
) -> dict[str, float]:
    """The median seconds of each function, by name; they take turns after a run that is not timed.

    A function that launches kernels must wait for them (engine.finish()). rest: seconds to wait
    before each turn, so that threads which another one leaves awake do not take a core; the turn
    then begins with WARM seconds that are not timed. Raises LlmclError for less than one turn.
    """
    if turns < 1:
        raise LlmclError(f"{turns} turns measure nothing; take 1 or more.")
    for run in contestants.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, run in contestants.items():
            if rest:
                time.sleep(rest)
                _warm(run)
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def _warm(run: Callable) -> None:
    end = time.perf_counter() + WARM
    while time.perf_counter() < end:
        run()


@contextmanager
def launches(engine) -> Iterator[list[str]]:
    """A list that gets the name of every kernel that the engine launches inside the `with`.

    Raises LlmclError where NumPy is the engine.
    """
    program = getattr(engine, "program", None)
    if program is None:
        raise LlmclError(
            "NumPy launches no kernels; unset LLMCL_DEVICE, and see `llmcl doctor` for a device."
        )
    names: list[str] = []
    find = program.kernel
    program.kernel = lambda *args: _Noted(find(*args), names)
    try:
        yield names
    finally:
        program.kernel = find


class _Noted:
    """A kernel that writes its name into a list at every launch."""

    def __init__(self, kernel, names: list[str]):
        self._kernel, self._names = kernel, names

    def __call__(self, *args) -> None:
        self._kernel(*args)
        self._names.append(self._kernel.name)

    def __getattr__(self, name: str):
        return getattr(self._kernel, name)
