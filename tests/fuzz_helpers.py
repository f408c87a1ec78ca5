"""Files to be damaged: a small good one of each kind, and the ways in which bytes go wrong."""

import json
import os
import struct
import time
from dataclasses import dataclass, field

from gguf import GGUFReader
from gguf_helpers import sharp_weights
from hypothesis import given, settings
from hypothesis import strategies as st

from llmcl.checkpoint import Checkpoint, save_checkpoint
from llmcl.config import Config
from llmcl.gguf_file import write_gguf
from llmcl.tokenizer import ByteBPE, WordDictionary

TOKENIZER = ByteBPE.train(["The sun warms the sea.", "The sun rises."], 264)
WORDS = WordDictionary.train(["The sun warms the sea."], spell_unknown=True)
CONFIG = Config(vocab_size=TOKENIZER.vocab_size, d_model=32, n_heads=2, n_layers=1, d_ff=32)
WEIGHTS = sharp_weights(CONFIG)
STATE = {"stage": "tune", "step": 3, "results": {}, "settings": {"seed": 1}, "data": {}}

# By hand: LLMCL_FUZZ_SECONDS=600 pytest tests/test_fuzz_files.py
SECONDS = float(os.environ.get("LLMCL_FUZZ_SECONDS", 0))
NUMBERS = [0, 1, 4, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**60, 2**63 - 1, 2**63, 2**64 - 1]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda part: (
        st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3)
    ),
    max_leaves=6,
)


def fuzz(examples: int, share: int = 1, **strategies):
    """Runs a check with the same examples every time, or for a share of SECONDS with new ones."""

    def decorate(check):
        once = settings(
            max_examples=examples if not SECONDS else 1000,
            derandomize=not SECONDS,
            database=None,
            deadline=None,
        )(given(**strategies)(check))

        def repeated():
            end = time.monotonic() + SECONDS * share / 100
            once()
            while time.monotonic() < end:
                once()

        repeated.__name__, repeated.__doc__ = check.__name__, check.__doc__
        return repeated

    return decorate


@st.composite
def damaged(draw, data: bytes, header: int | None = None):
    """The bytes cut, flipped, overwritten with a number, doubled, or with others put between.

    Most damage is done before `header`, where the file says what it holds.
    """
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        end = (
            len(data) - 1
            if draw(st.integers(0, 9)) == 0
            else min(header or len(data), len(data)) - 1
        )
        at = draw(st.integers(0, max(end, 0)))
        how = draw(st.sampled_from(["cut", "flip", "number", "insert", "double", "remove"]))
        length = draw(st.integers(1, 64))
        if how == "cut":
            del data[at:]
        elif how == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif how == "number":
            size = draw(st.sampled_from([4, 8]))
            number = draw(st.sampled_from(NUMBERS)) % 2 ** (8 * size)
            data[at : at + size] = number.to_bytes(size, "little")
        elif how == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=32))
        elif how == "double":
            data[at:at] = data[at : at + length]
        else:
            del data[at : at + length]
    return bytes(data)


# ---- GGUF ----


@dataclass
class Gguf:
    """What a GGUF file holds, as bytes that can be changed one by one."""

    pairs: list = field(default_factory=list)  # (name, type, bytes of the value)
    tensors: list = field(default_factory=list)  # (name, sizes, type, offset)
    data: bytes = b""
    magic: bytes = b"GGUF"
    version: int = 3
    more_tensors: int = 0  # what the header claims beyond the truth
    more_pairs: int = 0
    order: str = "<"

    def __bytes__(self) -> bytes:
        def number(kind, *values):
            return struct.pack(self.order + kind, *values)

        def text(value):
            return number("Q", len(value)) + value

        counts = len(self.tensors) + self.more_tensors, len(self.pairs) + self.more_pairs
        parts = [self.magic, number("I", self.version), number("QQ", *(c % 2**64 for c in counts))]
        parts += [text(name) + number("I", kind) + value for name, kind, value in self.pairs]
        for name, sizes, kind, offset in self.tensors:
            listed = number(f"I{len(sizes)}Q", len(sizes), *(n % 2**64 for n in sizes))
            parts.append(text(name) + listed + number("IQ", kind % 2**32, offset % 2**64))
        head = b"".join(parts)
        return head + b"\0" * (-len(head) % 32) + self.data


def gguf_parts(path) -> Gguf:
    """The parts of a good file."""
    reader, raw = GGUFReader(path), path.read_bytes()
    pairs = []
    for name, item in reader.fields.items():
        if not name.startswith("GGUF."):
            value = b"".join(part.tobytes() for part in item.parts[3:])
            pairs.append((name.encode(), int(item.types[0]), value))
    start = reader.data_offset
    tensors = [
        (t.name.encode(), t.shape.tolist(), int(t.tensor_type), t.data_offset - start)
        for t in reader.tensors
    ]
    return Gguf(pairs, tensors, raw[start:])


def string(text: bytes) -> bytes:
    """The bytes of a text's value."""
    return struct.pack("<Q", len(text)) + text


def files(folder) -> dict[str, bytes]:
    """The bytes of a good file of each kind."""
    write_gguf(folder / "good.gguf", CONFIG, WEIGHTS, TOKENIZER, "Q8_0", {"steps": 3})
    save_checkpoint(
        folder / "good.safetensors",
        Checkpoint(CONFIG, WEIGHTS, TOKENIZER, state=STATE),
    )
    TOKENIZER.save(folder / "bpe.json")
    WORDS.save(folder / "words.json")
    lines = [{"user": "Hello", "assistant": "Yes."}, {"user": "끝?", "assistant": "No\nmore."}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (folder / "tune.jsonl").write_text(text, encoding="utf-8", newline="\n")
    (folder / "pretrain.txt").write_text("The sun.\r\n\n끝\n", encoding="utf-8", newline="")
    return {path.name: path.read_bytes() for path in folder.iterdir()}
