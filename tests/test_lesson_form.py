"""Every lesson has the form of a lesson, as its source says.

The ten parts are known by the ids of the prose blocks that begin them: `idea`, `numpy`, `item`
(one element at a time), `opencl`, `check`, `see`, `break`, `exercises`, `recap` (what you have
now), `bridge` (the last block, which names the next lesson). Each begins with a heading, but for
`bridge`. The first four come in this order, and `recap` and `bridge` at the end. Lesson 00, the
warm-ups and the capstones need only `promise`, `recap` and `bridge`, and a capstone asks no
questions at the end. `promise` is every lesson's first block.
"""

import re

import pytest

from lesson_helpers import (
    CAPSTONES,
    ELECTIVES,
    LESSONS,
    PLAN,
    WARM_UPS,
    about,
    code,
    is_full,
    number_of,
    written,
)
from notebook_builder import build

PARTS = "idea numpy item opencl check see break exercises recap bridge".split()
ROWS = ("After this you can", "You need", "Time", "New words")
CELLS_WITHOUT_A_QUESTION = 8


@pytest.fixture(params=LESSONS)
def lesson(request):
    return request.param


def blocks(lesson):
    """The prose blocks of a lesson: the id in the source -> the text, in order."""
    cells = written(build.assemble(lesson))
    start = number_of(lesson) + "-"
    return {c.id.removeprefix(start): c.source for c in cells if c.cell_type == "markdown"}


def test_the_header_is_whole(lesson):
    header = about(lesson)
    allowed = {"title", "needs", "introduces", "minutes", "numpy"}
    assert set(header) - {"source", "cells"} <= allowed
    assert isinstance(header["title"], str) and header["title"]
    for key in ("needs", "introduces"):
        assert all(isinstance(item, str) for item in header[key]), f"{key}: quote '{header[key]}'"
        assert len(set(header[key])) == len(header[key]), f"{key} says something twice"
    assert set(header["minutes"]) == {"core", "full"}
    assert all(isinstance(m, int) and m > 0 for m in header["minutes"].values())
    assert isinstance(header.get("numpy", False), bool), "numpy: true or false"


def test_the_first_block_promises(lesson):
    name, promise = next(iter(blocks(lesson).items()))
    assert name == "promise"
    number, title = number_of(lesson), about(lesson)["title"]
    if number in WARM_UPS:
        title = "Warm-up: " + title.removeprefix("Warm-up: ")
    assert promise.splitlines()[0] == f"# {number} · {title}"
    for row in ROWS:
        assert f"| **{row}** |" in promise, f"the table of `promise` lacks the row {row!r}"
    (time,) = [line for line in promise.splitlines() if "**Time**" in line]
    for minutes in about(lesson)["minutes"].values():
        assert re.search(rf"\b{minutes}\b", time), f"the row Time does not say {minutes}"


def test_it_has_its_parts(lesson):
    text = blocks(lesson)
    wanted = PARTS if is_full(lesson) else ["recap", "bridge"]
    missing = [part for part in wanted if part not in text]
    assert not missing, f"{lesson} lacks the prose blocks with the ids {missing}"
    for part in wanted[:-1]:
        assert text[part].startswith("## "), f"{part} must begin with a heading (## …)"
    order = [name for name in text if name in PARTS[:4]]
    if is_full(lesson):
        assert order == PARTS[:4], f"these come in the order {PARTS[:4]}, not {order}"
    assert [name for name in text if name in PARTS][-2:] == ["recap", "bridge"]
    assert list(text)[-1] == "bridge", "the last prose block is `bridge`"


def first_without(numbers, skipped):
    """The first of the numbers that is not skipped, in a list; empty if there is none."""
    return [n for n in numbers if n not in skipped][:1]


def test_the_bridge_names_the_next_lesson(lesson):
    after = PLAN[PLAN.index(number_of(lesson)) + 1 :]
    if not after:
        pytest.skip("the last lesson")
    nexts = {after[0], *(n for skip in (WARM_UPS, ELECTIVES) for n in first_without(after, skip))}
    found = set(re.findall(r"\b\d\d[a-z]?\b", blocks(lesson)["bridge"]))
    assert nexts & found, f"the bridge names none of {sorted(nexts)}"


def test_it_asks_what_the_reader_remembers(lesson):
    if number_of(lesson) in CAPSTONES:
        pytest.skip("a capstone is a question as a whole")
    number = number_of(lesson)
    programs = "\n".join(cell.source for cell in code(build.assemble(lesson)))
    asked = re.findall(rf'lab\.quiz\("{number}\.q(\d)"\)', programs)
    least = 5 if is_full(lesson) else 3
    assert len(asked) >= least, f"{lesson} asks {len(asked)} questions, and {least} are wanted"
    assert asked == [str(i + 1) for i in range(len(asked))], f"they are q1, q2, …, not {asked}"


def test_the_reader_is_asked_something_every_few_cells(lesson):
    silent = []
    for cell in written(build.assemble(lesson)):
        is_prose = cell.cell_type == "markdown"
        text = re.sub(r"```.*?```|`[^`]*`|\(http\S+\)", " ", cell.source, flags=re.DOTALL)
        silent = [] if is_prose and "?" in text else [*silent, cell.id]
        assert len(silent) < CELLS_WITHOUT_A_QUESTION, (
            f"ask the reader a question somewhere from {silent[0]} to {silent[-1]}"
        )


def test_no_line_of_prose_becomes_a_list_by_accident(lesson):
    """Markdown takes a line that begins with a plus for a list; ours begin with - or a number."""
    for cell in written(build.assemble(lesson)):
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```", " ", cell.source, flags=re.DOTALL)
            assert not re.search(r"^\s*\+ ", text, re.MULTILINE), cell.id
