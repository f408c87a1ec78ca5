"""Checkpoints: everything a run needs to go on, in one safetensors file, stored by name."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from .config import Config
from .errors import CheckpointError, LlmclError
from .files import replacing
from .tokenizer import tokenizer_from_dict
from .tokenizer_base import Tokenizer

FORMAT = "llmcl checkpoint 1"


@dataclass(frozen=True)
class Checkpoint:
    """A model, and for a run that goes on the moments of AdamW and the state of the run.

    weights, m, v: float32 arrays by parameter name, in our (in, out) layout; m and v may be empty.
    state: plain values (JSON): stage, step, settings, results, device and versions.
    """

    config: Config
    weights: dict[str, np.ndarray]
    tokenizer: Tokenizer
    m: dict[str, np.ndarray] = field(default_factory=dict)
    v: dict[str, np.ndarray] = field(default_factory=dict)
    state: dict = field(default_factory=dict)


def save_checkpoint(path: str | os.PathLike, checkpoint: Checkpoint) -> None:
    """Writes a checkpoint whole or not at all; raises CheckpointError if the disk refuses."""
    groups = {"weights": checkpoint.weights, "m": checkpoint.m, "v": checkpoint.v}
    tensors = {
        f"{group}/{name}": np.ascontiguousarray(array, np.float32)
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    about = {
        "format": FORMAT,
        "config": checkpoint.config.to_dict(),
        "tokenizer": checkpoint.tokenizer.to_dict(),
        "state": checkpoint.state,
    }
    with replacing(path, CheckpointError) as temporary:
        try:
            save_file(tensors, temporary, metadata={"llmcl": json.dumps(about)})
        except SafetensorError as error:
            raise OSError(None, str(error)) from error


def load_checkpoint(path: str | os.PathLike) -> Checkpoint:
    """The checkpoint in a file; CheckpointError when it is missing, damaged, foreign or too new."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"{path} is no file; give the path of a .safetensors checkpoint.")
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("llmcl", "null"))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise CheckpointError(
                    f"{path} is a safetensors file, but no checkpoint of llmcl ({FORMAT!r}); "
                    "use one that `llmcl train` wrote."
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path} is damaged or no safetensors file ({error}); give another checkpoint."
        ) from error
    try:
        return _build(about, arrays)
    except (LlmclError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} does not fit together: {error} Give another checkpoint."
        ) from error


def _build(about: dict, arrays: dict[str, np.ndarray]) -> Checkpoint:
    config = Config.from_dict(about["config"])
    tokenizer = tokenizer_from_dict(about["tokenizer"])
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"its tokenizer has {tokenizer.vocab_size} tokens, its model {config.vocab_size}."
        )
    shapes = config.parameter_shapes()
    groups: dict[str, dict[str, np.ndarray]] = {"weights": {}, "m": {}, "v": {}}
    for key, array in arrays.items():
        group, _, name = key.partition("/")
        if group not in groups or shapes.get(name) != array.shape or array.dtype != np.float32:
            raise CheckpointError(f"the tensor {key} {array.shape} {array.dtype} is not expected.")
        if not np.isfinite(array).all():
            raise CheckpointError(f"{key} has values that are not finite.")
        groups[group][name] = array
    for group, found in groups.items():
        missing = sorted(shapes.keys() - found)
        if missing and (found or group == "weights"):
            raise CheckpointError(f"{group} of {', '.join(missing)} is missing.")
    if not isinstance(about["state"], dict):
        raise CheckpointError(f"its state is {about['state']!r:.40}.")
    return Checkpoint(
        config, groups["weights"], tokenizer, groups["m"], groups["v"], about["state"]
    )


def training_info(state: dict) -> dict:
    """What a GGUF file tells of the training, from a checkpoint's state; empty if it tells none."""
    names = "seed batch_size pretrain_steps pretrain_rate tune_steps tune_rate".split()
    settings, results = state.get("settings", {}), state.get("results", {})
    info = {name: settings[name] for name in names if name in settings}
    stages = [stage for stage in ("pretrain", "tune") if stage in results]
    return info | {f"{s}_loss": results[s]["loss"] for s in stages} | state.get("data", {})
