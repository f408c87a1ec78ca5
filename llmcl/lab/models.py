"""A trained model for lessons that need one: the reader's own, or the one that is shipped.

The shipped files come from a run of `llmcl train --out build` with its default settings; `ship`
writes them anew.
"""

from pathlib import Path

from ..checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ..errors import LlmclError
from ..gguf_file import write_gguf
from ..load import load_model
from . import session

SHIPPED = Path(__file__).parent / "shipped"
STAGES = {"09": "pretrain", "10": "tune"}  # lesson -> the stage of training that it ends with


def checkpoint(lesson: str, engine):
    """(model, tokenizer) as they stand at the end of a lesson that trains, "09" or "10".

    The reader's own, if keep_checkpoint() has stored one; else the shipped one. Prints which.
    Raises LlmclError for a lesson that trains nothing.
    """
    if lesson not in STAGES:
        raise LlmclError(f"lesson {lesson!r} trains no model; there are {', '.join(STAGES)}.")
    own = _own(lesson)
    if own.is_file():
        try:
            loaded = load_model(own, engine)
            print(f"The model is your own, from lesson {lesson}.")
            return loaded
        except LlmclError as error:
            print(f"Your own model cannot be used: {error}")
    print(f"The model is the shipped one; your own takes its place when you run lesson {lesson}.")
    return load_model(SHIPPED / f"{lesson}.gguf", engine)


def keep_checkpoint(lesson: str, model, tokenizer) -> None:
    """Stores a trained model in the lesson's folder, for checkpoint() in later lessons."""
    save_checkpoint(_own(lesson), Checkpoint(model.config, model.weights(), tokenizer))


def _own(lesson: str) -> Path:
    return session.folder(lesson) / "model.safetensors"


def ship(run: str | Path) -> None:
    """Writes the shipped files from the folder of a finished training run."""
    for lesson, stage in STAGES.items():
        stored = load_checkpoint(Path(run) / f"{stage}.safetensors")
        path = SHIPPED / f"{lesson}.gguf"
        write_gguf(path, stored.config, stored.weights, stored.tokenizer, "Q8_0")
