"""Lesson 08c: item and kernel touch the same, faults stay where said, pictures agree."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import reference
from llmcl.errors import LlmclError
from llmcl.lab import exercises, lessons
from llmcl.lab.lessons import lesson_08c
from llmcl.resources import kernels_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the kernels' cells."""
    skipped = "run_broken", "kernel_exercise", "quiz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("08c_backprop_whole", solved=True)):
            if not any(word in cell.source for word in skipped):
                lines = cell.source.splitlines()
                exec("\n".join(x for x in lines if not x.startswith("lab.explore(")), defined)
        yield defined


def floats(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def broken_model(names, block, part):
    model = names["fresh_model"](names["config"], reference.Engine(), push=0.1)
    lesson_08c.break_part(model, block, part)
    return model


@pytest.mark.parametrize("of_the_package", (False, True))
def test_one_row_back_touches_what_the_kernels_touch(names, of_the_package):
    shares = reference.softmax(floats(1, 5, 7).astype(float)).astype(np.float32)
    args = shares, floats(2, 5, 7), np.zeros((5, 7), np.float32), 5, 7
    text, name = lessons.find("08c.4").text, "softmax_back"
    if of_the_package:
        text = (kernels_dir() / "softmax.cl").read_text(encoding="utf-8")
        name = "softmax_backward"
    assert_same_touches(names["one_row_back"], 5, args, text, name, group=2)


def test_the_lesson_s_formulas_are_the_package_s(names):
    shares, dshares = reference.softmax(floats(3, 4, 6).astype(float)), floats(4, 4, 6)
    got = names["softmax_backward"](shares, dshares.astype(float))
    np.testing.assert_allclose(got, reference.softmax_backward(shares, dshares), atol=1e-12)
    x = np.linspace(-5, 5, 41)
    du = names["root"] * (1 + 3 * 0.044715 * x**2)
    slope = names["gelu_slope"](x, names["s_of"](names["u_of"](x)), du)
    np.testing.assert_allclose(slope, reference.gelu_backward(x, np.ones(41)), atol=1e-12)
    q, k, v, dy = floats(5, 4, 5, 3).astype(float)
    qkv = np.concatenate([q, k, v], axis=1)[None]
    shares = reference.attention(qkv, 1)[1]
    want = np.split(reference.attention_backward(qkv, shares, dy[None])[0], 3, axis=1)
    for mine, theirs in zip(names["head_backward"](q, k, v, dy), want, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


@pytest.mark.parametrize("part", lesson_08c.PARTS)
@pytest.mark.parametrize("block", (0, 2, 7))
def test_every_fault_is_found_where_it_is(names, capsys, block, part):
    model, looks = broken_model(names, block, part), []

    def agrees(i):
        looks.append(i)
        return names["agrees"](model, i)

    half = names["find_fault"](agrees, 16)
    capsys.readouterr()
    assert half == 2 * block + (part in ("ffn_norm", "feed_forward")) and len(looks) <= 4
    assert names["branch_agrees"](model, half) == part.endswith("norm")
    assert names["agrees"](model, 16) and not names["agrees"](model, 0)


def test_a_fault_leaves_the_way_there_right(names):
    want = names["model"].loss(names["ids"], names["targets"])
    for part in lesson_08c.PARTS:
        assert broken_model(names, 3, part).loss(names["ids"], names["targets"]) == want


def test_another_part_is_refused_and_seeds_reach_every_part(names):
    with pytest.raises(LlmclError, match="no part 'head'.*attn_norm, attention"):
        lesson_08c.break_part(names["model"], 0, "head")
    found = {lesson_08c.where(seed, 8).split(".")[2] for seed in range(30)}
    assert found == set(lesson_08c.PARTS)
    assert lesson_08c.HIDDEN == names["culprit"]() == lesson_08c.where(11, 8)


def test_asking_point_after_point_is_told(names):
    def one_by_one(agrees, n):
        return next(i for i in range(n - 1, -1, -1) if not agrees(i))

    outcome = exercises.judge(one_by_one, lessons.find("08c.6"))
    assert outcome.state == "wrong" and "does each question halve?" in outcome.line


def test_the_edge_of_the_picture_is_where_the_words_say(names):
    for place in (None, (7, "feed_forward"), (5, "attn_norm"), (3, "attention"), (1, "ffn_norm")):
        high = np.array(names["errors_when"](place)) > 1e-9
        assert f"{high.sum()} of 100 dots" in names["errors_words"](place)
        if place is None:
            assert not high.any()
            continue
        edge = int(np.argmax(high))
        assert not high[:edge].any() and high[edge:].mean() > 0.9
        # The edge stands in the faulty block, or where the one before it begins.
        assert 7 - place[0] in ((edge - 2) // 12, (edge - 3) // 12)
        error = np.array(names["errors_when"](place))
        assert error[high].min() > 1e-3 and error[~high].max() < 1e-12


def test_the_table_s_two_parts_are_what_the_picture_says(names):
    head, look_up = names["from_head"], names["from_look_up"]
    sentence, shown = names["sentence"], names["shown"]
    assert np.abs(head[shown]).max(axis=1).all()
    assert np.abs(look_up[sentence]).max(axis=1).all() and not look_up[shown[-3:]].any()
    silent = np.setdiff1d(names["used"], np.flatnonzero(np.abs(look_up).max(axis=1)))
    assert silent.tolist() == [names["tokenizer"].end_id]
    np.testing.assert_allclose(head + look_up, names["both"], atol=1e-15)


def test_the_sizes_are_as_the_words_say(names):
    curves = names["curves"]
    for name in ("norm and residual", "residual only", "norm only"):
        assert curves[name].min() > 0.1 and curves[name].max() < 10
    steps = curves["neither"][1:] / curves["neither"][:-1]
    assert steps.min() > 100
    for kind in ("attn_qkv", "attn_output", "ffn_up", "ffn_down"):
        own = [np.linalg.norm(names["deep"].gradients[f"blk.{i}.{kind}.weight"]) for i in range(12)]
        assert max(own) < 2 * min(own)


def test_the_losses_are_as_the_words_say(names):
    right, head, look_up = (losses[-1] for losses in names["learned"].values())
    assert right < 0.2 and 0.2 < look_up < 0.6 and 2.5 < head < 3.5


def test_a_direction_notices_one_wrong_array_in_a_hundred(names):
    gradient, parameters = names["gradient"], names["parameters"]
    assert names["fits"](names["loss_with"], parameters, gradient)
    assert len(names["at"]) == 21, "the numbers of one bias, and no others"
    np.testing.assert_array_equal(gradient[names["at"]], names["by_package"]["blk.3.ffn_norm.bias"])
