"""Points for a student's folder: named, mended, caught by a test; the reason is for the teacher.

Every package runs in a process of its own. A test of the student's counts when it passes on the
sound package; it catches a fault when it then fails on the package that has this fault alone.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import LlmclError
from .copies import NAME, PACKAGE, number_of, write_copy
from .faults import Fault, faults_of
from .notes import read_findings
from .places import why_not_named

SECONDS = 120


@dataclass(frozen=True)
class Mark:
    """The points for one fault: 1 each for named, mended and caught; the reason adds up to 1.

    remarks: what there is to say about one of the three, such as why a point is missing.
    """

    fault: Fault
    named: bool
    mended: bool
    caught: bool
    why: str
    remarks: dict[str, str] = field(default_factory=dict)

    @property
    def points(self) -> int:
        """What the checker can give, 0 to 3."""
        return self.named + self.mended + self.caught


def marks(number: str, folder: Path) -> list[Mark]:
    """A Mark for each of the number's faults, from the student's copy, findings and tests.

    Raises LlmclError if the folder holds the copy of another number.
    """
    folder = Path(folder)
    if number_of(folder) not in (None, str(number).strip()):
        raise LlmclError(
            f"{folder.name} holds the copy of number {number_of(folder)}, and not of "
            f"{str(number).strip()}; give the number that it was made with."
        )
    faults, found = faults_of(number), read_findings(folder)
    probed = run(folder, probes=[fault.name for fault in faults])
    uncaught = _why_not_caught(faults, folder / "tests.py")
    result = []
    for fault in faults:
        finding = found.get(fault.group, {})
        missing = {
            "named": why_not_named(fault, finding),
            "mended": _why_not_mended(probed.get(fault.name)),
            "caught": uncaught[fault.name],
        }
        points = {name: not reason for name, reason in missing.items()}
        remarks = {name: reason for name, reason in missing.items() if reason}
        if points["mended"] and (left := _left_over(fault, folder)):
            remarks["mended"] = left
        result.append(Mark(fault, **points, why=finding.get("why", ""), remarks=remarks))
    return result


def _why_not_mended(said: str | None) -> str:
    if said is None:
        return "the copy could not be run, or did not end"
    if said.startswith("AssertionError"):
        return "it does not yet do what it should, on numbers that you do not see"
    return said.split("\n")[0].rstrip(".")


def _left_over(fault: Fault, folder: Path) -> str:
    """Whether a mended kernel has a version, for another device, that is as wrong as before."""
    for file, right, wrong in fault.changes:
        path = folder / NAME / file
        if file.endswith(".cl") and path.is_file() and wrong not in right:
            if wrong in path.read_text(encoding="utf-8", errors="replace"):
                return f"the old text still stands in {path.name}; another device may run that line"
    return ""


def _why_not_caught(faults: Sequence[Fault], tests: Path) -> dict[str, str]:
    """By fault: an empty text if a test passes on the sound package and fails with this fault."""
    with tempfile.TemporaryDirectory() as place:
        sound = Path(place) / "sound"
        write_copy(sound, [])
        said = run(sound, tests=tests) if tests.is_file() else {}
        passed = {name for name, error in said.items() if not error}
        useless = [f"{name} fails on the sound package too ({e})" for name, e in said.items() if e]
        reason = "no test of yours passes on the sound package and fails with this fault alone"
        if not said:
            reason = "tests.py has no test, or did not end"
        elif "tests.py" in said:
            reason = f"tests.py cannot be run: {said['tests.py']}"
        else:
            if "llmcl" in tests.read_text(encoding="utf-8", errors="replace"):
                reason += "; a test looks at m, and llmcl is another package"
            reason = "; ".join([reason, *useless])
        missing = {}
        for fault in faults:
            alone = Path(place) / fault.name
            write_copy(alone, [fault])
            result = run(alone, tests=tests) if passed else {}
            missing[fault.name] = "" if any(result.get(name, "") for name in passed) else reason
    return missing


def try_tests(folder: Path) -> None:
    """Runs the student's tests.py on the copy in the folder, and prints what each one says."""
    folder = Path(folder)
    said, printed = _answer(folder, tests=folder / "tests.py")
    if not said:
        print("tests.py has no test, or did not end: a test is a function test_…(m).")
    if printed.strip():
        print("printed by the tests:", printed.strip(), sep="\n")
    for name, error in said.items():
        print(f"✗ {name}: {error}" if error else f"✓ {name} passes")


def run(folder: Path, *, probes: Sequence[str] = (), tests: Path | None = None) -> dict[str, str]:
    """What each probe or test says of the package in a folder: "" if it passes, else why not.

    Where nothing can be run (no such file, an endless loop) the dictionary is empty.
    """
    return _answer(folder, probes=probes, tests=tests)[0]


def _answer(folder, *, probes=(), tests=None) -> tuple[dict[str, str], str]:
    """(what each probe or test says, what they printed), from a process of its own."""
    request = {"folder": str(folder), "probes": list(probes), "tests": str(tests or "")}
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
        "from llmcl.lab.sabotage.child import main; main()"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(request), capture_output=True,
            text=True, encoding="utf-8", timeout=SECONDS, cwd=folder,
        )  # fmt: skip
        said, printed = json.loads(done.stdout.strip().splitlines()[-1])
        return said, printed
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return {}, ""


def table(result: Sequence[Mark], *, open_book: bool = False) -> str:
    """The marks as lines of text. open_book: with the names of the faults, for the teacher."""
    lines = ["group      named  mended  caught"]
    for mark in result:
        ticks = ["yes" if yes else "-" for yes in (mark.named, mark.mended, mark.caught)]
        lines.append(f"{mark.fault.group:<9}  {ticks[0]:<5}  {ticks[1]:<6}  {ticks[2]}")
        if open_book:
            lines.append(f"    the fault: {mark.fault.file}, {mark.fault.function}")
            lines.append(f"    right:     {mark.fault.why}")
            lines.append(f"    student:   {mark.why or '(no reason given)'}")
    points, most = sum(mark.points for mark in result), 3 * len(result)
    lines.append(
        f"{points} of {most} points; the reasons, {len(result)} more, are for the teacher."
    )
    return "\n".join([*lines, *_remarks(result)])


def _remarks(result: Sequence[Mark]) -> list[str]:
    """Each remark once, with the groups that it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for column in ("named", "mended", "caught"):
        for mark in result:
            if column in mark.remarks:
                about.setdefault((column, mark.remarks[column]), []).append(mark.fault.group)
    return [f"{column}, {', '.join(groups)}: {said}." for (column, said), groups in about.items()]
