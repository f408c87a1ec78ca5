"""The trained models that later lessons load: the reader's own, or the shipped one."""

import numpy as np
import pytest

from llmcl.data import read_dialogues, read_sentences
from llmcl.engine import get_engine
from llmcl.errors import LlmclError
from llmcl.evaluate import answers, recall
from llmcl.lab import models
from llmcl.resources import data_dir


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path))


@pytest.fixture(scope="module")
def engine():
    return get_engine()


def test_the_shipped_models_know_what_their_lessons_teach(engine, capsys):
    sentences = read_sentences(data_dir() / "pretrain.txt")
    for lesson in models.STAGES:
        model, tokenizer = models.checkpoint(lesson, engine)
        assert "shipped" in capsys.readouterr().out
        assert sum(recall(model, tokenizer, sentences)) == 25
    dialogues = read_dialogues(data_dir() / "tune.jsonl")
    assert sum(answers(model, tokenizer, dialogues)) == 13


def test_the_shipped_files_are_small():
    for lesson in models.STAGES:
        assert (models.SHIPPED / f"{lesson}.gguf").stat().st_size <= 442_000


def test_the_own_model_comes_first(engine, capsys):
    model, tokenizer = models.checkpoint("09", engine)
    weights = model.weights()
    weights["output_norm.bias"] = weights["output_norm.bias"] + 1
    model.load_weights(weights)
    models.keep_checkpoint("09", model, tokenizer)
    capsys.readouterr()
    again, _ = models.checkpoint("09", engine)
    assert capsys.readouterr().out == "The model is your own, from lesson 09.\n"
    np.testing.assert_array_equal(again.weights()["output_norm.bias"], weights["output_norm.bias"])


def test_a_damaged_own_model_gives_way_to_the_shipped_one(engine, capsys, tmp_path):
    (tmp_path / "lesson-09").mkdir()
    (tmp_path / "lesson-09" / "model.safetensors").write_bytes(b"no model")
    models.checkpoint("09", engine)
    out = capsys.readouterr().out
    assert "Your own model cannot be used" in out and "shipped" in out


def test_a_lesson_that_trains_nothing_has_no_model(engine):
    with pytest.raises(LlmclError, match="trains no model; there are 09, 10"):
        models.checkpoint("04a", engine)
