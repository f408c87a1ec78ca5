"""Real llama.cpp opens our files, and verify tells a right file from a wrong one."""

import dataclasses
import re
import subprocess
import sys

import numpy as np
import pytest
from gguf import GGUFValueType
from gguf_helpers import (
    DIALOGUES,
    SENTENCES,
    TEXTS,
    rewrite,
    sharp_weights,
    small_config,
    small_tokenizer,
)

import llmcl.verify
from llmcl.data import Dialogue
from llmcl.errors import GgufError
from llmcl.gguf_file import read_gguf, write_gguf
from llmcl.llama_cpp import _reason, ask_llama, warnings
from llmcl.tokenizer import ByteBPE, WordDictionary
from llmcl.verify import BANDS, STRANGE_TEXTS, verify

pytest.importorskip("xllamacpp")

TOKENIZER = small_tokenizer()
CONFIG = small_config(TOKENIZER)
WEIGHTS = sharp_weights(CONFIG)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "모델 good.gguf"
    write_gguf(path, CONFIG, WEIGHTS, TOKENIZER, "F32")
    return path


def wrong_rows(report):
    return {row.name for row in report.rows if row.right != row.all}


# ---- right files ----


@pytest.mark.parametrize("dtype", BANDS)
def test_llama_cpp_agrees(tmp_path, dtype):
    path = tmp_path / "model.gguf"
    write_gguf(path, CONFIG, WEIGHTS, TOKENIZER, dtype, {"steps": 1})
    report = verify(path, SENTENCES, DIALOGUES)
    assert report.ok, str(report)
    counts = {row.name: row.all for row in report.rows}
    assert counts["load log"] == counts["answer kept in the file"] == 1
    assert counts["token ids"] == len(SENTENCES) + 2 * len(DIALOGUES) + len(STRANGE_TEXTS)
    assert counts["sentences from their beginnings"] == len(SENTENCES)
    for name in ("questions", 'questions, "Assistant: "', "chat", "chat after another turn"):
        assert counts[name] == len(DIALOGUES), name
    assert counts["logits"] > 50
    assert str(report).count("right") == len(report.rows)


def test_word_dictionary_in_llama_cpp(tmp_path):
    tokenizer = WordDictionary.train(TEXTS, spell_unknown=True)
    config = small_config(tokenizer)
    path = tmp_path / "words.gguf"
    write_gguf(path, config, sharp_weights(config), tokenizer, "F32")
    report = verify(path, SENTENCES, DIALOGUES)
    assert report.ok, str(report)


def test_tokenizer_without_merges_in_llama_cpp(tmp_path):
    config = small_config(ByteBPE([]))
    path = tmp_path / "bytes.gguf"
    write_gguf(path, config, sharp_weights(config), ByteBPE([]), "F32")
    report = verify(path, [], [])
    assert report.ok, str(report)
    assert {row.name: row.all for row in report.rows}["token ids"] == len(STRANGE_TEXTS)


def test_text_longer_than_the_context_is_not_asked(good):
    long = Dialogue("so " * 300, "Yes.")
    report = verify(good, [], [*DIALOGUES[:1], long])
    assert report.ok, str(report)
    assert {row.name: row.all for row in report.rows}["questions"] == 1


# ---- files that load, and are wrong ----

LOUD = {
    "no kinds of tokens": ({"drop": ("tokenizer.ggml.token_type",)}, "load log"),
    "no template": ({"drop": ("tokenizer.chat_template",)}, "chat template"),
    "a begin token": (
        {"keys": {"tokenizer.ggml.add_bos_token": (True, GGUFValueType.BOOL)}},
        "token ids",
    ),
}


@pytest.mark.parametrize("fault", LOUD)
def test_key_of_the_tokenizer_that_is_wrong_is_found(good, tmp_path, fault):
    changes, row = LOUD[fault]
    bad = rewrite(good, tmp_path / "bad.gguf", **changes)
    assert row in wrong_rows(verify(bad, SENTENCES[:1], DIALOGUES[:1]))


SILENT = {
    "transposed square matrix": {"tensors": {"blk.0.attn_output.weight": np.transpose}},
    "heads": {"keys": {"gpt2.attention.head_count": (4, GGUFValueType.UINT32)}},
    "epsilon": {"keys": {"gpt2.attention.layer_norm_epsilon": (1e-3, GGUFValueType.FLOAT32)}},
    "two rows exchanged": {"tensors": {"token_embd.weight": lambda a: a[[1, 0, *range(2, 300)]]}},
}


@pytest.mark.parametrize("fault", SILENT)
def test_silent_fault_is_found(good, tmp_path, fault):
    bad = rewrite(good, tmp_path / "bad.gguf", **SILENT[fault])
    report = verify(bad, SENTENCES[:1], DIALOGUES[:1])
    assert wrong_rows(report) == {"answer kept in the file"}, str(report)
    assert "WRONG  answer kept in the file" in str(report)


def other_model(model, fault):
    """What our side would compute if our reading of the file were wrong."""
    if fault == "epsilon":
        config = dataclasses.replace(model.config, layer_norm_epsilon=1e-2)
        return dataclasses.replace(model, config=config)
    if fault == "heads":
        return dataclasses.replace(model, config=dataclasses.replace(model.config, n_heads=4))
    name = "blk.0.attn_output.weight"
    return dataclasses.replace(model, weights=model.weights | {name: model.weights[name].T})


@pytest.mark.parametrize("fault", ["epsilon", "heads", "transposed"])
def test_llama_cpp_that_computes_otherwise_is_found(good, monkeypatch, fault):
    model = other_model(read_gguf(good), fault)
    monkeypatch.setattr(llmcl.verify, "read_gguf", lambda path: model)
    report = verify(good, SENTENCES, DIALOGUES)
    assert "logits" in wrong_rows(report), str(report)
    assert "token ids" not in wrong_rows(report)


def test_other_token_ids_are_found(good, monkeypatch):
    merges = TOKENIZER.merges
    other = dataclasses.replace(read_gguf(good), tokenizer=ByteBPE([*merges[:-1], "Q Q"]))
    monkeypatch.setattr(llmcl.verify, "read_gguf", lambda path: other)
    report = verify(good, [TEXTS[-2]], [])
    last = merges[-1].replace(" ", "").replace("Ġ", " ")
    report = verify(good, [f"{last} {last}"], [])
    assert "token ids" in wrong_rows(report), str(report)
    assert "llama.cpp [" in str(report) and "ours [" in str(report)


def test_warning_in_the_log_is_found(good, tmp_path):
    bad = rewrite(good, tmp_path / "bad.gguf", drop=("tokenizer.ggml.pre",))
    _, log = ask_llama(bad, [])
    assert any("pre-tokenizer" in text for text in warnings(log))
    assert warnings(ask_llama(good, [])[1]) == []
    assert warnings(["something else"]) is None


# ---- files that llama.cpp refuses ----


def test_llama_cpp_names_the_reason(good, tmp_path):
    bad = rewrite(good, tmp_path / "bad.gguf", drop=("blk.1.ffn_down.bias",))
    with pytest.raises(GgufError, match="refuses .* tensor 'blk.1.ffn_down.bias'"):
        ask_llama(bad, [("/tokenize", {"content": "a"})])
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(GgufError, match="refuses .*magic"):
        ask_llama(tmp_path / "text.gguf", [])


def test_llama_cpp_wants_counts_of_32_bits(good, tmp_path):
    keys = {"gpt2.block_count": (2, GGUFValueType.UINT64)}
    bad = rewrite(good, tmp_path / "bad.gguf", keys=keys)
    with pytest.raises(GgufError, match="wrong type u64 but expected type u32"):
        ask_llama(bad, [])


def test_process_that_aborts_leaves_ours_alive(good, tmp_path):
    bad = rewrite(
        good, tmp_path / "bad.gguf", tensors={"output_norm.bias": lambda a: a.astype(np.float16)}
    )
    # verify() refuses a norm in F16 before; llama.cpp ends its process at the first token.
    with pytest.raises(GgufError, match="output_norm.bias is kept in F16"):
        read_gguf(bad)
    for _ in range(5):  # llama.cpp may end before its last word is written
        with pytest.raises(GgufError, match="ends its process over ") as caught:
            ask_llama(bad, [("/completion", {"prompt": "The sun", "n_predict": 2})])
        assert "\n" not in str(caught.value)
        if "gave no reason" not in str(caught.value):
            break
    assert re.search(r": [\w-]+\.cpp:\d+: .*f16", str(caught.value))


def test_a_reason_is_an_error_or_a_last_word_and_no_news():
    news, error = "0.00.008.103 I load: all is well", "0.00.009.001 E load: a key is missing"
    assert _reason([news, error, news]) == "load: a key is missing"
    assert (
        _reason([news, "/build/ops.cpp:12: unsupported types"]) == "ops.cpp:12: unsupported types"
    )
    assert _reason([news]) == "it gave no reason"
    assert _reason([]) == "it gave no reason"


def test_a_log_that_was_lost_is_asked_for_once_more(good, monkeypatch):
    logs = []

    def first_without_a_log(path, requests):
        answers, log = ask_llama(path, requests)
        logs.append(log)
        return answers, log if len(logs) > 1 else []

    monkeypatch.setattr("llmcl.verify.ask_llama", first_without_a_log)
    report = verify(good, SENTENCES, DIALOGUES)
    assert len(logs) == 2
    assert report.rows[0].right == 1


def test_request_that_llama_cpp_refuses(good):
    with pytest.raises(GgufError, match="/completion .*exceeds the available context size"):
        ask_llama(good, [("/completion", {"prompt": "so " * 300, "n_predict": 1})])


def test_llama_cpp_that_takes_too_long(good):
    with pytest.raises(GgufError, match="did not answer"):
        ask_llama(good, [], seconds=0.01)


def test_without_xllamacpp(good, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(GgufError, match=r"pip install 'llmcl\[verify\]'"):
        verify(good, SENTENCES, DIALOGUES)


# ---- the chat endpoint ----


def test_chats_become_the_training_text(good):
    user = {"role": "user", "content": "Hello"}
    chats = [
        [user],
        [{"role": "system", "content": "Be brief."}, user],
        [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}, user],
        [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
    ]
    answers, log = ask_llama(good, [("/apply-template", {"messages": chat}) for chat in chats])
    assert [a["prompt"] for a in answers] == ["User: Hello\nAssistant:"] * len(chats)
    assert warnings(log) == []


# ---- as a program ----


def test_as_a_program(good, tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "llmcl.verify", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")

    missing = run(tmp_path / "none.gguf")
    assert missing.returncode == 2 and missing.stdout == ""
    assert missing.stderr.count("\n") == 1 and "none.gguf" in missing.stderr
    assert run().returncode == 2
