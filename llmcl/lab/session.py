"""The frame of a lesson: where its files go, how errors look, what has been done so far."""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from ..errors import LlmclError
from ..files import replacing
from . import lessons

# What happened in this kernel: number of an exercise or question -> whether it was right.
done: dict[str, bool] = {}


def start(lesson: str) -> None:
    """Prepares a lesson: says where its files go, and shows llmcl's errors as one sentence."""
    place = folder(lesson)
    _shorten_errors()
    done.clear()
    print(f"Lesson {lesson} is ready. What it writes goes to the folder {_shown(place)}.")


def folder(lesson: str) -> Path:
    """The folder for what a lesson writes: build/lesson-00 of the checkout, made if need be.

    LLMCL_LAB names another place for these folders. Where the checkout cannot be written to,
    the system's folder for temporary files takes its place.
    """
    chosen = os.environ.get("LLMCL_LAB")
    here = Path(__file__).resolve().parents[2]
    checkout = here if (here / "notebooks").is_dir() else Path.cwd()
    places = [Path(chosen)] if chosen else [checkout / "build", Path(tempfile.gettempdir())]
    for place in places:
        path = place / f"lesson-{lesson}"
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK):
            return path
    raise LlmclError(
        f"the lesson cannot write to {path}; set LLMCL_LAB to a folder that you may write to."
    )


def keep(lesson: str, name: str, value: float) -> None:
    """Stores a number for a later lesson, in the lesson's folder."""
    path = folder(lesson) / "kept.json"
    numbers = _numbers(path)
    numbers[name] = float(value)
    with replacing(path, LlmclError) as temporary:
        temporary.write_text(json.dumps(numbers), encoding="utf-8")


def kept(lesson: str, name: str) -> float | None:
    """The number that an earlier lesson stored, or None if it was not run here."""
    return _numbers(folder(lesson) / "kept.json").get(name)


def _numbers(path: Path) -> dict[str, float]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):  # not there, or not what we wrote
        return {}


def _shown(path: Path) -> str:
    """The folder as text that is the same on every machine, where it is in its usual place."""
    usual = path.parent.name == "build" and not os.environ.get("LLMCL_LAB")
    return f"build/{path.name}" if usual else str(path)


def _shorten_errors() -> None:
    """In IPython, an LlmclError is shown as its sentence, without the calls that led there."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        shell.set_custom_exc((LlmclError,), _show_sentence)


def _show_sentence(shell, kind, error, trace, tb_offset=None) -> list[str]:
    calls = traceback.extract_tb(trace)
    in_cells = [call.lineno for call in calls if shell.compile.format_code_name(call.filename)]
    text = [f"{kind.__name__}: {error}"]
    text += [f"(in line {in_cells[0]} of the cell)"] if in_cells else []
    shell._showtraceback(kind, error, text)
    return text


def note(number: str, right: bool) -> None:
    """Remembers the outcome of an exercise or question."""
    done[number] = right


def grading() -> bool:
    """Whether a grader is at work: LLMCL_GRADE=1 makes missing and wrong answers raise."""
    return os.environ.get("LLMCL_GRADE", "") not in ("", "0")


def mark(number: str) -> None:
    """Prints that an exercise is right; raises LlmclError otherwise, graded or not.

    A grader's own cell behind the exercise calls it.
    """
    lessons.find(number)
    if not done.get(number):
        raise LlmclError(f"exercise {number} earns no marks; its own cell says what is wrong.")
    print(f"✓ exercise {number} earns its marks")


def summary(lesson: str) -> None:
    """Prints how many exercises and questions of a lesson are right so far.

    When graded, raises LlmclError for an exercise whose cell is gone or was not run.
    """
    book = lessons.of(lesson)
    for kind, numbers in (("exercises", book.exercises), ("questions", book.questions)):
        right = sum(done.get(number, False) for number in numbers)
        if numbers:
            print(f"{kind}: {right} of {len(numbers)} right")
    gone = [number for number in book.exercises if number not in done]
    if gone and grading():
        raise LlmclError(
            f"exercise {gone[0]} was not run; put its cell back from the lesson, and run all."
        )
