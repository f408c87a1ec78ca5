"""A small model whose greedy text has no near ties, and files that differ from a good one."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

from llmcl.config import Config
from llmcl.data import Dialogue, tokenizer_texts
from llmcl.tokenizer import ByteBPE, Tokenizer

SENTENCES = [
    "The sun warms the land and the sea.",
    "The sun rises in the east.",
    "Rivers carry water to the sea.",
    "Bees make honey from flowers.",
]
DIALOGUES = [
    Dialogue("Hello", "Hello, nice to meet you."),
    Dialogue("What do bees make?", "Bees make honey."),
    Dialogue("Where does the sun rise?", "The sun rises in the east."),
]
TEXTS = tokenizer_texts(SENTENCES, DIALOGUES)


def small_tokenizer() -> ByteBPE:
    return ByteBPE.train(TEXTS, 300)


def small_config(tokenizer: Tokenizer, **sizes) -> Config:
    defaults = {"d_model": 32, "n_heads": 2, "n_layers": 2, "d_ff": 128}
    return Config(vocab_size=tokenizer.vocab_size, **(defaults | sizes))


def sharp_weights(config: Config, seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights with which a few tokens, those of long embeddings, win by a wide margin."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in config.parameter_shapes().items():
        scale = 0.1 if len(shape) == 1 else 0.3 if "embd" in name else shape[0] ** -0.5
        array = scale * rng.normal(size=shape) + name.endswith("norm.weight")
        if name == "token_embd.weight":
            array[-17:-1] *= 4  # merged tokens, all of them letters; the end token is the last
        weights[name] = array.astype(np.float32)
    return weights


def rewrite(
    source: Path,
    target: Path,
    keys: dict | None = None,
    tensors: dict | None = None,
    drop: tuple[str, ...] = (),
    architecture: str = "gpt2",
) -> Path:
    """Copies a GGUF file with some keys and tensors changed, added or dropped; no check is made.

    A key is given as (value, GGUFValueType), a tensor as an array, or a function of the old one.
    """
    reader, keys, tensors = GGUFReader(source), dict(keys or {}), dict(tensors or {})
    writer = GGUFWriter(target, architecture)
    for name, item in reader.fields.items():
        if name.startswith("GGUF.") or name in drop or name == "general.architecture":
            continue
        element = item.types[-1] if item.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(name, item.contents(), item.types[0], element)
    for name, (value, kind) in keys.items():
        element = GGUFValueType.get_type(value[0]) if kind == GGUFValueType.ARRAY else None
        writer.kv_data[0].pop(name, None)
        writer.add_key_value(name, value, kind, element)
    for tensor in reader.tensors:
        new = tensors.pop(tensor.name, tensor.data)
        if isinstance(new, Callable):
            new = np.ascontiguousarray(new(tensor.data))
        if tensor.name not in drop:
            kind = tensor.tensor_type if new.dtype == tensor.data.dtype else None
            writer.add_tensor(tensor.name, new, raw_dtype=kind)
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
