"""GGUF: one file with the weights, the sizes, the tokenizer and the chat template.

llama.cpp, LM Studio and Ollama open it. `write_gguf` writes a model as llama.cpp's architecture
"gpt2", `read_gguf` reads such a file back, `write_modelfile` writes what Ollama wants beside it.

Three things differ from the model in memory. GGUF's matrices lie (out, in), ours (in, out), so all
but the two embeddings are transposed. Matrices may be kept in F16 or Q8_0; vectors and the position
table stay in F32, which llama.cpp adds to its F32 activations. And the file carries an answer of
its own, the logits after CHECK_IDS, so that whoever changes it later can be found out: a transposed
square matrix or a wrong number of heads loads without a word.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, size_label
from gguf.quants import dequantize, quantize

from .chat_format import chat_template, write_modelfile
from .config import Config
from .errors import GgufError, LlmclError, shown
from .files import open_file, replacing
from .gguf_reader import ARCHITECTURE, Reader
from .model import GPT
from .reference import Engine
from .tokenizer import NO_MERGE, Tokenizer, tokenizer_from_gguf

__all__ = ["GgufModel", "answer", "chat_template", "read_gguf", "write_gguf", "write_modelfile"]

FILE_TYPES = {
    "F32": LlamaFileType.ALL_F32,
    "F16": LlamaFileType.MOSTLY_F16,
    "Q8_0": LlamaFileType.MOSTLY_Q8_0,
}
# llama.cpp rounds its window up to a multiple of this, and reads the position table to its end.
WINDOW_STEP = 256
# F16 ends here; a Q8_0 block keeps its largest weight divided by 127 in F16.
LARGEST = {"F16": 65504.0, "Q8_0": 127 * 65504.0}
TRAINING, CHECK_IDS, CHECK_LOGITS = "llmcl.training.", "llmcl.check.ids", "llmcl.check.logits"
# What `info` may say about the model as a whole; every other entry is about its training.
GENERAL = {
    "name": "general.name",
    "author": "general.author",
    "version": "general.version",
    "description": "general.description",
    "license": "general.license",
    "tags": "general.tags",
    "languages": "general.languages",
    "dataset": "general.dataset.0.name",
}
DEFAULTS = {
    "name": "llmcl",
    "author": "llmcl",
    "description": "A small GPT-2-style language model, trained from scratch with llmcl.",
    "license": "MIT",
    "tags": ["text-generation"],
    "languages": ["en"],
}


@dataclass(frozen=True)
class GgufModel:
    """What a GGUF file holds; weights are float32 in our layout, by llama.cpp's names."""

    config: Config
    weights: dict[str, np.ndarray]
    tokenizer: Tokenizer
    info: dict = field(default_factory=dict)
    dtype: str = "F32"  # the type of the matrices in the file
    check: tuple[list[int], list[float]] | None = None  # ids, and the logits that follow them


# ---- writing ----


def write_gguf(
    path: str | os.PathLike,
    config: Config,
    weights: dict[str, np.ndarray],
    tokenizer: Tokenizer,
    dtype: str = "Q8_0",
    info: dict | None = None,
) -> None:
    """Writes a model as a GGUF file, whole or not at all; the same model gives the same bytes.

    `weights` are in our layout, by the names and shapes of config.parameter_shapes(). `dtype`, one
    of "F32", "F16", "Q8_0", is for the matrices. `info` has texts, numbers and lists of them: the
    names in GENERAL describe the model, all others its training. Raises GgufError before anything
    is written if llmcl or llama.cpp could not read the result, and if the disk refuses it.
    """
    check_sizes(config, tokenizer, dtype)
    stored = _stored_tensors(config, weights, dtype)
    metadata = _metadata(config, info or {}, dtype)
    ids = [int(i) for i in np.arange(24) * 37 % config.vocab_size]
    logits = answer(config, {name: _our_layout(name, *stored[name]) for name in stored}, ids)
    with replacing(path, GgufError) as temporary:
        writer = GGUFWriter(temporary, ARCHITECTURE)
        try:
            for key, value in metadata.items():
                _add(writer, key, value)
            _add_tokenizer(writer, tokenizer)
            writer.add_array(CHECK_IDS, ids)
            writer.add_array(CHECK_LOGITS, logits.tolist())
            for name, (data, kind) in stored.items():
                writer.add_tensor(name, data, raw_dtype=kind)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
        finally:
            writer.close()


def answer(config: Config, weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """The logits (vocab_size) after the ids, from a forward pass in float64."""
    model = GPT(config, Engine(np.float64))
    model.load_weights(weights)
    return model.engine.to_host(model.forward(np.array([ids])))[0, -1]


def check_sizes(config: Config, tokenizer: Tokenizer, dtype: str) -> None:
    """Raises GgufError for a model that llmcl or llama.cpp could not read from a file."""
    if dtype not in FILE_TYPES:
        raise GgufError(f"dtype is {dtype!r}; choose one of {', '.join(FILE_TYPES)}.")
    if tokenizer.vocab_size != config.vocab_size:
        raise GgufError(
            f"the tokenizer has {tokenizer.vocab_size} tokens and the model {config.vocab_size}; "
            "export a model with the tokenizer it was trained with."
        )
    if config.context_length % WINDOW_STEP:
        fits = -(-config.context_length // WINDOW_STEP) * WINDOW_STEP
        raise GgufError(
            f"context_length {config.context_length} is not a multiple of {WINDOW_STEP}: llama.cpp "
            f"would read past the end of the position table; train with {fits}."
        )
    for name in ("d_model", "d_ff"):
        if dtype == "Q8_0" and getattr(config, name) % 32:
            raise GgufError(
                f"{name} {getattr(config, name)} is not a multiple of 32, the length of a Q8_0 "
                "block; export in F16 or F32, or train with another width."
            )


def _stored_tensors(config: Config, weights: dict, dtype: str) -> dict[str, tuple]:
    """By name, in the file's order: the array to store, and the type it is stored in."""
    shapes = config.parameter_shapes()
    _check_names(weights, shapes, config.n_layers)
    stored = {}
    for name, shape in shapes.items():
        array = np.asarray(weights[name])
        if array.shape != shape:
            raise GgufError(f"{name} has shape {array.shape}; this configuration needs {shape}.")
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            raise GgufError(
                f"{name} has weights that are not finite; export an earlier checkpoint."
            )
        is_matrix = array.ndim == 2 and name != "position_embd.weight"
        kind = GGMLQuantizationType[dtype if is_matrix else "F32"]
        largest = float(np.abs(array).max())
        if largest > LARGEST.get(kind.name, np.inf):
            raise GgufError(
                f"{name} has a weight of size {largest:g}, and {kind.name} ends at "
                f"{LARGEST[kind.name]:g}; export in F32."
            )
        array = np.ascontiguousarray(array.T if _is_transposed(name) else array)
        # A block of next to nothing divides by zero on its way to being stored as zero.
        with np.errstate(all="ignore"):
            stored[name] = quantize(array, kind), kind
    return stored


def _is_transposed(name: str) -> bool:
    """Whether the file has it (out, in): every matrix but the embeddings; vectors do not mind."""
    return name not in ("token_embd.weight", "position_embd.weight")


def _our_layout(name: str, data: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
    with np.errstate(all="ignore"):  # who reads a file refuses what is not finite
        array = np.array(dequantize(data, kind), np.float32)
    return np.ascontiguousarray(array.T) if _is_transposed(name) else array


def _metadata(config: Config, info: dict, dtype: str) -> dict:
    """Every key and value but the tokenizer's."""
    about = DEFAULTS | {name: value for name, value in info.items() if name in GENERAL}
    count = config.parameter_count()
    metadata = {
        "general.type": "model",
        "general.size_label": size_label(count, count, 0, 0),
        "general.file_type": int(FILE_TYPES[dtype]),
        "gpt2.context_length": config.context_length,
        "gpt2.embedding_length": config.d_model,
        "gpt2.block_count": config.n_layers,
        "gpt2.feed_forward_length": config.d_ff,
        "gpt2.attention.head_count": config.n_heads,
        "gpt2.attention.layer_norm_epsilon": config.layer_norm_epsilon,
    }
    metadata |= {GENERAL[name]: value for name, value in about.items()}
    if "dataset" in about:
        metadata["general.dataset.count"] = 1
    if dtype == "Q8_0":
        metadata["general.quantization_version"] = 2
    return metadata | {TRAINING + name: info[name] for name in info if name not in GENERAL}


def _add(writer: GGUFWriter, key: str, value) -> None:
    value = value.item() if isinstance(value, np.generic) else value
    kinds = {type(part) for part in value} if isinstance(value, list) else {type(value)}
    too_large = isinstance(value, int) and not -(2**63) <= value < 2**63
    if len(kinds) != 1 or not kinds <= {str, int, float, bool} or value == "" or too_large:
        raise GgufError(
            f"{key} is {shown(value)}; a GGUF file keeps texts, numbers, and lists of one kind of "
            "them, none of them empty."
        )
    add: dict = {str: writer.add_string, bool: writer.add_bool, float: writer.add_float64}
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, int) and not isinstance(value, bool):
        (writer.add_uint32 if 0 <= value < 2**32 else writer.add_int64)(key, value)
    elif key.startswith(ARCHITECTURE):
        writer.add_float32(key, value)
    else:
        add[type(value)](key, value)


def _add_tokenizer(writer: GGUFWriter, tokenizer: Tokenizer) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(tokenizer.pre)
    writer.add_token_list(tokenizer.tokens)
    writer.add_token_types(tokenizer.token_types)
    writer.add_token_merges(tokenizer.merges or NO_MERGE)  # an empty list is refused
    # Without these keys llama.cpp takes token 11 for both.
    writer.add_bos_token_id(tokenizer.end_id)
    writer.add_eos_token_id(tokenizer.end_id)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(chat_template())


# ---- reading ----


def read_gguf(path: str | os.PathLike) -> GgufModel:
    """The model in a GGUF file of write_gguf's kind; Q8_0 and other types become float32.

    Raises GgufError if the file is missing, damaged, of another architecture, has another tokenizer
    than ours, or tensors that are missing, unknown, of a wrong shape or not finite.
    """
    try:
        with open_file(path) as file:
            if file.read(4) != b"GGUF":
                raise GgufError("it does not begin as a GGUF file does; give a .gguf file")
        return _read(Reader(path))
    except OSError as error:
        raise GgufError(f"{path} cannot be read: {error.strerror or error}.") from error
    except LlmclError as error:
        reason = str(error).rstrip(".")
        raise GgufError(f"{path} is no file that llmcl can use: {reason}.") from error
    # gguf meets damage with whatever Python raises at that point.
    except Exception as error:
        raise GgufError(f"{path} is damaged: {error}; export it again.") from error


def _read(reader: Reader) -> GgufModel:
    keys = {name: item.contents() for name, item in reader.fields.items()}
    tokenizer = _read_tokenizer(keys)
    names = {
        "context_length": "context_length",
        "d_model": "embedding_length",
        "n_heads": "attention.head_count",
        "n_layers": "block_count",
        "d_ff": "feed_forward_length",
        "layer_norm_epsilon": "attention.layer_norm_epsilon",
    }
    sizes: dict[str, Any] = {
        ours: _need(keys, f"{ARCHITECTURE}.{theirs}") for ours, theirs in names.items()
    }
    if isinstance(sizes["layer_norm_epsilon"], float):
        # The file has the nearest float32 to 1e-5; seven digits give back what was meant.
        sizes["layer_norm_epsilon"] = float(f"{sizes['layer_norm_epsilon']:.7g}")
    config = Config(vocab_size=tokenizer.vocab_size, **sizes)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    info = {name: keys[key] for name, key in GENERAL.items() if key in keys}
    info |= {key.removeprefix(TRAINING): keys[key] for key in keys if key.startswith(TRAINING)}
    weights = _read_weights(config, tensors)
    dtype = tensors["token_embd.weight"].tensor_type.name
    return GgufModel(config, weights, tokenizer, info, dtype, _read_check(keys, config))


def _need(keys: dict, key: str):
    if key not in keys:
        raise GgufError(f"it has no key {key}")
    return keys[key]


def _read_tokenizer(keys: dict) -> Tokenizer:
    model, tokens, merges, pre = (
        _need(keys, f"tokenizer.ggml.{name}") for name in ("model", "tokens", "merges", "pre")
    )
    if model != "gpt2" or not isinstance(tokens, list) or not isinstance(merges, list):
        raise GgufError(f"its tokenizer is {shown(model)}, and not byte-level BPE ('gpt2')")
    tokenizer = tokenizer_from_gguf(pre, tokens, merges)
    end_id = _need(keys, "tokenizer.ggml.eos_token_id")
    if end_id != tokenizer.end_id:
        raise GgufError(f"its end token has id {shown(end_id)}, and {tokenizer.end_id} is expected")
    return tokenizer


def _read_weights(config: Config, tensors: dict) -> dict[str, np.ndarray]:
    # A wrong block count would ask for billions of names.
    if config.n_layers > len(tensors):
        raise GgufError(f"it has {len(tensors)} tensors, too few for {config.n_layers} blocks.")
    shapes = config.parameter_shapes()
    _check_names(tensors, shapes, config.n_layers)
    weights = {}
    for name, shape in shapes.items():
        tensor = tensors[name]
        found = tuple(int(n) for n in tensor.shape)  # GGUF lists the fastest dimension first
        found = found if _is_transposed(name) else found[::-1]
        if found != shape:
            raise GgufError(f"{name} has shape {found}; its sizes need {shape}")
        kind = tensor.tensor_type
        if len(shape) == 1 and kind != GGMLQuantizationType.F32:
            raise GgufError(f"{name} is kept in {kind.name}; llama.cpp needs every vector in F32")
        weights[name] = _our_layout(name, tensor.data, tensor.tensor_type)
        if not np.isfinite(weights[name]).all():
            raise GgufError(f"{name} has weights that are not finite")
    return weights


def _read_check(keys: dict, config: Config) -> tuple[list[int], list[float]] | None:
    if CHECK_IDS not in keys:
        return None
    ids, logits = keys[CHECK_IDS], _need(keys, CHECK_LOGITS)
    fits = _is_list_of(int, ids) and _is_list_of(float, logits)
    fits = fits and 0 < len(ids) <= config.context_length and len(logits) == config.vocab_size
    if not fits or min(ids) < 0 or max(ids) >= config.vocab_size or not np.isfinite(logits).all():
        raise GgufError(f"{CHECK_IDS} and {CHECK_LOGITS} do not fit the model")
    return ids, logits


def _is_list_of(kind: type, values) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _check_names(found: dict, wanted: dict, blocks: int) -> None:
    missing = [name for name in wanted if name not in found]
    unknown = [name for name in found if name not in wanted]
    parts = [
        f"{', '.join(names[:3])}{', …' if len(names) > 3 else ''} {what}"
        for names, what in ((missing, "missing"), (unknown, "unknown"))
        if names
    ]
    if parts:
        raise GgufError(
            f"the tensors are not those of a model of {blocks} blocks: {', '.join(parts)}."
        )
