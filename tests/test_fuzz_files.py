"""Damaged and hostile files: each gives an error of ours or a right result, and stays as it is.

The examples are the same at every run; LLMCL_FUZZ_SECONDS=600 looks for new ones for so long.
"""

import json
import os
import struct
import subprocess
import sys
import time
import tracemalloc
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from fuzz_helpers import (
    CONFIG,
    JSON,
    NUMBERS,
    STATE,
    TOKENIZER,
    WEIGHTS,
    WORDS,
    damaged,
    files,
    fuzz,
    gguf_parts,
    string,
)
from gguf import GGMLQuantizationType, GGUFValueType
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from llmcl import data
from llmcl.checkpoint import FORMAT, Checkpoint, load_checkpoint, save_checkpoint
from llmcl.data import Dialogue, cut_documents, recall_prompts
from llmcl.errors import LlmclError, shown
from llmcl.gguf_file import read_gguf, write_gguf, write_modelfile
from llmcl.load import load_model
from llmcl.pipeline import STAGES
from llmcl.reference import Engine
from llmcl.tokenizer import ByteBPE, Tokenizer, WordDictionary, load_tokenizer

READERS = {
    "gguf": read_gguf,
    "checkpoint": load_checkpoint,
    "model": lambda path: load_model(path, Engine(np.float32)),
    "tokenizer": load_tokenizer,
    "sentences": data.read_sentences,
    "dialogues": data.read_dialogues,
    "folder": data.read_folder,
}
WRITERS = {
    "gguf": lambda path: write_gguf(path, CONFIG, WEIGHTS, TOKENIZER),
    "modelfile": lambda path: write_modelfile(path, "model.gguf"),
    "checkpoint": lambda path: save_checkpoint(path, Checkpoint(CONFIG, WEIGHTS, TOKENIZER)),
    "tokenizer": TOKENIZER.save,
}
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs pipes and limits of POSIX")
SLOWEST = 10  # seconds for one file; the usual one takes hundredths


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module", autouse=True)
def good(tmp_path_factory):
    """The bytes of the good files; tests made by fuzz() take them from here."""
    folder = tmp_path_factory.mktemp("good")
    GOOD.update(files(folder))
    PLACE.append(tmp_path_factory.mktemp("bad"))
    PARTS.append(gguf_parts(folder / "good.gguf"))
    return GOOD


GOOD: dict[str, bytes] = {}
PLACE: list[Path] = []
PARTS: list = []


def is_right(found) -> bool:
    """Whether what a reader returned is whole, and of the kinds that it promises."""
    if isinstance(found, tuple):
        return isinstance(found[1], Tokenizer)
    if isinstance(found, Tokenizer):
        return found.decode([i for i in range(found.vocab_size) if i != found.end_id]) != ""
    if isinstance(found, dict):
        return all(isinstance(text, str) for texts in found.values() for text in texts)
    if isinstance(found, list):
        texts = [(d.user, d.assistant) if isinstance(d, Dialogue) else (d,) for d in found]
        return all(text.strip() and text.encode("utf-8") for part in texts for text in part)
    shapes = {name: array.shape for name, array in found.weights.items()}
    sound = all(np.isfinite(a).all() and a.dtype == np.float32 for a in found.weights.values())
    return (
        sound
        and shapes == found.config.parameter_shapes()
        and (found.tokenizer.vocab_size == found.config.vocab_size)
    )


def is_one_sentence(text: str) -> bool:
    return 10 < len(text) <= 1020 and not any(
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text
    )


def check(reader: str, content: bytes):
    """Reads a file with these bytes: the result, or the error of ours; anything else is raised."""
    path = PLACE[0] / "file"
    path.write_bytes(content)
    began = time.monotonic()
    try:
        found = READERS[reader](path)
        assert is_right(found), content[:80]
    except LlmclError as error:
        found = error
        assert is_one_sentence(str(error)) and str(path) in str(error), str(error)
    assert time.monotonic() - began < SLOWEST
    assert path.read_bytes() == content and os.listdir(PLACE[0]) == ["file"]
    return found


def refused(reader: str, content: bytes) -> str:
    found = check(reader, content)
    assert isinstance(found, LlmclError), found
    return str(found)


# ---- any damage ----

HEADERS = {"good.gguf": 9000, "good.safetensors": 4000}
READ_BY = {
    "good.gguf": "gguf",
    "good.safetensors": "checkpoint",
    "bpe.json": "tokenizer",
    "words.json": "tokenizer",
    "tune.jsonl": "dialogues",
    "pretrain.txt": "sentences",
}


@fuzz(400, share=35, content=st.deferred(lambda: damaged(GOOD["good.gguf"], 9000)))
def test_damaged_gguf(content):
    check("gguf", content)


@fuzz(300, share=20, content=st.deferred(lambda: damaged(GOOD["good.safetensors"], 4000)))
def test_damaged_checkpoint(content):
    check("checkpoint", content)


@fuzz(200, share=5, content=st.deferred(
    lambda: damaged(GOOD["bpe.json"]) | damaged(GOOD["words.json"])
))  # fmt: skip
def test_damaged_tokenizer(content):
    check("tokenizer", content)


@fuzz(200, share=5, content=st.deferred(
    lambda: damaged(GOOD["tune.jsonl"]) | damaged(GOOD["pretrain.txt"]) | st.binary(max_size=200)
))  # fmt: skip
def test_damaged_texts(content):
    check("sentences", content)
    check("dialogues", content)


@fuzz(100, share=5, content=st.binary(max_size=300), first=st.sampled_from([b"", b"GGUF"]))
def test_any_bytes_to_any_reader(content, first):
    for reader in READERS:
        check(reader, first + content)


def test_files_of_another_kind(good):
    for name, content in good.items():
        for reader in READERS:
            found = check(reader, content)
            if reader == READ_BY[name]:
                assert not isinstance(found, LlmclError), found


def test_cut_anywhere(good):
    for name in ("bpe.json", "words.json"):
        content = good[name].rstrip()
        for length in range(0, len(content), 29):
            refused("tokenizer", content[:length])
    for length in range(0, len(good["good.safetensors"]), 2503):
        refused("checkpoint", good["good.safetensors"][:length])
    for length in range(0, len(good["good.gguf"]), 1009):
        refused("gguf", good["good.gguf"][:length])


# ---- GGUF, part by part ----

numbers = st.sampled_from(NUMBERS) | st.integers(0, 2**64 - 1)
values = st.one_of(
    st.tuples(st.just(8), st.binary(max_size=30).map(string)),
    st.tuples(st.sampled_from([4, 5, 6]), st.binary(min_size=4, max_size=4)),
    st.tuples(st.sampled_from([10, 11, 12]), st.binary(min_size=8, max_size=8)),
    st.tuples(st.sampled_from([0, 1, 7]), st.binary(min_size=1, max_size=1)),
    st.tuples(
        st.just(9),
        st.builds(
            lambda kind, count, rest: struct.pack("<IQ", kind, count) + rest,
            st.integers(0, 14), numbers, st.binary(max_size=40),
        ),
    ),
    st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=20)),
)  # fmt: skip


@st.composite
def changed_gguf(draw):
    """A GGUF file whose header is well-formed for the most part, and says something else."""
    file = PARTS[0]
    file = type(file)(list(file.pairs), list(file.tensors), file.data)
    for _ in range(draw(st.integers(1, 2))):
        i = draw(st.integers(0, len(file.pairs) - 1))
        k = draw(st.integers(0, len(file.tensors) - 1))
        name, sizes, kind, offset = file.tensors[k]
        how = draw(st.sampled_from(
            "value key twice drop counts sizes type offset name repeat swap data order".split()
        ))  # fmt: skip
        if how == "value":
            file.pairs[i] = (file.pairs[i][0], *draw(values))
        elif how == "key":
            file.pairs[i] = (draw(st.binary(max_size=20)), *file.pairs[i][1:])
        elif how == "twice":
            file.pairs.append(file.pairs[i])
        elif how == "drop":
            del file.pairs[i]
        elif how == "counts":
            file.more_tensors, file.more_pairs = draw(st.tuples(
                st.integers(-3, 3) | numbers, st.integers(-3, 3)
            ))  # fmt: skip
        elif how == "sizes":
            sizes = draw(st.lists(st.sampled_from([*sizes, 1]) | numbers, max_size=5))
        elif how == "type":
            kind = draw(st.integers(0, 45) | numbers)
        elif how == "offset":
            offset = draw(st.integers(offset - 64, offset + 64) | numbers)
        elif how == "name":
            name = draw(st.binary(max_size=20) | st.sampled_from([t[0] for t in file.tensors]))
        elif how == "repeat":
            file.tensors.append(file.tensors[k])
        elif how == "swap":
            file.tensors.reverse()
        elif how == "data":
            file.data = draw(
                st.sampled_from([b"", file.data[:-1], file.data + b"\0", b"\xff" * 99])
            )
        else:
            file.order = ">"
        if how in ("sizes", "type", "offset", "name"):
            file.tensors[k] = name, sizes, kind, offset
    return bytes(file)


@fuzz(400, share=30, content=st.deferred(changed_gguf))
def test_changed_gguf(content):
    check("gguf", content)


def with_tensor(name=b"output_norm.bias", **changes):
    """The good file with one entry of its table of tensors changed."""
    file = PARTS[0]
    tensors = []
    for old, sizes, kind, offset in file.tensors:
        entry = {"name": old, "sizes": sizes, "kind": kind, "offset": offset}
        tensors.append(tuple((entry | (changes if old == name else {})).values()))
    return bytes(type(file)(file.pairs, tensors, file.data))


def with_counts(**more):
    return bytes(type(PARTS[0])(PARTS[0].pairs, PARTS[0].tensors, PARTS[0].data, **more))


def test_the_parts_make_the_same_file(good):
    assert bytes(PARTS[0]) == good["good.gguf"]


@pytest.mark.parametrize("offset", [36, 0, 32, 2**63, 2**64 - 1, 2**64 - 32])
def test_offset_that_is_not_its_own(offset):
    message = refused("gguf", with_tensor(b"blk.0.attn_norm.weight", offset=offset))
    assert f"the tensor 'blk.0.attn_norm.weight' has offset {offset}, and " in message


def test_every_offset_moved_by_four():
    for name, _, _, offset in PARTS[0].tensors:
        assert "has offset" in refused("gguf", with_tensor(name, offset=offset + 4))


def test_tensor_count_too_small():
    file = PARTS[0]
    extra = (b"extra", [32], 0, len(file.data))
    file = type(file)(file.pairs, [*file.tensors, extra], file.data + b"\0" * 128)
    assert "extra unknown" in refused("gguf", bytes(file))
    # Every name is there; only the place of the data is wrong.
    file.more_tensors = -1
    assert "bytes more than its tensors need" in refused("gguf", bytes(file))
    assert "bytes more than its tensors need" in refused("gguf", with_counts(more_tensors=-1))


def test_bytes_that_nobody_asked_for(good):
    file = PARTS[0]
    start = len(good["good.gguf"]) - len(file.data)
    for content in (
        good["good.gguf"] + b"\0" * 4,
        good["good.gguf"][:start] + b"\0" * 4 + file.data,
    ):
        assert "it has 4 bytes more than its tensors need" in refused("gguf", content)
    # The padding behind the last tensor is nobody's: without it the file is whole.
    assert GGMLQuantizationType(file.tensors[-1][2]) == GGMLQuantizationType.F32
    cut = good["good.gguf"][: len(good["good.gguf"]) - (-4 * CONFIG.d_model) % 32]
    assert not isinstance(check("gguf", cut), LlmclError)


def test_vector_that_is_not_f32():
    file = PARTS[0]
    *others, (name, sizes, _, offset) = file.tensors
    half = np.ones(sizes, np.float16).tobytes()
    file = type(file)(file.pairs, [*others, (name, sizes, 1, offset)], file.data[:offset] + half)
    message = refused("gguf", bytes(file))
    assert "output_norm.bias is kept in F16; llama.cpp needs every vector in F32" in message


@pytest.mark.parametrize("case", ["offset", "count", "half"])
def test_llama_cpp_refuses_the_same(case, tmp_path):
    """What read_gguf asks for is no whim: real llama.cpp does not answer from these files."""
    pytest.importorskip("xllamacpp")
    from llmcl.llama_cpp import ask_llama

    file = PARTS[0]
    *others, (name, sizes, _, offset) = file.tensors
    half = file.data[:offset] + np.ones(sizes, np.float16).tobytes()
    content = {
        "offset": lambda: with_tensor(b"blk.0.attn_norm.weight", offset=36),
        "count": lambda: with_counts(more_tensors=-1),
        "half": lambda: bytes(type(file)(file.pairs, [*others, (name, sizes, 1, offset)], half)),
    }[case]()
    (tmp_path / "bad.gguf").write_bytes(content)
    request = ("/completion", {"prompt": "The", "n_predict": 1})
    with pytest.raises(LlmclError):
        ask_llama(tmp_path / "bad.gguf", [request])


def test_keys_and_tensors_that_stand_twice():
    file = PARTS[0]
    twice = type(file)([*file.pairs, file.pairs[3]], file.tensors, file.data)
    assert f"the key {file.pairs[3][0].decode()!r} stands in it twice" in refused(
        "gguf", bytes(twice)
    )
    first = file.tensors[0]
    same = (first[0], first[1], first[2], len(file.data))
    more = file.data + file.data[: file.tensors[1][3]]
    message = refused("gguf", bytes(type(file)(file.pairs, [*file.tensors, same], more)))
    assert "duplicated tensor" in message


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("architecture", [b"llama", b"", b"\xff", b"a\nb\x1b[2J", b"x" * 5000])
def test_other_architectures_and_byte_orders(architecture, order):
    file = PARTS[0]
    pairs = [(b"general.architecture", 8, string(architecture)), *file.pairs[1:]]
    message = refused("gguf", bytes(type(file)(pairs, file.tensors, file.data, order=order)))
    assert len(message) < 400
    if order == ">":
        assert "other byte order" in message
    elif architecture != b"\xff":
        assert f"architecture {shown(architecture.decode())}" in message


# ---- checkpoints, part by part ----


def checkpoint(text: str, arrays=None) -> bytes:
    if arrays is None:
        (PLACE[0] / "file").write_bytes(GOOD["good.safetensors"])
        arrays = load_file(PLACE[0] / "file")
    return save(arrays, metadata={"llmcl": text})


def described(**changes) -> dict:
    about = {"format": FORMAT, "config": CONFIG.to_dict(), "tokenizer": TOKENIZER.to_dict()}
    return about | {"state": STATE} | changes


@fuzz(150, share=5, name=st.sampled_from(["format", "config", "tokenizer", "state"]),
      inner=st.sampled_from(["n_layers", "d_model", "merges", "kind", "results", "step", "x"]),
      value=JSON | st.sampled_from(NUMBERS))  # fmt: skip
def test_changed_description(name, inner, value):
    about = described()
    if isinstance(about[name], dict):
        about[name] = about[name] | {inner: value}
    else:
        about[name] = value
    check("checkpoint", checkpoint(json.dumps(about)))
    check("checkpoint", checkpoint(json.dumps(described(**{name: value}))))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format":' * 100_000, ""])
def test_description_that_is_no_description(text):
    refused("checkpoint", checkpoint(text))


def test_description_with_a_field_twice():
    text = json.dumps(described())[:-1] + ', "state": {"step": 9}}'
    assert "the field 'state' stands twice" in refused("checkpoint", checkpoint(text))


@pytest.mark.parametrize("sizes", [{"n_layers": 2**31 - 1}, {"d_model": 2**31 - 1, "n_heads": 2}])
def test_sizes_that_would_take_for_ever(sizes):
    text = json.dumps(described(config=CONFIG.to_dict() | sizes))
    began = time.monotonic()
    refused("checkpoint", checkpoint(text))
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("kind", "size"),
    [("F8_E4M3", 1), ("F8_E5M2", 1), ("F4", 1), ("BF16", 2), ("F16", 2), ("BOOL", 1), ("C64", 8)],
)
def test_checkpoint_with_a_foreign_type(kind, size):
    shape = [2] if kind == "F4" else [1]
    header = {
        "__metadata__": {"llmcl": json.dumps(described())},
        "weights/x": {"dtype": kind, "shape": shape, "data_offsets": [0, size]},
    }
    text = json.dumps(header).encode()
    refused("checkpoint", struct.pack("<Q", len(text)) + text + b"\0" * size)


@pytest.mark.parametrize(
    "state",
    [
        {"results": []},
        {"results": {"tune": 3}},
        {"results": {"pretrain": {}}},
        {"settings": 1},
        {"step": "3"},
        {"curve": {}},
        {"data": None},
    ],
)
def test_state_of_the_wrong_kinds(state):
    assert "its state is" in refused("checkpoint", checkpoint(json.dumps(described(state=state))))


@pytest.mark.parametrize("lacks", ["stage", "step", "results", "curve", "seconds"])
def test_state_that_no_run_can_go_on_from(lacks, tmp_path):
    whole = STATE | {"curve": [], "seconds": 1.0}
    path = tmp_path / "checkpoint.safetensors"
    for state in ({n: v for n, v in whole.items() if n != lacks}, whole | {"stage": "baking"}):
        save_checkpoint(path, Checkpoint(CONFIG, WEIGHTS, TOKENIZER, state=state))
        assert load_checkpoint(path).state == state
        with pytest.raises(LlmclError, match="its state is"):
            load_checkpoint(path, STAGES)
    save_checkpoint(path, Checkpoint(CONFIG, WEIGHTS, TOKENIZER, state=whole))
    assert load_checkpoint(path, STAGES).state == whole


# ---- tokenizers and texts ----


@fuzz(150, share=3, name=st.sampled_from([*TOKENIZER.to_dict(), *WORDS.to_dict(), "x"]),
      words=st.booleans(), value=JSON)  # fmt: skip
def test_changed_tokenizer(name, words, value):
    about = (WORDS if words else TOKENIZER).to_dict() | {name: value}
    check("tokenizer", json.dumps(about).encode())


LINES = {
    "deep": '{"user": ' + "[" * 100_000,
    "just not too deep": '{"user": ' + "[" * 985 + "]" * 985 + ', "assistant": "a"}',
    "many fields": "{" + ", ".join(f'"a{i}": 1' for i in range(60_000)) + "}",
    "twice": '{"user": "a", "user": "b", "assistant": "c"}',
    "long name": '{"' + "x" * 100_000 + '": 1, "user": "a", "assistant": "b"}',
    "name with a line break": '{"a\\nb\\u2028": 1, "user": "a", "assistant": "b"}',
    "half a character": '{"user": "\\ud83d", "assistant": "b"}',
    "long number": '{"user": ' + "9" * 10_000 + ', "assistant": "b"}',
    "nan": '{"user": NaN, "assistant": "b"}',
    "empty": "",
    "only a byte order mark": "\ufeff",
    "byte order mark inside": 'a\n{"user": "\ufeff"}',
    "no character": "a\0b",
}


@pytest.mark.parametrize("line", LINES)
def test_lines_that_are_no_dialogue(line):
    message = refused("dialogues", LINES[line].encode("utf-8", "surrogatepass"))
    assert len(message) < 400
    refused("tokenizer", LINES[line].encode("utf-8", "surrogatepass"))


def test_bytes_that_are_no_utf8():
    for content in (b"\xff\xfea\0", b"a\n\xed\xa0\xbd", b"\xc0\xaf", b"a\xf5"):
        for reader in ("sentences", "dialogues", "tokenizer"):
            refused(reader, content)


def test_byte_order_mark_is_no_fault(good):
    mark = b"\xef\xbb\xbf"
    assert check("sentences", mark + good["pretrain.txt"]) == ["The sun.", "끝"]
    assert len(check("dialogues", mark + good["tune.jsonl"])) == 2
    assert check("tokenizer", mark + good["bpe.json"]).to_dict() == TOKENIZER.to_dict()


def test_very_long_lines():
    line = " ".join(f"word{i}" for i in range(30_000))
    began = time.monotonic()
    (found,) = check("sentences", line.encode())
    assert found == line
    assert recall_prompts([found, "word0 word2"], TOKENIZER)[0][0] == "word0 word1"
    pieces = cut_documents([f"{line}\n" * 30])
    assert max(map(len, pieces)) <= 4000 and " ".join(pieces).split() == line.split() * 30
    assert time.monotonic() - began < SLOWEST


# ---- memory ----


def small_bombs() -> dict[str, tuple[str, bytes]]:
    """Files of a few thousand bytes that ask for far more: the reader, and the bytes."""
    file = PARTS[0]
    key, huge = file.pairs[0], 2**63
    start = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + string(b"k")
    bombs = {
        f"array of {kind.name}": start + struct.pack("<IIQ", 9, kind, huge)
        for kind in GGUFValueType
    }
    bombs |= {
        "string": start + struct.pack("<IQ", 8, huge),
        "nested arrays": start + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 80,
        "deep arrays": start + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 2000,
        "keys": struct.pack("<4sIQQ", b"GGUF", 3, 0, huge) + b"\0" * 1000,
        "tensors": struct.pack("<4sIQQ", b"GGUF", 3, huge, 0) + b"\0" * 1000,
        "dimensions": bytes(type(file)([key], [(b"a", [huge] * 4, 0, 0)])),
        "no dimensions": bytes(type(file)([key], [(b"a", [], 0, 0)])),
        "an empty tensor": bytes(type(file)([key], [(b"a", [0, huge], 0, 0)])),
        "alignment": bytes(type(file)(
            [key, (b"general.alignment", 4, struct.pack("<I", 2**31))], [(b"a", [1], 0, 0)]
        )),
    }  # fmt: skip
    found = {name: ("gguf", content) for name, content in bombs.items()}
    header = (
        b'{"__metadata__":{"llmcl":"null"},"a":{"dtype":"F32","shape":[0,%d],"data_offsets":[0,0]}}'
    )
    for n in (0, 2**40, 2**63, 2**64 - 1, 2**70):
        text = header % n
        found[f"checkpoint {n}"] = "checkpoint", struct.pack("<Q", len(text)) + text
    for n in (2**20, 2**31, 2**63, 2**64 - 1):
        found[f"checkpoint header {n}"] = "checkpoint", struct.pack("<Q", n) + b"{}"
    found["deep header"] = "checkpoint", struct.pack("<Q", 3000) + b'{"a":' * 600
    found["deep text"] = "dialogues", b'{"user":' + b"[" * 3000
    found["deep tokenizer"] = "tokenizer", b"[" * 3000
    return found


def test_a_small_file_takes_little_memory():
    for name, (reader, content) in small_bombs().items():
        tracemalloc.start()
        try:
            refused(reader, content)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(content) < 30_000 and peak < 4e6, (name, peak)


CHILD = """
import pathlib, resource, sys
import test_fuzz_files as t
names = sorted(pathlib.Path(sys.argv[1]).iterdir())
size = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**27, size + 2**27))
for path in names:
    reader = path.name.split("-")[0]
    try:
        t.READERS[reader](path)
        print("read", path.name)
    except t.LlmclError as error:
        print("refused", len(str(error)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
def test_no_file_needs_memory_that_it_does_not_fill(tmp_path):
    """A child process with 128 MiB to spare refuses them all; a library's memory counts too."""
    bombs = small_bombs()
    many = struct.pack("<IIQ", 9, 0, 400_000) + bytes(400_000)
    strings = struct.pack("<IIQ", 9, 8, 150_000) + bytes(8 * 150_000)
    for name, value in (("many numbers", many), ("many texts", strings)):
        bombs[name] = "gguf", struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + string(b"k") + value
    layers = described(config=CONFIG.to_dict() | {"n_layers": 2**31 - 1})
    bombs["blocks"] = "checkpoint", checkpoint(json.dumps(layers))
    for number, (reader, content) in enumerate(bombs.values()):
        (tmp_path / f"{reader}-{number}").write_bytes(content)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    done = subprocess.run(
        command, env=env, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr[-500:]
    assert len(lines) == len(bombs) and all(line.startswith("refused ") for line in lines), lines


# ---- names of files ----

NAMES = ["a\0b", "a\nb", "\ud800", "x" * 5000, "missing", "missing/x", "..", ".", "", "\x1b[2J"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_that_cannot_be_read(reader, name, tmp_path):
    with pytest.raises(LlmclError) as caught:
        READERS[reader](tmp_path / "one" / name if name == ".." else tmp_path / name)
    assert is_one_sentence(str(caught.value))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "name", ["a\0b", "\ud800", "x" * 5000, "missing/x", "..", "a\0b/c"], ids=ascii
)
def test_names_that_cannot_be_written(writer, name, tmp_path):
    with pytest.raises(LlmclError, match="cannot write") as caught:
        WRITERS[writer](tmp_path / name)
    assert is_one_sentence(str(caught.value))
    assert not os.listdir(tmp_path)


@POSIX
@pytest.mark.parametrize("reader", READERS)
def test_pipes_and_devices_do_not_hang(reader, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null"), Path("/dev/full")):
        began = time.monotonic()
        with pytest.raises(LlmclError) as caught:
            READERS[reader](path)
        assert is_one_sentence(str(caught.value)) and time.monotonic() - began < 2


@POSIX
@pytest.mark.parametrize("writer", WRITERS)
def test_a_pipe_is_not_replaced_by_a_file(writer, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink("pipe", tmp_path / "link")
    for name in ("pipe", "link"):
        with pytest.raises(LlmclError, match="a pipe or a device"):
            WRITERS[writer](tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_fifo()


@POSIX
def test_names_that_are_no_utf8_can_be_used(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        TOKENIZER.save(path)
    except LlmclError:
        pytest.skip("this disk takes only names in UTF-8")
    assert load_tokenizer(path).to_dict() == TOKENIZER.to_dict()


def test_what_a_file_says_cannot_steer_the_screen():
    text = "a\nb\x1b[2J\x07\u2028\ud800끝"
    for kind in LlmclError.__subclasses__():
        if kind.__name__ == "FileError":
            for error in (*kind.__subclasses__(), kind):
                message = str(error(f"{text} is wrong."))
                assert message == "a\\nb\\x1b[2J\\x07\\u2028\\ud800끝 is wrong."
            assert len(kind.__subclasses__()) == 5
            return
    pytest.fail("no FileError")


@pytest.mark.parametrize("kind", [ByteBPE, WordDictionary])
def test_a_long_value_is_cut_short(kind):
    with pytest.raises(LlmclError) as caught:
        kind(["x y" * 10**6])
    assert len(str(caught.value)) < 300
    assert shown([[[[["x"]]]]]) == "[[[[...]]]]" and shown("끝") == "'끝'"
