"""Lesson 10: what is masked, what is known, and what its runs show."""

import ast
import asyncio
import inspect

import numpy as np
import pytest
from touches import assert_same_touches

from lesson_helpers import code
from llmcl import lab
from llmcl.data import IGNORED, read_dialogues, tune_rows
from llmcl.lab import lessons
from llmcl.resources import data_dir
from notebook_builder import build


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define up to its picture of 38 rows, solutions in place."""
    skipped = "lab.run_broken", "lab.kernel_exercise", "known_text", "lab.quiz"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {}
        for cell in code(build.assemble("10_tuning", solved=True)):
            if not any(word in cell.source for word in skipped):
                run(cell.source, defined)
            if "lab.keep_checkpoint(" in cell.source:
                defined["kept_weights"] = defined["model"].weights()
            if "def ends_masked(" in cell.source:
                break
        yield defined


def run(source, names):
    """Runs a cell, which may await at its top level."""
    waits = eval(compile(source, "a cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(waits):
        asyncio.run(waits)


def test_one_place_known_touches_what_the_kernel_touches(names):
    logits = np.random.default_rng(1).normal(size=(5, 7)).astype(np.float32)
    targets = np.array([-1, logits[1].argmax(), 3, -1, 0], np.int32)
    args = logits, targets, np.zeros(5, np.int32), 5, 7
    text = lessons.find("10.3").text
    assert_same_touches(names["one_place_known"], 5, args, text, "place_known", group=2)


def test_the_exercise_makes_the_package_s_rows(names):
    tokenizer, rows = names["tokenizer"], []
    for d in read_dialogues(data_dir() / "tune.jsonl"):
        for space, answer in (("", " " + d.assistant), (" ", d.assistant)):
            asked = tokenizer.encode(names["prompt_text"](d.user) + space)
            answered = tokenizer.encode(answer)
            rows.append(names["answer_row"](asked, answered, tokenizer.end_id))
    assert rows == tune_rows(names["dialogues"], tokenizer)


def test_every_row_asks_for_its_end_once(names):
    ends = (names["y"] == names["tokenizer"].end_id).sum(axis=1)
    assert ends.tolist() == [1] * 26
    kinds = names["kinds"]
    assert ((kinds == "q") == (names["y"] == IGNORED))[kinds != ""].all()
    assert ((kinds == "A").sum() + 26) / kinds.size == pytest.approx(1 / 3, abs=0.02)


def test_the_question_is_heard_where_it_is_masked(names):
    pulls, masked = names["pulls"], names["masked"]
    assert (pulls[: len(masked)] > 0).all() and not pulls[len(masked) :].any()
    assert pulls[: len(masked)][masked].mean() > 0.1 * pulls[: len(masked)][~masked].mean()
    assert pulls[len(masked) - 1] < 0.02 * pulls.max(), "the last bar is too short to be seen"


def test_one_pass_says_what_writing_says_on_the_way_too(names):
    """Also in the middle of forgetting, where some texts are known and others are not."""
    for step in names["tuning"]([names["dialogue_rows"]], {}):
        if step.step == 16:
            break
    now = names["known_now"]()
    assert 0 < now.sum() < len(now)
    assert (now == names["written_now"]()).all()


def test_naive_forgets_and_mixed_keeps(names):
    count, naive, mixed = names["count"], names["naive"], names["mixed"]
    assert count(naive, 0) == count(mixed, 0) == (25, 0)
    assert count(naive)[0] <= 3 and count(naive)[1] == 13
    assert count(mixed)[0] >= 23 and count(mixed)[1] == 13


def test_a_stopped_run_is_made_again_to_its_end(names, capsys):
    model, kept, history = names["model"], names["kept_weights"], {}
    stopped = lab.monitor.Watched(last=12, stopped=True)
    loss = names["whole"](stopped, [names["dialogue_rows"], names["old_rows"]], history)
    assert "stopped after step 12" in capsys.readouterr().out
    assert loss == names["mixed_loss"] and history.keys() == names["mixed"].keys()
    assert all((model.weights()[name] == array).all() for name, array in kept.items())


def test_the_marks_of_the_picture_are_what_is_known(names):
    _, axes = lab.figure("the marks of a run")
    names["draw_known"](axes, names["naive"], "naive")
    marks = {(int(x), int(y)) for part in axes.collections for x, y in part.get_offsets()}
    table = [names["naive"][step] for step in names["ASK_AT"]]
    want = {(c, r) for c, known in enumerate(table) for r in np.flatnonzero(known)}
    assert marks == want and len(names["starts"]) == len(table[0]) == 38


def test_the_mixed_model_is_the_stored_one(names):
    stored, tokenizer = lab.checkpoint("10", names["engine"])
    assert tokenizer.fingerprint() == names["tokenizer"].fingerprint()
    for name, array in names["kept_weights"].items():
        np.testing.assert_array_equal(stored.weights()[name], array)


def test_the_picture_s_words_hold(names):
    """Sentences end by step 30 and answers begin between 16 and 40, naively."""
    count, naive, mixed = names["count"], names["naive"], names["mixed"]
    assert count(naive, 8)[0] > 12 and count(naive, 30)[0] <= 2
    assert count(naive, 12)[1] == 0 and count(naive, 40)[1] >= 12
    assert min(count(mixed, step)[0] for step in names["ASK_AT"]) >= 20
    assert count(mixed, 30)[1] < count(naive, 30)[1]
