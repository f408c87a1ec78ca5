"""The sizes of a model."""

from dataclasses import asdict, dataclass, fields

from .errors import ConfigError, shown


@dataclass(frozen=True)
class Config:
    """The sizes of a GPT-2-style decoder; raises ConfigError when they contradict each other.

    The defaults are the workbook's own model: its Q8_0 file stays below 442,000 bytes.
    """

    vocab_size: int = 512
    context_length: int = 256
    d_model: int = 96
    n_heads: int = 3
    n_layers: int = 2
    d_ff: int = 384
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            wanted = (int, float) if field.type is float else int
            if not isinstance(value, wanted) or isinstance(value, bool) or not 0 < value < 2**31:
                kind = "number" if field.type is float else "whole number"
                raise ConfigError(
                    f"{field.name} is {shown(value)}; it must be a {kind} above zero."
                )
        if self.d_model % self.n_heads:
            fits = [h for h in range(1, 17) if self.d_model % h == 0]
            raise ConfigError(
                f"d_model {self.d_model} cannot be split into n_heads {self.n_heads} equal heads; "
                f"choose n_heads from {fits}, or another d_model."
            )

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.n_heads

    def to_dict(self) -> dict:
        """The fields as a plain dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "Config":
        """A Config from to_dict()'s dictionary; ConfigError for unknown or missing fields."""
        names = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or sorted(values) != sorted(names):
            raise ConfigError(f"a configuration needs the fields {names}, and has {shown(values)}.")
        return cls(**values)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The name and shape of every parameter, in the order of the forward pass.

        Names are llama.cpp's; matrices lie (in, out), so that y = x @ W + b.
        """
        c, f = self.d_model, self.d_ff
        shapes: dict[str, tuple[int, ...]] = {
            "token_embd.weight": (self.vocab_size, c),
            "position_embd.weight": (self.context_length, c),
        }
        for i in range(self.n_layers):
            block: dict[str, tuple[int, ...]] = {
                "attn_norm.weight": (c,), "attn_norm.bias": (c,),
                "attn_qkv.weight": (c, 3 * c), "attn_qkv.bias": (3 * c,),
                "attn_output.weight": (c, c), "attn_output.bias": (c,),
                "ffn_norm.weight": (c,), "ffn_norm.bias": (c,),
                "ffn_up.weight": (c, f), "ffn_up.bias": (f,),
                "ffn_down.weight": (f, c), "ffn_down.bias": (c,),
            }  # fmt: skip
            shapes |= {f"blk.{i}.{name}": shape for name, shape in block.items()}
        return shapes | {"output_norm.weight": (c,), "output_norm.bias": (c,)}

    def parameter_count(self) -> int:
        """How many numbers the model learns."""
        total = 0
        for shape in self.parameter_shapes().values():
            size = 1
            for n in shape:
                size *= n
            total += size
        return total
