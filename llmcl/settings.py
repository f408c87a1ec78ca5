"""Everything that decides what a training run gives, besides the texts and the device."""

from dataclasses import asdict, dataclass, fields

from .config import Config
from .errors import ConfigError
from .optimizer import Schedule

STAGES = ("pretrain", "tune_without_mixing", "tune")


@dataclass(frozen=True)
class Settings:
    """The settings of a run; raises ConfigError when one is not possible.

    Rates are the highest of each stage's schedule; batch_size is rows of each kind in a step;
    tokenizer is "bpe" or "words"; dtype is the type of the matrices in the GGUF file.
    """

    seed: int = 0
    tokenizer: str = "bpe"
    vocab_size: int = 512
    context_length: int = 256
    d_model: int = 96
    n_heads: int = 3
    n_layers: int = 2
    d_ff: int = 384
    pretrain_steps: int = 150
    tune_steps: int = 120
    batch_size: int = 64
    pretrain_rate: float = 3e-3
    tune_rate: float = 1e-3
    dtype: str = "Q8_0"

    def __post_init__(self):
        for name, choices in {"tokenizer": ("bpe", "words"), "dtype": ("F32", "F16", "Q8_0")}.items():
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"{name} {getattr(self, name)!r} is unknown; choose {', '.join(choices)}."
                )
        if not 0 <= self.seed < 2**63 or self.batch_size < 1:
            raise ConfigError(
                f"seed {self.seed} and batch_size {self.batch_size} are not possible; "
                "choose a seed of 0 or more and a batch_size of 1 or more."
            )
        self.config(self.vocab_size)
        for stage in STAGES:
            self.schedule(stage)

    def config(self, vocab_size: int) -> Config:
        """The model's sizes for a tokenizer of vocab_size tokens."""
        own = {field.name: getattr(self, field.name, None) for field in fields(Config)}
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
