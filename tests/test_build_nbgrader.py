"""The course for nbgrader: marks behind every exercise; see tests/classroom for the real one."""

import importlib.util

import nbformat
import pytest

from lesson_helpers import LESSONS
from llmcl import lab
from llmcl.errors import LlmclError
from llmcl.lab import lessons, session
from notebook_builder import LESSON, ROOT, build, own_folder, write

TASK = (
    LESSON.split("# %%\ndef double")[0]
    + '''\
# %% [markdown] id="task"
# **Exercise 77.1** · medium · 2 minutes. Write `double`.
#
# <details><summary>Solution in words</summary>
#
# Add it to itself.
#
# </details>

# %%
@lab.exercise("77.1")
def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    return x + x
    ### INSTEAD
    return x
    ### END SOLUTION
'''
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return own_folder(monkeypatch, tmp_path)


def test_an_answer_cell_keeps_its_stub_and_a_hidden_test_follows(folder):
    notebook = build.for_nbgrader(write(folder, TASK))
    task, answer, marks = notebook.cells[-3:]
    assert "Add it to itself" not in task.source
    assert "return x + x" in answer.source and "### BEGIN SOLUTION" in answer.source
    assert "    return x\n" in answer.metadata["llmcl_stub"] + "\n"
    assert "return x + x" not in answer.metadata["llmcl_stub"]
    assert answer.metadata["nbgrader"]["grade_id"] == "answer-77-1"
    kinds = {name: answer.metadata["nbgrader"][name] for name in ("grade", "solution", "locked")}
    assert kinds == {"grade": False, "solution": True, "locked": False}
    about = marks.metadata["nbgrader"]
    assert (about["grade"], about["solution"], about["locked"]) == (True, False, True)
    assert about["points"] == 2 and "2 points" in marks.source
    inside = marks.source.split("### BEGIN HIDDEN TESTS\n")[1].split("\n### END HIDDEN TESTS")[0]
    assert inside == 'lab.mark("77.1")'


def test_an_exercise_that_does_not_say_how_hard_it_is_is_refused(folder, capsys):
    name = write(folder, TASK.replace("· medium ·", "· unknown ·"))
    build.write(build.assemble(name), folder / f"{name}.ipynb", force=True)
    assert build.main(["--class", str(folder / "class"), "--nbgrader", name]) == 1
    assert "exercise 77.1 does not say easy, medium or hard" in capsys.readouterr().err


def test_the_course_has_its_settings_which_are_kept(folder):
    name = write(folder, TASK)
    build.write(build.assemble(name), folder / f"{name}.ipynb", force=True)
    order = ["--class", str(folder / "class"), "--nbgrader", name]
    assert build.main(order) == 0
    course = folder / "class" / "nbgrader"
    nbformat.read(course / "source" / name / f"{name}.ipynb", as_version=4)
    settings = course / "nbgrader_config.py"
    settings.write_text(settings.read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8")
    assert build.main(order) == 0
    assert settings.read_text(encoding="utf-8").endswith("# mine\n")


@pytest.mark.parametrize("name", LESSONS)
def test_every_exercise_of_a_lesson_earns_points_once(name):
    cells = build.for_nbgrader(name).cells
    about = [cell.metadata["nbgrader"] for cell in cells if "nbgrader" in cell.metadata]
    ids = [kind["grade_id"] for kind in about]
    assert len(set(ids)) == len(ids)
    marks = {kind["grade_id"] for kind in about if kind["grade"]}
    asked = lessons.of(name.split("_")[0]).exercises
    assert marks == {f"marks-{number.replace('.', '-')}" for number in asked}
    assert {kind["points"] for kind in about if kind["grade"]} <= {1, 2, 3}
    assert sum(kind["solution"] for kind in about) == len(marks)


@pytest.mark.parametrize("grade", ["", "1"])
def test_marks_are_earned_by_a_right_answer_only(monkeypatch, capsys, grade):
    monkeypatch.setattr(session, "done", {})
    monkeypatch.setenv("LLMCL_GRADE", grade)
    with pytest.raises(LlmclError, match="exercise 00.1 earns no marks"):
        lab.mark("00.1")
    session.note("00.1", False)
    with pytest.raises(LlmclError, match="exercise 00.1 earns no marks"):
        lab.mark("00.1")
    session.note("00.1", True)
    lab.mark("00.1")
    assert capsys.readouterr().out == "✓ exercise 00.1 earns its marks\n"
    with pytest.raises(LlmclError, match="there is no '00.9' here"):
        lab.mark("00.9")


def test_the_hub_brings_lessons_and_leaves_a_learners_work(tmp_path):
    spec = importlib.util.spec_from_file_location("hub_user", ROOT / "deploy" / "hub_user.py")
    hub_user = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hub_user)
    source, home = tmp_path / "lessons", tmp_path / "home"
    source.mkdir()
    home.mkdir()
    for name in ("a.ipynb", "b.ipynb", "notes.txt"):
        (source / name).write_text("new", encoding="utf-8")
    (home / "llmcl").mkdir()
    (home / "llmcl" / "a.ipynb").write_text("mine", encoding="utf-8")
    for _ in range(2):
        hub_user.bring_lessons(source, home / "llmcl")
        found = {path.name: path.read_text("utf-8") for path in (home / "llmcl").iterdir()}
        assert found == {"a.ipynb": "mine", "b.ipynb": "new"}
