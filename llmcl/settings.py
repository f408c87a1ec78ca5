"""Everything that decides what a training run gives, besides the texts and the device."""

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from .config import Config
from .errors import ConfigError
from .optimizer import Schedule

STAGES = ("pretrain", "tune_without_mixing", "tune")


def _set(default, text: str):
    """A field with its default and the text that `llmcl train --help` shows for it."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """The settings of a run; raises ConfigError when one is not possible."""

    seed: int = _set(0, "of the first weights and of the drawing of batches")
    tokenizer: str = _set("bpe", "bpe (pieces of words, loses nothing) or words (a dictionary)")
    vocab_size: int = _set(512, "tokens in the vocabulary, at most; 257 or more")
    context_length: int = _set(256, "tokens that the model sees at once, a multiple of 256")
    d_model: int = _set(96, "width: numbers in a token's vector")
    n_heads: int = _set(3, "heads of attention, which share the width evenly")
    n_layers: int = _set(2, "blocks of attention and feed-forward")
    d_ff: int = _set(384, "width inside the feed-forward, usually four times d-model")
    pretrain_steps: int = _set(150, "steps of learning the sentences")
    tune_steps: int = _set(120, "steps of learning the dialogues")
    batch_size: int = _set(64, "texts of each kind in a step, at most")
    pretrain_rate: float = _set(3e-3, "the highest learning rate of pretraining")
    tune_rate: float = _set(1e-3, "the highest learning rate of tuning")
    dtype: str = _set("Q8_0", "type of the matrices in the file: F32, F16 or Q8_0 (a byte each)")

    def __post_init__(self):
        known = {"tokenizer": ("bpe", "words"), "dtype": ("F32", "F16", "Q8_0")}
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name} {getattr(self, name)!r} is unknown; choose {', '.join(choices)}."
                )
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"seed is {self.seed}; choose a whole number of 0 or more.")
        for name in ("pretrain_steps", "tune_steps", "batch_size", "pretrain_rate", "tune_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ConfigError(f"{name} is {getattr(self, name)}; choose a number above zero.")
        self.config(self.vocab_size)

    def config(self, vocab_size: int) -> Config:
        """The model's sizes for a tokenizer of vocab_size tokens."""
        own: dict[str, Any] = {f.name: getattr(self, f.name, None) for f in fields(Config)}
        own |= {"vocab_size": vocab_size, "layer_norm_epsilon": Config.layer_norm_epsilon}
        return Config(**own)

    def schedule(self, stage: str) -> Schedule:
        """The learning rate over a stage."""
        if stage == "pretrain":
            return Schedule(self.pretrain_rate, self.pretrain_steps)
        return Schedule(self.tune_rate, self.tune_steps)

    def to_dict(self) -> dict:
        """The fields as a plain dictionary."""
        return asdict(self)
