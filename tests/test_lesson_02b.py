"""Lesson 02b: its Python item is the kernel, and what its text and pictures claim is so."""

from collections import Counter

import nbformat
import numpy as np
import pytest
from touches import assert_same_touches

from llmcl.bigram import bigram_counts, bigram_loss, bigram_shares
from llmcl.data import IGNORED, batch, pretrain_rows, read_sentences
from llmcl.lab import lessons
from llmcl.resources import data_dir, kernels_dir
from llmcl.tokenizer import ByteBPE
from notebook_builder import FOLDER

SENTENCES = read_sentences(data_dir() / "pretrain.txt")
TOKENIZER = ByteBPE.train(SENTENCES, 512)
V = TOKENIZER.vocab_size
INPUTS, TARGETS = batch(pretrain_rows(SENTENCES, TOKENIZER), TOKENIZER.end_id)


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(FOLDER / "02b_counting_pairs.ipynb", as_version=4)


def source_with(notebook, text):
    (found,) = [c.source for c in notebook.cells if c.cell_type == "code" and text in c.source]
    return found


def test_the_item_of_the_lesson_touches_what_the_kernel_touches(notebook):
    names = {}
    exec("from llmcl import lab\n" + source_with(notebook, "def count_item"), names)
    ids = np.array([0, 1, 2, 3, 4, 5, 3, 6], np.int32)
    text = (kernels_dir() / "pair_counts.cl").read_text(encoding="utf-8")
    args = ids, np.zeros((7, 7), np.int32), 8, 7
    assert_same_touches(names["count_item"], 8, args, text, "pair_counts")


def test_the_curves_are_as_the_picture_says(notebook):
    names = {}
    exec(source_with(notebook, "fresh = [").split("new_inputs")[0], names)
    inputs, targets = batch(pretrain_rows(names["fresh"], TOKENIZER), TOKENIZER.end_id)
    seen = targets != IGNORED
    counts = bigram_counts(INPUTS, TARGETS, V)

    def fresh(extra):
        return -np.log(bigram_shares(counts, extra)[inputs[seen], targets[seen]]).mean()

    assert 0.45 < bigram_loss(INPUTS, TARGETS, V, 1e-4) < 0.55
    assert 5 < bigram_loss(INPUTS, TARGETS, V, 1.0) < 5.5
    assert 3 < fresh(0.003) < 3.5 < fresh(1e-4) and 5.4 < fresh(1.0) < 5.6
    assert round(np.log(V), 1) == 6.2
    assert set(inputs[seen]) <= set(INPUTS.flat) and set(targets[seen]) <= set(TARGETS.flat)


def test_two_tokens_back_cost_about_what_the_last_exercise_says():
    followers, beginnings = Counter(), Counter()
    for row, wanted in zip(INPUTS.tolist(), TARGETS.tolist(), strict=True):
        for place, target in enumerate(wanted):
            if target != IGNORED:
                last_two = tuple(row[max(0, place - 1) : place + 1])
                followers[last_two, target] += 1
                beginnings[last_two] += 1
    total = sum(followers.values())
    loss = -sum(n * np.log(n / beginnings[two]) for (two, _), n in followers.items()) / total
    assert total == (TARGETS != IGNORED).sum()
    assert round(loss, 2) == 0.03


def test_all_that_is_drawn_are_pairs_of_the_data():
    counts = bigram_counts(INPUTS, TARGETS, V)
    table = bigram_shares(counts, 1e-9)
    with_followers = counts.sum(axis=1) > 0
    left_over = np.where(counts > 0, 0, table).sum(axis=1)
    assert left_over[with_followers].max() < 1e-6


def test_the_check_of_the_shift_finds_all_rows():
    shifted_once = lessons.find("02b.4").reference
    for inputs, targets in pretrain_rows(SENTENCES, TOKENIZER):
        assert shifted_once(inputs, targets)
        assert not shifted_once(inputs, inputs)
        assert not shifted_once(inputs[:-1], targets[1:])
