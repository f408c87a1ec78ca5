"""Lesson 08a: the Python item touches what the kernel touches, and what is said of the V holds."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import reference
from llmcl.lab import lessons
from notebook_builder import build

NOT_RUN = "run_broken", "kernel_exercise", "quiz", "device_answer"


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("08a_backprop_linear", solved=True)):
            if not any(word in cell.source for word in NOT_RUN):
                exec(cell.source, defined)
        yield defined


def floats(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_one_weight_touches_what_the_exercise_s_kernel_touches(names):
    rows, k, n = 7, 3, 5
    args = floats(rows, k), floats(rows, n), floats(k, n), rows, k, n
    text = lessons.find("08a.4").text
    assert_same_touches(names["one_weight"], (n, k), args, text, "weight_gradient", group=(4, 4))


def test_the_lesson_s_backward_is_the_package_s(names):
    rng = np.random.default_rng(2)
    x, w, dy = (rng.normal(size=s) for s in ((7, 3), (3, 5), (7, 5)))
    dw, db = np.zeros((3, 5)), np.zeros(5)
    dx = reference.linear_backward(x, w, dy, dw, db)
    for got, want in zip(names["linear_backward"](x, w, dy), (dx, dw, db), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    np.testing.assert_allclose(names["input_gradient"](w, dy), dx, rtol=1e-12)


def test_one_item_for_each_place_is_a_race(names):
    from llmcl.lab import run_items

    run = run_items(names["one_place"], 5, floats(5, 3), floats(5, 4), np.zeros((3, 4)), 3, 4)
    assert any("dw[0]" in finding for finding in run.findings)


def test_the_sentences_below_the_slider_say_what_moves(names):
    for _, (name, place) in names["choices"]:
        change = names["moves"](name, place)
        sentence = names["words_of"](name, place)
        if name == "x":
            line, elsewhere = change[place[0]], np.delete(change, place[0], axis=0)
            assert f"row {place[0]} moves by {line.tolist()}" in sentence
        else:
            line, elsewhere = change[:, place[-1]], np.delete(change, place[-1], axis=1)
            assert f"column {place[-1]} moves by {line.tolist()}" in sentence
        assert not elsewhere.any()


@pytest.mark.parametrize(("dtype", "near"), [(np.float32, 1e-2), (np.float64, 1e-5)])
def test_the_best_step_is_near_the_cube_root_of_eps(names, dtype, near):
    steps, errors = names["steps"], names["errors"][dtype]
    best, root = steps[errors.argmin()], np.finfo(dtype).eps ** (1 / 3)
    assert root / 10 < best < 10 * root
    assert near / 6 < best < 6 * near


def test_both_sides_of_the_v_have_the_slopes_that_the_lesson_says(names):
    steps, errors = np.log10(names["steps"]), np.log10(names["errors"][np.float64])
    right, left = steps > -3.9, steps < -6
    right &= steps < -0.9
    assert np.polyfit(steps[right], errors[right], 1)[0] == pytest.approx(2, abs=0.05)
    assert np.polyfit(steps[left], errors[left], 1)[0] == pytest.approx(-1, abs=0.15)


def test_the_right_side_is_the_same_for_both_kinds_of_number(names):
    errors, far = names["errors"], names["steps"] > 0.09
    np.testing.assert_allclose(errors[np.float32][far], errors[np.float64][far], rtol=0.05)


def test_float32_reports_errors_of_a_percent_at_the_step_that_suits_float64(names):
    assert 3e-3 < names["worst"](np.float32, 1e-5) < 1e-1
    assert 1e-6 < names["errors"][np.float32].min() < 1e-4  # four or five digits are left


def test_the_wrong_slope_hides_in_float32_and_stays_in_float64(names):
    steps, errors = names["steps"], names["errors"]
    middle = (steps > 1e-10) & (steps < 1e-2)
    wrong = errors["wrong"][middle]
    assert wrong.max() < 1.2 * wrong.min() and 3e-4 < wrong.min() < 3e-3
    hidden = errors[np.float32] > wrong.max()
    assert hidden.sum() > 0.7 * len(steps)
    assert (errors[np.float64][middle] < wrong.min()).all()


def test_a_small_step_moves_the_loss_by_less_than_one_gap_of_float32(names):
    assert 2e-6 * names["middling"] < names["gap"]


def test_a_pile_of_gradients_swings_and_a_cleared_one_settles(names):
    (cleared, sizes), (piled, piled_sizes) = names["histories"].values()
    assert cleared[0] == piled[0] and cleared[1] == piled[1]  # the first step is the same
    assert (np.diff(cleared) < 0).all()
    turns = np.diff(np.sign(np.diff(piled)))
    assert np.count_nonzero(turns) > 10
    assert sizes[-1] < 0.1 * sizes[0] < piled_sizes.max()


def test_the_model_s_backward_begins_by_clearing(names):
    lines = names["inspect"].getsource(names["GPT"].backward).splitlines()[2:4]
    assert "flat_gradients" in lines[0] and "fill(whole, 0.0)" in lines[1]
