"""Kernels of the reader's own: compiled, tried on the strict device, and what is said to them."""

import numpy as np
import pytest

from llmcl.engine import get_engine
from llmcl.errors import KernelError, LlmclError
from llmcl.lab import broken, kernel_exercises, lessons, session, strict

needs_oclgrind = pytest.mark.skipif(
    not strict.available(), reason="Oclgrind's wheel exists for Linux on x86-64 only"
)
RIGHT = """
__kernel void matmul_naive(__global const float *restrict a, __global const float *restrict b,
                           __global float *restrict c, const int m, const int n, const int k)
{
    const int row = get_global_id(0), col = get_global_id(1);
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + col];
    c[row * n + col] = sum;
}
"""
LOG = """
Invalid write of size 4 at global memory address 0x1000000000040
\tKernel: planted
\tEntity: Global(14,0,0) Local(14,0,0) Group(0,0,0)
\t  store float 2.0, float addrspace(1)* %arrayidx7, align 4, !dbg !38
\tAt line 7 (column 11) of input.cl:
\t  x[i+3]=2;
\t
Invalid write of size 4 at global memory address 0x1000000000044
\tKernel: planted
\tEntity: Global(3,0,0) Local(3,0,0) Group(0,0,0)
\t  store float 2.0, float addrspace(1)* %arrayidx7, align 4, !dbg !38
\tAt line 7 (column 11) of input.cl:
\t  x[i+3]=2;
\t
Work-group divergence detected (barrier)
\tKernel:     planted
\tWork-group: (0,0,0)
\tOnly 2 out of 16 work-items executed barrier
\t  call spir_func void @_Z7barrierj(i32 noundef 1) #5, !dbg !44
\tAt line 5 (column 14) of input.cl:
\t  if (i<2) barrier(CLK_LOCAL_MEM_FENCE);
"""


@pytest.fixture
def task(monkeypatch):
    """An exercise with a number that the child process knows too: the product of lesson 01a."""
    return lessons.find("01a.no_guard").task


def judge(text, task):
    return kernel_exercises.judge_kernel("01a.no_guard", text, task)


def test_findings_are_counted_by_line_and_told_by_the_first_work_item():
    first, second = strict.read_log(LOG)
    assert (first.kind, first.line) == ("a barrier that not all reach", 5)
    assert str(second) == "invalid write, work-item (3,0,0), line 7: x[i+3]=2;"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("float sum = 0.0f;", "float sum = 0.0f", "Line 7"),
        ("float sum = 0.0f;", "#error not written yet", "○"),
        ("matmul_naive", "product", "there is no kernel 'matmul_naive' in it; it has product"),
        ("const int k)", "const int k, const int l)", "takes 7 arguments"),
        ("a[row * k + p]", "a[row * k]", "at (0, 0) you have"),
        ("sum += a", "sum = a", "at (0, 0) you have"),
        ("    c[row * n + col] = sum;\n", "", "you have nan"),
    ],
)
def test_what_is_said_to_a_wrong_kernel(task, old, new, words):
    assert RIGHT.count(old) == 1
    outcome = judge(RIGHT.replace(old, new), task)
    assert outcome.state != "right"
    assert words in outcome.line


@needs_oclgrind
def test_the_strict_device_is_heard(task):
    assert judge(RIGHT, task).line == (
        "✓ matmul_naive: 2 cases agree, and the strict device sees nothing wrong"
    )
    line = judge(RIGHT.replace("    if (row >= m || col >= n) return;\n", ""), task).line
    assert "invalid read" in line and "line 7" in line
    assert line.endswith("has every work-item one of its own?")


@needs_oclgrind
def test_a_barrier_behind_an_early_return_is_explained(task):
    text = RIGHT.replace("float sum = 0.0f;", "float sum = 0.0f; barrier(CLK_LOCAL_MEM_FENCE);")
    line = judge(text, task).line
    assert "a barrier that not all reach" in line and "line 7" in line
    assert line.endswith("Does every work-item of the group come to each barrier?")


def test_a_write_past_the_end_is_found_without_a_strict_device_too(task, monkeypatch):
    monkeypatch.setattr(strict, "available", lambda: False)
    assert judge(RIGHT, task).line == "✓ matmul_naive: 2 cases agree"
    text = RIGHT.replace("= sum;", "= sum;\n    if (row + col == 0) c[m * n + 2] = 7.0f;")
    m, n = len(task.cases[0][0]), task.cases[0][1].shape[1]
    said = f"it writes element {m * n + 2} of a tensor of {m * n} elements"
    assert judge(text, task).line == f"✗ matmul_naive: {said}"


def test_a_kernel_that_ends_its_process_leaves_the_lesson_alive(task, monkeypatch):
    monkeypatch.setattr(strict, "available", lambda: False)  # the usual device stops nobody
    text = RIGHT.replace("c[row * n + col] = sum", "c[row * n + col + (1 << 28)] = sum")
    outcome = judge(text, task)
    assert outcome.state == "wrong"
    assert "ended early" in outcome.line or "you have" in outcome.line


def test_a_kernel_without_an_end_is_stopped(task, monkeypatch):
    monkeypatch.setattr(strict, "SECONDS", 6)
    text = RIGHT.replace("++p) sum", "p += 0) sum")
    assert "did not end in 6 seconds" in judge(text, task).line


def test_a_text_becomes_kernels_with_careful_errors():
    engine = get_engine()
    mine = kernel_exercises.build(engine, RIGHT)
    a, b = np.ones((3, 5)), np.full((5, 7), 2.0)
    c = engine.empty((3, 7))
    mine.matmul_naive((3, 7), (1, 1), engine.from_host(a), engine.from_host(b), c, 3, 7, 5)
    assert (engine.to_host(c) == 10).all()
    with pytest.raises(KernelError, match="must be a whole number"):
        mine.matmul_naive((3, 7), (1, 1), engine.from_host(a), engine.from_host(b), c, 3.0, 7, 5)
    with pytest.raises(LlmclError, match="NumPy cannot run a kernel"):
        kernel_exercises.build(get_engine("numpy"), RIGHT)


def test_a_broken_kernel_shows_its_change_and_its_finders(task, capsys):
    broken.run_broken("01a.no_guard")
    out = capsys.readouterr().out
    assert " right " in out and "if (row >= m || col >= n) return;" in out
    assert "4 x 4 times 4 x 4: ✓" in out and "3 x 5 times 5 x 8: ✓" in out
    if strict.available():
        assert "Oclgrind: ✗ invalid read" in out
    broken.device_answer("01a.no_guard", get_engine())
    assert "4 x 4 times 4 x 4: the same numbers as NumPy" in capsys.readouterr().out
    broken.device_answer("01a.no_guard", get_engine("numpy"))
    assert "nothing was launched" in capsys.readouterr().out


def test_a_change_must_fit_one_place_of_the_kernel(task):
    with pytest.raises(LlmclError, match="stands 0 times in matmul_naive"):
        lessons.changed(task, "no such text", "")
    with pytest.raises(LlmclError, match="2 times"):
        lessons.changed(task, "get_global_id", "")
    with pytest.raises(LlmclError, match="is a function to write, and a broken kernel is wanted"):
        broken.run_broken("00.1")


def test_numbers_are_kept_for_later_lessons(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path))
    assert session.kept("02b", "loss") is None
    session.keep("02b", "loss", np.float32(2.5))
    session.keep("02b", "other", 1)
    assert session.kept("02b", "loss") == 2.5
    (tmp_path / "lesson-02b" / "kept.json").write_text("{damaged", encoding="utf-8")
    assert session.kept("02b", "loss") is None
