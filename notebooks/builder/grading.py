"""The teacher's notebook as nbgrader wants it: answer cells, and behind each one a cell with marks.

nbgrader clears the solutions itself; the course's nbgrader_config.py tells it to put our stubs in
their place. A cell with marks holds a hidden test, so a learner who runs all cells is not stopped
by it. It asks the lesson's own check what came of the answer, not whether the cell ended without
an error: an empty exercise ends well, because the lesson goes on with the reference.
"""

import re
import shutil
from pathlib import Path

import nbformat

from builder.classroom import unfold
from builder.places import BuildError
from builder.source import assemble, new_cell, seal
from builder.store import write

CONFIG = Path(__file__).resolve().with_name("nbgrader_config.py")
EXERCISE = re.compile(r'\blab\.(?:kernel_)?exercise\(\s*"([^"]+)"')
DIFFICULTY = re.compile(r"^\*\*Exercise (\S+)\*\* · (easy|medium|hard) ·", re.MULTILINE)
POINTS = {"easy": 1, "medium": 2, "hard": 3}
STUB = "llmcl_stub"  # where nbgrader_config.py finds the cell that a learner gets
TEST = """\
# Exercise {number}: {marks}. Leave this cell as it is.
### BEGIN HIDDEN TESTS
lab.mark("{number}")
### END HIDDEN TESTS"""


def write_course(name: str, folder: Path, force: bool = False) -> None:
    """Writes FOLDER/nbgrader/source/NAME/NAME.ipynb, and the course's nbgrader_config.py once.

    Raises BuildError for an exercise whose prose does not say how hard it is.
    """
    course = folder / "nbgrader"
    write(for_nbgrader(name), course / "source" / name / f"{name}.ipynb", force)
    if not (course / CONFIG.name).exists():
        shutil.copyfile(CONFIG, course / CONFIG.name)


def for_nbgrader(name: str) -> nbformat.NotebookNode:
    """The solved notebook, with nbgrader's metadata and without answers in its prose."""
    solved, stubs = assemble(name, solved=True), assemble(name)
    stub_of = {cell.id: cell.source for cell in stubs.cells}
    points = points_of(solved)
    cells = []
    for cell in solved.cells:
        number = EXERCISE.search(cell.source) if cell.cell_type == "code" else None
        if cell.cell_type == "markdown":
            cell.source = unfold(cell.source)
        if cell.source:
            cells.append(cell)
        if number:
            answer, test = number[1], f"{cell.id}-marks"
            if answer not in points:
                raise BuildError(f"exercise {answer} does not say easy, medium or hard.")
            cell.metadata["nbgrader"] = about(f"answer-{answer}", solution=True)
            cell.metadata[STUB] = stub_of[cell.id]
            cells.append(marks_cell(test, answer, points[answer]))
    solved.cells = cells
    return seal(solved)


def marks_cell(cell_id: str, number: str, points: int) -> nbformat.NotebookNode:
    """The locked cell that earns an exercise's points."""
    marks = "1 point" if points == 1 else f"{points} points"
    cell = new_cell("code", cell_id, TEST.format(number=number, marks=marks))
    cell.metadata["nbgrader"] = about(f"marks-{number}", grade=True, locked=True) | {
        "points": points
    }
    return cell


def about(grade_id: str, grade=False, solution=False, locked=False) -> dict:
    """nbgrader's metadata of one cell."""
    return {
        "schema_version": 3,
        "grade_id": grade_id.replace(".", "-"),
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
    }


def points_of(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """Points by exercise: 1, 2 or 3, as its prose calls it easy, medium or hard."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return {number: POINTS[how] for number, how in DIFFICULTY.findall(prose)}
