"""Lesson 04b: the Python items touch what the kernels touch, and the pictures show what is said."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import lab, reference
from llmcl.check import compare
from llmcl.config import Config
from llmcl.lab.lessons.lesson_04b import layer_bound
from llmcl.reference.attention import join_heads, split_heads
from llmcl.resources import kernels_dir
from notebook_builder import build

B, T, H, D = 2, 5, 3, 2  # all different


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("04b_many_heads", solved=True)):
            if not any(word in cell.source for word in ("run_broken", "kernel_exercise", "quiz")):
                exec(cell.source, defined)
        yield defined


@pytest.fixture
def qkv():
    return np.random.default_rng(1).normal(size=(B, T, 3 * H * D)).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def text():
    return (kernels_dir() / "attention.cl").read_text(encoding="utf-8")


def test_one_score_touches_what_attention_scores_touches(names, qkv):
    def item(qkv, scores, B, T, H, d, first, length, scale):
        return names["one_score"](qkv, scores, B, T, H, d, scale)

    args = qkv, zeros(B, H, T, T), B, T, H, D, 0, T, D**-0.5
    assert_same_touches(item, (T, B * H * T), args, text(), "attention_scores")


def test_one_mix_touches_what_attention_mix_touches(names, qkv):
    def item(qkv, shares, y, B, T, H, d, first, length):
        return names["one_mix"](qkv, shares, y, B, T, H, d)

    shares = np.tril(np.random.default_rng(2).random((B, H, T, T), np.float32))
    args = qkv, shares, zeros(B, T, H * D), B, T, H, D, 0, T
    assert_same_touches(item, (H * D, B * T), args, text(), "attention_mix")


def test_no_share_of_one_head_gives_what_two_heads_hear(names):
    thing_per_deed = names["values"]
    for share in np.linspace(-1, 2, 301):
        heard = np.array([share, 1 - share]) @ thing_per_deed
        assert np.abs(heard - [8, 6]).max() > 1
    assert [*names["thing"], *names["deed"]] == [8, 6]


def test_the_split_of_the_lesson_is_that_of_the_package(names):
    part = np.random.default_rng(3).normal(size=(B, T, H * D))
    np.testing.assert_array_equal(names["split_heads"](part, H), split_heads(part, H))
    heads = split_heads(part, H)
    np.testing.assert_array_equal(names["join_heads"](heads), join_heads(heads))


def test_the_count_is_that_of_the_package_s_own_shapes(names):
    for config in (Config(), Config(d_model=64, n_heads=4), Config(d_model=30, n_heads=5)):
        shapes = config.parameter_shapes()
        want = sum(
            int(np.prod(shapes[f"blk.0.attn_{part}"]))
            for part in ("qkv.weight", "qkv.bias", "output.weight", "output.bias")
        )
        assert names["attention_count"](config.d_model, config.n_heads) == want


def test_the_numbers_fly_where_split_and_reshape_bring_them(names):
    q = 10 * np.arange(4)[:, None] + np.arange(6)
    right = split_heads(q[None], 3)[0]  # (3, 4, 2)
    for way, table in (("transpose", right), ("reshape", q.reshape(3, 4, 2))):
        row, col = names["goal"](way)
        for number, r, c in zip(q.ravel(), row, col, strict=True):
            assert table[c // 3, r, c % 3] == number
    assert names["strangers"] == 12 and (names["wrong"] == names["heads"]).sum() == 4
    assert "half of them not its own" in names["flight_words"](1)


@pytest.mark.parametrize(
    ("name", "heard", "leaks"),
    [
        ("right", 45, 0),
        ("split by reshape", 38, 16),
        ("join by reshape", 38, 16),
        ("both by reshape", 18, 0),
        ("root of d_model", 45, 0),
    ],
)
def test_who_hears_whom_is_as_the_lesson_says(names, name, heard, leaks):
    table, past = names["hears"](names["layers"][name], 3), names["past"]
    assert names["hears_words"](name) == (
        f"{name}: 45 cells should be heard, and {heard} of them are; {leaks} leak from the future."
    )
    assert ((table & past).sum(), (table & ~past).sum()) == (heard, leaks)
    if name == "both by reshape":
        assert (table == (past & (np.arange(9)[:, None] // 3 == np.arange(9) // 3))).all()


def test_only_numbers_of_several_heads_tell_the_wrong_layers_apart(names):
    batch, layers = names["batch"], names["layers"]
    right = layers["right"]
    for name, layer in layers.items():
        assert np.allclose(layer(batch, 1), right(batch, 1))
        assert np.allclose(layer(batch, 3), right(batch, 3)) == (name == "right")


def test_the_picture_of_the_heads_is_as_its_words_say(names):
    _, shares = names["attend"](names["batch"], 3)
    assert shares.shape == (1, 3, 9, 9)
    assert (np.triu(shares[0], 1) == 0).all() and np.allclose(shares[0, :, 0, 0], 1)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(shares[0, a] - shares[0, b]).max() > 0.3


@pytest.mark.parametrize(("batch", "time", "heads", "width"), [(3, 11, 5, 7), (1, 2, 3, 5)])
def test_the_layer_s_bound_holds_and_finds_a_scale_off_by_a_thousandth(batch, time, heads, width):
    rng, c = np.random.default_rng(5), heads * width
    shapes = (batch, time, c), (c, 3 * c), (3 * c,), (c, c), (c,)
    numbers = [rng.normal(size=s).astype(np.float32) / (c**0.5 if len(s) == 2 else 1)
               for s in shapes]  # fmt: skip
    exact = [n.astype(np.float64) for n in numbers]

    def layer(x, w_qkv, b_qkv, w_out, b_out, scale=1.0):
        qkv = x @ w_qkv + b_qkv
        qkv[..., :c] *= qkv.dtype.type(scale)
        return reference.attention(qkv, heads)[0] @ w_out + b_out

    want, bound = layer(*exact), layer_bound(*exact, heads)
    assert compare(layer(*numbers), want, bound).ok
    assert not compare(layer(*exact, scale=1.001), want, bound).ok
    assert bound.max() < 1e-3 * np.abs(want).max()


def test_a_slider_that_is_moved_at_the_end_shows_the_same_pictures(names):
    """The later cells take nothing away from the functions that draw."""
    made, axes = lab.figure("the flight, as it lies", columns=2)
    names["draw_flight"](axes, 0)
    labels = [text.get_text() for text in axes[1].texts]
    assert labels == [f"{p}{c}" for p in range(4) for c in range(6)]
    made, axes = lab.figure("who hears whom")
    names["draw_hears"](axes, "join by reshape")
    labels = [text.get_text() for text in axes.texts]
    assert labels.count("LEAK") == 16 and labels.count("lost") == 7
