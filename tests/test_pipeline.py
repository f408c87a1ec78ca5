"""Runs in a folder: what they leave, how they stop and go on, and what they refuse."""

import contextlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import llmcl.files
from llmcl.checkpoint import load_checkpoint, training_info
from llmcl.data import recall_prompts
from llmcl.engine import get_engine
from llmcl.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    GgufError,
    LlmclError,
    TokenizerError,
    TrainingError,
)
from llmcl.generate import generate
from llmcl.gguf_file import read_gguf, write_gguf
from llmcl.load import load_model
from llmcl.pipeline import RUNNING, Listener, Stopped, train_to_gguf
from llmcl.reference import Engine
from llmcl.settings import STAGES, Settings

SENTENCES = "The sun rises in the east.\nRivers carry water to the sea.\nBees make honey.\n"
DIALOGUES = (
    '{"user": "Hello", "assistant": "Hello, nice to meet you."}\n'
    '{"user": "What do bees make?", "assistant": "Bees make honey."}\n'
)
SMALL = {
    "vocab_size": 290, "d_model": 32, "n_heads": 2, "n_layers": 1, "d_ff": 64,
    "pretrain_steps": 6, "tune_steps": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "sentences.txt").write_text(SENTENCES, encoding="utf-8")
    (folder / "dialogues.jsonl").write_text(DIALOGUES, encoding="utf-8")
    return {"pretrain": folder / "sentences.txt", "tune": folder / "dialogues.jsonl"}


def train(out, texts, engine=None, settings=None, **options):
    settings = Settings(**(SMALL | (settings or {})))
    return train_to_gguf(out, settings, engine or Engine(np.float32), **(texts | options))


class Watch(Listener):
    """Remembers what it is told, and stops after the given number of steps."""

    def __init__(self, stop_after=None):
        self.steps, self.stages, self.messages, self.stop_after = [], [], [], stop_after

    def message(self, text):
        self.messages.append(text)

    def stage(self, name, done, steps):
        self.stages.append((name, done, steps))

    def step(self, step):
        self.steps.append(step)

    def stop_wanted(self):
        return len(self.steps) == self.stop_after


def contents(folder: Path) -> dict[str, bytes]:
    """The folder's files but the lock, which says nothing by its content."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def untimed(metrics: dict) -> dict:
    """Metrics without what the clock decides."""
    if isinstance(metrics, dict):
        return {k: untimed(v) for k, v in metrics.items() if not k.startswith("seconds")}
    if isinstance(metrics, list) and len(metrics) == 5 and isinstance(metrics[-1], float):
        return metrics[:-1]  # a row of the curve; the last column is the speed
    return [untimed(v) for v in metrics] if isinstance(metrics, list) else metrics


@pytest.fixture(scope="module")
def finished(texts, tmp_path_factory):
    """(folder, metrics, what the listener heard) of an uninterrupted run."""
    folder, watch = tmp_path_factory.mktemp("finished") / "out", Watch()
    return folder, train(folder, texts, listener=watch), watch


# ---- what a run leaves ----


def test_files(finished):
    folder, metrics, _ = finished
    stages = {f"{stage}.safetensors" for stage in STAGES}
    assert set(contents(folder)) == {"model.gguf", "Modelfile", "metrics.json", *stages}
    assert json.loads((folder / "metrics.json").read_text(encoding="utf-8")) == metrics
    assert "FROM ./model.gguf" in (folder / "Modelfile").read_text(encoding="utf-8")


def test_metrics(finished):
    folder, metrics, _ = finished
    assert metrics["device"] == "NumPy"
    assert metrics["parameters"] == read_gguf(folder / "model.gguf").config.parameter_count()
    assert metrics["settings"]["d_model"] == 32
    assert metrics["pretrain"].keys() == {"steps", "seconds", "loss", "recall"}
    assert metrics["pretrain"]["steps"] == 6 and metrics["pretrain"]["recall"] == [0, 3]
    assert metrics["tune"]["answers"] == [0, 2] and metrics["tune"]["recall"] == [0, 3]
    assert metrics["tune"]["recall_without_mixing"] == [0, 3]
    assert 0 < metrics["tune"]["seconds"] < 60
    size = (folder / "model.gguf").stat().st_size
    assert metrics["export"] == {"bytes": size, "dtype": "Q8_0"}
    assert [row[0] for row in metrics["curves"]["pretrain"]] == [1, 6]
    assert metrics["curves"]["pretrain"][-1][1] == metrics["pretrain"]["loss"]
    assert len(metrics["curve_columns"]) == len(metrics["curves"]["tune"][0]) == 5


def test_listener_hears_everything(finished):
    _, _, watch = finished
    assert watch.stages == [
        ("pretrain", 0, 6), ("tune_without_mixing", 0, 4), ("tune", 0, 4)
    ]  # fmt: skip
    assert [step.step for step in watch.steps] == [*range(1, 7), *range(1, 5), *range(1, 5)]
    assert watch.messages[0] == "NumPy"
    assert watch.messages[1] == "pretrain: 0 of 3 sentences known."


def test_each_stage_begins_from_pretraining(finished):
    folder, _, _ = finished
    stored = {stage: load_checkpoint(folder / f"{stage}.safetensors") for stage in STAGES}
    tables = {stage: c.weights["token_embd.weight"] for stage, c in stored.items()}
    moved = {s: np.abs(tables[s] - tables["pretrain"]).max() for s in STAGES}
    assert moved["pretrain"] == 0
    # Four small steps; tuning is not made behind tuning.
    assert 0 < moved["tune"] < 4e-3 and 0 < moved["tune_without_mixing"] < 4e-3
    assert stored["tune"].state["results"].keys() == set(STAGES)
    assert all(not c.m and not c.v for c in stored.values())


def test_file_tells_how_it_was_trained(finished):
    folder, metrics, _ = finished
    info = read_gguf(folder / "model.gguf").info
    assert info["pretrain_steps"] == 6 and info["tune_steps"] == 4 and info["seed"] == 0
    assert info["pretrain_loss"] == metrics["pretrain"]["loss"]
    assert info["tune_loss"] == metrics["tune"]["loss"]
    assert (info["sentences"], info["dialogues"]) == (3, 2)
    assert "dataset" not in info  # the texts are not those of the data folder


def test_exporting_the_last_checkpoint_gives_the_same_bytes(finished, tmp_path):
    folder, _, _ = finished
    stored = load_checkpoint(folder / "tune.safetensors")
    path = tmp_path / "again.gguf"
    info = training_info(stored.state)
    write_gguf(path, stored.config, stored.weights, stored.tokenizer, "Q8_0", info)
    assert path.read_bytes() == (folder / "model.gguf").read_bytes()
    assert training_info({}) == {}


def test_same_seed_same_bytes_other_seed_others(finished, texts, tmp_path):
    folder, metrics, _ = finished
    again = train(tmp_path / "again", texts)
    assert untimed(again) == untimed(metrics)
    same, good = contents(tmp_path / "again"), contents(folder)
    assert same["model.gguf"] == good["model.gguf"]
    train(tmp_path / "other", texts, settings={"seed": 1})
    assert contents(tmp_path / "other")["model.gguf"] != good["model.gguf"]


def test_finished_folder_can_be_used_again(finished, texts, tmp_path):
    train(tmp_path, texts, settings={"seed": 1})
    train(tmp_path, texts, resume=True)
    good = contents(finished[0])["model.gguf"]
    assert contents(tmp_path)["model.gguf"] == good


def test_own_data_is_the_default(tmp_path):
    with pytest.raises(Stopped):
        train(tmp_path, {}, listener=Watch(stop_after=1))
    state = load_checkpoint(tmp_path / RUNNING).state
    assert state["data"]["sentences"] == 25 and state["data"]["dialogues"] == 13
    assert "dataset" in training_info(state)


# ---- quality ----

LEARNS = {"d_ff": 128, "pretrain_steps": 90, "tune_steps": 90}
LEARNS |= {"pretrain_rate": 1e-2, "tune_rate": 3e-3}


@pytest.mark.parametrize("tokenizer", ["bpe", "words"])
def test_both_engines_teach_equally_well(texts, tmp_path, tokenizer):
    settings = LEARNS | {"tokenizer": tokenizer}
    found = {}
    for name, engine in {"numpy": Engine(np.float32), "OpenCL": get_engine()}.items():
        metrics = train(tmp_path / name, texts, engine, settings)
        tune = metrics["tune"]
        found[name] = metrics["pretrain"]["recall"], tune["recall"], tune["answers"]
        assert tune["recall_without_mixing"][0] < 3
        assert (metrics["device"] == "NumPy") == (name == "numpy")
    assert found["numpy"] == found["OpenCL"] == ([3, 3], [3, 3], [2, 2])


def test_checkpoint_and_file_answer_alike(texts, tmp_path):
    train(tmp_path, texts, settings=LEARNS)
    replies = []
    for name in ("tune.safetensors", "model.gguf"):
        model, tokenizer = load_model(tmp_path / name, get_engine())
        ids = tokenizer.encode("User: What do bees make?\nAssistant:")
        new = generate(model, ids, max_new_tokens=40, stop_ids=[tokenizer.end_id])
        replies.append(tokenizer.decode(new))
    assert replies == [" Bees make honey."] * 2


# ---- interrupted, and gone on ----

ALL_STEPS = 6 + 4 + 4


@pytest.mark.parametrize("stop_after", range(1, ALL_STEPS + 1))
def test_stopped_after_any_step_and_resumed(finished, texts, tmp_path, stop_after):
    with pytest.raises(Stopped, match="stopped at step .* --resume goes on"):
        train(tmp_path, texts, listener=Watch(stop_after))
    assert not (tmp_path / "model.gguf").exists()
    load_model(tmp_path / RUNNING, Engine(np.float32))  # a usable checkpoint
    watch = Watch()
    metrics = train(tmp_path, texts, resume=True, listener=watch)
    assert len(watch.steps) == ALL_STEPS - stop_after
    assert contents(tmp_path)["model.gguf"] == contents(finished[0])["model.gguf"]
    assert untimed(metrics) == untimed(finished[1])
    assert not (tmp_path / RUNNING).exists()


@pytest.mark.parametrize("stops", [(1, 1), (3, 2), (5, 6), (2, 1, 5, 3)])
def test_interrupted_more_than_once(finished, texts, tmp_path, stops):
    for stop_after in stops:
        with pytest.raises(Stopped):
            train(tmp_path, texts, resume=True, listener=Watch(stop_after))
    metrics = train(tmp_path, texts, resume=True)
    assert contents(tmp_path)["model.gguf"] == contents(finished[0])["model.gguf"]
    assert untimed(metrics) == untimed(finished[1])


def test_resumed_on_opencl(texts, tmp_path):
    engine = get_engine()
    train(tmp_path / "whole", texts, engine)
    for stop_after in (4, 5):
        with pytest.raises(Stopped):
            train(tmp_path / "parts", texts, engine, resume=True, listener=Watch(stop_after))
    train(tmp_path / "parts", texts, get_engine(), resume=True)
    whole, parts = contents(tmp_path / "whole"), contents(tmp_path / "parts")
    assert whole["model.gguf"] == parts["model.gguf"]


class Killed(BaseException):
    """The process ends here; nobody catches this."""


def kill_at(monkeypatch, number, before):
    """Ends the process before or behind the number-th replacing of a file, counted from 1."""
    replace, count = os.replace, 0

    def counted(source, target):
        nonlocal count
        count += 1
        if count == number and before:
            raise Killed
        replace(source, target)
        if count == number:
            raise Killed

    monkeypatch.setattr(llmcl.files.os, "replace", counted)


# What a run writes: two checkpoints behind every stage, GGUF, Modelfile, metrics.
WRITES = 2 * 3 + 3


@pytest.fixture(scope="module")
def longer(texts, tmp_path_factory):
    """(folder, metrics) of an uninterrupted run with a checkpoint inside a stage."""
    folder = tmp_path_factory.mktemp("longer")
    return folder, train(folder, texts, settings={"pretrain_steps": 52})


@pytest.mark.parametrize("before", [True, False], ids=["before", "behind"])
@pytest.mark.parametrize("number", range(1, WRITES + 2))  # one more: a checkpoint at step 50
def test_killed_at_any_write_and_resumed(longer, texts, tmp_path, monkeypatch, number, before):
    settings = {"pretrain_steps": 52}
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(patch, number, before)
        train(tmp_path, texts, settings=settings)
    metrics = train(tmp_path, texts, settings=settings, resume=True)
    found, good = contents(tmp_path), contents(longer[0])
    assert found["model.gguf"] == good["model.gguf"]
    assert found.keys() == good.keys()
    assert untimed(metrics) == untimed(longer[1])


def test_there_are_no_more_writes_than_those(texts, tmp_path, monkeypatch):
    kill_at(monkeypatch, WRITES + 2, before=True)
    train(tmp_path, texts, settings={"pretrain_steps": 52})


def test_killed_between_two_seeds_never_mixes_them(texts, tmp_path, monkeypatch, finished):
    with pytest.raises(Stopped):
        train(tmp_path, texts, settings={"seed": 1}, listener=Watch(stop_after=8))
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at(patch, 1, before=False)  # pretrain.safetensors is of seed 0 now
        train(tmp_path, texts, restart=True)
    train(tmp_path, texts, resume=True)
    assert contents(tmp_path)["model.gguf"] == contents(finished[0])["model.gguf"]
    with pytest.raises(Stopped):
        train(tmp_path, texts, listener=Watch(stop_after=8))
    os.replace(tmp_path / RUNNING, tmp_path / "kept")
    train(tmp_path, texts, settings={"seed": 1})
    os.replace(tmp_path / "kept", tmp_path / RUNNING)
    with pytest.raises(CheckpointError, match="pretrain.safetensors is of a run with seed 1; use"):
        train(tmp_path, texts, resume=True)


def test_own_text_in_small_batches_is_resumed_to_the_bit(tmp_path):
    lines = [f"Number {n} is followed by {n + 1}." for n in range(200)]
    texts = {"pretrain": tmp_path / "numbers.txt", "tune": tmp_path / "asked.jsonl"}
    texts["pretrain"].write_text("\n".join(lines), encoding="utf-8")
    asked = [{"user": f"After {n}?", "assistant": f"{n + 1}"} for n in range(20)]
    texts["tune"].write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    settings = {"batch_size": 8, "pretrain_steps": 12, "tune_steps": 3}
    whole = train(tmp_path / "whole", texts, settings=settings)
    with pytest.raises(Stopped):
        train(tmp_path / "parts", texts, settings=settings, listener=Watch(stop_after=7))
    parts = train(tmp_path / "parts", texts, settings=settings, resume=True)
    assert whole["pretrain"]["recall"][1] == 100
    assert untimed(whole) == untimed(parts)
    found = [contents(tmp_path / name)["model.gguf"] for name in ("whole", "parts")]
    assert found[0] == found[1]


# ---- unfinished runs that cannot go on ----


@pytest.fixture
def unfinished(texts, tmp_path):
    """A folder with the results of an older run and an unfinished one."""
    train(tmp_path, texts, settings={"seed": 7})
    with pytest.raises(Stopped):
        train(tmp_path, texts, listener=Watch(stop_after=8))
    return tmp_path


@contextlib.contextmanager
def refused(folder, error, match):
    """The block raises the error, in one or two sentences, and no byte in the folder changes."""
    before = contents(folder)
    with pytest.raises(error, match=match) as caught:
        yield
    assert "\n" not in str(caught.value)
    assert contents(folder) == before


def test_unfinished_run_is_not_overwritten(unfinished, texts):
    with refused(unfinished, CheckpointError, r"unfinished run \(step 2 of tune_without_mixing\)"):
        train(unfinished, texts)


@pytest.mark.parametrize("other", [{"seed": 1}, {"pretrain_rate": 1e-3}, {"d_model": 64}])
def test_resumed_with_other_settings(unfinished, texts, other):
    (name, _), *_ = other.items()
    match = f"is of a run with {name} {vars(Settings(**SMALL))[name]}; use the same settings"
    with refused(unfinished, CheckpointError, match):
        train(unfinished, texts, settings=other, resume=True)


def test_resumed_with_other_texts(unfinished, texts, tmp_path_factory):
    other = tmp_path_factory.mktemp("other") / "sentences.txt"
    other.write_text(SENTENCES.replace("sun", "moon"), encoding="utf-8")
    with refused(unfinished, CheckpointError, "is of a run with other texts; use the same"):
        train(unfinished, texts | {"pretrain": other}, resume=True)


@pytest.mark.parametrize("damage", ["truncated", "empty", "text"])
def test_resumed_from_a_damaged_checkpoint(unfinished, texts, finished, damage):
    path = unfinished / RUNNING
    data = path.read_bytes()
    damaged = {"truncated": data[:-500], "empty": b"", "text": b"no checkpoint"}[damage]
    path.write_bytes(damaged)
    with refused(unfinished, CheckpointError, "checkpoint.safetensors is damaged .*--restart"):
        train(unfinished, texts, resume=True)
    train(unfinished, texts, restart=True)
    assert contents(unfinished)["model.gguf"] == contents(finished[0])["model.gguf"]


def test_restart_forgets(unfinished, texts, finished):
    train(unfinished, texts, restart=True)
    assert contents(unfinished)["model.gguf"] == contents(finished[0])["model.gguf"]
    assert not (unfinished / RUNNING).exists()


def test_resumed_without_the_pretrained_checkpoint(texts, tmp_path):
    with pytest.raises(Stopped):
        train(tmp_path, texts, listener=Watch(stop_after=8))
    (tmp_path / "pretrain.safetensors").unlink()
    with pytest.raises(CheckpointError, match="pretrain.safetensors is no file.*--restart"):
        train(tmp_path, texts, resume=True)


def test_resumed_on_another_device_says_so(unfinished, texts):
    watch = Watch()
    train(unfinished, texts, get_engine(), resume=True, listener=watch)
    told = [text for text in watch.messages if "changed since the checkpoint" in text]
    assert len(told) == 1 and "device" in told[0] and "last digits" in told[0]


# ---- refused before anything is written ----

REFUSED_SETTINGS = {
    "heads": (
        {"n_heads": 5},
        ConfigError,
        r"d_model 32 .* n_heads 5 .* choose n_heads from \[1, 2",
    ),
    "context": ({"context_length": 100}, GgufError, "context_length 100 .* train with 256"),
    "width": ({"d_model": 36}, GgufError, "d_model 36 is not a multiple of 32"),
    "vocabulary": ({"vocab_size": 100}, TokenizerError, "vocab_size is 100; .* needs 257"),
    "dtype": ({"dtype": "Q4_0"}, ConfigError, "dtype 'Q4_0' is unknown; choose F32, F16, Q8_0"),
    "tokenizer": ({"tokenizer": "x"}, ConfigError, "tokenizer 'x' is unknown; choose bpe, words"),
    "steps": ({"tune_steps": 0}, ConfigError, "tune_steps is 0; choose a number above zero"),
    "rate": ({"tune_rate": -1.0}, ConfigError, "tune_rate is -1.0; choose"),
    "no rate": ({"pretrain_rate": float("nan")}, ConfigError, "pretrain_rate is nan; choose"),
    "endless": ({"pretrain_rate": float("inf")}, ConfigError, "pretrain_rate is inf; choose"),
    "batch": ({"batch_size": 0}, ConfigError, "batch_size is 0; choose"),
    "seed": ({"seed": -1}, ConfigError, "seed is -1; choose a whole number of 0 or more"),
    "blocks": ({"n_layers": 0}, ConfigError, "n_layers is 0; it must be a whole number above"),
}


@pytest.mark.parametrize("case", REFUSED_SETTINGS)
def test_impossible_settings(unfinished, texts, case):
    settings, error, match = REFUSED_SETTINGS[case]
    for option in ({}, {"resume": True}, {"restart": True}):
        with refused(unfinished, error, match):
            train(unfinished, texts, settings=settings, **option)


LONG = json.dumps({"user": "Why? " * 300, "assistant": "So."}).encode()
REFUSED_TEXTS = {
    "missing": ("pretrain", None, "does not exist; check the name"),
    "empty": ("pretrain", b"", "has no text"),
    "blank": ("pretrain", b" \r\n\n", "has no text"),
    "not UTF-8": ("pretrain", b"fine\n\xc7\xd1\xb1\xdb\n", "line 2, byte 1: 0xC7 is not UTF-8"),
    "UTF-16": ("pretrain", "text".encode("utf-16"), "line 1, byte 1: 0xFF is not UTF-8"),
    "no JSON": ("tune", b"hello\n", r"line 1, column 1: .*; write \{"),
    "field": ("tune", b'{"user": "a"}', 'the field "assistant" is missing'),
    "too long": ("tune", LONG, "has [0-9]+ tokens, and the context is 256; shorten"),
    "no answer": ("tune", b'{"user": "a", "assistant": " "}', "write a text into it"),
}


@pytest.mark.parametrize("case", REFUSED_TEXTS)
def test_impossible_texts(unfinished, texts, case, tmp_path_factory):
    which, data, match = REFUSED_TEXTS[case]
    path = tmp_path_factory.mktemp("bad") / "글 text.txt"
    if data is not None:
        path.write_bytes(data)
    for option in ({}, {"restart": True}):
        with refused(unfinished, DataError, match):
            train(unfinished, texts | {which: path}, **option)


def test_folders_that_cannot_be(texts, tmp_path):
    file = tmp_path / "file"
    file.write_text("a file")
    places = [file / "below", file, Path("/proc/nope") if Path("/proc/self").exists() else file]
    for place in places:
        with refused(tmp_path, DataError, "the folder .* cannot be written .*; choose another"):
            train(place, texts)


def test_two_runs_in_one_folder(texts, tmp_path):
    class Second(Watch):
        def step(self, step):
            super().step(step)
            if len(self.steps) == 3:
                with refused(tmp_path, DataError, "another run is writing to .*; wait for it"):
                    train(tmp_path, texts)

    watch = Second()
    train(tmp_path, texts, listener=watch)
    assert len(watch.steps) == ALL_STEPS
    train(tmp_path, texts)  # the lock is free again


def test_folder_with_spaces_and_hangul(finished, texts, tmp_path):
    folder = tmp_path / "새 모델" / "a b"
    train(folder, texts)
    assert contents(folder)["model.gguf"] == contents(finished[0])["model.gguf"]


# ---- a disk that refuses ----


@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_full_disk_keeps_what_was_there(texts, tmp_path, monkeypatch, number, finished):
    train(tmp_path, texts, settings={"seed": 7})
    before, count, sync = contents(tmp_path), 0, os.fsync

    def full(descriptor):
        nonlocal count
        count += 1
        if count >= number:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(llmcl.files.os, "fsync", full)
        with pytest.raises(LlmclError, match=r"cannot write .*No space left.*make room") as caught:
            train(tmp_path, texts)
    after = contents(tmp_path)
    assert not any(name.endswith(".tmp") for name in after)
    assert str(tmp_path) in str(caught.value)
    finished_names = ["pretrain.safetensors", "checkpoint.safetensors"]
    finished_names += ["tune_without_mixing.safetensors", "checkpoint.safetensors"]
    finished_names += ["tune.safetensors", "checkpoint.safetensors", "model.gguf", "Modelfile"]
    written = set(finished_names[: number - 1])
    for name, data in before.items():
        assert (after[name] == data) or name in written, name
    train(tmp_path, texts, resume=True)  # with room again
    assert contents(tmp_path)["model.gguf"] == contents(finished[0])["model.gguf"]


# ---- what is not finite ----


@pytest.mark.parametrize("stage", ["pretrain", "tune"])
def test_absurd_rate_keeps_the_checkpoints(texts, tmp_path, stage):
    train(tmp_path, texts, settings={"seed": 7})
    before = contents(tmp_path)
    with pytest.raises(TrainingError, match=f"^{stage}.*step 2.*token_embd") as caught:
        train(tmp_path, texts, settings={f"{stage}_rate": 1e30})
    assert f"The checkpoints in {tmp_path} are kept" in str(caught.value)
    after = contents(tmp_path)
    kept = set(before) - ({"pretrain.safetensors"} if stage == "tune" else set())
    assert all(after[name] == before[name] for name in kept)
    assert (RUNNING in after) == (stage == "tune")


def test_stop_does_not_hide_what_is_not_finite(texts, tmp_path):
    with pytest.raises(TrainingError, match="step 2") as caught:
        train(tmp_path, texts, settings={"pretrain_rate": 1e30}, listener=Watch(stop_after=4))
    assert not isinstance(caught.value, Stopped)
    assert RUNNING not in contents(tmp_path)


# ---- a reader's own text ----


def test_line_ends_and_byte_order_mark_change_nothing(finished, texts, tmp_path):
    pretrain, tune = tmp_path / "crlf.txt", tmp_path / "bom.jsonl"
    pretrain.write_bytes(b"\xef\xbb\xbf" + SENTENCES.replace("\n", "\r\n\r\n").encode())
    tune.write_bytes(b"\xef\xbb\xbf" + DIALOGUES.encode().rstrip())
    train(tmp_path / "out", {"pretrain": pretrain, "tune": tune})
    assert contents(tmp_path / "out")["model.gguf"] == contents(finished[0])["model.gguf"]


def test_line_longer_than_the_context(texts, tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("one two three four " * 200 + "\n" + SENTENCES, encoding="utf-8")
    metrics = train(tmp_path / "out", texts | {"pretrain": path}, settings={"vocab_size": 260})
    assert metrics["pretrain"]["recall"] == [0, 4]  # what no context holds is never known


@pytest.mark.parametrize("tokenizer", ["bpe", "words"])
@pytest.mark.parametrize("text", ["Hello", "물은 얼면 떠오릅니다.", "🙂"])
def test_corpus_of_one_word(texts, tmp_path, text, tokenizer):
    path = tmp_path / "short.txt"
    path.write_text(text, encoding="utf-8")
    metrics = train(tmp_path / "out", texts | {"pretrain": path}, settings={"tokenizer": tokenizer})
    asked = len(recall_prompts([text]))
    assert metrics["pretrain"]["recall"][1] == asked == int(" " in text)
    stored = read_gguf(tmp_path / "out" / "model.gguf")
    assert stored.tokenizer.decode(stored.tokenizer.encode(text)) == text
    assert stored.info["sentences"] == 1
