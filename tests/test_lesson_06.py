"""Lesson 06: the Python item touches what the kernel touches, and depth does what is said."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import reference
from llmcl.config import Config
from llmcl.lab import lessons
from llmcl.model import GPT
from llmcl.resources import kernels_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("06_norm_and_residual", solved=True)):
            if not any(word in cell.source for word in ("run_broken", "kernel_exercise", "quiz")):
                exec(cell.source, defined)
        yield defined


@pytest.fixture(scope="module")
def ends(names):
    """(spread, likeness) after the last block, by the switches' name and how loud weights are."""
    return {
        (name, louder): tuple(names["journey"](*on, louder)[:, -1])
        for name, on in names["names"].items()
        for louder in (1, 10)
    }


def floats(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def text_of(file):
    return (kernels_dir() / f"{file}.cl").read_text(encoding="utf-8")


def test_one_norm_touches_what_layer_norm_forward_touches(names):
    rows, c = 3, 5
    args = floats(rows, c), floats(c), floats(c), zeros(rows, c), zeros(rows), zeros(rows)
    args = *args, rows, c, 1e-5
    text = text_of("layer_norm")
    assert_same_touches(names["one_norm"], rows, args, text, "layer_norm_forward", group=2)


def test_layer_norm_is_the_package_s(names):
    x, gamma, beta = np.random.default_rng(2).normal(size=(3, 7)), floats(7), floats(7)
    want = reference.layer_norm(x, gamma, beta, 1e-5)[0]
    np.testing.assert_allclose(names["layer_norm"](x, gamma, beta, 1e-5), want, rtol=1e-12)


def test_depth_without_both_lets_the_signal_die(ends):
    assert ends["neither", 1][0] < 1e-100
    assert ends["neither", 10][0] < 1e-10


def test_depth_with_norm_only_makes_all_places_one(names, ends):
    for louder in (1, 10):
        assert ends["norm only", louder][1] > 0.999
    assert names["journey"](True, False, 1)[1][6] > 0.99  # "after six blocks"
    steady = names["journey"](True, False, 1)[0][1:]
    assert steady.max() < 3 * steady.min()


def test_depth_with_residual_only_is_fine_when_fresh_and_explodes_later(ends):
    assert ends["residual only", 1][0] == pytest.approx(1, abs=0.1)
    assert ends["residual only", 1][1] < 0.1
    assert ends["residual only", 10][0] > 1000 and ends["residual only", 10][1] > 0.9


def test_depth_with_both_keeps_loudness_and_places(ends):
    assert ends["both", 1] == pytest.approx((1, 0), abs=0.1)
    assert ends["both", 10][0] < 10 and ends["both", 10][1] < 0.7


def test_the_pictures_words_are_those_of_the_journey(names, ends):
    for label, switches in names["choices"]:
        name, size = label.split(", ")
        spread, likeness = ends[name, {"fresh": 1, "ten times": 10}[size]]
        assert f"spread is {spread:.1e}" in names["depth_words"](switches)
        assert names["depth_words"](switches).endswith(f"alike by {likeness:.2f}.")


def test_a_fresh_model_has_the_weights_of_the_experiment():
    config = Config(vocab_size=300, n_layers=24)
    model = GPT(config, reference.Engine())
    model.initialize(seed=1)
    weights, root = model.weights(), np.sqrt(2 * 24)
    wanted = {"attn_qkv": 0.02, "ffn_up": 0.02, "attn_output": 0.02 / root, "ffn_down": 0.02 / root}
    for name, spread in wanted.items():
        assert weights[f"blk.3.{name}.weight"].std() == pytest.approx(spread, rel=0.05)


def test_the_curves_of_epsilon_are_as_their_text_says(names):
    def inside(s):
        return s / np.sqrt(s**2 + 1e-5)

    assert inside(0.002) == pytest.approx(0.5, abs=0.05) and inside(0.03) > 0.99
    assert 1e-5 / (1e-5 + 1e-5) == 0.5
    assert names["before"][0] == pytest.approx(1e-5)


def test_one_pass_loses_the_digits_and_two_passes_keep_them(names):
    noise = names["noise"]
    for middle in (0, 100, 1000):
        moved = (middle + noise).astype(np.float32)
        assert names["two_passes"](moved) == pytest.approx(1, abs=0.01)
    assert names["one_pass"](noise.astype(np.float32)) == pytest.approx(1, abs=1e-4)
    assert abs(names["one_pass"]((1000 + noise).astype(np.float32)) - 1) > 0.01
    assert abs(names["one_pass"]((10_000 + noise).astype(np.float32)) - 1) > 1


def test_without_epsilon_a_row_of_equal_numbers_becomes_loud(names):
    flat = names["flat"]
    total = np.float32(0)
    for number in flat:
        total += number
    away = flat - total / np.float32(len(flat))
    assert 0 < np.abs(away).max() < 1e-6


def test_the_block_has_the_weights_that_the_lesson_counts():
    for c in (8, 96):
        shapes = Config(d_model=c, n_heads=2, d_ff=4 * c).parameter_shapes()
        own = sum(int(np.prod(s)) for n, s in shapes.items() if n.startswith("blk.0."))
        assert lessons.find("06.4").reference(c) == own == 12 * c * c + 13 * c


def test_the_lesson_s_block_is_the_package_s_in_float64(names):
    model = GPT(Config(), reference.Engine())
    model.load_weights(names["model"].weights())
    got = model.blocks[0].forward(names["x"][None])
    np.testing.assert_allclose(got[0], names["y"], rtol=1e-6, atol=1e-6)
