"""nbgrader gives full marks to a right hand-in, and none to an empty or a wrong one."""

import re
import sys

import nbformat
import pytest
from nbgrader.api import Gradebook

from notebook_builder import build

source_of = sys.modules["builder.source"]
LESSONS = ["00_start_here", "01a_a_first_kernel"]
# The one exercise that "one-wrong" has wrong, and those that fail with it when LLMCL_GRADE=1 stops
# at a wrong answer, so that what stands below lacks its names.
ONE = {LESSONS[0]: "00-1", LESSONS[1]: "01a-3"}
WITH_IT = {LESSONS[0]: [], LESSONS[1]: ["01a-4"]}
WRONG = {"###": "return None\n", "//": "return;\n"}  # what compiles, and is not it
HAND_INS = ["right", "empty", "wrong", "one-wrong"]


def answer_cells(name):
    """nbgrader's id of every answer cell, by the cell's own id."""
    kinds = {cell.id: cell.metadata.get("nbgrader", {}) for cell in build.for_nbgrader(name).cells}
    return {place: kind["grade_id"] for place, kind in kinds.items() if kind.get("solution")}


def answers(name, solved=True):
    """The source of every answer cell by its id: right or wrong."""
    places = answer_cells(name)
    cells = build.for_nbgrader(name).cells
    found = {cell.id: cell.source for cell in cells if cell.id in places}
    if solved:
        return found
    source, _ = source_of.read_source(name)
    codes = [cell.source for cell in source.cells if cell.cell_type == "code"]
    number = name.split("_")[0]
    for place, text in enumerate(codes, start=1):
        if f"{number}-code-{place}" in found:
            found[f"{number}-code-{place}"] = source_of.SOLUTION.sub(
                lambda match: match["indent"] + WRONG[match["mark"]], text
            )
    return found


def hand_in(course, name, who):
    """Puts a learner's notebook into the course's folder `submitted`."""
    released = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
    right, wrong = answers(name), answers(name, solved=False)
    (one,) = (place for place, kind in answer_cells(name).items() if kind == f"answer-{ONE[name]}")
    written = {
        "right": right,
        "empty": {},
        "wrong": wrong,
        "one-wrong": right | {one: wrong[one]},
    }[who]
    for cell in released.cells:
        cell.source = written.get(cell.id, cell.source)
    path = course / "submitted" / who / name / f"{name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(released, path)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course's folder with the sources of the lessons."""
    folder = tmp_path_factory.mktemp("class")
    assert build.main(["--class", str(folder), "--nbgrader", *LESSONS]) == 0
    return folder / "nbgrader"


@pytest.fixture(scope="module")
def table():
    """Lines for the teacher's eye, printed at the end."""
    lines = ["", f"{'lesson':<22}{'LLMCL_GRADE':<13}" + "".join(f"{w:>11}" for w in HAND_INS)]
    yield lines
    print("\n".join(lines))


@pytest.mark.parametrize("name", LESSONS)
def test_the_release_is_what_a_learner_gets_from_make_class(course, run, name):
    run(sys.executable, "-m", "nbgrader", "generate_assignment", name, cwd=course)
    released = nbformat.read(course / "release" / name / f"{name}.ipynb", as_version=4)
    ours = [(cell.id, cell.source) for cell in build.without_answers(name).cells]
    got = [(c.id, c.source) for c in released.cells if not c.id.endswith("-marks")]
    assert got == ours
    marks = [cell for cell in released.cells if cell.id.endswith("-marks")]
    assert len(marks) == len(build.solutions(name))
    for cell in marks:
        assert re.fullmatch(r"# Exercise .*: \d points?\. Leave this cell as it is\.", cell.source)
    assert not any("llmcl_stub" in cell.metadata for cell in released.cells)


@pytest.mark.parametrize("grade", ["", "1"])
@pytest.mark.parametrize("name", LESSONS)
def test_marks_are_full_none_and_none(course, run, table, name, grade):
    for who in HAND_INS:
        if not (course / "submitted" / who / name).exists():
            hand_in(course, name, who)
    lab = {"LLMCL_LAB": str(course / "lab"), "LLMCL_GRADE": grade}
    run(sys.executable, "-m", "nbgrader", "autograde", name, "--force", cwd=course, **lab)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        most = book.find_assignment(name).max_score
        got = {who: book.find_submission(name, who).score for who in HAND_INS}
        lost = {
            grade.cell.name: grade.max_score
            for notebook in book.find_submission(name, "one-wrong").notebooks
            for grade in notebook.grades
            if grade.score < grade.max_score
        }
    shown = "".join(f"{f'{got[who]:g} of {most:g}':>11}" for who in HAND_INS)
    table.append(f"{name:<22}{grade or 'not set':<13}{shown}")
    assert most > len(build.solutions(name)) / 2
    assert got["right"] == most
    assert got["empty"] == got["wrong"] == 0
    numbers = [ONE[name], *(WITH_IT[name] if grade else [])]
    assert sorted(lost) == [f"marks-{number}" for number in numbers]
    assert got["one-wrong"] == most - sum(lost.values())


def test_the_learner_is_told_in_the_feedback(course, run):
    name = LESSONS[0]
    run(sys.executable, "-m", "nbgrader", "generate_feedback", name, cwd=course)
    text = (course / "feedback" / "wrong" / name / f"{name}.html").read_text(encoding="utf-8")
    assert "earns no marks" in text
