"""The answers: each lesson's exercises and questions, away from the cells that readers edit.

A lesson's module holds EXERCISES, QUESTIONS and, if it breaks kernels, BROKEN, each by number.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

import numpy as np

from ...errors import LlmclError
from ...resources import kernels_dir

T = TypeVar("T")


@dataclass(frozen=True)
class Exercise:
    """A function for the reader to write, with its reference and what it is tried on.

    cases are tuples of arguments. mistakes are pairs of a function that is wrong in a known way
    and the question to ask whoever wrote it. given is the wrong function that the reader is to
    mend, if there is one: giving the same counts as not written yet.
    """

    reference: Callable
    cases: list[tuple]
    mistakes: list[tuple[Callable, str]] = field(default_factory=list)
    tolerance: float = 1e-6  # of the largest magnitude expected
    secret: bool = False  # whether a wrong answer must not be told the right one
    given: Callable | None = None


@dataclass(frozen=True)
class KernelTask:
    """A kernel to write or to mend: the right text, how it is launched, and what must come out.

    text: OpenCL C that holds the kernel `name`. launch(engine, kernel, *case) runs it once and
    returns a NumPy array; want(*case) gives (the right array in float64, its bound). cases are
    tuples of NumPy arrays and numbers. mistakes are triples (old, new, question): what to change in
    the text to get a known mistake, and what to ask whoever made it. given is the (old, new) of the
    fault that the reader is to mend, if there is one: that text counts as not written yet.
    """

    text: str
    name: str
    launch: Callable
    want: Callable
    cases: list[tuple]
    mistakes: list[tuple[str, str, str]] = field(default_factory=list)
    given: tuple[str, str] | None = None


@dataclass(frozen=True)
class Broken:
    """A kernel that looks right: one change to a task's text, and who finds it.

    tries are pairs of a label and a case. finder is "check" if wrong numbers give it away, or the
    words of the strict device's finding, such as "invalid write". luck: the check's answer depends
    on what lies past the end, so it is not printed.
    """

    task: KernelTask
    old: str
    new: str
    tries: list[tuple[str, tuple]]
    finder: str
    reason: str
    luck: bool = False

    @property
    def text(self) -> str:
        """The wrong text. Raises LlmclError if the change does not fit exactly one place."""
        return changed(self.task, self.old, self.new)


def changed(task: KernelTask, old: str, new: str) -> str:
    """A task's text with the one `old` in its kernel replaced by `new`.

    Raises LlmclError if the kernel does not hold it exactly once.
    """
    start = task.text.index(f"void {task.name}(")
    end = task.text.index("\n}", start)
    kernel = task.text[start:end]
    if kernel.count(old) != 1:
        raise LlmclError(f"{old!r} stands {kernel.count(old)} times in {task.name}, not once.")
    return task.text[:start] + kernel.replace(old, new) + task.text[end:]


def kernel_file(name: str) -> str:
    """The text of kernels/NAME.cl."""
    return (kernels_dir() / f"{name}.cl").read_text(encoding="utf-8")


def blank(engine, *shape: int):
    """A tensor in which every number is NaN, so that an element that nobody writes shows."""
    return engine.from_host(np.full(shape, np.nan, np.float32))


@dataclass(frozen=True)
class Question:
    """A question with lettered answers: what is said to each letter, and which one is right."""

    answer: str
    replies: dict[str, str]


@dataclass(frozen=True)
class Lesson:
    """What one lesson asks."""

    exercises: dict[str, Exercise | KernelTask]
    questions: dict[str, Question]
    broken: dict[str, Broken] = field(default_factory=dict)


def of(number: str) -> Lesson:
    """The lesson's exercises and questions, by its number ("00", "04a"); raises LlmclError."""
    name = f"{__name__}.lesson_{number}"
    if find_spec(name) is None:
        raise LlmclError(f"there is no lesson {number!r}; a lesson's number looks like '04a'.")
    module = import_module(name)
    return Lesson(module.EXERCISES, module.QUESTIONS, getattr(module, "BROKEN", {}))


def find(number: str, kind: type[T] = object) -> T:  # type: ignore[assignment]
    """What has this number: "00.1", "00.q2", "01a.no_guard".

    kind: what it must be. Raises LlmclError for an unknown number, and for another kind.
    """
    lesson = of(number.split(".")[0])
    known = lesson.exercises | lesson.questions | lesson.broken
    if number not in known:
        raise LlmclError(f"there is no {number!r} here; this lesson has {', '.join(known)}.")
    found = known[number]
    if not isinstance(found, kind):
        raise LlmclError(
            f"{number!r} is {_KINDS[type(found)]}, and {_KINDS[kind]} is wanted here; look at the "
            "number in the lesson's text."
        )
    return found


_KINDS = {
    Exercise: "a function to write",
    KernelTask: "a kernel to write",
    Question: "a question",
    Broken: "a broken kernel",
}
