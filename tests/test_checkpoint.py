"""Checkpoints: what comes back, what is refused, and what a failed write leaves alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gguf_helpers import sharp_weights, small_config, small_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

import llmcl.files
from llmcl.checkpoint import FORMAT, Checkpoint, load_checkpoint, save_checkpoint
from llmcl.errors import CheckpointError, GgufError
from llmcl.gguf_file import read_gguf, write_gguf
from llmcl.load import load_model
from llmcl.model import GPT
from llmcl.optimizer import AdamW
from llmcl.reference import Engine
from llmcl.tokenizer import WordDictionary

ROOT = Path(__file__).resolve().parent.parent
TOKENIZER = small_tokenizer()
CONFIG = small_config(TOKENIZER)
WEIGHTS = sharp_weights(CONFIG)
STATE = {"stage": "tune", "step": 3, "loss": 0.1 + 0.2, "text": "끝\n", "results": {"a": [1, 2]}}


def whole() -> Checkpoint:
    m, v = sharp_weights(CONFIG, 1), sharp_weights(CONFIG, 2)
    return Checkpoint(CONFIG, WEIGHTS, TOKENIZER, m, v, STATE)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "검사 check.safetensors"
    save_checkpoint(path, whole())
    return path


def parts(path):
    """The tensors and the description in a checkpoint's file."""
    with safe_open(path, framework="numpy") as file:
        return {n: file.get_tensor(n) for n in file.keys()}, json.loads(file.metadata()["llmcl"])


def rewritten(path, tensors=None, about=None, drop=()):
    """The file with some tensors or parts of its description changed."""
    old, described = parts(path)
    new = {name: array for name, array in (old | (tensors or {})).items() if name not in drop}
    save_file(new, path, metadata={"llmcl": json.dumps(described | (about or {}))})
    return path


def reason(path, load=load_checkpoint):
    """The one line with which a file is refused; it names the file."""
    with pytest.raises(CheckpointError) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    return message


# ---- there and back ----


def test_everything_comes_back(path):
    stored, given = load_checkpoint(path), whole()
    assert stored.config == CONFIG and stored.state == STATE
    assert stored.tokenizer.to_dict() == TOKENIZER.to_dict()
    for group in ("weights", "m", "v"):
        found, wanted = getattr(stored, group), getattr(given, group)
        assert found.keys() == wanted.keys() == CONFIG.parameter_shapes().keys()
        for name, array in wanted.items():
            assert found[name].dtype == np.float32
            np.testing.assert_array_equal(found[name], array)


def test_weights_alone(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_checkpoint(path, Checkpoint(CONFIG, WEIGHTS, TOKENIZER))
    stored = load_checkpoint(path)
    assert stored.m == stored.v == stored.state == {}
    optimizer = AdamW(GPT(CONFIG, Engine(np.float32)))
    with pytest.raises(CheckpointError, match="no moments .* run that was interrupted"):
        optimizer.load_moments(stored.m, stored.v, 3)


def test_word_dictionary_comes_back(tmp_path):
    words = WordDictionary.train(["The sun warms the land."], spell_unknown=True)
    config = small_config(words)
    save_checkpoint(tmp_path / "words", Checkpoint(config, sharp_weights(config), words))
    assert load_checkpoint(tmp_path / "words").tokenizer.to_dict() == words.to_dict()


def test_same_checkpoint_same_bytes(path, tmp_path):
    save_checkpoint(tmp_path / "again", whole())
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_layout_and_precision_of_the_arrays_do_not_matter(tmp_path, path):
    turned = {n: np.asfortranarray(a.astype(np.float64)) for n, a in WEIGHTS.items()}
    save_checkpoint(tmp_path / "a", Checkpoint(CONFIG, turned, TOKENIZER))
    stored = load_checkpoint(tmp_path / "a").weights
    assert all(np.array_equal(stored[name], array) for name, array in WEIGHTS.items())


def test_other_programs_can_read_it(path):
    tensors, about = parts(path)
    assert about["format"] == FORMAT and about["config"]["d_model"] == CONFIG.d_model
    assert tensors["weights/blk.0.attn_qkv.weight"].shape == (32, 96)


def test_either_kind_of_file_is_loaded(path, tmp_path):
    write_gguf(tmp_path / "model", CONFIG, WEIGHTS, TOKENIZER, "F32")
    ids = np.array([TOKENIZER.encode("The sun rises")])
    logits = []
    for file in (path, tmp_path / "model"):  # told apart by content, not by name
        model, tokenizer = load_model(file, Engine(np.float32))
        assert tokenizer.fingerprint() == TOKENIZER.fingerprint()
        logits.append(model.engine.to_host(model.forward(ids)))
    np.testing.assert_array_equal(logits[0], logits[1])


# ---- damaged and foreign ----


def test_missing_and_folder(tmp_path):
    for load in (load_checkpoint, lambda path: load_model(path, Engine())):
        assert "is no file; give" in reason(tmp_path / "none.safetensors", load)
        assert "is no file; give" in reason(tmp_path, load)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_unreadable():
    assert "cannot be read" in reason("/proc/self/mem", lambda path: load_model(path, Engine()))


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"hello", "글".encode() * 500, b"\xff" * 64, b"\x10" + b"\0" * 7 + b"{" * 16],
)
def test_other_files(tmp_path, data):
    path = tmp_path / "other"
    path.write_bytes(data)
    assert "damaged or no safetensors file" in reason(path)
    assert "damaged or no safetensors file" in reason(path, lambda p: load_model(p, Engine()))


def test_truncated_anywhere(path):
    data = path.read_bytes()
    header = int.from_bytes(data[:8], "little")
    lengths = [1, 7, 8, 9, header, header + 7, header + 8, header + 9, len(data) // 2]
    for length in (*lengths, len(data) - 4, len(data) - 1):
        path.write_bytes(data[:length])
        assert "damaged" in reason(path), length
    path.write_bytes(data + b"\0" * 4)
    assert "damaged" in reason(path)


@given(st.data())
def test_no_damage_to_the_header_escapes_as_another_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "x"
    save_checkpoint(path, whole())
    raw = bytearray(path.read_bytes())
    end = 8 + int.from_bytes(raw[:8], "little")
    where = data.draw(st.integers(0, end - 1))
    raw[where] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    try:
        load_checkpoint(path)  # a changed digit of the state is not noticed
    except CheckpointError as error:
        assert str(path) in str(error)


def test_gguf_and_checkpoint_exchanged(path, tmp_path):
    gguf = tmp_path / "model.gguf"
    write_gguf(gguf, CONFIG, WEIGHTS, TOKENIZER, "F32")
    assert "damaged or no safetensors file" in reason(gguf)
    with pytest.raises(GgufError, match="does not begin as a GGUF file does"):
        read_gguf(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"llmcl": "null"}, {"llmcl": "[1]"}])
def test_foreign_safetensors(tmp_path, metadata):
    path = tmp_path / "foreign.safetensors"
    save_file({"wte.weight": np.zeros((4, 3), np.float16)}, path, metadata=metadata)
    assert "no checkpoint of llmcl" in reason(path)


def test_safetensors_of_a_type_that_numpy_lacks(tmp_path):
    header = b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    path = tmp_path / "bf16.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    assert "no checkpoint of llmcl" in reason(path)


def test_description_that_is_no_json(path):
    tensors, _ = parts(path)
    save_file(tensors, path, metadata={"llmcl": "{"})
    assert "damaged" in reason(path)


def test_newer_format(path):
    message = reason(rewritten(path, about={"format": "llmcl checkpoint 2"}))
    assert FORMAT in message and "no checkpoint of llmcl" in message


def test_tokenizer_of_another_size(path):
    other = small_tokenizer().__class__.train(["aa bb aa bb"], 258)
    message = reason(rewritten(path, about={"tokenizer": other.to_dict()}))
    assert "tokenizer has 258 tokens, its model 300" in message


def config_with(**changes):
    return {"config": CONFIG.to_dict() | changes}


MISFITS = {
    "heads": ({"about": config_with(n_heads=5)}, "d_model 32 cannot be split into n_heads 5"),
    "width": ({"about": config_with(d_ff=64)}, "blk.0.ffn_down.weight .* is not expected"),
    "config": ({"about": {"config": None}}, "a configuration needs the fields"),
    "tokenizer": ({"about": {"tokenizer": {"format": "x"}}}, "no tokenizer of ours"),
    "state": ({"about": {"state": [1]}}, r"its state is \[1\]"),
    "missing": ({"drop": ("weights/output_norm.bias",)}, "weights of output_norm.bias is missing"),
    "moment": ({"drop": ("m/output_norm.bias",)}, "m of output_norm.bias is missing"),
    "unknown": ({"tensors": {"weights/extra": np.zeros(3, np.float32)}}, "weights/extra"),
    "group": ({"tensors": {"w/output_norm.bias": np.zeros(32, np.float32)}}, "w/output_norm"),
    "shape": (
        {"tensors": {"weights/output_norm.bias": np.zeros(33, np.float32)}}, r"\(33,\) float32",
    ),
    "turned": (
        {"tensors": {"weights/blk.0.ffn_up.weight": np.zeros((128, 32), np.float32)}},
        r"ffn_up.weight \(128, 32\)",
    ),
    "type": ({"tensors": {"v/output_norm.bias": np.zeros(32)}}, r"v/output_norm.bias .* float64"),
    "nan": (
        {"tensors": {"weights/output_norm.bias": np.full(32, np.nan, np.float32)}},
        "weights/output_norm.bias has values that are not finite",
    ),
    "inf": (
        {"tensors": {"v/output_norm.bias": np.full(32, np.inf, np.float32)}}, "v/output_norm.bias",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISFITS)
def test_parts_that_do_not_fit_together(path, case):
    changes, match = MISFITS[case]
    with pytest.raises(CheckpointError, match=f"does not fit together: .*{match}"):
        load_checkpoint(rewritten(path, **changes))


def test_part_of_the_description_missing(path):
    tensors, about = parts(path)
    for name in ("config", "tokenizer", "state"):
        short = {key: value for key, value in about.items() if key != name}
        save_file(tensors, path, metadata={"llmcl": json.dumps(short)})
        assert name in reason(path)


# ---- a disk that refuses ----


def only(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_failed_write_leaves_the_old_file(path, monkeypatch, call):
    before, names = path.read_bytes(), only(path.parent)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(llmcl.files.os, call, refuse)
    with pytest.raises(CheckpointError, match=r"cannot write .* \(No space left.*unchanged"):
        save_checkpoint(path, Checkpoint(CONFIG, WEIGHTS, TOKENIZER))
    assert path.read_bytes() == before and only(path.parent) == names


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX limits")
def test_file_larger_than_the_limit_leaves_the_old_one(path):
    before, names = path.read_bytes(), only(path.parent)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "from llmcl.checkpoint import load_checkpoint, save_checkpoint\n"
        "from llmcl.errors import CheckpointError\n"
        "try:\n    save_checkpoint(sys.argv[1], load_checkpoint(sys.argv[1]))\n"
        "except CheckpointError as error:\n    print(error)"
    )
    command = [sys.executable, "-c", code, path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.startswith("cannot write") and "too large" in done.stdout
    assert str(path) in done.stdout and done.stdout.count("\n") == 1
    assert path.read_bytes() == before and only(path.parent) == names


def test_folder_that_is_missing_or_a_file(path, tmp_path):
    for target in (tmp_path / "none" / "x", path / "x", tmp_path):
        with pytest.raises(CheckpointError, match="cannot write .*: choose another folder"):
            save_checkpoint(target, whole())
    assert only(tmp_path) == [path.name]
