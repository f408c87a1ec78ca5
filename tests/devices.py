"""Runs one suite on several OpenCL implementations, one after the other, and prints one table.

    python tests/devices.py [pocl] [oclgrind] [intel] [nvidia] [--report FILE] [--seconds N]
    python tests/devices.py "pocl 5.0"      any device, by words of its name or version

The suite is tests/ops, tests/model and `llmcl check`: every version of every kernel, forward and
backward, and whole training steps. On Oclgrind, which is slow, it is tests/ops with one example
for each random test and without large sizes, and the strict runs: races, uninitialised reads and
bounds watched, a buffer of its own size for each tensor, a whole training step.

`make test-devices` and tests/gpu.sh call this. The last line has the counts of each implementation.
Exit status 1 when a test failed, a suite was cut off, an implementation is missing, or a kernel was
never launched on it.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
sys.path[:0] = [str(ROOT), str(TESTS)]

from launches import FOLDER, LAUNCHED, OUTCOMES, device_key  # noqa: E402

from llmcl.device import list_devices  # noqa: E402
from llmcl.errors import DeviceError  # noqa: E402
from llmcl.program import read_signatures  # noqa: E402
from llmcl.ranking import find  # noqa: E402
from llmcl.resources import kernels_dir  # noqa: E402

STRICT = ["tests/ops/test_strict_device.py", "tests/model/test_strict_step.py"]
# What takes the simulator many minutes; the strict runs launch these kernels at small sizes.
LARGE = ["tests/ops/test_matmul.py"]
LONG = ["real_lengths", "every_tile_of_a_gpu"]
# What is asked for -> its name in the table, and the words that find its device.
IMPLEMENTATIONS = {
    "pocl": ("PoCL", "pocl"),
    "oclgrind": ("Oclgrind", "oclgrind"),
    "intel": ("Intel's CPU runtime", "intel(r) opencl cpu"),
    "nvidia": ("NVIDIA", "nvidia"),
}
FAILED, SKIPPED = ("failed", "error"), ("skipped",)
NOT_FOUND = "not found on this machine"


@dataclass
class Result:
    """What one implementation did with the suite."""

    name: str
    device: str = NOT_FOUND
    outcomes: dict[str, str] = field(default_factory=dict)  # the worst outcome of each test
    check: str = "-"
    missing: list[str] = field(default_factory=list)  # kernels that were never launched
    kernels: int = 0
    seconds: float = 0.0
    ended: bool = False

    def count(self, *outcomes: str) -> int:
        """How many tests ended in one of these ways."""
        return sum(outcome in outcomes for outcome in self.outcomes.values())

    @property
    def ok(self) -> bool:
        """Whether everything ran, passed, and launched every kernel."""
        passed = self.count("passed") and not self.count(*FAILED)
        return bool(self.ended and passed and not self.missing)

    def row(self) -> str:
        """The row of the table."""
        counts = self.count("passed"), self.count(*FAILED), self.count(*SKIPPED)
        launched = f"{self.kernels - len(self.missing)} of {self.kernels}"
        cells = self.name, self.device, *counts, self.check, launched, f"{self.seconds:.0f} s"
        return f"| {' | '.join(str(cell) for cell in cells)} |"

    def counts(self) -> str:
        """The row in a few words."""
        return (
            f"{self.name} {self.count('passed')} passed, {self.count(*FAILED)} failed, "
            f"{self.kernels - len(self.missing)} of {self.kernels} kernels"
            f"{'' if self.ok else ': NOT RIGHT'}"
        )

    def remarks(self) -> list[str]:
        """A line for everything that is not as it should be."""
        failed = [test for test, outcome in self.outcomes.items() if outcome in FAILED]
        lines = [f"failed: {test}" for test in failed]
        if self.device == NOT_FOUND:
            return [f"{self.name}: {NOT_FOUND}; `llmcl doctor` tells what OpenCL sees here"]
        if self.missing:
            lines.append(f"never launched: {', '.join(self.missing)}")
        if not self.ended:
            lines.append("the suite did not come to its end")
        return [f"{self.name}: {line}" for line in lines]


HEAD = """\
| implementation | device | passed | failed | skipped | `llmcl check` | kernels launched | time |
|---|---|---|---|---|---|---|---|"""


def every_kernel() -> set[str]:
    """The names of all kernels in kernels/, every version one of its own."""
    names = [
        name
        for path in sorted(kernels_dir().glob("*.cl"))
        for name in read_signatures(path.read_text(encoding="utf-8"))
    ]
    assert len(names) == len(set(names)), "two kernels of one name"
    return set(names)


def run_suite(asked: str, seconds: float) -> Result:
    """The Result of the suite on the implementation that is asked for."""
    name, words = IMPLEMENTATIONS.get(asked, (asked, asked))
    kernels = every_kernel()
    result = Result(name, missing=sorted(kernels), kernels=len(kernels))
    try:
        info = find(list_devices(), words)[0]
    except DeviceError:
        return result
    result.device = f"{info.name}, driver {info.driver_version}"
    print(f"\n{name}: {info.label()}", flush=True)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            FOLDER: folder,
            "LLMCL_DEVICE": str(info.index),
            "PYTHONPATH": os.pathsep.join(
                [str(ROOT), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
            ),
        }
        result.check, right = run_check(environment, seconds)
        left = max(1.0, seconds - (time.perf_counter() - start))
        result.ended = run_pytest(asked, environment, left) and right
        read_notes(result, Path(folder), device_key(info), kernels)
    result.seconds = time.perf_counter() - start
    return result


def run_check(environment: dict, seconds: float) -> tuple[str, bool]:
    """(how many results of `llmcl check` are right, of how many; whether all are)."""
    command = [sys.executable, "-c", "import sys; from llmcl.cli import main; sys.exit(main())"]
    try:
        done = subprocess.run(
            [*command, "check"], env=environment, cwd=ROOT, capture_output=True, timeout=seconds,
            encoding="utf-8", errors="replace", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "no end", False
    lines = done.stdout.splitlines()
    results = lines[2:-1]  # behind the device and the table's head, before the verdict
    wrong = sum("WRONG" in line for line in results)
    right = done.returncode == 0 and bool(results) and not wrong
    if not right:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", flush=True)
    return f"{len(results) - wrong} of {len(results)}", right


def run_pytest(asked: str, environment: dict, seconds: float) -> bool:
    """Whether pytest ran to its end in the time; its results are in the notes."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "launches", "tests/ops"]
    if asked == "oclgrind":
        command += [STRICT[1], "--hypothesis-profile=few", *(f"--ignore={f}" for f in LARGE)]
        command += ["-k", " and ".join(f"not {name}" for name in LONG)]
    else:
        command += ["tests/model", *(f"--ignore={file}" for file in STRICT)]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(min(8, os.cpu_count() or 1)), "--dist", "loadfile"]
    try:
        done = subprocess.run(command, env=environment, cwd=ROOT, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in (0, 1)  # 1: some tests failed


def read_notes(result: Result, folder: Path, device: str, kernels: set[str]) -> None:
    """Puts what launches.py noted in the folder into the result."""
    launched = set()
    for file in folder.glob(f"{LAUNCHED}*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            where, _, kernel = line.rpartition("\t")
            if where == device:
                launched.add(kernel)
    result.missing = sorted(kernels - launched)
    notes = folder / OUTCOMES
    for line in notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []:
        outcome, _, test = line.partition(" ")
        if result.outcomes.get(test) not in FAILED:  # a teardown may fail behind a test
            result.outcomes[test] = outcome


def report(results: list[Result]) -> str:
    """The table of all results, and below it what went wrong."""
    rows = "\n".join([HEAD, *(result.row() for result in results)])
    remarks = [remark for result in results for remark in result.remarks()]
    return "\n\n".join([rows, *remarks]) + "\n"


def main() -> int:
    """Runs the suites and writes the report; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(IMPLEMENTATIONS)}, or words"
    )
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "devices.md")
    parser.add_argument("--seconds", type=float, default=3600, help="at most, for each suite")
    options = parser.parse_args()
    names = options.names or ["pocl", "oclgrind", "intel"]
    options.report.parent.mkdir(parents=True, exist_ok=True)
    results = []
    for name in names:
        results.append(run_suite(name, options.seconds))
        options.report.write_text(report(results), encoding="utf-8", newline="\n")
    print(f"\n{report(results)}\n{'; '.join(result.counts() for result in results)}", flush=True)
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
