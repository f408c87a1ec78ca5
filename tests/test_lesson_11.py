"""Lesson 11: items and kernels touch the same, and what is said of shares and answers holds."""

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import lab, reference
from llmcl.check import compare
from llmcl.generate import Sampling, next_shares, reply
from llmcl.lab import lessons
from llmcl.lab.models import SHIPPED
from llmcl.load import load_model
from llmcl.model import GPT
from llmcl.resources import kernels_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the exercises' cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("11_generating", solved=True)):
            if not any(word in cell.source for word in ("run_broken", "kernel_exercise", "quiz")):
                exec(cell.source, defined)
        yield defined


@pytest.fixture(scope="module")
def shipped():
    """(model, tokenizer) that the lesson speaks of, in float64."""
    return load_model(SHIPPED / "10.gguf", reference.Engine())


def text_of(file):
    return (kernels_dir() / f"{file}.cl").read_text(encoding="utf-8")


def floats(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ---- one new place over the cache ----

T, H, D, FIRST = 7, 2, 3, 4


def test_newest_score_touches_what_the_package_s_kernel_touches_for_one_new_place(names):
    def item(qkv, scores, B, T, H, d, first, length, scale):
        return names["newest_score"](qkv, scores, H, d, first, scale)

    scores = np.zeros((H, FIRST + 1), np.float32)
    args = floats(1, T, 3 * H * D), scores, 1, T, H, D, FIRST, FIRST + 1, D**-0.5
    assert_same_touches(item, (FIRST + 1, H), args, text_of("attention"), "attention_scores")


def test_newest_mix_touches_what_both_kernels_touch(names):
    shares = reference.softmax(floats(2, H, FIRST + 1)).astype(np.float32)
    cache, y = floats(3, T, 3 * H * D), np.zeros(H * D, np.float32)
    args = cache, shares, y, H, D, FIRST
    mine = names["newest_mix"]
    assert_same_touches(mine, H * D, args, lessons.find("11.8").text, "newest_mix", group=4)

    def item(qkv, shares, y, B, T, H, d, first, length):
        return mine(qkv, shares, y, H, d, first)

    args = cache, shares, y, 1, T, H, D, FIRST, FIRST + 1
    assert_same_touches(item, (H * D, 1), args, text_of("attention"), "attention_mix")


@pytest.mark.parametrize("case", lessons.find("11.5").cases, ids=("prompt", "last", "two"))
def test_the_kernel_that_keeps_rows_does_what_the_engine_s_copy_does(names, case):
    qkv, cache, first = case
    engine = names["engine"]
    target = engine.from_host(cache)
    engine.copy(target, engine.from_host(qkv), row=first)
    np.testing.assert_array_equal(engine.to_host(target), lessons.find("11.5").want(*case)[0])


def test_the_lines_shown_of_the_kernel_are_those_with_first_or_length(monkeypatch):
    shown = []
    monkeypatch.setattr("llmcl.lab.kernels.bundle_code", lambda text, language: shown.append(text))
    lab.show_kernel("attention", "attention_scores")
    lab.show_kernel("attention", "attention_scores", words=["first", "length"])
    whole, few = (text.split("\n") for text in shown)
    assert few == [line for line in whole if "first" in line or "length" in line]
    assert len(few) == 6 and any("Q = length - first" in line for line in few)


# ---- how a token is chosen ----


def test_the_ten_logits_are_those_of_the_shipped_model(names, shipped):
    model, tokenizer = shipped
    logits = model.forward(np.array([tokenizer.encode("The land")]))[0, -1]
    best = np.argsort(-logits)[:10]
    assert [tokenizer.decode([i]) for i in best] == names["tokens"]
    np.testing.assert_allclose(logits[best], names["logits"], atol=0.06)
    assert 1 - reference.softmax(logits)[best].sum() == pytest.approx(0.07, abs=0.005)
    learned = " ".join(names["learned"])
    assert "the land" in learned and "The land" not in learned


def test_the_lesson_s_pieces_are_the_package_s(names):
    rng = np.random.default_rng(4)
    for _ in range(50):
        logits, t = 3 * rng.normal(size=40), rng.uniform(0.1, 4)
        k, p = int(rng.integers(1, 41)), rng.uniform(0.01, 1)
        mine = names["nucleus"](names["top_k"](names["tempered"](logits, t), k), p)
        np.testing.assert_allclose(mine, next_shares(logits, Sampling(t, k, p)), atol=1e-12)
        cold = names["shares_at"](logits, 0.0)
        np.testing.assert_array_equal(cold, next_shares(logits, Sampling()))


def test_a_tiny_temperature_for_0_is_told_by_a_tie_only():
    task = lessons.find("11.6")
    clear, tie = np.array([1.0, 3.0, 2.9]), np.array([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(task.given(clear, 0.0), task.reference(clear, 0.0))
    np.testing.assert_array_equal(task.given(tie, 0.0), [0, 0.5, 0.5])


SLIDERS = [
    ("temperature", 0.1, Sampling(0.1)),
    ("temperature", 10.0, Sampling(10.0)),
    ("top_k", 1, Sampling(2.0, top_k=1)),
    ("top_k", 4, Sampling(2.0, top_k=4)),
    ("top_p", 0.8, Sampling(2.0, top_p=0.8)),
    ("top_p", 1.0, Sampling(2.0)),
]


@pytest.mark.parametrize(("name", "value", "sampling"), SLIDERS, ids=str)
def test_the_bars_are_the_shares_and_their_words_say_so(names, name, value, sampling):
    _, axes = lab.figure("ten bars and ten outlines")
    names[f"draw_{name}"](axes, value)
    heights = [bar.get_height() for bar in axes.patches]
    shares = next_shares(names["logits"], sampling)
    np.testing.assert_allclose(heights[:10], shares, atol=1e-12)
    base = names["plain"] if name == "temperature" else names["hot"]
    np.testing.assert_allclose(heights[10:20], base)
    said = names[f"{name}_words"](value)
    assert f"{shares[0]:.2f}" in said
    if name != "temperature":
        assert f"{(shares > 0).sum()} " in said


def test_the_pieces_of_a_stop_text_are_never_shown(names):
    """However a text is cut into pieces: nothing of the next turn is seen, and no letter lost."""
    rng, text = np.random.default_rng(5), "The sun Uses fire. \nUser: And I? User:"
    for _ in range(100):
        cuts = sorted(rng.choice(np.arange(1, len(text)), size=8, replace=False))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        seen = list(names["shown"](pieces))
        assert seen[-1] == "The sun Uses fire."
        assert all(seen[-1].startswith(part) for part in seen)


# ---- the cache ----


def test_the_picture_of_the_steps_shows_the_rows_that_were_counted(names):
    orange = np.zeros(2, int)
    for n in range(3, 9):
        _, axes = lab.figure("words in two rows")
        names["draw_steps"](axes, n)
        image = axes.images[0].get_array()
        marked = np.abs(image - np.array([0.9, 0.62, 0])).sum(axis=-1) < 0.05
        orange += marked.sum(axis=1)
        words = names["step_words"](n)
        assert words.endswith(f"up to here {orange[0]} and {orange[1]} in all.")
    prompt = names["tokenizer"].encode("The sun warms")[:3]
    assert [names["write"](prompt, 6, keep)[1] for keep in (False, True)] == orange.tolist()


def test_the_work_is_as_the_picture_says(names):
    without, cached = names["step_without"], names["step_cached"]
    assert without[-1] == pytest.approx(80e6, rel=0.05)
    assert without.sum() == pytest.approx(10e9, rel=0.05) and cached.sum() < 0.1e9
    assert cached[0] < cached[-1] < 1.5 * cached[0]
    assert without[0] == cached[0]


def test_the_caches_are_larger_than_the_shipped_file():
    model, _ = load_model(SHIPPED / "10.gguf", reference.Engine(np.float32))
    size = sum(cache.nbytes for cache in model.new_caches())
    assert size == 589_824 > (SHIPPED / "10.gguf").stat().st_size


def test_the_yardstick_is_wide_enough_and_finds_small_mistakes(names):
    own, allowed, want = names["own"], names["yardstick"], names["want"]
    ids, weights = np.array([names["sentence"]]), names["model"].weights()
    single = GPT(own, reference.Engine(np.float32))
    single.load_weights(weights)
    assert compare(single.forward(ids)[0], want, allowed).ok
    for name in ("blk.0.attn_qkv.weight", "blk.1.ffn_down.weight", "output_norm.weight"):
        judge = GPT(own, reference.Engine())
        judge.load_weights({**weights, name: 1.001 * weights[name]})
        assert not compare(judge.forward(ids)[0], want, allowed).ok


# ---- what it answers ----

SAID = {
    "When does ice turn to water?": "When it is very cold.",
    "Is sound faster than light?": "Yes, light is much faster.",
    "How many legs does a cow have?": "A has eight legs.",
    "Which planet is the smallest?": "Jupiter is the biggest planet.",
    "What is two plus two?": ".",
}


@pytest.mark.parametrize("question", SAID)
def test_the_shipped_model_answers_as_the_lesson_says(names, shipped, question):
    assert question in names["unseen"]
    assert "".join(reply(*shipped, question, max_new_tokens=40)) == SAID[question]


def test_three_of_the_four_are_learned_answers(names):
    learned = {d.assistant for d in names["dialogues"]}
    assert [answer in learned for answer in list(SAID.values())[:4]] == [True, True, False, True]


def test_two_sentences_begin_alike_and_the_shipped_model_hangs_between_them(shipped):
    model, tokenizer = shipped
    shares = reference.softmax(model.forward(np.array([tokenizer.encode("The")]))[0, -1])
    first, second = np.argsort(-shares)[:2]
    assert {tokenizer.decode([first]), tokenizer.decode([second])} == {" sun", " he"}
    assert shares[first] - shares[second] < 0.01 and shares[second] > 0.45


def test_the_learned_sentences_are_far_below_the_new_ones(names):
    assert max(names["old"]) < 0.1 < 1 < min(names["new"])
    assert max(names["new"]) > 0.85 * np.log(512)
    assert names["overlap"] > 0.7
