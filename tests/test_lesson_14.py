"""Lesson 14: the shares, the ring and the paper say what is true, and MPI may be missing."""

import contextlib
import io

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import scaling
from llmcl.lab import lessons
from notebook_builder import build

# In cells that are not run here: they need a device, a browser or a reader.
ELSEWHERE = ("get_engine", "kernel_exercise", "explore(", "quiz(", "lab.start", "lab.summary")
WITH_MPI = ("why_not", "measured", "curves", "program =")


@pytest.fixture(scope="module")
def cells():
    return [cell.source for cell in code(build.assemble("14_beyond_one_machine", solved=True))]


@pytest.fixture(scope="module")
def names(cells, tmp_path_factory):
    """What the lesson's cells define without a device and without MPI, with the solutions."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        exec("from llmcl import lab, scaling", defined)
        for source in cells:
            if "def draw_ring" in source:
                source = source.split("lab.explore(")[0]
            if not any(word in source for word in (*ELSEWHERE, *WITH_MPI, "lab.show(")):
                exec(source, defined)
        exec(next(s for s in cells if "def grown" in s).split("picture, axes")[0], defined)
        yield defined


def test_the_item_touches_what_the_kernel_of_the_exercise_touches(names):
    total, grad = np.random.default_rng(1).normal(size=(2, 6)).astype(np.float32)
    args = total, grad, 3, 12, 6
    text = lessons.find("14.4").text
    assert_same_touches(names["add_share_item"], (6,), args, text, "add_share", group=(4,))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_every_row_is_dealt_once(names, size):
    dealt = [row for rank in range(size) for row in names["deal"](list(range(7)), rank, size)]
    assert sorted(dealt) == list(range(7))


@pytest.mark.parametrize("size", [2, 3, 7, 8])
def test_the_ranks_gradients_are_the_whole_one_s(names, size):
    deal, ids, targets = names["deal"], names["ids"], names["targets"]
    whole, _ = names["gradient_of"](ids, targets)
    ranks = [
        names["gradient_of"](deal(ids, r, size), deal(targets, r, size))
        if len(deal(ids, r, size))
        else (np.zeros(whole.size), 0)
        for r in range(size)
    ]
    gradients, counts = zip(*ranks, strict=True)
    assert np.abs(names["together"](gradients, counts) - whole).max() < 1e-14
    wrong = names["mean_of_means"](gradients, counts)
    assert np.abs(wrong - whole).max() > 1e-3 * np.abs(whole).max()


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_the_ring_gives_all_the_sum_and_sends_what_is_said(names, n):
    arrays = np.random.default_rng(n).normal(size=(n, 5 * n))
    summed, sent = names["all_reduce"](arrays)
    np.testing.assert_allclose(summed, np.tile(arrays.sum(axis=0), (n, 1)), rtol=0, atol=1e-13)
    assert (summed == summed[0]).all()
    assert sent == 2 * (n - 1) * arrays[0].nbytes // n


def test_the_picture_of_the_ring_says_what_is_whole(names):
    whole = [int((names["rounds"][done] == 4).sum()) for done in range(7)]
    assert whole == [0, 0, 0, 4, 8, 12, 16]
    for done in range(7):
        assert f"{whole[done]} of 16 pieces" in names["ring_words"](done)
    for before, after in zip(names["rounds"], names["rounds"][1:], strict=False):
        assert ((before != after).sum(axis=(1, 2)) == 1).all(), "one piece in each row"


def test_what_the_paper_says(names, cells):
    paper, (source,) = names["paper"], [s for s in cells if "def grown" in s]
    assert round(paper.speedup(1000)) == 23 and round(names["grown"](1000)) == 971
    assert max((64, 256, 1000), key=paper.speedup) == 256 and round(paper.speedup(256)) == 26
    assert all(words in source for words in ("down to 23", "26 at 256", "971 of 1000"))
    assert 10.5 < paper.speedup(16) < 11
    parts = paper.parts(1000)
    assert parts["compute"] < min(parts["fixed"], parts["latency"], parts["carrying"])


def test_without_mpi_the_lesson_says_one_sentence_and_goes_on(cells, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path))
    monkeypatch.setattr(scaling, "launcher", lambda: None)
    defined = {}
    exec("import numpy as np\nfrom llmcl import lab", defined)
    exec("step_seconds = lambda *_: 0", defined)
    used = [s for s in cells if any(word in s for word in WITH_MPI) and "lab.exercise" not in s]
    assert len(used) >= 9
    for source in used:
        exec(source, defined)
    said = capsys.readouterr().out
    assert said.count("there is no mpiexec here") == 1
    assert "✓" not in said and said.count("○ left out") >= 6
