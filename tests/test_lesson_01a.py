"""Lesson 01a: its Python items touch what its kernels touch, and its numbers are what it says."""

import nbformat
import numpy as np
import pytest
from touches import assert_same_touches

from llmcl import lab
from llmcl.lab import lessons, strict
from llmcl.lab.lessons.lesson_01a import BROKEN, EXERCISES, PRODUCT, mystery
from notebook_builder import FOLDER

NOTEBOOK = nbformat.read(FOLDER / "01a_a_first_kernel.ipynb", as_version=4)
SOURCES = [cell.source for cell in NOTEBOOK.cells if cell.cell_type == "code"]


def from_lesson(*starts):
    """The names that the lesson's first cells with these beginnings define."""
    names = {"np": np, "lab": lab, "get_global_id": lab.get_global_id}
    for start in starts:
        cell = next(source for source in SOURCES if start in source)
        exec(cell[cell.index(start) :].split("\n\n")[0], names)
    return names


def numbers(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def test_the_item_that_adds_touches_what_the_kernel_touches():
    found = from_lesson("add_text =", "def add_item(a, b, c, n):")
    a, b, c = numbers(7, 7, 7)
    assert_same_touches(found["add_item"], 7, (a, b, c, 7), found["add_text"], "add", group=4)


def test_the_item_of_the_product_touches_what_the_kernel_touches():
    item = from_lesson("def product_item")["product_item"]
    a, b, c = numbers((3, 5), (5, 7), (3, 7))
    args = (a, b, c, 3, 7, 5)
    assert_same_touches(item, (3, 7), args, PRODUCT.text, "matmul_naive", group=(4, 4))


def test_the_riddle_is_the_kernel_with_swapped_ids():
    a, b, c = numbers((3, 5), (5, 7), (3, 7))
    args = (a, b, c, 3, 7, 5)
    assert_same_touches(mystery, (7, 3), args, PRODUCT.text, "matmul_swapped", group=(4, 4))
    text = BROKEN["01a.swapped_ids"].text
    assert_same_touches(mystery, (3, 7), args, text, "matmul_naive", group=(4, 4))


def test_the_pictures_tell_the_two_apart():
    a, b, c = numbers((4, 4), (4, 4), (4, 4))
    item = from_lesson("def product_item")["product_item"]
    naive, swapped = (
        lab.run_items(run, (4, 4), a, b, c.copy(), 4, 4, 4) for run in (item, mystery)
    )
    assert [lab.gaps(naive, name) for name in "ab"] == [4, 0]
    assert [lab.gaps(swapped, name) for name in "ab"] == [0, 1]


def test_whole_groups():
    whole_groups = from_lesson("def whole_groups")["whole_groups"]
    assert [whole_groups(n, 4) for n in (1, 4, 5, 10, 12)] == [4, 4, 8, 12, 12]


def test_a_float64_array_is_seen_as_twice_as_many_floats():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    assert x.view(np.float32)[:4].tolist() == [0.0, 1.875, 0.0, 2.0]


@pytest.mark.skipif(not strict.available(), reason="Oclgrind's wheel is for Linux on x86-64 only")
def test_only_the_strict_device_sees_that_the_guard_is_gone():
    broken = BROKEN["01a.no_guard"]
    verdict = strict.run_texts("01a.no_guard", [broken.text], tries=True)[0]
    assert verdict.cases == ["", ""]
    assert {finding.kind for finding in verdict.findings} == {"invalid read", "invalid write"}
    assert all(finding.item == "(3,0,0)" for finding in verdict.findings)


@pytest.mark.parametrize("number", ["01a.3", "01a.6", "01a.7", "01a.8"])
def test_the_answer_is_in_the_lesson_and_in_its_module(number):
    """The solution that a reader unfolds is the reference that stands in for an empty answer."""
    task = EXERCISES[number]
    folded = [c.source for c in NOTEBOOK.cells if c.id.endswith("-solution")]
    answers = [text for text in folded if f'kernel_exercise("{number}"' in text]
    assert len(answers) == 1 and task.text.strip() in answers[0]


def test_every_usual_order_of_the_steps_is_a_different_one():
    task = lessons.find("01a.2")
    wrong = [function() for function, _ in task.mistakes]
    assert len(set(wrong)) == len(wrong) and task.reference() not in wrong
