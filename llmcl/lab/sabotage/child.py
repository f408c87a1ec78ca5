"""Runs probes, or a student's tests, on one package, and prints what each says as JSON."""

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

from .copies import load
from .faults import EXAMPLE, FAULTS

MOST_PRINTED = 5000  # characters of what tests print


def main() -> None:
    """Reads the request from standard input; the last line of the output is the answer."""
    request = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        said = answer(Path(request["folder"]), request["probes"], request["tests"])
    print("\n" + json.dumps([said, printed.getvalue()[-MOST_PRINTED:]]), flush=True)
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
    return {name: _outcome(test, package, tests) for name, test in wanted.items()}


def _outcome(test, package, file: str) -> str:
    try:
        test(package)
    except BaseException as error:  # a test may do anything, sys.exit() too
        return _where(error, file) + _words(error)
    return ""


def _where(error: BaseException, file: str) -> str:
    """The last line of the file of tests that was reached, with its text if nothing else is said.

    Probes have no file of tests, and say nothing of where they looked.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if not frames:
        return ""
    said = "" if str(error) else f", {frames[-1].line}"
    return f"line {frames[-1].lineno}{said}: "


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip().removesuffix(":")[:300]
