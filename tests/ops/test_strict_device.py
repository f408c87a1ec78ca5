"""Every kernel on Oclgrind: nothing out of bounds, no race, nothing read before it is written."""

import json

import pytest
from strict import needs_oclgrind, run_strict

pytestmark = needs_oclgrind

CASES = """
import importlib, json
from ops_helpers import RUNGS, VERSIONS
from llmcl.check import Sizes, make_cases
from llmcl.ops.linear import OPTIONS
from llmcl.versions import SMALL
from llmcl.reference import bounds
import dataclasses

found = []
for versions in VERSIONS:
    for field in dataclasses.fields(versions):
        setattr(engine, field.name, getattr(versions, field.name))
    # 9 and 17 fill a vector and leave one element over; 5 fills none.
    for sizes in (Sizes(B=2, T=5, H=2, d=3, V=11, F=7), Sizes(B=1, T=9, H=1, d=9, V=17, F=33)):
        for case in make_cases(np.random.default_rng(0), sizes):
            found += [(case.name, c.ok, str(c)) for c in case.check(engine)]

a, b = np.random.default_rng(1).normal(size=(2, 5, 5)).astype(np.float32)
for name in RUNGS["matmul"]:
    c = engine.empty((5, 5))
    moved = engine.from_host(a), engine.from_host(b)
    engine.program.kernel("matmul", name, OPTIONS)((5, 5), (4, 2), *moved, c, 5, 5, 5)
    found.append((name, bool(np.allclose(engine.to_host(c), a @ b, atol=1e-5)), ""))
# More than 32 rows walk over tiles of 64, twice. (Backward would take 16 seconds here.)
engine.groups = True
for case in make_cases(np.random.default_rng(2), Sizes(B=1, T=67, H=1, d=4, V=5, F=3)):
    if case.name == "fused_attention" and len(case.args) == 2:
        found += [(case.name, c.ok, str(c)) for c in case.check(engine)]
# A sum in three parts, which a product takes by itself only where it is large.
importlib.import_module("llmcl.ops.linear").choose_tile = lambda *_: (SMALL, 3)
engine.product = "grouped"
a, b = np.random.default_rng(3).normal(size=(2, 5, 67)).astype(np.float32)
c = engine.to_host(engine.matmul(engine.from_host(a), engine.from_host(b.T)))
found.append(("matmul_parts", bool(np.allclose(c, a @ b.T, atol=1e-4)), ""))
counts = engine.to_host(engine.pair_counts(engine.from_host(np.zeros(40, np.int32)), 3))
found.append(("one pair again and again", bool(counts[0, 0] == 39), ""))
for name, items in (("roofline_copy", 11), ("roofline_copy_wide", 6)):
    engine.launch("roofline", name, items, engine.zeros((41,)), engine.empty((41,)), 41)
engine.launch("roofline", "roofline_arithmetic", 5, engine.empty((5,)), 5, 3, 0.5)
print(json.dumps(found))
"""


def test_every_kernel_is_clean_and_right(tmp_path):
    run = run_strict(CASES, tmp_path)
    found = json.loads(run.output)
    assert len(found) > 150
    assert not [case for case in found if not case[1]]
    assert run.findings == ""


PLANTED = {
    "a write past the end": (
        """
__kernel void planted(__global float *restrict x, const int n)
{
    x[get_global_id(0)] = 1.0f;
}
""",
        "engine.empty((13,)), 13",
        ["Invalid write of size 4", "line 4", "planted"],
    ),
    "a read past the end": (
        """
__kernel void planted(__global float *restrict x, __global const float *restrict y, const int n)
{
    const int i = get_global_id(0);
    if (i < n) x[i] = y[i + 1];
}
""",
        "engine.empty((16,)), engine.zeros((16,)), 16",
        ["Invalid read of size 4", "line 5"],
    ),
    "a missing barrier": (
        """
__kernel void planted(__global float *restrict x, __local float *part, const int n)
{
    const int i = get_local_id(0);
    part[i] = i;
    x[i] = part[15 - i];
}
""",
        "engine.empty((16,)), 64, 16",
        ["data race", "line 6"],
    ),
    "two work-items that write one element": (
        """
__kernel void planted(__global float *restrict x, const int n)
{
    x[get_global_id(0) / 2] = get_global_id(0);
}
""",
        "engine.empty((8,)), 8",
        ["data race", "line 4"],
    ),
    # Of global memory Oclgrind does not tell; there the tests' NaN before every launch does.
    "a number that nobody wrote": (
        """
__kernel void planted(__global float *restrict x, __local float *part, const int n)
{
    const int i = get_local_id(0);
    if (i != 3) part[i] = 1.0f;
    if (part[i] > 0.0f) x[i] = 2.0f;
}
""",
        "engine.empty((16,)), 64, 16",
        ["depends on uninitialized value", "Global(3,0,0)", "line 6"],
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_with_its_line(tmp_path, fault):
    """A run that finds nothing means something only if it can find something."""
    text, args, words = PLANTED[fault]
    code = f"""
kernel = engine.program.compile({text!r})["planted"]
kernel((16,), (16,), {args})
engine.finish()
"""
    findings = run_strict(code, tmp_path).findings
    for word in words:
        assert word in findings, findings


GUARDS = {
    "softmax": ("if (row >= rows) return;", "engine.softmax(engine.zeros((5, 7)))"),
    "fill": ("if (i >= n) return;", "engine.fill(engine.zeros((13,)), 1.0)"),
}


@pytest.mark.parametrize("kernel", GUARDS)
def test_a_guard_taken_out_of_our_own_kernel_is_missed(tmp_path, kernel):
    guard, call = GUARDS[kernel]
    code = f"""
from pathlib import Path
from llmcl.resources import kernels_dir
text = (kernels_dir() / "{kernel}.cl").read_text(encoding="utf-8")
assert {guard!r} in text
Path("{kernel}.cl").write_text(text.replace({guard!r}, ""), encoding="utf-8")
engine.program.folder = Path(".")
{call}
engine.finish()
"""
    findings = run_strict(code, tmp_path).findings
    assert "Invalid write" in findings and f"Kernel: {kernel}" in findings
