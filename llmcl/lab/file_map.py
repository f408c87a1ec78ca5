"""A GGUF file drawn to scale: every byte of it has its place in one picture."""

import os
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from gguf import GGUFReader
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch

from .pictures import COLORS, explore

SQUARE = 32  # bytes; tensors begin at multiples of it
COLUMNS = 128
HEADER = 24  # magic, version, two counts
KINDS = {
    "header": "black", "keys": "purple", "tokenizer": "green", "tensor table": "orange",
    "gap": "#999999", "F32": "red", "F16": "sky", "Q8_0": "blue",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A stretch of a file: its name, its kind (a key of KINDS), its first byte and its length."""

    name: str
    kind: str
    start: int
    size: int

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + self.size


def gguf_parts(path: str | os.PathLike) -> list[Part]:
    """All parts of a GGUF file, in its order: each byte belongs to exactly one of them."""
    reader = GGUFReader(path)
    fields = [f for name, f in reader.fields.items() if not name.startswith("GGUF.")]
    parts, at = [Part("header", "header", 0, HEADER)], HEADER
    for name, group in groupby(fields, key=lambda field: _group(field.name)):
        size = sum(int(part.nbytes) for field in group for part in field.parts)
        kind = "tokenizer" if name.startswith("tokenizer.") else "keys"
        parts.append(Part(name, kind, at, size))
        at += size
    size = sum(int(part.nbytes) for tensor in reader.tensors for part in tensor.field.parts)
    parts.append(Part("tensor table", "tensor table", at, size))
    for tensor in sorted(reader.tensors, key=lambda tensor: tensor.data_offset):
        parts += _gap(parts[-1].end, int(tensor.data_offset))
        size = int(tensor.n_bytes)
        parts.append(Part(tensor.name, tensor.tensor_type.name, int(tensor.data_offset), size))
    return parts + _gap(parts[-1].end, os.path.getsize(path))


def _group(key: str) -> str:
    """The part that a key belongs to: the long lists of the tokenizer are parts of their own."""
    alone = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"
    return key if key in (*alone, "tokenizer.chat_template") else key.split(".")[0] + ".*"


def _gap(start: int, end: int) -> list[Part]:
    return [Part("gap", "gap", start, end - start)] if end > start else []


def owners(parts: list[Part], chosen: Part | None = None) -> np.ndarray:
    """For each square of SQUARE bytes, the number of the part that has most of it.

    The chosen part has every square that it touches, so that a short one can be seen.
    """
    squares = -(-parts[-1].end // SQUARE)
    most, owner = np.zeros(squares, int), np.zeros(squares, int)
    for number, part in enumerate(parts):
        touched = np.arange(part.start // SQUARE, -(-part.end // SQUARE))
        first = np.maximum(touched * SQUARE, part.start)
        here = np.minimum((touched + 1) * SQUARE, part.end) - first
        here = here + SQUARE if part == chosen else here
        won = here > most[touched]
        owner[touched[won]], most[touched[won]] = number, here[won]
    return owner


def draw_file(axes, parts: list[Part], chosen: Part | None = None) -> None:
    """Draws a file as rows of COLUMNS squares; the chosen part in full color, the others pale."""
    shades = np.array([_shade(part, number, chosen) for number, part in enumerate(parts)])
    owner = owners(parts, chosen)
    rows = -(-len(owner) // COLUMNS)
    image = np.ones((rows * COLUMNS, 3))
    image[: len(owner)] = shades[owner]
    axes.grid(False)
    axes.imshow(image.reshape(rows, COLUMNS, 3), interpolation="nearest", aspect="auto")
    axes.set_xticks([])
    step = COLUMNS * SQUARE
    marks = range(0, rows, max(1, 100_000 // step))
    axes.set_yticks(marks, [f"{row * step:,}" for row in marks], fontsize=8)
    axes.set_ylabel("byte", fontsize=9)
    if chosen:
        axes.set_title(f"{chosen.name}: {chosen.size:,} bytes", fontsize=10, parse_math=False)
    total = {kind: sum(part.size for part in parts if part.kind == kind) for kind in KINDS}
    handles = [
        Patch(color=COLORS.get(color, color), label=f"{kind} {total[kind]:,}")
        for kind, color in KINDS.items()
        if total[kind]
    ]
    axes.legend(
        handles=handles, ncols=4, fontsize=8, frameon=False, loc="upper center",
        bbox_to_anchor=(0.5, -0.01), handlelength=1, columnspacing=1,
    )  # fmt: skip


def _shade(part: Part, number: int, chosen: Part | None) -> np.ndarray:
    """A part's color: paler for every second one, so that neighbors differ, and unless chosen."""
    name = KINDS.get(part.kind, "black")
    color = np.array(to_rgb(COLORS.get(name, name)))
    if part == chosen:
        return color
    strength = (0.3 if number % 2 else 0.2) if chosen else (1.0 if number % 2 else 0.7)
    return 1 - strength * (1 - color)


def explore_file(path: str | os.PathLike, start: str | None = None) -> None:
    """Displays a GGUF file to scale, with a slider over its parts; start is the name of one."""
    parts = gguf_parts(path)
    whole = parts[-1].end
    first = next((part for part in parts if part.name == start), parts[0])

    def draw(axes, part):
        draw_file(axes, parts, part)

    def words(part):
        return (
            f"The file as rows of {COLUMNS} squares of {SQUARE} bytes; the rest is pale. In full "
            f"color, {part.name}: {part.size:,} of {whole:,} bytes, {part.size / whole:.1%}, from "
            f"byte {part.start:,} on."
        )

    values = [(part.name, part) for part in parts]
    explore(draw, values, words, "part", start=first, height=4.8)
