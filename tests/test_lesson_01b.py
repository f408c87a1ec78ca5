"""Lesson 01b: the Python items touch what the kernels touch, and its pictures say what is true."""

import re

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl.lab import gaps, lessons, local, run_items
from llmcl.resources import kernels_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without what needs a device."""
    words = ("run_broken", "device_answer", "quiz", "engine", "speed(", "results", "lab.build(")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("01b_groups", solved=True)):
            if not any(word in cell.source for word in words) and "total(" not in cell.source:
                exec(cell.source, defined)
        yield defined


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def numbers(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(("n", "group"), [(16, 16), (21, 7), (13, 8), (5, 1)])
def test_the_tree_sum_touches_what_its_kernel_touches(names, rng, n, group):
    sums = zeros(-(-n // group))
    args = numbers(rng, n), sums, local(group), n
    text = lessons.find("01b.2").text
    assert_same_touches(names["sum_item"], n, args, text, "group_sum", group=group)


def test_the_mirror_touches_what_its_kernel_touches(names, rng):
    args = numbers(rng, 12), zeros(12), local(4)
    text = names["mirror_text"]
    assert_same_touches(names["mirror_item"], 12, args, text, "mirror", group=4)


@pytest.mark.parametrize(("item", "size"), [("naive", (5, 7)), ("swapped", (7, 5))])
def test_both_products_touch_what_their_kernels_touch(names, rng, item, size):
    args = numbers(rng, 5, 6), numbers(rng, 6, 7), zeros(5, 7), 5, 7, 6
    text = (kernels_dir() / "matmul.cl").read_text(encoding="utf-8")
    text = text[: text.index("__kernel void matmul_tiled")]
    assert_same_touches(names[item], size, args, text, f"matmul_{item}", group=(4, 4))


def test_the_tiled_product_touches_what_its_kernel_touches(names, rng):
    def item(a, b, c, ta, tb, m, n, k):
        return names["tiled_item"](a, b, c, ta, tb, m, n, k, 4)

    args = numbers(rng, 5, 6), numbers(rng, 6, 7), zeros(5, 7), local(16), local(16), 5, 7, 6
    text = lessons.find("01b.6").text.replace("T * T", "16")
    assert_same_touches(item, (7, 5), args, text, "tiled", group=(4, 4))


def test_neighbours_of_the_naive_product_are_apart_and_those_of_the_other_side_by_side(names, rng):
    found = {}
    for item in ("naive", "swapped"):
        args = numbers(rng, 5, 6), numbers(rng, 6, 7), zeros(5, 7), 5, 7, 6
        run = run_items(names[item], (5, 7) if item == "naive" else (7, 5), *args)
        found[item] = gaps(run, "a"), gaps(run, "b")
    assert found == {"naive": (6, 0), "swapped": (0, 1)}


def test_the_shuffled_tree_says_what_it_shows(names):
    for seed in range(20):
        seen, right = names["replay"](False, seed), names["right"]
        said = names["in_words"](seed)
        wrong, last = map(int, re.search(r"them (\d+) of 15 .* is (\d+)\.$", said).groups())
        assert np.isfinite(seen).sum() == 15
        assert wrong == sum(a != b for a, b in zip(seen.flat, right.flat, strict=True) if a == a)
        assert last == seen[3, 0]
        assert (wrong == 0) == (last == 120)


@pytest.mark.parametrize(("gap", "wanted", "fetched"), [(0, 1, 1), (1, 16, 2), (4, 16, 8),
                                                        (8, 16, 16), (16, 16, 16)])  # fmt: skip
def test_the_picture_of_the_pieces_says_how_many(names, gap, wanted, fetched):
    said = names["piece_words"](gap)
    assert f"want: {wanted} (dark" in said
    assert f"Fetched: {8 * fetched}, in {fetched} of" in said


def test_the_fault_that_a_processor_hides_gives_28_on_a_strict_device():
    from llmcl.lab import strict

    if not strict.available():
        pytest.skip("Oclgrind's wheel exists for Linux on x86-64 only")
    broken = lessons.find("01b.no_barrier")
    verdict = strict.run_texts("01b.no_barrier", [broken.text], tries=True)[0]
    assert verdict.cases == ["at 0 you have 28, expected 120"]
    assert verdict.findings[0].kind == "data race"
    assert verdict.findings[0].source.startswith("part[me] = i < n")
