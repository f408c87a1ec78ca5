"""What the front page tells and shows, computed from the shipped model and the lessons."""

import base64
from pathlib import Path

import nbformat
import numpy as np

from llmcl.data import prompt_text, read_dialogues, read_sentences
from llmcl.engine import get_engine
from llmcl.generate import Sampling, generate, next_shares, reply
from llmcl.lab.file_map import COLUMNS, SQUARE, draw_file, gguf_parts
from llmcl.lab.models import SHIPPED
from llmcl.lab.pictures import COLORS, figure, png
from llmcl.load import load_model
from llmcl.resources import data_dir

MODEL = SHIPPED / "10.gguf"
NEW_QUESTION = "Why does wood float?"
# Pictures that stand in lessons: the lesson's number, words of its text, the name here.
FROM_LESSONS = [
    ("08a", "float32 makes a V", "v-curve"),
    ("09", "The sentences known rise", "training"),
    ("10", "Left, naive", "forgetting"),
]


def facts(notebooks: dict[str, Path], folder: Path) -> dict:
    """What docs/index.md names, by name; the pictures are written into the folder.

    notebooks: the lessons' files by their number. Raises ValueError if a picture is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model, tokenizer = load_model(MODEL, get_engine("numpy"))
    dialogues = read_dialogues(data_dir() / "tune.jsonl")
    known = next(d.user for d in dialogues if "float" in d.user)
    answers = {q: "".join(reply(model, tokenizer, q)) for q in (known, NEW_QUESTION)}
    sure = {q: certainty(model, tokenizer, q) for q in answers}
    pictures = {"sure": draw_certainty(sure), "file": draw_the_file(model)}
    for name, made in pictures.items():
        (folder / f"{name}.png").write_bytes(png(made))
    alts = {name: made.alt for name, made in pictures.items()}
    for number, words, name in FROM_LESSONS:
        data, alts[name] = stored_picture(notebooks[number], words)
        (folder / f"{name}.png").write_bytes(data)
    return {
        "alts": alts,
        "answers": answers,
        "known": known,
        "new": NEW_QUESTION,
        "first_word": {q: tokens[1][1] for q, tokens in sure.items()},
        "bytes": MODEL.stat().st_size,
        "parameters": sum(np.prod(s) for s in model.config.parameter_shapes().values()),
        "sentences": len(read_sentences(data_dir() / "pretrain.txt")),
        "dialogues": len(dialogues),
        "square": SQUARE,
    }


def certainty(model, tokenizer, question: str) -> list[tuple[str, float]]:
    """The tokens of the model's answer, each with the share that it had; the end is `end`."""
    ids = tokenizer.encode(prompt_text(question))
    found = []
    for token in generate(model, ids, stop_ids=[tokenizer.end_id]):
        logits = model.engine.to_host(model.forward(np.array([ids])))[0, -1]
        share = next_shares(logits, Sampling(temperature=1.0))[token]
        shown = "end" if token == tokenizer.end_id else tokenizer.decode([token])
        found.append((shown.replace(" ", "␣"), float(share)))
        ids = [*ids, token]
    return found


def draw_certainty(sure: dict[str, list[tuple[str, float]]]):
    """Bars of the shares of each answer's tokens, a panel for each of two questions."""
    told = "; ".join(
        f"asked {question!r} it is least sure at {token!r}, with {share:.2f}"
        for question, tokens in sure.items()
        for token, share in [min(tokens, key=lambda pair: pair[1])]
    )
    alt = f"How sure the model is of each token of its answer, from 0 to 1: {told}."
    made, panels = figure(alt, 7.2, 3.4, columns=len(sure))
    for axes, color, (question, tokens) in zip(
        panels, ("blue", "orange"), sure.items(), strict=True
    ):
        places = range(len(tokens))
        axes.barh(places, [share for _, share in tokens], color=COLORS[color])
        axes.set_yticks(places, [token for token, _ in tokens], parse_math=False)
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_title(question, fontsize=11, parse_math=False)
        axes.set_xlabel("share of the token")
        for place, (_, share) in enumerate(tokens):
            inside = share > 0.3
            axes.text(
                share - 0.02 if inside else share + 0.02, place, f"{share:.2f}", va="center",
                ha="right" if inside else "left", color="white" if inside and color == "blue"
                else "black", fontsize=9,
            )  # fmt: skip
    return made


def draw_the_file(model):
    """The shipped file, every byte in its place."""
    parts = gguf_parts(MODEL)
    whole = parts[-1].end
    weights = sum(part.size for part in parts if part.kind in ("Q8_0", "F16", "F32"))
    alt = (
        f"The {whole:,} bytes of the file as rows of {COLUMNS} squares of {SQUARE} bytes: "
        f"{weights / whole:.0%} are weights, and the text that tells how to read them is a thin "
        "strip on top."
    )
    made, axes = figure(alt, 7.2, 4.8)
    draw_file(axes, parts)
    return made


def stored_picture(notebook: Path, words: str) -> tuple[bytes, str]:
    """The one picture of a notebook whose text has the words: (PNG, text)."""
    cells = nbformat.read(notebook, as_version=4).cells
    found = {
        (output.data["image/png"], output.metadata["image/png"]["alt"])
        for cell in cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {}) and words in output.metadata["image/png"]["alt"]
    }
    if len(found) != 1:
        raise ValueError(f"{notebook.name} has {len(found)} pictures that say {words!r}, not 1.")
    ((data, alt),) = found
    return base64.b64decode(data), alt
