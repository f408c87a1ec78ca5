"""A model of odd sizes, a batch for it, and what rounding may do on the way through it and back."""

import numpy as np

from llmcl.check import compare
from llmcl.config import Config
from llmcl.model import GPT
from llmcl.reference.bounds import U

CONFIG = Config(vocab_size=37, context_length=33, d_model=15, n_heads=3, n_layers=2, d_ff=22)


def random_weights(config: Config = CONFIG, seed: int = 1) -> dict[str, np.ndarray]:
    """Weights of ordinary size everywhere, biases and norms too, so that nothing cancels unseen."""
    rng = np.random.default_rng(seed)
    return {
        name: (0.25 * rng.normal(size=shape) + name.endswith("norm.weight")).astype(np.float32)
        for name, shape in config.parameter_shapes().items()
    }


def make_model(engine, config: Config = CONFIG, seed: int = 1) -> GPT:
    """A model with random weights on an engine."""
    model = GPT(config, engine)
    model.load_weights(random_weights(config, seed))
    return model


def make_batch(rows: int = 3, length: int = 11, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and targets; some targets do not count, and token 36 never occurs."""
    rng = np.random.default_rng(seed)
    ids, targets = rng.integers(0, 36, (rows, length)), rng.integers(-1, 36, (rows, length))
    targets[:, -1] = 5
    return ids, targets


def loss_and_gradients(model: GPT, ids, targets) -> tuple[float, dict[str, np.ndarray]]:
    """The loss of a batch, and every gradient by name."""
    loss = model.loss(ids, targets)
    model.backward()
    gradients = {name: model.engine.to_host(g) for name, g in model.gradients.items()}
    return float(model.engine.to_host(loss)[0]), gradients


def rounding_of_a_pass(config: Config, rows: int, length: int) -> float:
    """The error, as a share of the largest element, that float32 may make forward and backward.

    U times the lengths of all sums that a number passes on its way: the rule of reference.bounds,
    applied to magnitudes that are taken as equal within a tensor.
    """
    c, f, d = config.d_model, config.d_ff, config.d_head
    block = c + d + length + c + c + f + 2 * c
    there_and_back = 2 * (config.n_layers * block + c + config.vocab_size)
    return (there_and_back + rows * length) * U


def assert_gradients_agree(got, want, share) -> None:
    """Fails unless every tensor agrees within `share` of its largest element."""
    assert got.keys() == want.keys()
    for name in want:
        comparison = compare(got[name], want[name], share * np.abs(want[name]).max())
        assert comparison.ok, f"{name}: {comparison}"
