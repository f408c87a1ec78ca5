"""The GPT: embedding, blocks, a last norm, and an output head tied to the embedding."""

import numpy as np

from .config import Config
from .errors import CheckpointError, DataError
from .layers import Block, Embedding, Head, LayerNorm


def decays(name: str) -> bool:
    """Whether weight decay acts on a parameter: on matrices, not on norms, biases or positions."""
    return name.endswith(".weight") and "norm" not in name and name != "position_embd.weight"


class GPT:
    """A GPT-2-style decoder on an engine (Radford et al. 2019): pre-norm, learned positions.

    engine: llmcl.ops.Engine or llmcl.reference.Engine. The parameters start at zero; call
    initialize(seed) or load_weights(weights).
    """

    def __init__(self, config: Config, engine):
        self.config = config
        self.engine = engine
        shapes = config.parameter_shapes()
        # Those that decay stand first, so that one number tells AdamW where decay ends.
        self.names = sorted(shapes, key=lambda name: not decays(name))
        ordered = {name: shapes[name] for name in self.names}
        self.flat_parameters, self.parameters = engine.flat(ordered)
        self.flat_gradients, self.gradients = engine.flat(ordered)
        self._build_layers()

    def _build_layers(self):
        c = self.config
        own = self.engine, self.parameters, self.gradients
        self.embedding = Embedding(*own)
        self.blocks = [
            Block(*own, f"blk.{i}.", c.n_heads, c.layer_norm_epsilon) for i in range(c.n_layers)
        ]
        self.output_norm = LayerNorm(*own, "output_norm.", c.layer_norm_epsilon)
        self.head = Head(*own)

    # ---- weights ----

    def initialize(self, seed: int) -> None:
        """Random weights: normal with deviation 0.02, norms at one, biases at zero.

        The two layers of each block that end in a sum start smaller by sqrt(2 n_layers), so that
        the sum does not grow with depth (Radford et al. 2019, section 2.3).
        """
        rng = np.random.default_rng(seed)
        weights = {}
        for name, shape in self.config.parameter_shapes().items():
            if name.endswith("norm.weight"):
                weights[name] = np.ones(shape)
            elif name.endswith(".bias"):
                weights[name] = np.zeros(shape)
            else:
                into_sum = name.endswith(("attn_output.weight", "ffn_down.weight"))
                deviation = 0.02 / (np.sqrt(2 * self.config.n_layers) if into_sum else 1)
                weights[name] = rng.normal(0, deviation, size=shape)
        self.load_weights(weights)

    def weights(self) -> dict[str, np.ndarray]:
        """A copy of every parameter by name, in our (in, out) layout."""
        return {name: self.engine.to_host(tensor) for name, tensor in self.parameters.items()}

    def load_weights(self, weights: dict[str, np.ndarray]) -> None:
        """Takes over every parameter; raises CheckpointError when a name or a shape differs."""
        shapes = self.config.parameter_shapes()
        missing, extra = sorted(shapes.keys() - weights), sorted(weights.keys() - shapes)
        if missing or extra:
            raise CheckpointError(
                f"the weights do not fit this model: missing {missing or 'none'}, "
                f"unknown {extra or 'none'}; use the configuration that they were saved with."
            )
        for name, shape in shapes.items():
            if weights[name].shape != shape:
                raise CheckpointError(
                    f"{name} has the shape {weights[name].shape}, the model needs {shape}; "
                    "use the configuration that the weights were saved with."
                )
        for name, array in weights.items():
            self.engine.write(self.parameters[name], array)

    # ---- forward and backward ----

    def forward(self, ids, caches=None, first: int = 0):
        """Logits (B, T, V) on the engine for ids (B, T), a NumPy array of whole numbers.

        caches: new_caches(), to compute only the places from `first` on and reuse the earlier ones.
        Raises DataError for an id outside the vocabulary or a text longer than the context.
        """
        x = self.embedding.forward(self.engine.from_host(ids), first)
        for i, block in enumerate(self.blocks):
            x = block.forward(x, caches[i] if caches else None, first)
        return self.head.forward(self.output_norm.forward(x))

    def loss(self, ids, targets):
        """The mean cross-entropy (1,) on the engine, in nats, over the targets that are not -1.

        ids, targets: NumPy (B, T). backward() may follow.
        """
        logits = self.forward(ids)
        wanted = self.engine.from_host(targets)
        value, log_sum = self.engine.cross_entropy(logits, wanted)
        self._saved = (logits, wanted, log_sum)
        return value

    def backward(self) -> None:
        """Writes the gradient of the last loss() into `gradients`."""
        for whole in self.flat_gradients:
            self.engine.fill(whole, 0.0)
        dx = self.head.backward(self.engine.cross_entropy_backward(*self._saved))
        dx = self.output_norm.backward(dx)
        for block in reversed(self.blocks):
            dx = block.backward(dx)
        self.embedding.backward(dx)

    def forget(self) -> None:
        """Lets go of what the last forward pass kept for backward(), to make room."""
        self._saved = ()
        for layer in (self.embedding, *self.blocks, self.output_norm, self.head):
            layer.forget()

    def new_caches(self) -> list:
        """For each block an empty cache of queries, keys and values, (1, context_length, 3C)."""
        shape = (1, self.config.context_length, 3 * self.config.d_model)
        return [self.engine.zeros(shape) for _ in self.blocks]

    def check_length(self, count: int) -> None:
        """Raises DataError when `count` tokens do not fit into the context."""
        if count > self.config.context_length:
            raise DataError(
                f"{count} tokens do not fit into this model's context of "
                f"{self.config.context_length}; give a shorter text."
            )
