"""docs/teaching/class.md names targets, files, options and values that are there."""

import re
import shlex

import pytest

from llmcl import class_line
from llmcl.cli import build_parser
from llmcl.lab.variants.__main__ import _parser as variants_parser
from notebook_builder import ROOT

PAGE = (ROOT / "docs" / "teaching" / "class.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_targets_of_make_and_the_files_are_there():
    targets = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", PAGE, re.MULTILINE))
    assert targets >= {"lab", "class", "wheelhouse", "test-class"}
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE), target
    named = set(re.findall(r"\b(?:deploy|notebooks)/[\w./-]+\.\w+", PAGE))
    for path in named - {"deploy/learners.txt"}:
        assert (ROOT / path).is_file(), path
    assert "deploy/jupyterhub_config.py" in named
    assert "deploy/learners.txt" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()


def test_the_lines_of_the_sheets_and_of_the_doctor_can_be_typed():
    lines = re.findall(r"-m llmcl\.lab\.variants ([^>\n]+)", PAGE)
    commands = [variants_parser().parse_args(shlex.split(line)).command for line in lines]
    assert commands == ["sheet", "key", "grade"]
    assert build_parser().parse_args(["doctor", "--class"]).for_class


def test_the_example_of_the_class_line_has_the_names_of_a_real_one(monkeypatch):
    monkeypatch.setenv("LLMCL_DEVICE", "numpy")
    (example,) = class_line.read_lines(PAGE.splitlines())
    assert list(example) == list(class_line.class_values())
    for name in example:
        assert f"`{name}`" in PAGE or name in ("llmcl-class", "llmcl", "python", "system"), name


@pytest.mark.parametrize("extra", ["lab", "verify", "linker", "hub", "nbgrader"])
def test_the_extras_are_named(extra):
    assert extra in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(rf"[\[,`]{extra}[\],`]", PAGE)
