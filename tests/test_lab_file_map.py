"""The file to scale: every byte has its place, and every part can be seen."""

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter
from gguf_helpers import sharp_weights, small_config, small_tokenizer

from llmcl.gguf_file import write_gguf
from llmcl.lab import figure
from llmcl.lab.file_map import COLUMNS, KINDS, SQUARE, Part, draw_file, gguf_parts, owners

TOKENIZER = small_tokenizer()
CONFIG = small_config(TOKENIZER)


@pytest.fixture(params=["F32", "F16", "Q8_0"])
def path(request, tmp_path):
    path = tmp_path / "model.gguf"
    write_gguf(path, CONFIG, sharp_weights(CONFIG), TOKENIZER, request.param)
    return path


def test_every_byte_belongs_to_one_part(path):
    parts = gguf_parts(path)
    assert parts[0].start == 0 and parts[-1].end == path.stat().st_size
    assert all(a.end == b.start for a, b in zip(parts, parts[1:], strict=False))
    assert all(part.size > 0 and part.kind in KINDS for part in parts)
    assert sum(part.size for part in parts) == path.stat().st_size


def test_a_tensor_s_part_holds_its_bytes(path):
    data, parts = path.read_bytes(), {part.name: part for part in gguf_parts(path)}
    for tensor in GGUFReader(path).tensors:
        part = parts[tensor.name]
        assert data[part.start : part.end] == tensor.data.tobytes()
        assert part.kind == tensor.tensor_type.name and part.start % SQUARE == 0


def test_the_tokenizer_s_lists_are_parts_of_their_own(path):
    data, parts = path.read_bytes(), {part.name: part for part in gguf_parts(path)}
    tokens, merges = parts["tokenizer.ggml.tokens"], parts["tokenizer.ggml.merges"]
    for token in TOKENIZER.tokens:
        raw = token.encode("utf-8") if isinstance(token, str) else token
        assert raw in data[tokens.start : tokens.end]
    assert b"User: " in data[parts["tokenizer.chat_template"].start :][:400]
    assert tokens.end <= merges.start


def test_a_file_of_one_tensor_ends_with_its_gap(tmp_path):
    path = tmp_path / "one.gguf"
    writer = GGUFWriter(path, "gpt2")
    writer.add_tensor("x", np.ones(3, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts = gguf_parts(path)
    assert [part.kind for part in parts[-3:]] == ["gap", "F32", "gap"]
    assert [part.size for part in parts[-2:]] == [12, 20]


def test_a_square_belongs_to_who_has_most_of_it_or_to_the_chosen_part():
    parts = [Part("a", "keys", 0, 24), Part("b", "keys", 24, 30), Part("c", "F32", 54, 74)]
    assert owners(parts).tolist() == [0, 1, 2, 2]
    assert owners(parts, parts[1]).tolist() == [1, 1, 2, 2]
    assert owners(parts, parts[2]).tolist() == [0, 2, 2, 2]


def test_the_picture_shows_a_part_in_as_many_squares_as_it_touches(path):
    parts = gguf_parts(path)
    for part in parts:
        _, axes = figure("the file to scale, one part in full color", 6.4, 4.8)
        draw_file(axes, parts, part)
        image = np.asarray(axes.images[0].get_array()).reshape(-1, 3)
        owner = owners(parts, part)
        mine = np.flatnonzero(owner == parts.index(part))
        touched = range(part.start // SQUARE, -(-part.end // SQUARE))
        assert mine.tolist() == list(touched)
        full = (image[: len(owner)] == image[mine[0]]).all(axis=1)
        assert np.flatnonzero(full).tolist() == list(touched), "only the chosen one"
        assert image.shape[0] % COLUMNS == 0
    assert f"{parts[-1].name}: {parts[-1].size:,} bytes" == axes.get_title()
