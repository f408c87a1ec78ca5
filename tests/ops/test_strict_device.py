"""Every kernel on Oclgrind: nothing out of bounds, no race, nothing read before it is written."""

import pytest
from strict import faults, needs_oclgrind, run_strict

pytestmark = needs_oclgrind


def test_every_kernel_is_clean_and_right(tmp_path):
    assert faults(tmp_path) == []


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
    "local memory in numbers in place of bytes": (
        """
__kernel void planted(__global float *restrict x, __local float *part, const int n)
{
    const int i = get_local_id(0);
    part[i] = 1.0f;
    x[i] = part[i];
}
""",
        "engine.empty((16,)), 16, 16",
        ["Invalid write of size 4 at local memory", "line 5"],
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
