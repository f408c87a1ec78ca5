"""CASES.md names a test for every public report, and what reports say of more than one module."""

import ast
import re
import socket
import sys
from pathlib import Path

import nbformat
import pytest
from IPython import display as ipython_display
from ops.test_every_kernel import returns_before_a_barrier

from lesson_helpers import NOTEBOOKS
from llmcl import lab
from llmcl.errors import LlmclError
from llmcl.lab import lessons, live_text, session
from notebook_builder import FOLDER, ROOT

TABLE = ROOT / "tests" / "CASES.md"
COUNTS = {"A": 29, "B": 26, "C": 11, "D": 21, "E": 10}
RESULT = re.compile(r"right|mended: .+|does not apply, because .+")
PLACE = re.compile(r"`([\w/]+\.py)::([\w-]+)`")
SOURCES = sorted([*(FOLDER / "src").glob("*.py"), *(ROOT / "llmcl").rglob("*.py")])


def rows() -> list[list[str]]:
    """The cells of every row of the table: id, case, places, result."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    found = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
             if re.match(r"\| [A-Z]\d", line)]  # fmt: skip
    assert len(found) == sum(line.startswith("|") for line in lines) - 2  # but for the heading
    return found


# ---- the table ----


def test_every_case_has_one_row_in_order():
    ids = [row[0] for row in rows()]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"[A-E]\d\d", number) for number in ids)
    assert {letter: sum(n[0] == letter for n in ids) for letter in COUNTS} == COUNTS


def test_every_row_says_what_came_of_it_and_where_it_is_tested():
    for number, case, places, result in rows():
        assert 10 <= len(case) <= 110, number
        assert RESULT.fullmatch(result), number
        assert PLACE.sub("", places).strip(" ,") in ("", "—"), number
        assert PLACE.search(places) or result.startswith("does not apply"), number


def test_every_place_that_is_named_exists():
    names = {}
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tests = {n.name for n in tree.body if getattr(n, "name", "").startswith("test_")}
        names[path.relative_to(ROOT / "tests").as_posix()] = tests
    for path in (FOLDER / "src").glob("*.py"):
        blocks = re.findall(r'id="([\w-]+)"', path.read_text(encoding="utf-8"))
        names[f"src/{path.name}"] = set(blocks)
    for number, _, places, _ in rows():
        for file, name in PLACE.findall(places):
            assert name in names.get(file, ()), f"{number}: {file}::{name}"


# ---- kernels in lessons and in the package ----


def kernels(text: str) -> dict[str, str]:
    """Every kernel of a source file by name, without comments; stubs and holes included."""
    found = {}
    for start in re.finditer(r"\b(?:__)?kernel void (\w+)\s*\([^{;]*?\)\s*\{", text):
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found[start[1]] = re.sub(r"//[^\n]*|/\*.*?\*/", "", text[start.start() : end], flags=re.S)
    return found


def complaints(text: str) -> list[str]:
    """What a kernel's text has that fails on another device."""
    number = r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE][+-]?\d))(?:[eE][+-]?\d+)?(?![\w.])"
    found = [f"{double} is a double" for double in re.findall(number, text)]
    found += [f"{word} is not everywhere" for word in re.findall(r"\bdouble\d*\b|\bpow\(", text)]
    found += [f"{name} returns before a barrier" for name in returns_before_a_barrier(text)]
    return found + re.findall(r"\bif\b[^\n]*\bbarrier\s*\(", text)


def test_no_kernel_in_a_lesson_or_in_the_package_suits_one_device_only():
    found = [(path.name, name, text) for path in SOURCES
             for name, text in kernels(path.read_text(encoding="utf-8")).items()]  # fmt: skip
    assert len(found) > 50
    assert [(file, name, complaints(text)) for file, name, text in found if complaints(text)] == []


def test_the_search_finds_what_suits_one_device_only():
    start = "__kernel void f(__global float *x, const int n)\n{\n    "
    assert list(kernels(f"text = '''\n{start}if (n) {{ x[0] = 1.0f; }}\n}}\n'''")) == ["f"]
    assert complaints(start + "x[0] = 2.0f * n + 1e3f;\n}") == []
    for body in ("x[0] = 0.5 * n;", "x[0] = 1e3;", "double y = n;", "x[0] = pow(x[0], 2.0f);",
                 "if (n) return;\n    barrier(CLK_LOCAL_MEM_FENCE);",
                 "if (n) barrier(CLK_LOCAL_MEM_FENCE);"):  # fmt: skip
        assert len(complaints(f"{start}{body}\n}}")) == 1, body


# ---- installing and choosing a device ----


def test_nothing_asks_a_question_that_nobody_sees():
    asking = r"\b(?:create_some_context|choose_devices|input)\("
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    for path in [path for path, text in texts.items() if re.search(asking, text)]:
        tree = ast.parse(re.sub(r"(?m)^await |(?<== )await ", "", texts[path]))
        calls = {getattr(n.func, "attr", getattr(n.func, "id", "")) for n in ast.walk(tree)
                 if isinstance(n, ast.Call)}  # fmt: skip
        assert not calls & {"create_some_context", "choose_devices"}, path.name
        assert "input" not in calls or path.name == "talk.py", path.name  # the chat itself


def test_a_shell_is_never_given_bare_brackets_to_install():
    files = [*SOURCES, ROOT / "README.md", ROOT / "Makefile"]
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            for package in re.findall(r"(?:pip install|PIP\))[^`|\n]*?(\S*\w\[\w[\w,]*\])", line):
                assert package[0] in "'\"", f"{path.name}: {line.strip()}"


def test_the_readers_commands_pin_the_context():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"`llama-\w+ [^`]*`", text)
    assert commands and all("-c 256 " in command for command in commands)


# ---- notebooks ----


def test_no_compared_output_has_an_address_a_bar_or_a_machines_name():
    host = socket.gethostname()
    for name in NOTEBOOKS:
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
        for cell in notebook.cells:
            text = repr(cell.get("outputs", ""))
            assert len(host) < 5 or host not in text, (name, cell.id)
            if "nbval-ignore-output" not in cell.metadata.get("tags", []):
                assert not re.search(r"\bat 0x[0-9a-f]{6,}|it/s\b|<Figure", text), (name, cell.id)


@pytest.fixture
def displayed(monkeypatch):
    """Whatever is displayed, without ipywidgets in reach."""
    found = []
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(
        ipython_display, "display", lambda data, metadata=None, raw=False: found.append(data)
    )
    return found


def test_without_ipywidgets_text_and_pictures_remain(displayed):
    lab.explore(lambda axes, n: axes.plot([0, n]), [1, 2], lambda n: f"A line up to {n}.")
    lab.explore_pieces([["a", "b"], ["ab"]], ["Two.", "One."])
    question = next(iter(lessons.of("00").questions))
    lab.quiz(question)
    live_text.live_text("Stories")("once upon a time")
    assert [data["text/plain"] for data in displayed] == [
        "A line up to 1.",
        displayed[1]["text/plain"],
        f"○ question {question}: choose one of {', '.join(lessons.find(question).replies)}",
        "(Stories)",
    ]
    assert "image/png" in displayed[0] and "Two." in displayed[1]["text/plain"]
    assert not any("widget" in kind for data in displayed for kind in data)


def test_a_copied_cell_counts_as_its_last_run(monkeypatch, capsys):
    monkeypatch.setattr(session, "done", {})
    number, task = next(
        (n, e) for n, e in lessons.of("08a").exercises.items() if isinstance(e, lessons.Exercise)
    )
    lab.exercise(number)(task.reference)
    session.mark(number)
    lab.exercise(number)(lambda *args: 0.0)  # the copy, whose answer is wrong
    with pytest.raises(LlmclError, match="earns no marks"):
        session.mark(number)
    monkeypatch.setenv("LLMCL_GRADE", "1")
    with pytest.raises(LlmclError, match=f"exercise {number} is wrong"):
        lab.exercise(number)(lambda *args: 0.0)
    assert capsys.readouterr().out.startswith("✓")


def test_the_troubleshooting_page_warns_of_strangers_downloads():
    page = (FOLDER / "src" / "91_troubleshooting.py").read_text(encoding="utf-8")
    start = page.index("# %% [markdown]")
    first = page[start : page.index("# %%", start + 1)]
    assert "Do not run a program that a stranger" in first
    assert Path(FOLDER / "91_troubleshooting.ipynb").is_file()
