"""Lesson 05: the Python items touch what the kernels touch, and what is said of GELU holds."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import reference
from llmcl.lab import lessons
from llmcl.reference import bounds
from llmcl.resources import kernels_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("05_feed_forward", solved=True)):
            if not any(word in cell.source for word in ("run_broken", "kernel_exercise", "quiz")):
                exec(cell.source, defined)
        yield defined


def floats(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def text_of(file):
    return (kernels_dir() / f"{file}.cl").read_text(encoding="utf-8")


def test_one_gelu_touches_what_gelu_forward_touches(names):
    args = floats(13), np.zeros(13, np.float32), 13
    assert_same_touches(names["one_gelu"], 13, args, text_of("gelu"), "gelu_forward", group=4)


def test_one_output_touches_what_the_exercise_s_kernel_touches(names):
    rows, k, n = 3, 4, 5
    args = floats(rows, k), floats(k, n), floats(n), np.zeros((rows, n), np.float32), rows, n, k
    text = lessons.find("05.3").text
    assert_same_touches(names["one_output"], (rows, n), args, text, "linear", group=(2, 2))


def test_the_two_forms_are_as_far_apart_as_the_lesson_says(names):
    line, gap = names["line"], names["gap"]
    assert np.abs(gap).max() == pytest.approx(4.73e-4, abs=5e-7)
    assert abs(line[names["worst"]]) == pytest.approx(2.7, abs=0.011)
    assert (np.abs(gap)[[0, 600, 1200]] < 1e-6).all()
    assert np.abs(gap - gap[::-1]).max() < 1e-12  # the same on both sides


def test_the_bound_of_rounding_lies_far_below_the_gap(names):
    off = bounds.gelu(names["line"])[0]
    assert off.max() < 4.7e-4 / 100


def test_both_copies_of_the_forms_are_the_package_s(names):
    line = names["line"]
    np.testing.assert_allclose(names["gelu"](line), reference.gelu(line), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(names["gelu_tanh"](line), reference.gelu(line), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        lessons.find("05.2").reference(line), reference.gelu(line), rtol=1e-12, atol=1e-15
    )


def test_the_steepest_slope_of_gelu_is_the_one_that_the_fused_bound_takes():
    x = np.linspace(-10, 10, 100_001)
    slope = np.abs(np.diff(reference.gelu(x)) / np.diff(x)).max()
    from llmcl.lab.lessons.lesson_05 import STEEPEST

    assert slope < STEEPEST < 1.01 * slope


def test_large_numbers_come_back_as_they_are_or_as_zero(names):
    far, bent = names["far"], names["far_bent"]
    np.testing.assert_array_equal(bent, np.where(far >= 20, far, 0))


def test_the_other_way_of_writing_it_gives_nan_for_large_numbers_only(names):
    far, u = names["far"], names["u_of"](names["far"])
    with np.errstate(all="ignore"):
        e = np.exp(2 * u)
        broken = np.isnan(far * e / (1 + e))
    assert broken.tolist() == [False] * 5 + [True] * 2
    with np.errstate(all="ignore"):
        assert np.isfinite(far / (1 + np.exp(-2 * u))).all()


def test_the_picture_of_the_places_says_what_happens_at_every_token(names):
    for t in range(names["T"]):
        assert names["place_words"](t) == (
            f"Token {t} changes. New outputs of the attention: {list(range(t, names['T']))}, "
            f"of the feed-forward: {[t]}."
        )


def test_a_feed_forward_has_twice_the_weights_of_an_attention(names):
    assert names["up_and_down"] == 2 * names["attention"] - 3 * 96 == 74_208


def test_no_sum_answers_the_question_and_a_bend_does(names):
    left = names["with_one"] @ names["amounts"] - names["warm"]
    assert np.abs(left).min() == pytest.approx(0.25)


def test_the_file_says_nothing_of_a_curve(names):
    fields = names["GGUFReader"](names["path"]).fields
    assert not [f for f in fields if "gelu" in f.lower() or "activation" in f.lower()]


def test_a_loose_tolerance_takes_the_wrong_form_and_a_tight_one_does_not(names):
    which = names["which_gelu"]
    curves = names["on_the_engine"], names["gelu_tanh"], names["gelu_erf"], names["relu"]
    assert [which(curve) for curve in curves] == ["tanh", "tanh", "erf", "neither"]
