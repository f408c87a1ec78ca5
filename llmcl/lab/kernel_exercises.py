"""Kernels that the reader writes: compiled from a cell, tried on the strict device."""

import re
from types import SimpleNamespace

from ..errors import LlmclError
from . import lessons, strict
from .exercises import Outcome, missing, settle

# What to ask when the strict device finds something.
_QUESTIONS = {
    "invalid write": "Which work-items have no element of their own, and do they leave?",
    "invalid read": "Which place is read there, and has every work-item one of its own?",
    "data race": "Who reads what another one writes, and is there a barrier between the two?",
    "a number that nobody wrote": "Was everything that is read here written before?",
    "a barrier that not all reach": "Does every work-item of the group come to each barrier?",
}


def kernel_exercise(number: str, text: str) -> str:
    """Tries a kernel's text on the exercise's cases, prints what came of it, and returns a text.

    That is the reader's own if it is right, and the reference if it is missing or wrong, so the
    cells below can rely on it. It runs on Oclgrind where there is one. With LLMCL_GRADE=1, missing
    and wrong raise LlmclError.
    """
    task = lessons.find(number, lessons.KernelTask)
    right = settle(number, judge_kernel(number, text, task))
    return text if right else task.text


def judge_kernel(number: str, text: str, task: lessons.KernelTask) -> Outcome:
    """The outcome of running a text on every case of a kernel exercise."""
    if not text.strip() or "#error not written yet" in text:
        return missing(task.name)
    if _is_given(text, task):
        return missing(task.name, "mended")
    verdict = strict.run_texts(number, [text])[0]
    if verdict.error:
        return Outcome("wrong", f"✗ {task.name}: {verdict.error}")
    faults: list = [*verdict.findings, *filter(None, verdict.cases)]
    if faults:
        usual = _QUESTIONS[faults[0].kind] if verdict.findings else ""
        question = _likely_mistake(number, verdict, task) or usual
        return Outcome(
            "wrong", f"✗ {task.name}: {faults[0]}" + (f" … {question}" if question else "")
        )
    count = len(task.cases)
    agree = "1 case agrees" if count == 1 else f"{count} cases agree"
    where = ", and the strict device sees nothing wrong" if verdict.strict else ""
    return Outcome("right", f"✓ {task.name}: {agree}{where}")


def _likely_mistake(number: str, verdict: strict.Verdict, task: lessons.KernelTask) -> str:
    """The question of the first known mistake that does the same as the reader's kernel, or ""."""
    wrong = [lessons.changed(task, old, new) for old, new, _ in task.mistakes]
    known = strict.run_texts(number, wrong) if wrong else []
    pairs = list(zip(known, task.mistakes, strict=True))
    same = [question for other, (_, _, question) in pairs if verdict.same_as(other)]
    return next(iter(same + [q for other, (_, _, q) in pairs if verdict.like(other)]), "")


def _is_given(text: str, task: lessons.KernelTask) -> bool:
    """Whether the text is still the one that is to be mended, but for spaces and comments."""
    if task.given is None:
        return False
    return _words(text) == _words(lessons.changed(task, *task.given))


def _words(text: str) -> str:
    return re.sub(r"\s+", "", re.sub(r"//[^\n]*", "", text))


def build(engine, text: str) -> SimpleNamespace:
    """The kernels of an OpenCL C text, ready to launch: build(engine, text).name(global, local, …).

    They check their arguments as ours do. Raises KernelError with the line that does not compile,
    and LlmclError where NumPy is the engine.
    """
    if getattr(engine, "device", None) is None:
        raise LlmclError(
            "NumPy cannot run a kernel; unset LLMCL_DEVICE, and see `llmcl doctor` for a device."
        )
    return SimpleNamespace(**engine.program.compile(text, "your kernel"))
