"""Lesson 04a: the Python items touch what the kernels touch, and the pictures show what is said."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl.lab import lessons, strict
from llmcl.resources import kernels_dir
from notebook_builder import build

T, D = 5, 3


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("04a_one_head", solved=True)):
            if not any(word in cell.source for word in ("run_broken", "kernel_exercise", "quiz")):
                exec(cell.source, defined)
        yield defined


@pytest.fixture
def qkv():
    return np.random.default_rng(1).normal(size=(T, 3 * D)).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def text_of(file):
    return (kernels_dir() / f"{file}.cl").read_text(encoding="utf-8")


def test_one_score_touches_what_attention_scores_touches_with_one_head(names, qkv):
    def item(qkv, scores, B, T, H, d, first, length, scale):
        return names["one_score"](qkv, scores, T, d, scale)

    args = qkv, zeros(T, T), 1, T, 1, D, 0, T, D**-0.5
    assert_same_touches(item, (T, T), args, text_of("attention"), "attention_scores")


@pytest.mark.parametrize(("asking", "columns", "first"), [(5, 5, 0), (7, 7, 0), (1, 6, 5)])
def test_one_row_touches_what_the_scalar_part_of_softmax_causal_touches(
    names, asking, columns, first
):
    text = text_of("softmax")
    start = text.index("    for (; j + 8 <= seen; j += 8) {")
    end = text.index("    for (; j < seen; ++j) {", start)
    scalar = text[:start] + text[end:]  # rows of up to seven columns never come to that loop
    scores = np.random.default_rng(2).normal(size=(2, asking, columns)).astype(np.float32)
    rows = 2 * asking
    args = scores, zeros(*scores.shape), rows, asking, columns, first
    assert_same_touches(names["one_row"], rows, args, scalar, "softmax_causal")


def test_one_mix_touches_what_attention_mix_touches_with_one_head(names, qkv):
    def item(qkv, shares, y, B, T, H, d, first, length):
        return names["one_mix"](qkv, shares, y, T, d)

    shares = np.tril(np.full((T, T), 0.2, np.float32))
    args = qkv, shares, zeros(T, D), 1, T, 1, D, 0, T
    assert_same_touches(item, (D, T), args, text_of("attention"), "attention_mix")


def test_the_leak_picture_says_what_happens_at_every_token(names):
    places = names["T"]
    assert places == 9
    for t in range(places):
        said = f"mask 0, 1 too far {int(t > 0)}, no mask {t}."
        assert names["leak_words"](t).endswith(said)
        words, colors = names["leak_cells"](t)
        assert words[1][:t] == ["same"] * t
        assert words[2][:t] == ["same"] * (t - 1) + ["LEAK"] * int(t > 0)
        assert words[3][:t] == ["LEAK"] * t
        assert all(row[t:] == ["new"] * (places - t) for row in words[1:])
        assert [[w == "LEAK" for w in row] for row in words] == [
            [c == "red" for c in row] for row in colors
        ]


def test_the_picture_of_the_scale_says_what_happens(names):
    softmax, scores = names["softmax"], names["nine_scores"]
    raw = [softmax(scores(d)).max() for d in (2, 8, 32, 128, 512)]
    divided = [softmax(scores(d) / d**0.5).max() for d in (2, 8, 32, 128, 512)]
    assert raw == sorted(raw) and raw[-2] > 0.95
    assert max(divided) < 0.4


def test_the_picture_of_the_shares_is_as_its_prose_says(names):
    shares, tokens = names["shares"], names["tokens"]
    assert tokens[1:3] == [" sun", " warms"]
    assert shares[2, 1] > 0.9 and (np.triu(shares, 1) == 0).all()


def test_each_wrong_mask_passes_a_quick_test_and_fails_the_leak_test(names):
    passed = {}
    for name, shares_of in names["masks"].items():
        table = shares_of(names["by_scores"])
        sums = bool(np.allclose(table.sum(axis=1), 1))
        found = names["leaks"](names["with_shares"](shares_of), names["x"])
        passed[name] = sums, bool((np.triu(table, 1) == 0).all()), found
    everywhere = list(range(1, 9))
    assert passed == {
        "right": (True, True, []),
        "times 0": (True, False, everywhere),
        "cut after": (False, True, everywhere),
        "1 too far": (True, False, everywhere),
    }


@pytest.mark.parametrize("groups", (False, True))
def test_the_engine_leaks_nothing_in_long_rows(names, groups, monkeypatch):
    """21 places: a CPU takes eight at a time, and a GPU (groups) shares the row."""
    engine, rng = names["engine"], np.random.default_rng(3)
    monkeypatch.setattr(engine, "groups", groups, raising=False)
    qkv = rng.normal(size=(1, 21, 3 * 7)).astype(np.float32)
    before = engine.to_host(engine.attention(engine.from_host(qkv), 1)[0])
    for t in range(21):
        changed = qkv.copy()
        changed[0, t] = 50 * rng.normal(size=21)
        after = engine.to_host(engine.attention(engine.from_host(changed), 1)[0])
        assert np.array_equal(before[0, :t], after[0, :t])
        assert not np.array_equal(before[0, t], after[0, t])


def test_the_solutions_by_hand_are_what_the_lesson_s_own_head_computes(names):
    # attend() computes it from the table that the exercise prints.
    q = np.array([[1, 1, 0, 0], [4, 0, 0, 0], [0, 0, 2, 2]])
    k = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    v = np.array([[8, 0, 0, 1], [0, 8, 0, 1], [0, 0, 8, 1]])
    want = names["attend"](q, k, v)[0]
    np.testing.assert_allclose(names["by_hand"](), want, atol=0.005)
    np.testing.assert_allclose(lessons.find("04a.2").reference(), want)


@pytest.mark.skipif(not strict.available(), reason="Oclgrind's wheel is for Linux on x86-64 only")
def test_the_kernel_to_mend_is_right_on_small_scores_and_gives_nan_with_a_loud_future():
    task = lessons.find("04a.6")
    given = lessons.changed(task, *task.given)
    small, loud, *_ = strict.need(strict.run_texts("04a.6", [given])[0]).cases
    assert small == ""
    assert "(2, 0)" in loud and "nan" in loud
