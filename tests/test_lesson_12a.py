"""Lesson 12a: the bytes are those of the format, and the readers and quantizers are told apart."""

import struct

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize, quantize
from gguf_helpers import sharp_weights, small_config, small_tokenizer

from lesson_helpers import code
from llmcl.engine import get_engine
from llmcl.gguf_file import write_gguf
from llmcl.lab import lessons, run_items
from llmcl.lab.lessons import lesson_12a
from notebook_builder import FOLDER, build

Q8_0 = GGMLQuantizationType.Q8_0


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """What the lesson's cells define, with the solutions in place, without the kernels' cells."""
    skipped = "run_broken", "kernel_exercise", "quiz", "summary("
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLMCL_LAB", str(tmp_path_factory.mktemp("lab")))
        defined = {"q8_text": lessons.find("12a.6").text}
        for cell in code(build.assemble("12a_the_gguf_file", solved=True)):
            lines = cell.source.splitlines()
            if not any(word in cell.source for word in skipped):
                exec("\n".join(x for x in lines if not x.startswith("lab.explore")), defined)
        yield defined


def floats(seed, *shape, spread=1.0):
    return (spread * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


# ---- the bytes ----


def test_the_dump_of_the_exercise_is_what_its_bytes_give():
    text = (FOLDER / "src" / "12a_the_gguf_file.py").read_text(encoding="utf-8")
    for line in lesson_12a.dump().splitlines():
        assert "# " + line.rstrip() in text
    assert lesson_12a.DUMPED == (3, 300, 17, len("gpt2.block_count"), 4, 258)


def test_the_pieces_of_the_picture_are_the_bytes_they_are_called(names):
    raw, starts = names["by_hand"], np.cumsum([0, *(size for _, size in names["pieces"])])
    found = {name: raw[a:b] for (name, _), a, b in zip(names["pieces"], starts, starts[1:])}  # noqa: B905
    assert found["magic number"] == b"GGUF" and found["the key"] == b"general.architecture"
    assert found["the value"] == b"gpt2" and found["the name"] == b"token_embd.weight"
    for name, want in (("version 3", 3), ("1 tensor", 1), ("20 letters", 20), ("3 in a row", 3),
                       ("2 rows", 2), ("offset 0", 0), ("2 dimensions", 2)):  # fmt: skip
        assert int.from_bytes(found[name], "little") == want
    assert not any(found["gap"]) and not any(found["gap at the end"])
    assert np.frombuffer(found["six numbers"], "<f4").tolist() == [1, 2, 3, 4, 5, 6]
    assert found["the key"].hex(" ") in names["dump_words"](5)


def test_the_lesson_s_reader_reads_every_type_of_value(names, tmp_path):
    tokenizer = small_tokenizer()
    config = small_config(tokenizer)
    info = {"tags": ["a", "b"], "loss": [2.5, 0.25], "seed": 2**40, "mixed": True, "rate": 1e-3}
    for kind in ("F32", "F16", "Q8_0"):
        write_gguf(tmp_path / "m.gguf", config, sharp_weights(config), tokenizer, kind, info)
        pairs, tensors = names["agree"](tmp_path / "m.gguf")
        assert tensors == 28 and pairs > 25
    values = names["read_file"]((tmp_path / "m.gguf").read_bytes())[0]
    assert values["llmcl.training.seed"] == 2**40 and values["llmcl.training.loss"] == [2.5, 0.25]
    assert values["tokenizer.ggml.tokens"] == tokenizer.tokens


def test_agree_fails_where_the_readers_differ(names, tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(names["two"])
    assert names["agree"](bad) == (1, 2)
    real = names["gap"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(names, "gap", lambda at: real(at) + 32)
        with pytest.raises(AssertionError):
            names["agree"](bad)


def test_a_count_too_small_moves_the_numbers_without_a_word(names, tmp_path):
    bad = tmp_path / "bad.gguf"
    two = names["two"]
    bad.write_bytes(two[:8] + struct.pack("<Q", 1) + two[16:])
    (found,) = GGUFReader(bad).tensors
    assert not np.array_equal(found.data, names["tensor"])


def test_an_offset_of_36_reads_one_place_too_far(names, tmp_path):
    bad, two, at = tmp_path / "bad.gguf", names["two"], names["entry_at"]
    for offset, want in ((32, [1, 1, 1]), (36, [1, 1, 0])):
        data = two[:at] + struct.pack("<Q", offset) + two[at + 8 :]
        bad.write_bytes(data)
        assert GGUFReader(bad).tensors[1].data.tolist() == want
        assert bool(names["complaints"](data)) == (offset == 36)


# ---- Q8_0 ----

SPREADS = (1e-8, 1e-6, 1e-3, 0.05, 1.0, 1e3)


@pytest.mark.parametrize("spread", SPREADS)
def test_the_lesson_s_quantizer_writes_the_package_s_bytes(names, spread):
    x = floats(1, 400, 32, spread=spread)
    assert (np.array([names["q8_block"](row) for row in x]) == quantize(x, Q8_0)).all()


@pytest.mark.parametrize("spread", SPREADS)
def test_the_kernel_writes_the_package_s_bytes(names, spread):
    x = floats(2, 4001, 32, spread=spread)
    assert (names["on_device"](x) == quantize(x, Q8_0)).all()


def test_the_kernel_on_blocks_that_the_last_digit_decides(names):
    for block in (lesson_12a.ties(), lesson_12a.near_ties(), np.zeros((1, 32), np.float32)):
        assert (names["on_device"](block) == quantize(block, Q8_0)).all()
        assert (names["q8_block"](block[0]) == quantize(block, Q8_0)[0]).all()
    # Near ties for many steps: a quotient that is one digit off would show here.
    largest = np.abs(floats(3, 3000, 1)) + np.float32(0.01)
    x = (largest / 127 * (np.arange(32, dtype=np.float32) + 0.5)).astype(np.float32)
    x[:, 31:] = largest
    assert (names["on_device"](x) == quantize(x, Q8_0)).all()


def test_the_item_and_the_kernel_write_the_same_bytes(names):
    x, out = floats(4, 7, 32), np.zeros(7 * 34, np.uint8)
    run = run_items(names["one_block"], 7, x, out, 7, group=4)
    assert not run.findings
    assert (out.reshape(7, 34) == names["on_device"](x)).all()
    for item in range(7):
        touched = {(a.array, a.kind, a.place) for a in run.of(item)}
        assert touched == {("x", "read", 32 * item + i) for i in range(32)} | {
            ("out", "write", 34 * item + i) for i in range(34)
        }


@pytest.mark.parametrize("spread", [0.01, 0.05, 1.0, 1e3])
def test_the_bound_holds_and_is_not_far_off(names, spread):
    x = floats(5, 5000, 32, spread=spread)
    off = np.abs(dequantize(quantize(x, Q8_0), Q8_0) - x.astype(float)) / names["q8_bound"](x)
    assert 0.9 < off.max() <= 1


def test_the_bound_for_tiny_weights(names):
    x = floats(6, 5000, 32, spread=1e-4)
    off = np.abs(dequantize(quantize(x, Q8_0), Q8_0) - x.astype(float))
    assert (off > names["q8_bound"](x)).any(), "so the lesson must not promise it there"
    assert (off <= names["q8_bound"](x) + 127 * 2.0**-25).all()


def test_back_is_the_package_s_way_back():
    engine, task = get_engine(), lessons.find("12a.8")
    kernel = engine.program.compile(task.text)["back"]
    x = floats(7, 9, 32)
    assert (task.launch(engine, kernel, x) == dequantize(quantize(x, Q8_0), Q8_0)).all()


def test_the_model_s_file_is_what_the_lesson_says(names):
    sizes, parts = names["sizes"], names["parts"]
    assert sizes["Q8_0"] <= 442_000
    assert sizes["F16"] > sizes["F32"] / 2 and sizes["Q8_0"] > sizes["F32"] / 4
    assert max(parts, key=lambda part: part.size).name == "position_embd.weight"
    lists = [part for part in parts if part.name.startswith("tokenizer.")]
    assert max(lists, key=lambda part: part.size).name == "tokenizer.ggml.tokens"
    assert sum(part.kind == "gap" for part in parts) == 1
    assert names["vectors"] / names["everything"] < 0.01
