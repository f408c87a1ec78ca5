"""Two versions for a class: notebooks without any answer, and the same ones solved.

What gives an answer away is a folded block whose summary begins with "Solution" or with "What to
expect", and the block that follows an exercise's cell. Hints stay. Stored outputs stay too.
"""

import re
from pathlib import Path

import nbformat

from builder import places
from builder.execute import clean, run, texts
from builder.places import BuildError
from builder.source import FOLDED, assemble, seal, solutions
from builder.store import stored, write

ANSWER = re.compile(
    r"<details[^>]*>\s*<summary>\s*(?:Solution|What to expect)(?P<inside>.*?)</details>\n*",
    re.DOTALL | re.IGNORECASE,
)
SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
# A folded block that offers lines or pieces to choose from.
CHOICE = re.compile(r"<details><summary>I am stuck.*?</details>", re.DOTALL)


def write_class(name: str, folder: Path, execute: bool = False, force: bool = False) -> None:
    """Writes FOLDER/learner/NAME.ipynb without answers and FOLDER/teacher/NAME.ipynb with them.

    The teacher's notebook keeps the markers around each solution, and has outputs only with
    `execute`. Raises BuildError when the lesson is out of date or an answer is left.
    """
    learner, teacher = without_answers(name), assemble(name, solved=True)
    if execute:
        run(teacher, places.FOLDER, LLMCL_GRADE="1")
        clean(teacher)
    write(learner, folder / "learner" / f"{name}.ipynb", force)
    write(teacher, folder / "teacher" / f"{name}.ipynb", force)


def without_answers(name: str) -> nbformat.NotebookNode:
    """The stored notebook, outputs included, without anything that gives an answer away."""
    notebook = stored(name)
    cells = []
    for cell in notebook.cells:
        if FOLDED.search(cell.id):
            continue
        if cell.cell_type == "markdown":
            cell.source = unfold(cell.source)
        if cell.source:
            cells.append(cell)
    notebook.cells = cells
    for line in answers_left(name, notebook):
        raise BuildError(line)
    return seal(notebook)


def unfold(text: str) -> str:
    """A prose block without its folded answers; raises BuildError where one cannot be cut out."""
    for match in ANSWER.finditer(text):
        if "<details" in match["inside"]:
            raise BuildError("a folded solution holds another folded block; put them side by side.")
    text = ANSWER.sub("", text).strip("\n")
    for summary in SUMMARY.findall(text):
        if "solution" in summary.lower():
            raise BuildError(f"the folded block {summary!r} must begin with the word Solution.")
    return text


def answers_left(name: str, notebook: nbformat.NotebookNode) -> list[str]:
    """Where the text of a solution can still be read: a sentence for each place.

    A solution may stand nowhere; one of a single line, which is often a line of a kernel that the
    lesson shows, may stand in code. A folded choice of lines may hold the right one.
    """
    lines = []
    for cell_id, bodies in solutions(name).items():
        for body in bodies:
            answer = squeeze(body)
            short = len(body.strip().splitlines()) == 1
            for cell in notebook.cells:
                if short and cell.cell_type == "code":
                    continue
                if any(answer in squeeze(CHOICE.sub("", text)) for text in readable(cell)):
                    lines.append(
                        f"the solution of cell {cell_id} can also be read in cell {cell.id}; "
                        "fold it under a summary that begins with Solution, or change that cell."
                    )
    return lines


def readable(cell: nbformat.NotebookNode) -> list[str]:
    """The cell's own text, and what its outputs say."""
    return [cell.source] + [text for output in cell.get("outputs", []) for text in texts(output)]


def squeeze(text: str) -> str:
    """The text with single spaces, so that indents and line ends do not hide it."""
    return " ".join(text.split())
