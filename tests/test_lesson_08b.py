"""Lesson 08b: the Python items touch what the kernels touch, and the pictures show what is said."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import reference
from llmcl.lab import lessons
from llmcl.resources import kernels_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the kernels' cells."""
    skipped = "run_broken", "show_broken", "device_answer", "kernel_exercise", "quiz", "explore"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("08b_backprop_hard", solved=True)):
            lines = cell.source.splitlines()
            if not any(word in cell.source for word in skipped[:-1]):
                exec("\n".join(x for x in lines if not x.startswith("lab.explore(")), defined)
        yield defined


def floats(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_one_row_back_touches_what_the_exercise_s_kernel_touches(names):
    logits, targets = floats(1, 5, 7), np.array([2, -1, 0, 6, -1], np.int32)
    kept = reference.cross_entropy(logits.astype(float), targets)[1].astype(np.float32)
    args = logits, targets, kept, np.zeros((5, 7), np.float32), 5, 7, 3
    text = lessons.find("08b.3").text
    assert_same_touches(names["one_row_back"], 5, args, text, "share_minus_one_hot", group=2)


def test_the_exercise_s_kernel_is_the_package_s_formula(names):
    """What the lesson's item writes is what the package's reference says."""
    logits, targets = 3 * floats(2, 4, 11).astype(float), np.array([3, -1, 10, 0], np.int32)
    kept = reference.cross_entropy(logits, targets)[1]
    want = reference.cross_entropy_backward(logits, targets, kept)
    np.testing.assert_allclose(names["logits_backward"](logits, targets), want, atol=1e-15)


def test_one_norm_back_touches_what_the_kernel_touches(names):
    rows, c = 3, 5
    x, gamma, dy = floats(3, rows, c), floats(4, c), floats(5, rows, c)
    mean, rstd = (a.astype(np.float32) for a in reference.layer_norm(x, gamma, gamma)[1:])
    args = x, gamma, mean, rstd, dy, np.zeros((rows, c), np.float32), rows, c
    text = (kernels_dir() / "layer_norm.cl").read_text(encoding="utf-8")
    item = names["one_norm_back"]
    assert_same_touches(item, rows, args, text, "layer_norm_backward_input", group=2)


def test_gather_item_touches_what_the_exercise_s_kernel_touches(names):
    places, V, c = 5, 7, 3
    ids, dx = np.array([3, 1, 3, 0, 3], np.int32), floats(6, places, c)
    args = ids, dx, floats(7, V, c), places, V, c
    text = lessons.find("08b.7").text
    assert_same_touches(names["gather_item"], (c, V), args, text, "gather", group=(2, 2))


def test_the_package_s_kernel_gathers_the_same_numbers(names):
    """With a width of 1, embedding_backward_tokens touches what gather_item touches."""
    places, V, c = 5, 7, 3
    ids, dx = np.array([3, 1, 3, 0, 3], np.int32), floats(8, places, c)
    args = ids, dx, floats(9, V, c), places, V, c, 1
    text = (kernels_dir() / "embedding.cl").read_text(encoding="utf-8")

    def item(ids, dx, dtokens, places, V, C, width):
        names["gather_item"](ids, dx, dtokens, places, V, C)

    assert_same_touches(item, (c, V), args, text, "embedding_backward_tokens", group=(2, 2))


@pytest.mark.parametrize("seed", range(5))
def test_scatter_in_step_loses_all_but_one_place(names, seed):
    """Whichever place writes last, the others are lost; `dtable[ids] += dx` does the same."""
    ids, dx = np.array([2, 0, 2, 1, 2], np.int32), np.array([[1.0], [5], [10], [7], [100]])
    dtable = np.zeros((3, 1))
    args = ids, dx, dtable, 5, 1
    run = names["lab"].run_items(names["scatter_item"], (1, 5), *args, group=(1, 5), seed=seed)
    assert "both use dtable[2]" in run.findings[0]
    assert dtable[2, 0] in (1, 10, 100) and dtable[:2, 0].tolist() == [5, 7]
    by_numpy = np.zeros((3, 1))
    by_numpy[ids] += dx
    assert by_numpy[:, 0].tolist() == [5, 7, 100]


def test_the_heat_maps_show_what_their_words_say(names):
    for sure in (0.0, 1.0, 2.0, 4.0, 6.0):
        shares = reference.softmax(names["logits_when"](sure))
        d = 7 * names["logits_backward"](names["logits_when"](sure), names["next_words"])
        right = names["next_words"][:7]
        one_hot = np.eye(7)[right]
        np.testing.assert_allclose(d[:7], shares[:7] - one_hot, atol=1e-12)
        assert not d[7].any() and np.allclose(d.sum(axis=1), 0)
        said = names["pushes_in_words"](sure)
        for number in (d[0].min(), d[5].min(), d[5].max()):
            assert f"{number:.2f}" in said
    assert np.abs(np.delete(d, 5, axis=0)).max() < 0.02, "who is right and sure falls silent"
    assert d[5].min() < -0.98 and d[5].max() > 0.98, "who is wrong and sure does not"


def test_the_parts_of_a_wish_add_up_to_the_kernel_s_formula(names):
    six = names["six"]
    for name, g in names["wishes"].items():
        common, louder, left = names["parts_of"](g)
        np.testing.assert_allclose(common + louder + left, g, atol=1e-12)
        by_formula = names["norm_backward"](g[None], six[None], np.ones((1, 1)))[0]
        np.testing.assert_allclose(left, by_formula, atol=1e-12)
        silent = name in ("all alike", "louder")
        assert (np.abs(left).max() < 1e-4) == silent
        assert f"left over {np.abs(left).max():.2f}" in names["wish_words"](name)


def test_the_lesson_s_layer_norm_backward_is_the_package_s(names):
    x, gamma, dy = (floats(10 + i, *s).astype(float) for i, s in enumerate(((4, 7), (7,), (4, 7))))
    mean, rstd = reference.layer_norm(x, gamma, gamma, 1e-5)[1:]
    dgamma, dbeta = np.zeros(7), np.zeros(7)
    dx = reference.layer_norm_backward(x, gamma, mean, rstd, dy, dgamma, dbeta)
    got = names["layer_norm_backward"](x, gamma, dy)
    for mine, theirs in zip(got, (dx, dgamma, dbeta), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)


def test_a_test_with_dy_all_one_is_blind_to_the_third_way(names):
    """With a fresh norm, "all 1" has a gradient of 0, whether the term is there or not."""
    x = floats(20, 3, 9).astype(float)
    away = x - x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt((away**2).mean(axis=1, keepdims=True) + 1e-5)
    ones, other = np.ones((3, 9)), floats(21, 3, 9).astype(float)
    for g, blind in ((ones, True), (other, False)):
        whole = names["norm_backward"](g, away * rstd, rstd)
        assert np.allclose(whole, names["forgotten"](g, away * rstd, rstd), atol=1e-8) == blind


def test_the_positions_of_the_lesson_are_the_package_s(names):
    ids, dx = np.zeros((3, 4), np.int32), floats(22, 3, 4, 2).astype(float)
    dtokens, dpositions = np.zeros((5, 2)), np.zeros((6, 2))
    reference.embedding_backward(ids, dx, dtokens, dpositions)
    np.testing.assert_allclose(names["positions_backward"](dx, 6), dpositions, atol=1e-15)
