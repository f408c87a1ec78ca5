"""Warm-up 07b: what its rules, its pictures and its traps say is so."""

import numpy as np
import pytest

from lesson_helpers import code
from llmcl import lab
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("07b_slopes", solved=True)):
            if "quiz" not in cell.source:
                exec(cell.source, defined)
        yield defined


@pytest.mark.parametrize("rule", ("3·x + 1", "x²", "exp(x)", "log(x)", "1/x"))
@pytest.mark.parametrize("x", (0.4, 1.3, 2.2))
def test_every_rule_holds_where_it_was_not_tried(names, rule, x):
    f, derivative = names["rules"][rule]
    assert names["slope"](f, x) == pytest.approx(derivative(x), rel=1e-6)


def test_the_error_on_both_sides_falls_with_the_square_of_the_step(names):
    errors = [names["slope"](names["cube"], 2, step) - 12 for step in (0.2, 0.1)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-6)


def test_the_slope_of_the_small_loss_is_the_share_of_the_wrong_token(names):
    for x in (-3.0, 0.2, 4.0):
        shares = np.exp([0, x]) / np.exp([0, x]).sum()
        assert names["slope_of_chain"](x) == pytest.approx(shares[1], rel=1e-12)


def test_the_traps_pass_at_one_place_and_not_at_five(names):
    agrees, square = names["agrees"], names["square"]
    assert names["slope"](square, 2) == pytest.approx(square(2), rel=1e-9)
    assert agrees(square, lambda x: 2 * x) and not agrees(square, square)
    assert not agrees(lambda x: x + 9 * x * x, lambda x: 18 * x)


@pytest.mark.parametrize("step", (1, 0.5, 0.2, 0.1))
def test_the_line_goes_through_both_dots_side_by_side_with_the_touching_one(names, step):
    """Its slope is that of the dots, as its words say."""
    _, axes = lab.figure("a curve and two lines")
    names["draw_slope"](axes, step)
    _, line, touching, dots = axes.lines
    (x0, x1), (y0, y1) = dots.get_xdata(), dots.get_ydata()
    rise = np.diff(line.get_ydata())[0] / np.diff(line.get_xdata())[0]
    assert rise == pytest.approx((y1 - y0) / (x1 - x0), rel=1e-9)
    assert np.interp([x0, x1], line.get_xdata(), line.get_ydata()) == pytest.approx([y0, y1])
    flat = np.diff(touching.get_ydata())[0] / np.diff(touching.get_xdata())[0]
    assert flat == pytest.approx(6.75, rel=1e-9)
    assert f"{rise:.2f}" in names["slope_words"](step)
