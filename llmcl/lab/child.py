"""The child process of strict.py: reads a request, runs one kernel on its cases, writes a verdict.

The request: number of the task or of the broken kernel, the text to try, which cases, and whether
they are the broken kernel's tries. Only the words of the verdict go back, as one line of JSON.
"""

import json
import sys

import numpy as np

from ..check import compare
from ..engine import get_engine
from ..errors import LlmclError
from . import lessons


def answer(request: dict) -> dict:
    """The fields of strict.Verdict that this process can know."""
    asked = lessons.find(request["number"])
    task = asked.task if isinstance(asked, lessons.Broken) else asked
    cases = [case for _, case in asked.tries] if request["tries"] else task.cases
    cases = [cases[i] for i in request["cases"]] if request["cases"] is not None else cases
    engine = get_engine(exact=True)
    try:
        results = [launch(engine, task, request["text"], case) for case in cases]
    except LlmclError as error:
        return {"error": str(error)}
    said = [difference(got, *task.want(*case)) for got, case in zip(results, cases, strict=True)]
    mistake = likely_mistake(engine, task, cases, results) if any(said) else ""
    return {"cases": said, "mistake": mistake}


def launch(engine, task, text: str, case: tuple) -> np.ndarray:
    """What the task's kernel makes of a case, with this text. Raises LlmclError."""
    kernels = engine.program.compile(text, "your kernel")
    if task.name not in kernels:
        raise LlmclError(f"there is no kernel {task.name!r} in it; it has {', '.join(kernels)}.")
    return task.launch(engine, kernels[task.name], *case)


def difference(got, want, bound) -> str:
    """Where a result differs from what is wanted by more than its bound, in words, or ""."""
    outcome = compare(got, want, bound)
    if outcome.ok:
        return ""
    if got.shape != np.shape(want):
        return f"the result has the shape {got.shape}, expected {np.shape(want)}"
    where = outcome.where[0] if len(outcome.where) == 1 else outcome.where
    return f"at {where} you have {outcome.got:.4g}, expected {outcome.want:.4g}"


def likely_mistake(engine, task, cases, results) -> str:
    """The question of the first known mistake that gives the very same results, or ""."""
    for old, new, question in task.mistakes:
        wrong = lessons.changed(task, old, new)
        try:
            same = [
                np.array_equal(launch(engine, task, wrong, case), got, equal_nan=True)
                for case, got in zip(cases, results, strict=True)
            ]
        except LlmclError:
            continue
        if all(same):
            return question
    return ""


if __name__ == "__main__":
    print("\n" + json.dumps(answer(json.load(sys.stdin))))
