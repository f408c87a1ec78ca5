"""GGUF files: written, read back, refused; llama.cpp itself is asked in test_verify.py."""

import dataclasses
import errno
import os
import re
import struct
import subprocess
import sys

import jinja2.sandbox
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType
from gguf_helpers import TEXTS, rewrite, sharp_weights, small_config, small_tokenizer

from llmcl.config import Config
from llmcl.data import prompt_text
from llmcl.errors import GgufError, TokenizerError
from llmcl.gguf_file import answer, chat_template, read_gguf, write_gguf, write_modelfile
from llmcl.tokenizer import ByteBPE, WordDictionary

DTYPES = ("F32", "F16", "Q8_0")
INFO = {
    "name": "small model",
    "dataset": "four sentences",
    "languages": ["en", "ko"],
    "steps": 300,
    "seed": 2**40,
    "rate": 1e-3,
    "loss": [2.5, 0.25],
    "mixed": True,
}
TOKENIZER = small_tokenizer()
CONFIG = small_config(TOKENIZER)
WEIGHTS = sharp_weights(CONFIG)


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.gguf"
    write_gguf(path, CONFIG, WEIGHTS, TOKENIZER, "F32", INFO)
    return path


def is_kept_in_f32(name):
    return WEIGHTS[name].ndim == 1 or name == "position_embd.weight"


# ---- what is written ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(tmp_path, dtype):
    path = tmp_path / "model.gguf"
    write_gguf(path, CONFIG, WEIGHTS, TOKENIZER, dtype, INFO)
    model = read_gguf(path)
    assert model.config == CONFIG and model.dtype == dtype
    assert model.tokenizer.fingerprint() == TOKENIZER.fingerprint()
    assert INFO.items() <= model.info.items()
    assert model.info["license"] == "MIT"
    for name, array in WEIGHTS.items():
        got = model.weights[name]
        assert got.dtype == np.float32 and got.shape == array.shape and got.flags.c_contiguous
        if dtype == "F32" or is_kept_in_f32(name):
            assert np.array_equal(got, array), name
        elif dtype == "F16":
            assert np.array_equal(got, array.astype(np.float16)), name
        else:
            # Half a step of 1/127 of a block's largest weight, and the step's own rounding to F16.
            rows = array if "embd" in name else array.T
            largest = np.abs(rows.reshape(-1, 32)).max(axis=1, keepdims=True)
            error = np.abs(
                (got if "embd" in name else got.T).reshape(-1, 32) - rows.reshape(-1, 32)
            )
            assert (error <= largest * (0.5 / 127 + 2.0**-11)).all(), name
            assert error.any(), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_are_those_that_llama_cpp_wants(tmp_path, dtype):
    path = tmp_path / "model.gguf"
    write_gguf(path, CONFIG, WEIGHTS, TOKENIZER, dtype)
    tensors = {t.name: t for t in GGUFReader(path).tensors}
    assert len(tensors) == 4 + 12 * CONFIG.n_layers
    assert set(tensors) == set(WEIGHTS)
    for name, array in WEIGHTS.items():
        # Dimensions are listed fastest first: (columns, rows) of a matrix (out, in).
        listed = array.shape[::-1] if "embd" in name else array.shape
        assert tuple(tensors[name].shape) == listed, name
        kind = "F32" if is_kept_in_f32(name) else dtype
        assert tensors[name].tensor_type == GGMLQuantizationType[kind], name
    if dtype == "F32":
        found = tensors["blk.0.attn_output.weight"].data
        assert np.array_equal(found, WEIGHTS["blk.0.attn_output.weight"].T)


def test_keys_and_their_types(good):
    fields = GGUFReader(good).fields
    numbers = {
        "gpt2.context_length": 256,
        "gpt2.embedding_length": 32,
        "gpt2.block_count": 2,
        "gpt2.feed_forward_length": 128,
        "gpt2.attention.head_count": 2,
        "general.file_type": 0,
        "tokenizer.ggml.bos_token_id": TOKENIZER.end_id,
        "tokenizer.ggml.eos_token_id": TOKENIZER.end_id,
        "llmcl.training.steps": 300,
    }
    for key, value in numbers.items():
        assert fields[key].contents() == value, key
        assert fields[key].types == [GGUFValueType.UINT32], key
    epsilon = fields["gpt2.attention.layer_norm_epsilon"]
    assert epsilon.types == [GGUFValueType.FLOAT32]
    assert np.float32(epsilon.contents()) == np.float32(1e-5)
    texts = {
        "general.architecture": "gpt2",
        "general.license": "MIT",
        "general.size_label": "43K",
        "general.dataset.0.name": "four sentences",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.chat_template": chat_template(),
    }
    for key, value in texts.items():
        assert fields[key].contents() == value, key
    assert fields["tokenizer.ggml.add_bos_token"].contents() is False
    tokens = fields["tokenizer.ggml.tokens"].contents()
    assert tokens == TOKENIZER.tokens and len(set(tokens)) == CONFIG.vocab_size
    assert len(fields["tokenizer.ggml.token_type"].contents()) == CONFIG.vocab_size
    assert "general.quantization_version" not in fields


def test_quantized_file_says_so(tmp_path):
    write_gguf(tmp_path / "q", CONFIG, WEIGHTS, TOKENIZER)
    fields = GGUFReader(tmp_path / "q").fields
    assert fields["general.quantization_version"].contents() == 2
    assert fields["general.file_type"].contents() == 7


def test_same_model_same_bytes_and_no_path(tmp_path, monkeypatch):
    write_gguf(tmp_path / "one.gguf", CONFIG, WEIGHTS, TOKENIZER, "Q8_0", INFO)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_gguf("홍 길동.gguf", CONFIG, dict(reversed(WEIGHTS.items())), TOKENIZER, "Q8_0", INFO)
    one, two = (tmp_path / "one.gguf").read_bytes(), open("홍 길동.gguf", "rb").read()
    assert one == two
    assert str(tmp_path).encode() not in one and b"one.gguf" not in one


def test_default_model_fits_into_442000_bytes(tmp_path):
    # 255 different two-letter words, so that the vocabulary is full.
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokenizer = ByteBPE.train([" ".join(a + b for a in letters for b in letters)], 512)
    config = Config(vocab_size=tokenizer.vocab_size)
    assert config == Config()
    write_gguf(tmp_path / "model.gguf", config, sharp_weights(config), tokenizer)
    assert (tmp_path / "model.gguf").stat().st_size <= 442_000


def test_kept_answer_is_the_models_own(good):
    model = read_gguf(good)
    ids, logits = model.check
    assert len(ids) > 16 and len(logits) == CONFIG.vocab_size
    assert np.abs(answer(CONFIG, WEIGHTS, ids) - logits).max() < 1e-4
    changed = dataclasses.replace(CONFIG, layer_norm_epsilon=1e-3)
    assert np.abs(answer(changed, WEIGHTS, ids) - logits).max() > 1e-3


# ---- tokenizers ----


def test_word_dictionary_that_spells_unknown_words(tmp_path):
    tokenizer = WordDictionary.train(TEXTS, spell_unknown=True)
    config = small_config(tokenizer)
    write_gguf(tmp_path / "words.gguf", config, sharp_weights(config), tokenizer)
    found = read_gguf(tmp_path / "words.gguf").tokenizer
    assert isinstance(found, WordDictionary)
    assert found.fingerprint() == tokenizer.fingerprint()
    assert found.encode("The sun 한국어") == tokenizer.encode("The sun 한국어")


def test_word_dictionary_with_unk_is_refused(tmp_path):
    tokenizer = WordDictionary.train(TEXTS)
    config = small_config(tokenizer)
    with pytest.raises(TokenizerError, match="spell_unknown=True"):
        write_gguf(tmp_path / "words.gguf", config, sharp_weights(config), tokenizer)
    assert not list(tmp_path.iterdir())


def test_tokenizer_without_merges(tmp_path):
    tokenizer = ByteBPE([])
    config = small_config(tokenizer)
    write_gguf(tmp_path / "bytes.gguf", config, sharp_weights(config), tokenizer)
    assert GGUFReader(tmp_path / "bytes.gguf").fields["tokenizer.ggml.merges"].contents()
    assert read_gguf(tmp_path / "bytes.gguf").tokenizer.merges == []


# ---- what is refused before writing ----


def with_weight(name, value):
    array = WEIGHTS[name].copy()
    array.flat[-1] = value
    return WEIGHTS | {name: array}


REFUSED = {
    "nan": (
        {"weights": with_weight("blk.1.ffn_up.weight", np.nan)},
        "blk.1.ffn_up.weight .*finite",
    ),
    "infinite": ({"weights": with_weight("output_norm.bias", np.inf)}, "output_norm.bias .*finite"),
    "beyond float32": (
        {"weights": WEIGHTS | {"output_norm.bias": np.full(32, 1e300)}},
        "output_norm.bias .*finite",
    ),
    "beyond float16": (
        {"weights": with_weight("blk.0.attn_qkv.weight", -65520.0), "dtype": "F16"},
        "blk.0.attn_qkv.weight .*65520.*65504.*F32",
    ),
    "beyond Q8_0": ({"weights": with_weight("blk.0.attn_qkv.weight", 1e7)}, "1e.07.*8.31901e.06"),
    "shape": (
        {"weights": WEIGHTS | {"blk.0.attn_qkv.weight": WEIGHTS["blk.0.attn_qkv.weight"].T}},
        r"blk.0.attn_qkv.weight has shape \(96, 32\).*\(32, 96\)",
    ),
    "missing": (
        {"weights": {n: w for n, w in WEIGHTS.items() if n != "blk.1.ffn_down.bias"}},
        "blk.1.ffn_down.bias missing",
    ),
    "unknown": ({"weights": WEIGHTS | {"mask": np.ones(3)}}, "mask unknown"),
    "vocabulary": ({"tokenizer": ByteBPE([])}, "257 tokens and the model 300"),
    "dtype": ({"dtype": "Q4_0"}, "'Q4_0'; choose one of F32, F16, Q8_0"),
    "context": ({"config": dataclasses.replace(CONFIG, context_length=64)}, "64 .*train with 256"),
    "odd context": (
        {"config": dataclasses.replace(CONFIG, context_length=300)},
        "300 .*train with 512",
    ),
    "width": ({"config": dataclasses.replace(CONFIG, d_model=48)}, "d_model 48 .*32"),
    "wide width": ({"config": dataclasses.replace(CONFIG, d_ff=100)}, "d_ff 100 .*32"),
    "empty info": ({"info": {"note": ""}}, "llmcl.training.note is ''"),
    "odd info": ({"info": {"note": None}}, "llmcl.training.note is None"),
    "mixed info": ({"info": {"loss": [1, "x"]}}, "llmcl.training.loss"),
    "large info": ({"info": {"seed": 2**70}}, "llmcl.training.seed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_writing(tmp_path, case):
    changes, message = REFUSED[case]
    path = tmp_path / "model.gguf"
    path.write_bytes(b"what was there before")
    arguments = {"config": CONFIG, "weights": WEIGHTS, "tokenizer": TOKENIZER, "dtype": "Q8_0"}
    with pytest.raises(GgufError, match=message) as caught:
        write_gguf(path, **(arguments | changes))
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    assert path.read_bytes() == b"what was there before"
    assert os.listdir(tmp_path) == ["model.gguf"]


def test_width_that_only_q8_0_minds(tmp_path):
    config = small_config(TOKENIZER, d_model=36, d_ff=100)
    write_gguf(tmp_path / "model.gguf", config, sharp_weights(config), TOKENIZER, "F16")
    assert read_gguf(tmp_path / "model.gguf").config == config


def test_zero_and_tiny_weights(tmp_path, recwarn):
    tiny = {name: np.full_like(w, 1e-42) for name, w in WEIGHTS.items()}
    zero = {name: np.zeros_like(w) for name, w in WEIGHTS.items()}
    for weights in (tiny, zero):
        write_gguf(tmp_path / "model.gguf", CONFIG, weights, TOKENIZER)
        assert not read_gguf(tmp_path / "model.gguf").weights["blk.0.ffn_up.weight"].any()
    assert not recwarn.list


# ---- whole or not at all ----

FULL_DISK = """
import resource, sys
sys.path[:0] = [sys.argv[2]]
import test_gguf_file as t
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    t.write_gguf(sys.argv[1], t.CONFIG, t.WEIGHTS, t.TOKENIZER, "F32")
except t.GgufError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of this kind")
def test_file_that_the_disk_cuts_short(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"what was there before")
    tests = os.path.dirname(os.path.abspath(__file__))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", FULL_DISK, str(path), tests]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    assert "cannot write" in done.stdout and "unchanged" in done.stdout, done
    assert path.read_bytes() == b"what was there before"
    assert os.listdir(tmp_path) == ["model.gguf"]


def test_disk_that_fails_at_the_end(tmp_path, monkeypatch):
    def no_room(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "model.gguf"
    path.write_bytes(b"what was there before")
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(GgufError, match="No space left"):
        write_gguf(path, CONFIG, WEIGHTS, TOKENIZER)
    assert path.read_bytes() == b"what was there before"
    assert os.listdir(tmp_path) == ["model.gguf"]


@pytest.mark.parametrize("write", ["gguf", "modelfile"])
def test_folder_that_takes_no_file(tmp_path, write):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none" / "m", tmp_path / "file" / "m", tmp_path):
        with pytest.raises(GgufError, match="cannot write"):
            if write == "gguf":
                write_gguf(path, CONFIG, WEIGHTS, TOKENIZER)
            else:
                write_modelfile(path, "model.gguf")
    assert os.listdir(tmp_path) == ["file"]


# ---- files that are not ours, or damaged ----


def u32(value):
    return value, GGUFValueType.UINT32


CHANGED = {
    "foreign": ({"architecture": "llama"}, "'llama'"),
    "no context": ({"drop": ("gpt2.context_length",)}, "gpt2.context_length"),
    "no heads": ({"drop": ("gpt2.attention.head_count",)}, "gpt2.attention.head_count"),
    "no merges": ({"drop": ("tokenizer.ggml.merges",)}, "tokenizer.ggml.merges"),
    "no end token": ({"drop": ("tokenizer.ggml.eos_token_id",)}, "tokenizer.ggml.eos_token_id"),
    "heads": ({"keys": {"gpt2.attention.head_count": u32(5)}}, "n_heads 5"),
    "no heads at all": ({"keys": {"gpt2.attention.head_count": u32(0)}}, "n_heads is 0"),
    "blocks": ({"keys": {"gpt2.block_count": u32(3)}}, "blk.2.attn_norm.weight.*missing"),
    "many blocks": ({"keys": {"gpt2.block_count": u32(2**31 - 1)}}, "2147483647 blocks"),
    "context": ({"keys": {"gpt2.context_length": u32(512)}}, "position_embd.weight has shape"),
    "other end": ({"keys": {"tokenizer.ggml.eos_token_id": u32(11)}}, "end token has id 11"),
    "other split": (
        {"keys": {"tokenizer.ggml.pre": ("qwen2", GGUFValueType.STRING)}},
        "tokenizer 'qwen2'",
    ),
    "other tokenizer": (
        {"keys": {"tokenizer.ggml.model": ("llama", GGUFValueType.STRING)}},
        "tokenizer is 'llama'",
    ),
    "longer vocabulary": (
        {"keys": {"tokenizer.ggml.tokens": ([*TOKENIZER.tokens, "more"], GGUFValueType.ARRAY)}},
        "301 tokens",
    ),
    "text for a number": (
        {"keys": {"gpt2.block_count": ("2", GGUFValueType.STRING)}},
        "n_layers is '2'",
    ),
    "short answer": (
        {"keys": {"llmcl.check.logits": ([1.0, 2.0], GGUFValueType.ARRAY)}},
        "llmcl.check.logits do not fit",
    ),
    "missing": ({"drop": ("blk.1.ffn_down.bias",)}, "blk.1.ffn_down.bias missing"),
    "unknown": (
        {"tensors": {"output.weight": np.ones((2, 2), np.float32)}},
        "output.weight unknown",
    ),
    "transposed": (
        {"tensors": {"blk.0.ffn_up.weight": np.transpose}},
        r"ffn_up.weight has shape \(128, 32\); its sizes need \(32, 128\)",
    ),
    "nan": (
        {"tensors": {"output_norm.bias": np.full(32, np.nan, np.float32)}},
        "output_norm.bias .*not finite",
    ),
    "whole numbers": (
        {"tensors": {"output_norm.bias": np.ones(32, np.int32)}},
        "output_norm.bias is kept in I32; llama.cpp needs every vector in F32",
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_changed_file_is_refused(good, tmp_path, case):
    changes, message = CHANGED[case]
    bad = rewrite(good, tmp_path / "bad.gguf", **changes)
    with pytest.raises(GgufError, match=message) as caught:
        read_gguf(bad)
    assert str(bad) in str(caught.value) and "\n" not in str(caught.value)


NEEDED = [
    "gpt2.context_length", "gpt2.embedding_length", "gpt2.block_count", "gpt2.feed_forward_length",
    "gpt2.attention.head_count", "gpt2.attention.layer_norm_epsilon", "tokenizer.ggml.model",
    "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.merges",
    "tokenizer.ggml.eos_token_id",
]  # fmt: skip


@pytest.mark.parametrize("key", NEEDED)
def test_a_key_that_is_missing_is_named(good, tmp_path, key):
    bad = rewrite(good, tmp_path / "bad.gguf", drop=(key,))
    with pytest.raises(GgufError, match=f"it has no key {re.escape(key)}"):
        read_gguf(bad)


def test_unchanged_copy_is_read(good, tmp_path):
    assert read_gguf(rewrite(good, tmp_path / "same.gguf")).info == read_gguf(good).info


def test_files_that_are_no_gguf(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("The sun warms the land and the sea.\n" * 9)
    (tmp_path / "magic").write_bytes(b"GGUF")
    for name in ("empty", "text", "magic", "missing", "."):
        with pytest.raises(GgufError, match=re.escape(str(tmp_path))) as caught:
            read_gguf(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_file_cut_short_anywhere(good, tmp_path):
    data = good.read_bytes()
    bad = tmp_path / "bad.gguf"
    header = GGUFReader(good).data_offset
    # The last bytes are padding, which nothing needs.
    places = [*range(0, header, 211), header, header + 1, len(data) - 129]
    for length in places:
        bad.write_bytes(data[:length])
        with pytest.raises(GgufError):
            read_gguf(bad)


def test_bytes_flipped_in_the_header(good, tmp_path):
    data = good.read_bytes()
    bad = tmp_path / "bad.gguf"
    rng = np.random.default_rng(1)
    refused = 0
    for place in rng.integers(0, GGUFReader(good).data_offset, 150):
        changed = bytearray(data)
        changed[place] ^= 1 << rng.integers(8)
        bad.write_bytes(changed)
        try:
            read_gguf(bad)  # a letter in a description may well change
        except GgufError:
            refused += 1
    assert refused > 50


def test_counts_that_no_file_can_have(good, tmp_path):
    data = good.read_bytes()
    bad = tmp_path / "bad.gguf"
    tokens = data.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens")
    # After the key: its type, the elements' type, their count, the first string's length.
    huge = struct.pack("<Q", 2**60)
    for place in (8, 16, tokens + 8, tokens + 16):
        bad.write_bytes(data[:place] + huge + data[place + 8 :])
        with pytest.raises(GgufError):
            read_gguf(bad)
    # An array of 2**60 bytes, for which a careless reader would make a list.
    bad.write_bytes(
        data[:tokens] + struct.pack("<IIQ", GGUFValueType.ARRAY, GGUFValueType.UINT8, 2**60) + data
    )
    with pytest.raises(GgufError, match="cut short"):
        read_gguf(bad)


def test_other_byte_order(good, tmp_path):
    data = good.read_bytes()
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(data[:4] + struct.pack(">IQQ", 3, 0, 0))
    with pytest.raises(GgufError, match="byte order"):
        read_gguf(bad)


# ---- chats ----


def render(messages):
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment()
    return environment.from_string(chat_template()).render(
        messages=messages, add_generation_prompt=True
    )


def turn(role, content):
    return {"role": role, "content": content}


def test_chat_template_gives_the_training_text():
    first, second = turn("user", "Hello"), turn("user", "Who are\nyou?")
    said, system = turn("assistant", "Hello, nice to meet you."), turn("system", "Be brief.")
    assert render([first]) == prompt_text("Hello")
    assert render([first, said, second]) == prompt_text("Who are\nyou?")
    assert render([system, first]) == prompt_text("Hello")
    assert render([system, first, said, second]) == prompt_text("Who are\nyou?")
    assert render([system]) == ""


def test_chat_template_needs_only_for_and_if():
    template = chat_template()
    statements = set(re.findall(r"{%-?\s*(\w+)", template))
    assert statements <= {"for", "endfor", "if", "else", "endif"}
    # Filters, slices, calls, namespaces.
    assert not re.search(r"[|(:]", re.sub(r"User:|Assistant:", "", template))
    assert not re.search(r"namespace|raise_exception|\bis\b", template)


def test_modelfile(tmp_path):
    write_modelfile(tmp_path / "Modelfile", "model.gguf")
    data = (tmp_path / "Modelfile").read_bytes()
    assert b"\r" not in data
    text = data.decode("utf-8")
    assert text.startswith("FROM ./model.gguf\n")
    assert "User: {{ .Prompt }}\nAssistant:" in text
    for parameter in ('stop "<|endoftext|>"', 'stop "User:"', "temperature 0", "num_ctx 256"):
        assert f"PARAMETER {parameter}\n" in text
    template = text.split('"""')[1]
    assert template.count("{{") == template.count("}}")
    openings = len(re.findall(r"{{ (?:if|range) ", template))
    assert openings == template.count("{{ end }}") == 3


@pytest.mark.parametrize("name", ["", "a/b.gguf", 'a".gguf', "a\nb", "..", "/m.gguf"])
def test_modelfile_for_no_file_name(tmp_path, name):
    with pytest.raises(GgufError, match="file name"):
        write_modelfile(tmp_path / "Modelfile", name)
    assert not list(tmp_path.iterdir())
