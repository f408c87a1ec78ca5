"""A trained model from either kind of file."""

import os
from pathlib import Path

from .checkpoint import load_checkpoint
from .errors import CheckpointError
from .files import open_file
from .gguf_file import read_gguf
from .model import GPT
from .tokenizer_base import Tokenizer


def load_model(path: str | os.PathLike, engine) -> tuple[GPT, Tokenizer]:
    """(model, tokenizer) from a checkpoint or a GGUF file, told apart by their first bytes."""
    path = Path(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"{path} is no file; give a .gguf or .safetensors file.")
    try:
        with open_file(path) as file:
            is_gguf = file.read(4) == b"GGUF"
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}).") from error
    stored = read_gguf(path) if is_gguf else load_checkpoint(path)
    model = GPT(stored.config, engine)
    model.load_weights(stored.weights)
    return model, stored.tokenizer
