"""The child process of strict.py: reads a request, runs texts of one kernel, writes verdicts.

The request: number of the task or of the broken kernel, the texts to try, and whether the cases are
the broken kernel's tries. The verdicts go back as one line of JSON.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np

from ..check import compare
from ..engine import get_engine
from ..errors import LlmclError
from . import lessons


def answers(request: dict) -> list[dict]:
    """The fields of strict.Verdict for each text, with the simulator's log."""
    asked = lessons.find(request["number"])
    if isinstance(asked, lessons.Broken):
        task, tries = asked.task, [case for _, case in asked.tries]
    else:
        task, tries = lessons.find(request["number"], lessons.KernelTask), []
    cases = tries if request["tries"] else task.cases
    return [answer(task, text, cases) | {"log": log()} for text in request["texts"]]


def answer(task: lessons.KernelTask, text: str, cases: list[tuple]) -> dict:
    """What came of one text on all cases."""
    engine = get_engine(exact=True)  # a new context, so a new log
    from .guarded import Guarded  # only here: get_engine explains a pyopencl that is missing

    if engine.device.info.kind != "simulator":
        engine = Guarded(engine.device, exact=True)
    results, said = [], []
    try:
        for case in cases:
            got = launch(engine, task, text, case)
            past = engine.past_the_end() if isinstance(engine, Guarded) else ""
            results.append(got)
            said.append(past or difference(got, *task.want(*case)))
    except LlmclError as error:
        return {"error": str(error)}
    digest = hashlib.sha256(b"".join(np.asarray(got).tobytes() for got in results)).hexdigest()
    return {"cases": said, "digest": digest}


def log() -> str:
    """What the simulator has written about the last context."""
    path = Path(os.environ["OCLGRIND_LOG"])
    return path.read_text(encoding="utf-8") if path.is_file() else ""


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


if __name__ == "__main__":
    print("\n" + json.dumps(answers(json.load(sys.stdin))))
