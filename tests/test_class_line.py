"""`llmcl doctor --class`: one line that tells whether the lessons will run, and nothing private."""

import getpass
import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from llmcl import __version__, class_line, cli
from llmcl.errors import DeviceError, KernelError

ROOT = Path(__file__).resolve().parents[1]
NAMES = ["llmcl-class", "llmcl", "python", "system", "device", "kernels", "cache", "lessons",
         "llama.cpp"]  # fmt: skip


def doctor(**variables):
    command = [sys.executable, "-m", "llmcl.cli", "doctor", "--class"]
    environment = os.environ | variables
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment, cwd=ROOT, check=False
    )


def test_one_line_with_every_kernel_checked_and_nothing_private(tmp_path):
    done = doctor(LLMCL_CACHE=str(tmp_path / "a person's own folder"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" and done.stdout.count("\n") == 1 and done.stdout.endswith("\n")
    line = done.stdout.rstrip("\n")
    assert len(line) < 250
    (values,) = class_line.read_lines([f"> Kim wrote: {line} (all well)"])
    assert list(values) == NAMES
    assert values["llmcl-class"] == "ok" and values["llmcl"] == __version__
    assert re.fullmatch(r"(\d+)-of-\1", values["kernels"])
    assert int(values["kernels"].split("-")[0]) > 50
    assert values["cache"] == "kept" and values["lessons"] == "yes"
    private = [str(Path.home()), str(ROOT), str(tmp_path), socket.gethostname(), "person"]
    private += [getpass.getuser()] if getpass.getuser() not in line.split("device=")[1] else []
    assert "/" not in line and "\\" not in line
    assert not [word for word in private if len(word) > 2 and word in line]


def test_on_numpy_alone_the_lessons_run_too():
    done = doctor(LLMCL_DEVICE="numpy", LLMCL_CACHE="off")
    (values,) = class_line.read_lines([done.stdout])
    assert done.returncode == 0
    assert values["device"] == "numpy" and values["kernels"] == "unchecked"
    assert values["cache"] == "temporary"


def test_without_a_device_it_says_no_and_still_prints_one_line():
    done = doctor(LLMCL_DEVICE="a device that nobody has")
    (values,) = class_line.read_lines([done.stdout])
    assert done.returncode == 1 and done.stdout.count("\n") == 1 and done.stderr == ""
    assert values["llmcl-class"] == "no" and values["device"] == "none"
    assert values["kernels"] == "unchecked"


class Device:
    class info:
        kind, name = "gpu", "Maker's  Card / 3000 (C:\\driver) \N{REGISTERED SIGN}" + 60 * "x"


class Engine:
    device = Device()


class Result:
    def __init__(self, ok):
        self.ok = ok


def with_kernels(monkeypatch, check_all):
    monkeypatch.setattr(class_line, "get_engine", Engine)
    monkeypatch.setattr(class_line, "check_all", check_all)


def test_one_wrong_kernel_is_enough(monkeypatch, capsys):
    cases = [("a", [Result(True)], 0.1), ("b", [Result(True), Result(False)], 0.1)]
    with_kernels(monkeypatch, lambda engine: cases)
    assert cli.main(["doctor", "--class"]) == 1
    (values,) = class_line.read_lines([capsys.readouterr().out])
    assert values["kernels"] == "wrong"
    cases[1][1].pop()
    assert class_line.class_values()["kernels"] == "2-of-2"
    assert values["device"].startswith("gpu-Maker_s_Card_3000_(C_driver)_x")
    assert len(values["device"]) == 40


@pytest.mark.parametrize("error", [KernelError("no."), RuntimeError("CL_OUT_OF_RESOURCES\n")])
def test_a_kernel_that_does_not_end_is_wrong(monkeypatch, error):
    def check_all(engine):
        raise error
        yield

    with_kernels(monkeypatch, check_all)
    values = class_line.class_values()
    assert values["llmcl-class"] == "no" and values["kernels"] == "wrong"


def test_a_package_or_a_cache_that_is_missing_is_named(monkeypatch):
    with_kernels(monkeypatch, lambda engine: [("a", [Result(True)], 0.1)])
    assert class_line.class_values()["llmcl-class"] == "ok"
    find = class_line.importlib.util.find_spec
    gone = {"ipywidgets", "xllamacpp"}
    with monkeypatch.context() as patch:
        patch.setattr(
            class_line.importlib.util, "find_spec", lambda n: None if n in gone else find(n)
        )
        values = class_line.class_values()
    assert values["llmcl-class"] == "no" and values["lessons"] == "lack-ipywidgets"
    assert values["llama.cpp"] == "no"

    def full():
        raise DeviceError("No folder can be written.")

    monkeypatch.setattr(class_line, "process_cache", full)
    values = class_line.class_values()
    assert values["llmcl-class"] == "no" and values["cache"] == "none"


def test_other_text_around_the_lines_is_passed_over():
    lines = ["hello", "llmcl-class=ok device=x=y", "llmcl-class=maybe", "12 llmcl-class=no a.b=1 !"]
    assert class_line.read_lines(lines) == [
        {"llmcl-class": "ok", "device": "x=y"},
        {"llmcl-class": "no", "a.b": "1"},
    ]


def test_json_and_class_exclude_each_other():
    with pytest.raises(SystemExit) as stop:
        cli.main(["doctor", "--json", "--class"])
    assert stop.value.code == cli.BAD_INPUT


def test_the_lesson_packages_are_those_of_the_extra_lab():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lab = tomllib.loads(text)["project"]["optional-dependencies"]["lab"]
    assert {Requirement(line).name for line in lab} <= set(class_line.LESSON_PACKAGES)
