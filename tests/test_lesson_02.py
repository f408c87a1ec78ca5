"""Lesson 02: its Python item is the kernel, and what the lesson says of tokens is so."""

import nbformat
import numpy as np
import pytest
from touches import assert_same_touches

from llmcl.data import read_sentences
from llmcl.resources import data_dir, kernels_dir
from llmcl.tokenizer import ByteBPE, WordDictionary
from notebook_builder import FOLDER

KOREAN = "태양은 땅과 바다를 따뜻하게 해요."


@pytest.fixture(scope="module")
def cells():
    notebook = nbformat.read(FOLDER / "02_tokens.ipynb", as_version=4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def prose():
    notebook = nbformat.read(FOLDER / "02_tokens.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return " ".join(text.split())


def cell_with(cells, text):
    (found,) = [cell for cell in cells if text in cell.source]
    return found


def printed(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def test_the_item_of_the_lesson_touches_what_the_kernel_touches(cells):
    names = {}
    exec("from llmcl import lab\n" + cell_with(cells, "def count_item").source, names)
    ids = np.array([1, 2, 1, 2, -1, 1, 2, 2, 2], np.int32)
    text = (kernels_dir() / "pair_counts.cl").read_text(encoding="utf-8")
    for size in (9, 16):  # more work-items than places, too
        args = ids, np.zeros((3, 3), np.int32), 9, 3
        assert_same_touches(names["count_item"], size, args, text, "pair_counts", group=4)


def test_the_hasty_item_loses_counts(cells):
    assert printed(cell_with(cells, "def hasty_item")).startswith("1 instead of 8")


def test_the_numbers_in_the_prose(prose):
    sentences = read_sentences(data_dir() / "pretrain.txt")
    first = sentences[0]
    tokenizer = ByteBPE.train(sentences, 512)
    english, korean = len(tokenizer.encode(first)), len(tokenizer.encode(KOREAN))
    assert f"English in {english} tokens, Korean in {korean}." in prose
    assert f"{len(first.encode())} tokens for eight words" in prose
    assert korean // english == 5 and "five times as many tokens" in prose
    assert len(first.split()) == 8
    assert WordDictionary.train(sentences).decode([0]) == "<unk>"


def test_what_the_last_exercise_lets_expect(cells, prose):
    """Trained on other Korean sentences, the measured one takes fewer tokens, and still over 30."""
    names = {}
    source = cell_with(cells, "more_korean = [").source
    exec(source[: source.index("]") + 1], names)
    sentences = read_sentences(data_dir() / "pretrain.txt")
    assert names["more_korean"][0] == KOREAN
    learned = ByteBPE.train([*sentences, *names["more_korean"]], 800)
    assert len(learned.encode(KOREAN)) == 6 and "Somewhere between 47 and 6" in prose
    tokenizer = ByteBPE.train([*sentences, *names["more_korean"][1:]], 800)
    assert 30 < len(tokenizer.encode(KOREAN)) < 47
    assert "with three short sentences still above 30" in prose


def test_the_slider_begins_with_bytes_and_ends_with_words(cells):
    cell = cell_with(cells, "lab.explore_pieces(")
    assert "stops = [0, " in cell.source and "255]" in cell.source
    (output,) = cell.outputs
    assert "␣the" in output.data["text/html"] and "ED" in output.data["text/html"]
    assert output.data["text/plain"].endswith(
        "After 64 merges: English in 16 tokens, Korean in 47."
    )


def test_a_wrong_count_is_told_apart_from_a_tie_without_a_rule(cells):
    text = printed(cell_with(cells, "forth, back ="))
    own, other = text.splitlines()
    assert own.endswith("The sun warms the land and the sea.")
    assert not other.endswith("The sun warms the land and the sea.")
