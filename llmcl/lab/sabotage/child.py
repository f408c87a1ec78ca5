"""Runs probes, or a student's tests, on one package, and prints what each says as JSON."""

import contextlib
import json
import os
import runpy
import sys
from pathlib import Path

from .copies import load
from .faults import EXAMPLE, FAULTS


def main() -> None:
    """Reads the request from standard input; the last line of the output is the answer."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        said = answer(Path(request["folder"]), request["probes"], request["tests"])
    print("\n" + json.dumps(said), flush=True)
    os._exit(0)  # a student's thread must not keep us here


def answer(folder: Path, probes: list[str], tests: str) -> dict[str, str]:
    """What each probe, or each test of the file `tests`, says of the package in the folder."""
    wanted = {f.name: f.probe for f in (*FAULTS, EXAMPLE) if f.name in probes}
    try:
        package = load(folder)
        if tests:
            names = runpy.run_path(tests)
            wanted |= {n: f for n, f in names.items() if n.startswith("test") and callable(f)}
    except Exception as error:
        return {name: _words(error) for name in wanted or ["tests.py"]}
    return {name: _outcome(test, package) for name, test in wanted.items()}


def _outcome(test, package) -> str:
    try:
        test(package)
    except BaseException as error:  # a test may do anything, sys.exit() too
        return _words(error)
    return ""


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip()[:300]
