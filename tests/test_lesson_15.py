"""Lesson 15: what its text and pictures claim is so, and its answers hold beyond their cases."""

import json
import re
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmcl.bigram import bigram_counts, bigram_shares
from llmcl.data import batch, pretrain_rows, split_documents
from llmcl.lab import grammar, lessons
from llmcl.tokenizer import ByteBPE
from notebook_builder import FOLDER, ROOT

BOOK = lessons.of("15").exercises
WORDS = st.lists(st.sampled_from("the cat sat catch.".split()), max_size=7).map(" ".join)


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(FOLDER / "15_your_own_text.ipynb", as_version=4)


def printed(notebook):
    return "\n".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )


def test_the_first_run_says_what_the_prose_says(notebook):
    text = printed(notebook)
    assert re.search(r"all of the text: learning\n1 window in 40: +overfitting", text)
    assert "✓ below the bigram's loss" in text
    assert "✓ tokens and logits of llama.cpp are ours" in text
    per_parameter = float(re.search(r"([\d.]+) bytes for each parameter", text)[1])
    assert 1.0625 < per_parameter < 1.5


def test_the_bigram_of_the_lesson_is_asked_on_text_that_it_did_not_count(notebook):
    files = [text.split(grammar.BREAK) for text in grammar.texts().values()]
    stories = [story.strip() for file in files for story in file]
    train, held = split_documents(stories, 0.1, seed=0)
    tokenizer = ByteBPE.train(train[:400], 1024)
    inputs, targets = batch(pretrain_rows(train, tokenizer, 256), tokenizer.end_id)
    counts = bigram_counts(inputs, targets, 1024)
    x, y = batch(pretrain_rows(held, tokenizer, 256), tokenizer.end_id)
    loss = -np.log(bigram_shares(counts, 0.01)[x, y][y >= 0]).mean()
    assert f"bigram, on held-out text {loss:.2f}" in printed(notebook)


def test_the_recorded_costs_are_as_the_picture_says():
    rows = {}
    for path in (ROOT / "benchmarks").glob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        rows[path.stem] = {
            r["size"]: r["us_per_token"] for r in report["scaling"] if r["grows"] == "width"
        }
    gpu = rows.pop("H200")
    assert 0.8 < gpu[256] / gpu[64] < 1.25 and gpu[1024] < 5 * gpu[256]
    assert rows and all(cpu[1024] > 50 * cpu[64] for cpu in rows.values())


def test_a_run_that_is_stopped_at_once_still_has_its_curves(notebook):
    cell = next(cell for cell in notebook.cells if "def at_steps" in cell.source)
    names = {}
    exec(cell.source.split("\n\n")[0], names)  # the function, without what it is used for
    steps = [SimpleNamespace(step=1, loss=6.9), SimpleNamespace(step=10, loss=5.0)]
    for last, losses in ((1, [6.9, 6.9]), (5, [6.9, 6.9]), (14, [6.9, 5.0])):
        seen = SimpleNamespace(steps=steps, values={"held out": [(0, 7.0), (last, 6.5)]})
        assert names["at_steps"](seen) == [[0, last], losses, [7.0, 6.5]]


@given(WORDS, WORDS)
def test_longest_copied_is_what_trying_every_run_gives(sample, known):
    words, others = sample.split(), known.split()
    runs = {tuple(others[i:j]) for i in range(len(others)) for j in range(i + 1, len(others) + 1)}
    found = [
        j - i
        for i in range(len(words))
        for j in range(i + 1, len(words) + 1)
        if tuple(words[i:j]) in runs
    ]
    assert BOOK["15.6"].reference(sample, known) == max(found, default=0)


@given(st.lists(st.floats(0.1, 9), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_the_judge_is_about_the_held_out_loss(held, random):
    train = [random.uniform(0.1, 9) for _ in held]
    verdict, best = BOOK["15.5"].reference(train, held)
    assert held[best] == min(held)
    assert (verdict == "learning") == (held[-1] <= 1.02 * min(held))
    assert BOOK["15.5"].reference([-t for t in train], held)[1] == best
    falling = [float(-n) for n in range(len(held))]
    assert BOOK["15.5"].reference(falling, held)[0] != "broken"


def test_a_mean_of_batches_is_the_mean_of_their_places():
    rng = np.random.default_rng(1)
    batches = [(rng.normal(size=(n, 4)), rng.integers(-1, 3, (n, 4))) for n in (1, 3, 8)]
    got = BOOK["15.2"].reference(lambda x, y: x[y >= 0].mean(), batches)
    want = np.concatenate([x[y >= 0] for x, y in batches]).mean()
    assert np.isclose(got, want)
