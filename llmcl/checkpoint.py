"""Checkpoints: everything a run needs to go on, in one safetensors file, stored by name."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .config import Config
from .errors import CheckpointError, LlmclError, shown
from .files import parse_json, replacing
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
    # Not save_file: it writes to a file of another name, which a killed process leaves behind.
    data = save(tensors, metadata={"llmcl": json.dumps(about)})
    with replacing(path, CheckpointError) as temporary:
        temporary.write_bytes(data)


def load_checkpoint(path: str | os.PathLike, stages: Sequence[str] = ()) -> Checkpoint:
    """The checkpoint in a file; CheckpointError when it is missing, damaged, foreign or too new.

    With `stages`, those of a run, also when its state does not say where in them it stands.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise CheckpointError(f"{path} is no file; give the path of a .safetensors checkpoint.")
    try:
        with safe_open(path, framework="numpy") as file:
            about = parse_json((file.metadata() or {}).get("llmcl", "null"))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise CheckpointError(
                    f"{path} is a safetensors file, but no checkpoint of llmcl ({FORMAT!r}); "
                    "use one that `llmcl train` wrote."
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}
    # AttributeError: a type, such as F8_E4M3, that NumPy lacks.
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is damaged or no safetensors file ({error}); give another checkpoint."
        ) from error
    except RecursionError:
        raise CheckpointError(
            f"{path} is damaged or no safetensors file (its description is too deeply nested); "
            "give another checkpoint."
        ) from None
    try:
        checkpoint = _build(about, arrays)
        if stages:
            _check_run(checkpoint.state, stages)
        return checkpoint
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
    # A wrong number of blocks would ask for billions of names.
    if config.n_layers > len(arrays):
        raise CheckpointError(
            f"it has {len(arrays)} tensors, too few for {config.n_layers} blocks."
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
    _check_state(about["state"])
    return Checkpoint(
        config, groups["weights"], tokenizer, groups["m"], groups["v"], about["state"]
    )


def _check_run(state: dict, stages: Sequence[str]) -> None:
    """Raises CheckpointError for a state that a run of these stages cannot go on from."""
    stage, results = state.get("stage"), state.get("results", {})
    needed = {"stage", "step", "results"} | (set() if stage in results else {"curve", "seconds"})
    finished = {"steps", "seconds", "loss", "curve", "recall"}
    whole = all(isinstance(result, dict) and finished <= set(result) for result in results.values())
    if stage not in stages or not needed <= set(state) or state["step"] < 0 or not whole:
        raise CheckpointError(f"its state is {shown(state)}.")


def _check_state(state: dict) -> None:
    """Raises CheckpointError for a state that is no dictionary, or has a known entry of no use."""
    if not isinstance(state, dict):
        raise CheckpointError(f"its state is {shown(state)}.")
    kinds: dict = {"settings": dict, "results": dict, "data": dict, "stage": str, "step": int}
    kinds |= {"curve": list, "seconds": (int, float)}
    for name, kind in kinds.items():
        if name in state and not isinstance(state[name], kind):
            raise CheckpointError(f"its state is {shown({name: state[name]})}.")
    for stage in ("pretrain", "tune"):
        result = state.get("results", {}).get(stage, {"loss": 0})
        if not isinstance(result, dict) or not isinstance(result.get("loss"), (int, float)):
            raise CheckpointError(f"its state is {shown({stage: result})}.")


def training_info(state: dict) -> dict:
    """What a GGUF file tells of the training, from a checkpoint's state; empty if it tells none."""
    names = "seed batch_size pretrain_steps pretrain_rate tune_steps tune_rate".split()
    settings, results = state.get("settings", {}), state.get("results", {})
    info = {name: settings[name] for name in names if name in settings}
    stages = [stage for stage in ("pretrain", "tune") if stage in results]
    return info | {f"{s}_loss": results[s]["loss"] for s in stages} | state.get("data", {})
