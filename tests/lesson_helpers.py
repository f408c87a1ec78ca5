"""What the tests of the lessons share: which there are, and what is prose and what is code."""

import re

from notebook_builder import FOLDER, build

# The order of reading, as planned; a lesson that is not written yet can be pointed to.
PLAN = (
    "00 00a 00b 01a 01b 02 02b 03 04a 04b 05 06 07 07b 08a 08b 08c 09 10 11 12a 12b 13 14 15 16"
).split()
WARM_UPS = {"00a", "00b", "07b"}
# Work of one's own over several hours; they have a form of their own.
CAPSTONES = {"15", "16"}
# What the main line can do without.
ELECTIVES = {"13", "14"}
SOURCES = sorted(path.stem for path in (FOLDER / "src").glob("*.py"))
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
# 90 and 91 are for looking up, not for learning.
LESSONS = [name for name in SOURCES if name < "9"]


def number_of(name):
    """A lesson's number: `04a` of `04a_one_head`."""
    return name.split("_")[0]


def is_full(name):
    """Whether a lesson has all ten parts: not the first one, no warm-up and no capstone."""
    return number_of(name) not in WARM_UPS | CAPSTONES | {"00"}


def code(notebook):
    """The code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook):
    """The prose cells, with the folded solutions that the builder made."""
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def written(notebook):
    """All cells but the folded solutions that the builder made."""
    return [cell for cell in notebook.cells if not re.search(r"-code-\d+-solution$", cell.id)]


def words(text):
    """The words a reader reads: no code, no markup, no folded blocks."""
    text = re.sub(
        r"<details>.*?</details>|```.*?```|<[^>]+>|(?<=\])\([^)\s]*\)", " ", text, flags=re.DOTALL
    )
    return re.findall(r"[^\W_][\w'’-]*", text)


def about(name):
    """A lesson's metadata, from its source."""
    return build.assemble(name).metadata["llmcl"]
