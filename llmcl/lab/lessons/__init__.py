"""The answers: each lesson's exercises and questions, away from the cells that readers edit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

from ...errors import LlmclError


@dataclass(frozen=True)
class Exercise:
    """A function for the reader to write, with its reference and what it is tried on.

    cases are tuples of arguments. mistakes are pairs of a function that is wrong in a known way
    and the question to ask whoever wrote it.
    """

    reference: Callable
    cases: list[tuple]
    mistakes: list[tuple[Callable, str]] = field(default_factory=list)
    tolerance: float = 1e-6  # of the largest magnitude expected
    secret: bool = False  # whether a wrong answer must not be told the right one


@dataclass(frozen=True)
class Question:
    """A question with lettered answers: what is said to each letter, and which one is right."""

    answer: str
    replies: dict[str, str]


@dataclass(frozen=True)
class Lesson:
    """What one lesson asks."""

    exercises: dict[str, Exercise]
    questions: dict[str, Question]


def of(number: str) -> Lesson:
    """The lesson's exercises and questions, by its number ("00", "04a"); raises LlmclError."""
    name = f"{__name__}.lesson_{number}"
    if find_spec(name) is None:
        raise LlmclError(f"there is no lesson {number!r}; a lesson's number looks like '04a'.")
    module = import_module(name)
    return Lesson(module.EXERCISES, module.QUESTIONS)


def find(number: str) -> Exercise | Question:
    """The exercise or question with this number ("00.1", "00.q2"); raises LlmclError."""
    lesson = of(number.split(".")[0])
    known = lesson.exercises | lesson.questions
    if number not in known:
        raise LlmclError(f"there is no {number!r} here; this lesson has {', '.join(known)}.")
    return known[number]
