"""AdamW over the whole model, with clipping by the global norm and a schedule of the rate."""

import math
from dataclasses import asdict, dataclass

from .errors import CheckpointError, ConfigError
from .layout import layout
from .model import GPT, decays


@dataclass(frozen=True)
class Schedule:
    """The learning rate over a run: a linear warm-up, then half a cosine down to `floor`.

    rate: the highest rate; steps: the length of the run; warmup: steps until the highest rate;
    floor: what remains at the end, as a share of `rate`. Loshchilov and Hutter 2017 (SGDR).
    """

    rate: float
    steps: int
    warmup: int = 10
    floor: float = 0.1

    def __post_init__(self):
        if not (self.rate > 0 and self.steps > 0 and self.warmup >= 0 and 0 <= self.floor <= 1):
            raise ConfigError(
                f"a schedule of rate {self.rate}, steps {self.steps}, warmup {self.warmup} and "
                f"floor {self.floor} is not possible; rate and steps must be above zero, "
                "floor between 0 and 1."
            )

    def at(self, step: int) -> float:
        """The rate of a step, counted from 1."""
        if step <= self.warmup:
            return self.rate * step / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        return self.rate * (self.floor + (1 - self.floor) * cosine)


@dataclass(frozen=True)
class AdamWSettings:
    """What AdamW needs besides the rate; max_norm is the limit of the gradient's global norm."""

    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    decay: float = 0.01
    max_norm: float = 1.0

    def __post_init__(self):
        betas = 0 <= self.beta1 < 1 and 0 <= self.beta2 < 1
        if not (betas and 0 < self.epsilon < math.inf and 0 <= self.decay < math.inf):
            raise ConfigError(
                f"AdamW with beta1 {self.beta1}, beta2 {self.beta2}, epsilon {self.epsilon} and "
                f"decay {self.decay} is not possible; the betas must be 0 or more and below 1, "
                "epsilon above zero, decay 0 or more."
            )
        if not self.max_norm > 0:
            raise ConfigError(f"max_norm {self.max_norm} is not possible; choose one above zero.")

    def to_dict(self) -> dict:
        """The fields as a plain dictionary."""
        return asdict(self)


class AdamW:
    """The moments of every parameter and the number of steps made."""

    def __init__(self, model: GPT, settings: AdamWSettings = AdamWSettings()):
        self.model = model
        self.settings = settings
        shapes = {name: model.parameters[name].shape for name in model.names}
        self.flat_m, self.m = model.engine.flat(shapes)
        self.flat_v, self.v = model.engine.flat(shapes)
        self.steps = 0
        self.status = None
        self._n_decay = self._decaying(shapes)

    def _decaying(self, shapes):
        """For each flat tensor, how many of its first elements decay."""
        if self.model.engine.exact:  # one tensor for each parameter
            return [math.prod(s) if decays(name) else 0 for name, s in shapes.items()]
        starts, _ = layout(shapes)
        return [min(start for name, start in starts.items() if not decays(name))]

    def step(self, loss, rate: float):
        """Changes every parameter by one AdamW step; returns status (5,) on the engine.

        loss: the tensor of the loss. status is [norm, clip, finite, loss, bad step]: from the first
        step on whose loss or gradient is not finite, nothing is changed any more. Nothing is read
        back here.
        """
        engine, s, step = self.model.engine, self.settings, self.steps + 1
        status = engine.global_norm(self.model.flat_gradients, loss, s.max_norm, step, self.status)
        groups = zip(
            self.model.flat_parameters, self.model.flat_gradients, self.flat_m, self.flat_v,
            self._n_decay, strict=True,
        )  # fmt: skip
        for w, grad, m, v, n_decay in groups:
            engine.adamw(
                w, grad, m, v, status, rate=rate, beta1=s.beta1, beta2=s.beta2,
                epsilon=s.epsilon, decay=s.decay, step=step, n_decay=n_decay,
            )  # fmt: skip
        # Only now: when memory ran out above, this step was not made and may be made again.
        self.steps, self.status = step, status
        return status

    def moments(self) -> tuple[dict, dict]:
        """Copies of m and v as NumPy arrays by parameter name."""
        to_host = self.model.engine.to_host
        m = {name: to_host(tensor) for name, tensor in self.m.items()}
        return m, {name: to_host(tensor) for name, tensor in self.v.items()}

    def load_moments(self, m: dict, v: dict, steps: int) -> None:
        """Takes over what moments() gave after `steps` steps."""
        if not m or not v:
            raise CheckpointError(
                "the checkpoint has no moments of AdamW, so training cannot go on from it; "
                "use the checkpoint of a run that was interrupted."
            )
        for name in self.m:
            self.model.engine.write(self.m[name], m[name])
            self.model.engine.write(self.v[name], v[name])
        self.steps = steps
