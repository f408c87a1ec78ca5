"""Lesson 07: the item touches what the kernel touches, and what the lesson says of losses holds."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import data, lab, reference
from llmcl.bigram import bigram_loss
from llmcl.check import compare
from llmcl.config import Config
from llmcl.lab import lessons
from llmcl.model import GPT
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("07_the_model", solved=True)):
            if not any(word in cell.source for word in ("run_broken", "kernel_exercise", "quiz")):
                exec(cell.source, defined)
        yield defined


def first_loss(seed, inputs, targets, config=None):
    model = GPT(config or Config(), reference.Engine())
    model.initialize(seed)
    return float(model.loss(inputs, targets)[0])


def test_one_row_loss_touches_what_the_kernel_of_the_exercise_touches(names):
    rows, v = 5, 7
    logits = np.random.default_rng(1).normal(size=(rows, v)).astype(np.float32)
    args = logits, np.array([3, -1, 0, 6, -1], np.int32), np.ones(rows, np.float32), rows, v
    text = lessons.find("07.8").text
    assert_same_touches(names["one_row_loss"], rows, args, text, "row_loss", group=4)


@pytest.mark.parametrize("v", (1, 7, 8, 53))
def test_the_kernel_of_the_exercise_has_the_losses_of_the_package_s(v, names):
    logits = np.random.default_rng(2).normal(size=(5, v)).astype(np.float32)
    targets = np.array([v - 1, -1, 0, v // 2, -1], np.int32)
    got = np.ones(5)
    lab.run_items(names["one_row_loss"], 5, logits.astype(float), targets, got, 5, v)
    want = reference.cross_entropy(logits.astype(float), targets)[0][0]
    assert got.sum() / 3 == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("length", (2, 4, 5, 6, 9, 14))
@pytest.mark.parametrize("most", (1, 4, 5))
def test_windows_are_those_of_the_package_and_ask_for_each_token_once(names, length, most):
    ids = list(range(length))
    rows = names["windows"](ids, most)
    assert rows == data.windows(ids, most)
    assert [target for _, targets in rows for target in targets] == ids[1:]


def test_the_lesson_s_gpt_is_the_package_s_in_float64(names):
    config = Config(vocab_size=37, context_length=11, d_model=15, n_heads=3, n_layers=3, d_ff=22)
    model, rng = GPT(config, reference.Engine()), np.random.default_rng(3)
    model.load_weights({n: rng.normal(size=s) for n, s in config.parameter_shapes().items()})
    ids = rng.integers(0, 37, (2, 7))
    got = names["gpt"](ids, model.weights(), config)
    np.testing.assert_allclose(got, model.forward(ids), rtol=1e-9, atol=1e-9)


def test_the_loss_is_the_package_s(names):
    rng = np.random.default_rng(4)
    logits, targets = 50 * rng.normal(size=(3, 5, 11)), rng.integers(-1, 11, (3, 5))
    targets[0, 0] = 0
    want = reference.cross_entropy(logits, targets)[0][0]
    assert names["mean_loss"](logits, targets) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("pads", (0, 1, 5, 20))
def test_only_the_right_mean_does_not_see_the_pads(names, pads):
    ids, targets = names["with_pads"](pads)
    assert (ids[:, 14:] == 511).all() and (targets[:, 14:] == -1).all()
    logits = names["gpt"](ids, names["fresh"], names["config"])
    losses = {name: mean(logits, targets) for name, mean in names["wrong_means"].items()}
    right = losses.pop("right")
    assert right == pytest.approx(names["first_loss"], rel=1e-12)
    assert all(wrong < right - 0.05 for wrong in losses.values())
    assert losses["end token as target"] == losses["-1 as an index"]


def test_the_wrong_losses_fall_with_every_pad(names):
    for name, curve in names["curves"].items():
        assert name == "right" or (np.diff(curve) < 0).all()
    assert names["curves"]["divided by all"][-1] < 3


@pytest.mark.parametrize("seed", range(3))
def test_the_first_loss_is_near_ln_v_unless_the_answer_is_in_the_input(names, seed):
    x, y, ln_v = names["x"], names["y"], np.log(512)
    not_shifted = np.where(y == -1, -1, x)
    assert first_loss(seed, x, y) == pytest.approx(ln_v, abs=0.06)
    assert first_loss(seed, x[:, :-1], y[:, 1:]) == pytest.approx(ln_v, abs=0.06)
    assert first_loss(seed, x, not_shifted) < ln_v - 0.7
    assert names["repeats"] > 0.9 * names["asked"].sum()
    assert bigram_loss(x, y, 512) == pytest.approx(0.46, abs=0.01)


def test_a_larger_vocabulary_and_louder_weights_start_where_the_lesson_says(names):
    assert names["more"] == pytest.approx(np.log(2), abs=0.1)
    loud = dict(zip(names["times"], names["loud"], strict=True))
    assert loud[1] == pytest.approx(6.25, abs=0.05) and 6.4 < loud[5] < 7
    assert 11.5 < loud[20] < 12.2  # "nearly 12" in the picture's words


@pytest.mark.parametrize("name", ("this book's", "twelve blocks", "GPT-2 small"))
def test_the_bars_add_up(names, name):
    """What is drawn, and not only what is counted: each bar starts where the last one ended."""
    config = names["models"][name]
    assert set(names["parts"](config)) == {"tokens and head", "positions", "norms", "attention",
                                           "feed-forward"}  # fmt: skip
    _, axes = lab.figure("five bars and one for all of them")
    names["draw_parts"](axes, name)
    *bars, whole = [container[0] for container in axes.containers]
    end = 0
    for bar in bars:
        assert bar.get_x() == end
        end += bar.get_width()
    assert end == whole.get_width() == config.parameter_count()
    assert f"{config.parameter_count():,}" in names["parts_words"](name)


def test_the_shares_of_the_parts_are_as_the_lesson_says(names):
    sizes, whole = names["sizes"], Config().parameter_count()
    assert round(sizes["feed-forward"] / whole, 2) == 0.5
    assert round(sizes["attention"] / whole, 2) == 0.25
    assert sizes["norms"] / whole < 0.005


def test_the_yardstick_is_wide_enough_and_finds_small_mistakes(names):
    config, w, x = names["config"], names["w"], names["x"]
    want = names["gpt"](x, w, config)
    allowed = names["terms"](config, x.shape[1]) * 2**-24 * np.abs(want).max()
    single = GPT(config, reference.Engine(np.float32))
    single.load_weights(names["model"].weights())
    assert compare(single.forward(x), want, allowed).ok
    for name in ("blk.0.attn_qkv.bias", "blk.1.ffn_down.weight", "output_norm.weight"):
        assert not compare(names["gpt"](x, {**w, name: 1.001 * w[name]}, config), want, allowed).ok


def test_windows_across_sentences_do_what_is_said(names):
    assert (names["across"], len(names["cut"])) == (20, 21)
    assert (names["starts"] % 16 == 0).sum() == 3
    string, starts = names["string"], names["starts"]
    assert all(string[s - 1] == 511 for s in starts[1:]) and string[-1] == 511


def test_the_pairs_of_the_picture_are_shifted_by_one(names):
    _, axes = lab.figure("the pairs")
    names["draw_pairs"](axes, 4)
    labels = [text.get_text() for text in axes.texts]
    assert labels[1:9] == labels[9:17] and labels[-1] == "END" and labels[0] == "The"
