"""Lesson 12b: what its cells say of files, logits and texts holds, with and without llama.cpp."""

import importlib.util

import numpy as np
import pytest

from lesson_helpers import code
from llmcl import lab
from llmcl.check import compare
from llmcl.engine import get_engine
from llmcl.errors import GgufError
from llmcl.lab import lessons, llama
from llmcl.lab.items import run_items
from llmcl.lab.lessons import lesson_12b
from llmcl.llama_cpp import ask_llama
from llmcl.verify import BANDS
from notebook_builder import build

needs_llama = pytest.mark.skipif(
    not importlib.util.find_spec("xllamacpp"), reason="xllamacpp is not installed"
)
SKIPPED = ("run_broken", "kernel_exercise", "quiz", "summary")


def run_lesson(folder):
    """What the lesson's cells define, with the solutions in place and the shipped model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(folder))
        defined = {
            "logits_text": lessons.find("12b.4").text,
            "row_text": lessons.find("12b.3").text,
        }
        for cell in code(build.assemble("12b_in_the_wild", solved=True)):
            if not any(word in cell.source for word in SKIPPED):
                exec(cell.source, defined)
        return defined


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    return run_lesson(tmp_path_factory.mktemp("lab"))


# ---- the kernel and its twin ----


def test_the_twin_and_the_kernel_depend_on_the_same_bytes(names):
    """A change of one byte changes the logits of the work-items that read it, and no others."""
    words, h, start, V, C = lesson_12b._q8_case(5, 3, 64)
    h = np.abs(h) + 1  # so that every byte counts
    raw, got = words.view(np.uint8).copy(), np.zeros(V)
    run = run_items(names["one_logit"], V, raw, h, got, start, V, C, group=2)
    assert not run.findings
    want, bound = lesson_12b._logits_want(words, h, start, V, C)
    assert compare(got, want, bound).ok
    readers = [set() for _ in raw]
    for access in run.accesses:
        if access.array == "file":
            readers[access.place].add(access.item[0])
    engine, task = get_engine(), lessons.find("12b.4")
    kernel = getattr(lab.build(engine, task.text), task.name)
    base = lesson_12b._logits(engine, kernel, words, h, start, V, C)
    assert compare(base, want, bound).ok
    for place in range(len(raw)):
        other = raw.copy()
        other[place] ^= 0x40
        changed = lesson_12b._logits(engine, kernel, other.view(np.int32), h, start, V, C)
        assert set(np.flatnonzero(changed != base)) == readers[place], place


def test_the_logits_from_the_file_s_bytes_are_those_of_the_model(names):
    want = names["our_logits"](names["gpt"], names["places"][2:3])[0]
    assert np.abs(names["logits"] - want).max() < 1e-4
    assert names["start"] % 32 == 0 and names["table"].data.shape == (512, 102)


# ---- what is said of faults ----


@needs_llama
def test_the_numbers_of_the_lesson_are_those_of_the_shipped_model(names):
    assert names["right"] == 25
    assert names["as_taught"] == {
        "nothing wrong": 25, "attn_output transposed": 3, "4 heads for 3": 25,
        "epsilon 1e-3": 25, "key before query": 18, "positions start at 1": 2,
        "a bias forgotten": 25,
    }  # fmt: skip
    assert names["known"] == {
        "as trained": 13, "a space behind": 13, "in one line": 12, "small letters": 0,
        "another family": 2, "bare": 1,
    }  # fmt: skip
    assert "A has eight legs." in names["said"]


def test_every_fault_is_far_outside_of_the_band_and_told_from_the_others(names):
    gaps, band = names["gaps"], BANDS["F32"]
    assert gaps["nothing wrong"] < band / 4
    assert min(g for name, g in gaps.items() if name != "nothing wrong") > 10 * band
    table = names["table_of_gaps"]
    assert ((table <= band).sum(axis=0) == 1).all() and ((table <= band).sum(axis=1) == 1).all()
    assert np.sort(table, axis=1)[:, 1].min() > 10 * band
    assert sorted(names["letters"].values()) == sorted(names["faults"])


def test_a_file_that_nothing_explains_is_none_of_the_candidates(names):
    theirs = next(iter(names["mystery"].values()))
    some = np.array([c for c in names["candidates"] if names["gap"](theirs, c) > BANDS["F32"]])
    assert len(some) == 6 and names["nearest"](theirs, some, BANDS["F32"]) == -1


def test_the_gap_does_not_see_a_shift_and_sees_one_logit():
    ours = np.random.default_rng(3).normal(size=(4, 9))
    shifted = ours + np.array([[1.0], [-3.0], [100.0], [0.0]])
    assert lesson_12b._gap(shifted, ours) == pytest.approx(0, abs=1e-12)
    shifted[2, 5] += 0.5
    assert lesson_12b._gap(shifted, ours) == pytest.approx(0.25)


def test_what_is_left_to_send(names):
    """Next to nothing of what was learned, and a good part of the masked questions."""
    left, zips = names["left"], names["zips"]
    assert left["sentences"] + left["answers"] < 60
    assert 0.7 < left["questions"] / zips["questions"] < 1.3
    assert 8 * names["size"] > 300 * names["everything"]


# ---- llama.cpp, and what stands in for it ----


@needs_llama
def test_the_logs_are_those_that_llama_cpp_reports_without_a_wish(names):
    prompt = names["places"][2]
    body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 512}
    (answer,), _ = ask_llama(names["exact"], [("/completion", body)])
    (step,) = answer["completion_probabilities"]
    logs = lab.llama_logs(names["exact"], [prompt])[0]
    for token in step["top_logprobs"]:
        assert token["logprob"] == pytest.approx(logs[token["id"]], abs=1e-4)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-3)


@needs_llama
def test_the_logs_are_whole_where_a_part_of_a_character_comes_next(names, tmp_path):
    """llama.cpp reports no shares with a token that is no whole character."""
    tokenizer, w = names["tokenizer"], names["model"].weights()
    part = tokenizer.encode("한")[0]
    assert len(tokenizer.decode_bytes([part])) == 1
    # A last row that fits this token, and hardly any other.
    towards = np.linalg.pinv(w["token_embd.weight"])[:, part]
    w["output_norm.bias"] = w["output_norm.bias"] + 1000 * towards
    path = tmp_path / "part.gguf"
    names["write_gguf"](path, names["config"], w, tokenizer, "F32")
    logs = lab.llama_logs(path, names["places"])
    assert np.isfinite(logs).all() and (logs.argmax(axis=1) == part).all()


@needs_llama
def test_refusals_name_no_folder(names, tmp_path):
    assert lab.llama_refusal(names["file"]) == ""
    path = tmp_path / "loud.gguf"
    path.write_bytes(names["raw_bytes"][:-1000])
    assert "not within the file bounds" in lab.llama_refusal(path)
    with pytest.raises(GgufError) as caught:
        lab.ask_llama(path, [])
    assert "loud.gguf" in str(caught.value) and str(tmp_path) not in str(caught.value)


def test_without_xllamacpp_the_lesson_says_so_once_and_goes_on(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(llama, "_told", False)
    monkeypatch.setattr(
        llama.importlib.util, "find_spec", lambda n: None if n == "xllamacpp" else find(n)
    )
    names = run_lesson(tmp_path)
    out = capsys.readouterr().out
    assert out.count("xllamacpp is not installed") == 1
    assert names["right"] == 25 and names["gaps"]["nothing wrong"] < 1e-6
    assert "file d: 4 heads for 3" in out


@needs_llama
def test_the_stand_in_answers_as_llama_cpp_does(names, monkeypatch):
    file, places = names["exact"], names["places"]
    chats = [names["chat"](d.user) for d in names["dialogues"][:3]]
    templates = [("/apply-template", {"messages": body["messages"]}) for _, body in chats]
    tokens = [("/tokenize", {"content": text, "parse_special": False}) for text in names["texts"]]
    asked = [*templates, *tokens, *chats]

    def parts(answers):
        keys = {"prompt", "tokens", "object", "choices"}
        found = [{k: v for k, v in a.items() if k in keys} for a in answers]
        for answer in found:
            for choice in answer.get("choices", []):
                message = choice["message"]
                answer["choices"] = message["role"], message["content"].strip()
        return found

    real = parts(lab.ask_llama(file, asked)), lab.llama_logs(file, places)
    monkeypatch.setattr(llama, "_ask_real", llama._ask_stand_in)
    assert parts(lab.ask_llama(file, asked)) == real[0]
    assert names["gap"](lab.llama_logs(file, places), real[1]) < BANDS["F32"]
