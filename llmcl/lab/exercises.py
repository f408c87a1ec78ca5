"""Exercises: the reader's function is tried, and the lesson goes on whatever comes of it."""

import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from ..errors import LlmclError
from . import lessons, session


@dataclass(frozen=True)
class Outcome:
    """What trying a function came to: right, wrong or missing, and a line to print."""

    state: str
    line: str


def exercise(number: str) -> Callable:
    """A decorator that tries a function on the exercise's cases and prints what came of it.

    It returns the function if it is right, and the reference if it is missing or wrong, so the
    cells below can rely on it. With LLMCL_GRADE=1, missing and wrong raise LlmclError.
    """
    task = lessons.find(number, lessons.Exercise)

    def decorate(function: Callable) -> Callable:
        right = settle(number, judge(function, task))
        return function if right else task.reference

    return decorate


def settle(number: str, outcome: Outcome) -> bool:
    """Whether an outcome is right; prints and notes it, and raises when graded and it is not."""
    session.note(number, outcome.state == "right")
    print(outcome.line)
    if outcome.state != "right" and session.grading():
        raise LlmclError(f"exercise {number} is {outcome.state}: {outcome.line}")
    return outcome.state == "right"


def judge(function: Callable, task: lessons.Exercise) -> Outcome:
    """The outcome of running a function on every case of an exercise."""
    name = function.__name__
    if _is_empty(function):
        return missing(name)
    if task.given and _same(function, task.given, task):
        return missing(name, "mended")
    for case in task.cases:
        given, wanted = deepcopy(case), task.reference(*deepcopy(case))
        try:
            got = function(*given)
        except NotImplementedError:
            return missing(name)
        except Exception as error:
            fault = f"raises {type(error).__name__}: {error}"
            return Outcome("wrong", f"✗ {name}: {fault}" + _question(function, task))
        if isinstance(got, str) and isinstance(wanted, str) and wanted.isupper():
            got = re.sub(r"[\s,]+", "", got).upper()  # letters in order: "f, a, b" is "FAB"
        fault = difference(got, wanted, task.tolerance)
        if fault:
            fault = f"{_short(got)} is not it" if task.secret else fault
            return Outcome("wrong", f"✗ {name}: {fault}" + _question(function, task))
        if any(difference(g, c, 0.0) for g, c in zip(given, case, strict=True)):
            return Outcome("wrong", f"✗ {name}: changes what it was given; work on a copy")
    count = len(task.cases)
    agree = "1 case agrees" if count == 1 else f"{count} cases agree"
    return Outcome("right", f"✓ {name}: {agree}")


def missing(name: str, what: str = "written") -> Outcome:
    """The outcome of an exercise that nobody has written, or mended, yet."""
    return Outcome("missing", f"○ {name}: not {what} yet; the lesson goes on with the reference")


def _is_empty(function: Callable) -> bool:
    """Whether the body is only `...`, `pass` or a docstring."""
    return function.__code__.co_code == (lambda: None).__code__.co_code


def _question(function: Callable, task: lessons.Exercise) -> str:
    """The question of the first known mistake that does the same as function, to put behind it."""
    return next((f". {q}" for wrong, q in task.mistakes if _same(function, wrong, task)), "")


def _same(function: Callable, wrong: Callable, task: lessons.Exercise) -> bool:
    """Whether two functions give the same, or fail with the same error, on all cases."""
    for case in task.cases:
        (got, error), (other, its_error) = _try(function, case), _try(wrong, case)
        if error or its_error:
            if error != its_error:
                return False
        elif difference(got, other, task.tolerance):
            return False
    return True


def _try(function: Callable, case: tuple) -> tuple:
    """(what a function gives for a case, "") or (None, its error in words)."""
    try:
        return function(*deepcopy(case)), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def difference(got, wanted, tolerance: float) -> str:
    """Where two values differ, in words; "" if they do not.

    Numbers may differ by tolerance times the largest magnitude wanted.
    """
    if got is None and wanted is not None:
        return "returns nothing; is a `return` missing?"
    if isinstance(wanted, (str, bytes, dict)) or not _numeric(wanted):
        return "" if type(got) is type(wanted) and got == wanted else _unequal(got, wanted)
    if not _numeric(got):
        return _unequal(got, wanted)
    a, b = np.asarray(got), np.asarray(wanted)
    a, b = (v.astype(int) if v.dtype.kind == "b" else v for v in (a, b))  # True - False is refused
    if a.shape != b.shape:
        return f"returns the shape {a.shape}, expected {b.shape}"
    if not b.size:
        return ""
    bound = tolerance * np.abs(b).max() if np.isfinite(b).all() else 0.0
    with np.errstate(invalid="ignore"):
        wrong = ~((np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    place = f"at {where[0] if len(where) == 1 else where} you have" if where else "you have"
    return f"{place} {a[where]:.4g}, expected {b[where]:.4g}"


def _numeric(value) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (ValueError, TypeError):  # a ragged list
        return False


def _unequal(got, wanted) -> str:
    return f"you have {_short(got)}, expected {_short(wanted)}"


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
