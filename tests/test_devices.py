"""The table of devices.py: it counts what was noted, and nothing that is missing looks right."""

import subprocess
import sys
from pathlib import Path

import devices
import pytest
from devices import NOT_FOUND, Result, every_kernel, read_notes, report

from llmcl.device import choose

ROOT = Path(__file__).resolve().parent.parent
NOTES = """\
passed tests/a.py::one
failed tests/a.py::two
passed tests/a.py::three
failed tests/a.py::three
skipped tests/a.py::four
"""


def noted(folder, kernels=("fill", "adamw"), outcomes=NOTES):
    lines = [f"PoCL\t3.0\tcpu\t{name}\n" for name in kernels] + ["Other\t1\tgpu\tsoftmax\n"]
    (folder / "launched-7").write_text("".join(lines), encoding="utf-8")
    (folder / "outcomes").write_text(outcomes, encoding="utf-8")
    result = Result("PoCL", device="cpu, PoCL 3.0", check="63 of 63", kernels=3, ended=True)
    read_notes(result, folder, "PoCL\t3.0\tcpu", {"fill", "adamw", "softmax"})
    return result


def test_a_row_counts_tests_once_and_kernels_of_this_device_only(tmp_path):
    result = noted(tmp_path)
    assert result.row().startswith("| PoCL | cpu, PoCL 3.0 | 1 | 2 | 1 | 63 of 63 | 2 of 3 |")
    text = report([result])
    assert "failed: tests/a.py::three" in text and "never launched: softmax" in text
    assert not result.ok


@pytest.mark.parametrize("fault", ["none", "a kernel", "a failure", "no test", "no end"])
def test_only_a_whole_run_is_right(tmp_path, fault):
    kernels = ("fill", "adamw") if fault == "a kernel" else ("fill", "adamw", "softmax")
    passed = "passed tests/a.py::one\n"
    outcomes = {"a failure": NOTES, "no test": ""}.get(fault, passed)
    (tmp_path / "notes").mkdir()
    result = noted(tmp_path / "notes", kernels, outcomes)
    result.ended = fault != "no end"
    assert result.ok == (fault == "none")
    assert result.counts().endswith("NOT RIGHT") == (fault != "none")


@pytest.mark.parametrize("fault", ["none", "a failure", "no end", "a kernel"])
def test_the_exit_status_and_the_last_line_tell_of_every_row(tmp_path, monkeypatch, capsys, fault):
    right = Result("PoCL", "a CPU", {"a": "passed", "b": "passed"}, kernels=2, ended=True)
    other = Result("Oclgrind", "a simulator", {"a": "passed"}, kernels=2, ended=fault != "no end")
    other.missing = ["fill"] if fault == "a kernel" else []
    other.outcomes["b"] = "failed" if fault == "a failure" else "passed"
    rows = {"pocl": right, "oclgrind": other}
    monkeypatch.setattr(devices, "run_suite", lambda asked, seconds: rows[asked])
    arguments = ["devices.py", "oclgrind", "pocl", "--report", str(tmp_path / "report.md")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert devices.main() == (0 if fault == "none" else 1)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("; PoCL 2 passed, 0 failed, 2 of 2 kernels")
    assert ("NOT RIGHT" in last) == (fault != "none")


def test_a_suite_that_takes_too_long_is_cut_off_and_not_right(monkeypatch):
    monkeypatch.setattr(devices, "run_check", lambda *_: ("61 of 61", True))
    result = devices.run_suite("pocl", 2)
    assert not result.ended and not result.ok and result.seconds < 30


def test_an_implementation_that_is_missing_is_told():
    assert NOT_FOUND in report([Result("NVIDIA")]) and not Result("NVIDIA").ok


def test_every_version_is_a_kernel_of_its_own():
    assert {"softmax_forward", "softmax_forward_group", "adamw_wide"} <= every_kernel()


def test_launches_and_outcomes_are_noted(tmp_path):
    """With the plugin itself, in a run of its own."""
    import os

    from launches import FOLDER, device_key

    environment = os.environ | {
        FOLDER: str(tmp_path), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "launches", "-p", "no:cacheprovider",
         "tests/ops/test_fill.py"],
        cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    result = Result("this one")
    read_notes(result, tmp_path, device_key(choose().info), {"fill", "softmax_forward"})
    assert result.missing == ["softmax_forward"]
    assert result.count("passed") > 1 and not result.count("failed")
