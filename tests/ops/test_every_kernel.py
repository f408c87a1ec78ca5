"""No kernel is left out, and what the text of every kernel must and must not say."""

import re
from pathlib import Path

import numpy as np
import pytest
from ops_helpers import RUNGS, VERSIONS, use

from llmcl import ops, reference
from llmcl.check import Sizes, make_cases
from llmcl.device import choose
from llmcl.program import read_signatures
from llmcl.ranking import pocl_version
from llmcl.reference import bounds
from llmcl.resources import kernels_dir
from llmcl.versions import GPU

FILES = sorted(kernels_dir().glob("*.cl"))
# Files that are a part of an operation of another name, or that measure the device.
PARTS = {"column_sum", "transpose", "roofline"}
# Kernels of whole groups that share one row, head or place: all items of a group leave together.
# The strict device, which notices a group that parts before a barrier, runs every one of them.
LEAVE_TOGETHER = {
    "cross_entropy_rows_group",
    "cross_entropy_mean_group",
    "embedding_backward_tokens_group",
    "fused_attention_forward_group",
    "fused_attention_backward_q_group",
    "fused_attention_backward_kv_group",
    "layer_norm_forward_group",
    "layer_norm_backward_input_group",
    "softmax_forward_group",
    "softmax_causal_group",
    "softmax_backward_group",
    "global_norm_status_group",
}


def text_of(path) -> str:
    """A kernel file without its comments and preprocessor conditions."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def text(request):
    return text_of(request.param)


def test_every_kernel_is_launched_by_an_operation_or_by_its_file_s_own_test(engine):
    by_name = {(file, name) for file, names in RUNGS.items() for name in names}
    every = {
        (path.stem, name)
        for path in FILES
        for name in read_signatures(path.read_text(encoding="utf-8"))
    } - by_name
    wide = {kernel for kernel in every if kernel[1].endswith("_wide")}
    shared = {kernel for kernel in every if kernel[0].endswith("_gpu")}
    tiled = {kernel for kernel in every if kernel[1].startswith("matmul_tiled")}
    launched = set()
    for versions in VERSIONS:
        engine.program.asked.clear()
        engine.use(versions)
        for case in make_cases(np.random.default_rng(0), Sizes(B=2, T=5, H=2, d=3, V=11, F=7)):
            assert all(comparison.ok for comparison in case.check(engine)), case.name
        asked = engine.program.asked
        # A device gets its own kernels: others would be as right, and slow.
        assert asked & wide == (wide if versions.wide else set())
        assert asked & shared == (shared if versions.groups else set())
        assert asked & tiled == (tiled if versions.product == "tiled" else set())
        launched |= asked
    engine.check_guards()
    assert not by_name & launched, "an operation launches it: it is no mere rung"
    assert sorted(every - launched) == []


def _writes_astray(info) -> bool:
    """Old PoCL on an Intel CPU with AVX-512, which it does not use on other makers' CPUs."""
    flags = Path("/proc/cpuinfo")
    wide = flags.exists() and "avx512f" in flags.read_text(encoding="utf-8")
    return wide and "Intel" in info.name and () < pocl_version(info.platform_version) < (5,)


def test_a_gpu_s_kernels_are_right_as_the_compiler_optimizes_them():
    """The engine of the other tests switches a CPU's optimizer off for them, to save time."""
    engine = ops.Engine(choose())
    if _writes_astray(engine.device.info):
        pytest.skip("with AVX-512 this PoCL's code for fused attention writes where it must not")
    use(engine, GPU)
    # 11 rows need more than one row of work-items: a value mixed up between items is seen.
    for case in make_cases(np.random.default_rng(0), Sizes(B=2, T=11, H=2, d=5, V=17, F=9)):
        for comparison in case.check(engine):
            assert comparison.ok, f"{case.name}: {comparison}"


def test_every_operation_has_a_case_a_bound_and_a_reference():
    names = {operation.__name__ for operation in ops.OPERATIONS}
    # The two halves of attention's backward have no case: they are checked inside it.
    halves = {"attention_mix_backward", "attention_scores_backward"}
    assert {case.name for case in make_cases(np.random.default_rng(0))} == names - halves
    assert {operation.__name__ for operation in reference.OPERATIONS} == names
    for name in names - halves:
        assert callable(getattr(bounds, name))


def test_every_kernel_file_has_an_operation_or_a_test_of_its_own_name():
    folder = kernels_dir().parent / "tests" / "ops"
    for path in FILES:
        name = path.stem.removesuffix("_gpu")  # the operation's test runs both kinds of versions
        assert (folder / f"test_{name}.py").is_file(), path.stem
        assert name in PARTS or hasattr(ops, name) or name == "matmul"


def test_no_double_and_every_fraction_ends_in_f(text):
    assert not re.search(r"\bdouble\d*\b|\bhalf\d*\b", text)
    number = r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE][+-]?\d))(?:[eE][+-]?\d+)?(\w*)"
    for found in re.finditer(number, text):
        assert found[1] == "f", f"{found[0]} is a double"


def test_no_float_atomics_and_no_relaxed_mathematics(text):
    for name in re.findall(r"\batom\w*", text):
        assert name in ("atomic_inc", "atomic_or"), (
            f"{name}: only whole numbers may be counted atomically"
        )
    quick = "cos|divide|exp|exp2|exp10|log|log2|log10|powr|recip|rsqrt|sin|sqrt|tan"
    assert not re.search(rf"\b(?:native|half)_(?:{quick})\b", text)
    assert not re.search(r"\b(?:fma|mad)\b|\bv(?:load|store)", text)  # slow on a CPU
    assert not re.search(r"FP_FAST|FP_CONTRACT|pragma\s+OPENCL", text)


def test_no_flag_of_the_compiler_relaxes_mathematics():
    package = kernels_dir().parent / "llmcl"
    for path in package.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        flags = re.findall(r"-cl-[\w-]+", source)
        assert not {f for f in flags if re.search("fast|relaxed|unsafe|mad|finite", f)}, path.name


def functions(text: str) -> dict[str, str]:
    """The body of every function of a kernel text, by name."""
    bodies = {}
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text)
    for start in re.finditer(r"\b(\w+)\s*\([^;{}]*\)\s*\{", text):
        if start[1] in ("for", "if", "while", "switch"):
            continue
        depth, end = 1, start.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        bodies[start[1]] = text[start.end() : end]
    return bodies


def returns_before_a_barrier(text: str) -> list[str]:
    """The functions in which a work-item may leave while others wait at a barrier."""
    bodies = functions(text)
    waiting = {"barrier"}
    while more := {n for n, b in bodies.items() if any(f"{w}(" in b for w in waiting)} - waiting:
        waiting |= more  # a function that calls one with a barrier has a barrier itself
    found = []
    for name, body in bodies.items():
        last = max((body.rfind(f"{w}(") for w in waiting), default=-1)
        if last >= 0 and re.search(r"\breturn\b(?![^;]*\b\w+\s*\()", body[:last]):
            found.append(name)
    return found


def test_nobody_returns_before_a_barrier_or_waits_inside_a_branch(text):
    assert not set(returns_before_a_barrier(text)) - LEAVE_TOGETHER
    for line in text.splitlines():
        assert not re.search(r"\bif\b.*\bbarrier\s*\(", line), line


def test_the_search_for_early_returns_finds_them():
    early = """
    float tree(__local float *x) { barrier(CLK_LOCAL_MEM_FENCE); return x[0]; }
    __kernel void bad(__global float *x, const int n) {
        if (get_global_id(0) >= n) return;
        __local float part[4];
        x[0] = tree(part);
    }
    __kernel void good(__global float *x, const int n) {
        __local float part[4];
        const float sum = tree(part);
        if (get_global_id(0) >= n) return;
        x[0] = sum;
    }"""
    assert returns_before_a_barrier(early) == ["bad"]


def test_every_kernel_guards_its_range(text):
    for name, body in functions(text).items():
        if f"void {name}(" in text and "get_global_id" in body:
            assert re.search(r"\bif \(|min\(|i < n|block\(", body), f"{name} has no guard"


def test_pointers_are_restrict_unless_the_kernel_may_work_in_place():
    for path in FILES:
        for name, parameters in read_signatures(path.read_text(encoding="utf-8")).items():
            pointers = [p for p in parameters if p.space == "global"]
            assert all(p.restrict for p in pointers) or name.startswith("residual_"), name
            assert any(p.written for p in pointers), f"{name} writes nothing"
