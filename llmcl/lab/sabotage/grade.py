"""Points for a student's folder: named, mended, caught by a test; the reason is for the teacher.

Every package runs in a process of its own. A test of the student's counts when it passes on the
sound package; it catches a fault when it then fails on the package that has this fault alone.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .copies import PACKAGE, write_copy
from .faults import Fault, faults_of
from .notes import read_findings

SECONDS = 120


@dataclass(frozen=True)
class Mark:
    """The points for one fault: 1 each for named, mended and caught; the reason adds up to 1."""

    fault: Fault
    named: bool
    mended: bool
    caught: bool
    why: str

    @property
    def points(self) -> int:
        """What the checker can give, 0 to 3."""
        return self.named + self.mended + self.caught


def marks(number: str, folder: Path) -> list[Mark]:
    """A Mark for each of the number's faults, from the student's copy, findings and tests."""
    faults, found, tests = faults_of(number), read_findings(folder), folder / "tests.py"
    probed = run(folder, probes=[fault.name for fault in faults])
    mended = {fault.name: probed.get(fault.name) == "" for fault in faults}
    caught = _caught(faults, tests) if tests.is_file() else {}
    return [
        Mark(
            fault,
            _named(fault, found.get(fault.group, {})),
            mended[fault.name],
            caught.get(fault.name, False),
            found.get(fault.group, {}).get("why", ""),
        )
        for fault in faults
    ]


def _named(fault: Fault, finding: dict[str, str]) -> bool:
    """Whether the finding names the file and the function; `Block.backward` or `backward` do."""
    files = {Path(file).name for file, _, _ in fault.changes}
    said = finding.get("function", "").removesuffix("()").split(".")[-1]
    return Path(finding.get("file", "")).name in files and said == fault.function.split(".")[-1]


def _caught(faults: Sequence[Fault], tests: Path) -> dict[str, bool]:
    """By fault: whether a test that the sound package passes fails on the one with this fault."""
    with tempfile.TemporaryDirectory() as place:
        sound = Path(place) / "sound"
        write_copy(sound, [])
        passed = {name for name, error in run(sound, tests=tests).items() if not error}
        caught = {}
        for fault in faults:
            alone = Path(place) / fault.name
            write_copy(alone, [fault])
            result = run(alone, tests=tests)
            caught[fault.name] = any(result.get(name, "") for name in passed)
    return caught


def try_tests(folder: Path) -> None:
    """Runs the student's tests.py on the copy in the folder, and prints what each one says."""
    said = run(folder, tests=folder / "tests.py")
    if not said:
        print("tests.py has no test, or did not end: a test is a function test_…(m).")
    for name, error in said.items():
        print(f"✗ {name}: {error}" if error else f"✓ {name} passes")


def run(folder: Path, *, probes: Sequence[str] = (), tests: Path | None = None) -> dict[str, str]:
    """What each probe or test says of the package in a folder: "" if it passes, else why not.

    Where nothing can be run (no such file, an endless loop) the dictionary is empty.
    """
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
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        return {}


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
    return "\n".join(lines)
