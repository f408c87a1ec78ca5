"""Makes the README's moving pictures: python docs/pictures.py [FOLDER]

Each shows what a lesson's slider or run shows. The forgetting comes out of lesson 10, which is run
for it; the file is the one of the shipped model.
"""

import io
import json
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image

from llmcl import lab
from llmcl.lab import file_map, models, viewer
from llmcl.lab.pictures import COLORS, figure, png, split_labels

ROOT = Path(__file__).resolve().parents[1]
ASKED = "json.dumps({k: {s: row.tolist() for s, row in h.items()} for k, h in "
HISTORIES = f"import json; print({ASKED}(('naive', naive), ('mixed', mixed))}}))"


def sliding(show, choose=lambda values: values) -> list[Image.Image]:
    """The pictures of a slider: what show() gives to lab's explore, at the values chosen."""
    frames = []

    def record(draw, values, alt, *_, columns=1, width=6.4, height=3.2, **__):
        for value in choose(split_labels(values)[1]):
            made, axes = figure(alt(value), width, height, columns)
            draw(axes, value)
            frames.append(picture(made))

    with patch.object(viewer, "explore", record), patch.object(file_map, "explore", record):
        show()
    return frames


def picture(made) -> Image.Image:
    """A figure as an image of few colours, which keeps the file small."""
    return Image.open(io.BytesIO(png(made))).convert("RGB").quantize(64, dither=Image.Dither.NONE)


def who_reads_what() -> list[Image.Image]:
    """Every work-item of a matrix product, and what it touches (lesson 01a)."""

    def product(a, b, c, m, n, k):
        row, col = lab.get_global_id(0), lab.get_global_id(1)
        if row >= m or col >= n:
            return
        total = 0.0
        for p in range(k):
            total += a[row * k + p] * b[p * n + col]
        c[row * n + col] = total

    a, b, c = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32), np.zeros((3, 5), np.float32)
    run = lab.run_items(product, (3, 5), a, b, c, 3, 5, 4)
    return sliding(lambda: lab.view_items(run))


def forgetting() -> list[Image.Image]:
    """What is known while a model is tuned, without and with the old texts (lesson 10)."""
    book = nbformat.read(ROOT / "notebooks" / "10_tuning.ipynb", as_version=4)
    book.cells.append(nbformat.v4.new_code_cell(HISTORIES))
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
    both = json.loads(book.cells[-1].outputs[0]["text"])
    steps = [int(step) for step in both["naive"]]
    return [known_until(both, steps, last) for last in range(len(steps))]


def known_until(both: dict, steps: list[int], last: int) -> Image.Image:
    """The marks up to one of the steps: a row for each text, a column for each step."""
    made, panels = figure("what is known, by step", 6.4, 4.4, columns=2)
    for axes, (name, title) in zip(
        panels, [("naive", "dialogues alone"), ("mixed", "mixed with the sentences")], strict=True
    ):
        table = np.array([both[name][str(step)] for step in steps[: last + 1]])
        known = []
        for rows, color in ((slice(0, 25), "blue"), (slice(25, 38), "orange")):
            column, text = np.nonzero(table[:, rows])
            axes.scatter(column, text + rows.start, s=16, color=COLORS[color])
            known.append(f"{int(table[-1, rows].sum())} of {rows.stop - rows.start}")
        title = f"{title}\n{known[0]} sentences, {known[1]} answers"
        axes.axhline(24.5, color="black", linewidth=1)
        axes.set(title=title, xlabel="step", xlim=(-0.6, len(steps) - 0.4), ylim=(37.6, -0.6))
        axes.set_xticks(range(len(steps)), steps, fontsize=7)
        axes.set_yticks([12, 31], ["25 sentences", "13 answers"], rotation=90, va="center")
    return picture(made)


def the_file() -> list[Image.Image]:
    """The GGUF file to scale, part by part (lesson 12a)."""
    # The large parts, and of the blocks the first one.
    return sliding(
        lambda: lab.explore_file(models.SHIPPED / "10.gguf"),
        lambda parts: [p for p in parts if p.size > 2000 and "blk.1" not in p.name],
    )


def save(frames: list[Image.Image], path: Path, seconds: float) -> None:
    """A GIF without an end; the last picture stays for a while."""
    times = [int(1000 * seconds)] * (len(frames) - 1) + [3000]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True
    )
    print(f"{path.name}: {len(frames)} pictures, {path.stat().st_size:,} bytes")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save(who_reads_what(), folder / "who_reads_what.gif", 0.6)
    save(the_file(), folder / "the_file.gif", 1.0)
    save(forgetting(), folder / "forgetting.gif", 0.6)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs" / "pictures")
