"""The whole job on the default settings: two text files in, a GGUF that llama.cpp answers with out.

Everything here is about one run of `llmcl train`, and a second one that is interrupted.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from llmcl.checkpoint import load_checkpoint
from llmcl.data import prompt_text, read_dialogues, read_sentences, recall_prompts
from llmcl.engine import get_engine
from llmcl.generate import generate, reply
from llmcl.gguf_file import read_gguf
from llmcl.load import load_model
from llmcl.pipeline import RUNNING
from llmcl.resources import data_dir

ROOT = Path(__file__).resolve().parent.parent
LARGEST_FILE = 442_000  # bytes
SENTENCES = read_sentences(data_dir() / "pretrain.txt")
DIALOGUES = read_dialogues(data_dir() / "tune.jsonl")


def start(out, *options):
    command = [sys.executable, "-m", "llmcl.cli", "train", "--out", str(out), *options]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, encoding="utf-8")


def finish(process):
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return err


@pytest.fixture(scope="session")
def job(tmp_path_factory):
    """(folder, metrics, seconds of computing) of the default run."""
    folder = tmp_path_factory.mktemp("job") / "build"
    before = os.times()
    finish(start(folder))
    after = os.times()
    seconds = after.children_user + after.children_system
    seconds -= before.children_user + before.children_system
    return folder, json.loads((folder / "metrics.json").read_text(encoding="utf-8")), seconds


@pytest.fixture(scope="session")
def loaded(job):
    """The GGUF and the last checkpoint, each as (model, tokenizer) on the chosen device."""
    engine = get_engine()
    return {name: load_model(job[0] / name, engine) for name in ("model.gguf", "tune.safetensors")}


# ---- what was asked for ----


def test_data():
    assert len(SENTENCES) == 25 and len(DIALOGUES) == 13
    for prompt, rest in recall_prompts(SENTENCES):
        assert len(prompt.split()) >= 2 and rest
        assert sum(sentence.startswith(prompt) for sentence in SENTENCES) == 1


def test_metrics_have_the_keys(job):
    _, metrics, _ = job
    assert isinstance(metrics["device"], str) and metrics["parameters"] > 100_000
    assert metrics["pretrain"].keys() >= {"steps", "seconds", "loss", "recall"}
    assert metrics["tune"].keys() >= {"seconds", "answers", "recall", "recall_without_mixing"}
    assert metrics["export"].keys() >= {"bytes", "dtype"}


def test_all_sentences_are_known_after_pretraining(job):
    assert job[1]["pretrain"]["recall"] == [25, 25]


def test_all_questions_are_answered_after_tuning(job):
    assert job[1]["tune"]["answers"] == [13, 13]


def test_sentences_are_still_known_with_mixing_and_lost_without(job):
    tune = job[1]["tune"]
    assert tune["recall"][0] >= 24 and tune["recall"][1] == 25
    # What the article warns of: tuning alone overwrites what pretraining taught.
    assert tune["recall_without_mixing"][0] < tune["recall"][0]
    assert tune["answers_without_mixing"] == [13, 13]


def test_size(job):
    folder, metrics, _ = job
    path = folder / "model.gguf"
    config = read_gguf(path).config
    assert config.n_layers >= 2 and config.d_ff == 4 * config.d_model
    assert path.stat().st_size == metrics["export"]["bytes"] <= LARGEST_FILE
    assert metrics["parameters"] == config.parameter_count()


def test_time(job):
    # Half a minute on two quiet cores with PoCL. Other tests may share the cores, so what counts
    # here is the time of both cores together, at most twice the time by the clock.
    assert job[2] < 2 * 120


def test_loss_falls_in_every_stage(job):
    for stage, rows in job[1]["curves"].items():
        losses = [row[1] for row in rows]
        assert losses[-1] < 0.1 < losses[0], stage
        assert all(np.isfinite(row).all() and row[4] > 0 for row in rows)
    first = job[1]["curves"]["pretrain"][0][1]
    assert first == pytest.approx(np.log(read_gguf(job[0] / "model.gguf").config.vocab_size), 0.1)


# ---- counted anew ----


@pytest.mark.parametrize("name", ["model.gguf", "tune.safetensors"])
def test_recall_counted_from_the_files(loaded, name):
    model, tokenizer = loaded[name]
    right = 0
    for prompt, rest in recall_prompts(SENTENCES):
        new = generate(model, tokenizer.encode(prompt), stop_ids=[tokenizer.end_id])
        right += new[-1] == tokenizer.end_id and tokenizer.decode(new[:-1]) == rest
    assert right >= 24


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("name", ["model.gguf", "tune.safetensors"])
def test_answers_counted_from_the_files(loaded, name, space):
    model, tokenizer = loaded[name]
    for dialogue in DIALOGUES:
        ids = tokenizer.encode(prompt_text(dialogue.user) + space)
        new = generate(model, ids, stop_ids=[tokenizer.end_id])
        assert new[-1] == tokenizer.end_id  # it ends by itself
        assert space + tokenizer.decode(new[:-1]) == " " + dialogue.assistant


def test_chat_answers_alike_from_both_files(loaded):
    for question in [*(d.user for d in DIALOGUES), "What is a zebra?", "왜?"]:
        found = {"".join(reply(*pair, question, max_new_tokens=40)) for pair in loaded.values()}
        taught = {d.assistant for d in DIALOGUES if d.user == question}
        assert found == taught or not taught


def test_forgetting_is_seen_in_the_checkpoints(job):
    engine = get_engine()
    known = {}
    for stage in ("pretrain", "tune_without_mixing", "tune"):
        model, tokenizer = load_model(job[0] / f"{stage}.safetensors", engine)
        known[stage] = 0
        for prompt, rest in recall_prompts(SENTENCES):
            ids = tokenizer.encode(prompt)
            new = generate(model, ids, max_new_tokens=40, stop_ids=[tokenizer.end_id])
            known[stage] += tokenizer.decode(new[:-1]) == rest and new[-1] == tokenizer.end_id
    tune = job[1]["tune"]
    assert known["pretrain"] == 25 and known["tune"] == tune["recall"][0]
    assert known["tune_without_mixing"] == tune["recall_without_mixing"][0]


# ---- in real llama.cpp ----


def test_llama_cpp_answers_the_same(job):
    pytest.importorskip("xllamacpp")
    from llmcl.verify import verify

    report = verify(job[0] / "model.gguf")
    assert report.ok, str(report)
    rows = {row.name: row for row in report.rows}
    assert rows["load log"].detail == "no warning"
    assert rows["token ids"].all > 70
    for name in ("questions", 'questions, "Assistant: "', "chat", "chat after another turn"):
        assert rows[name].all == 13 and rows[name].detail == "13 as in the data", str(report)
    sentences = rows["sentences from their beginnings"]
    assert sentences.all == 25 and int(sentences.detail.split()[0]) >= 24
    assert rows["logits"].all > 300


# ---- the same bytes again ----


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_interrupted_and_resumed_gives_the_same_bytes(job, tmp_path):
    """A second run with the same seed, stopped by Ctrl-C and killed on its way."""
    wait_and(signal.SIGINT, start(tmp_path), tmp_path / RUNNING)  # behind step 50
    stopped = load_checkpoint(tmp_path / RUNNING)
    assert stopped.state["stage"] == "pretrain" and stopped.m and stopped.v
    again = tmp_path / "tune_without_mixing.safetensors"
    wait_and(signal.SIGKILL, start(tmp_path, "--resume"), again)
    assert not (tmp_path / "model.gguf").exists()
    assert "changed since" not in finish(start(tmp_path, "--resume"))
    for name in ("model.gguf", "Modelfile"):
        assert (tmp_path / name).read_bytes() == (job[0] / name).read_bytes(), name
    metrics = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    for stage, rows in job[1]["curves"].items():
        assert [row[:4] for row in metrics["curves"][stage]] == [row[:4] for row in rows]
    assert not (tmp_path / RUNNING).exists()


def wait_and(number, process, path):
    """Sends the signal as soon as the file is there."""
    deadline = time.monotonic() + 300
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number), err
