"""The training loop: batches, steps, and what can be watched while it runs."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .data import Row, batch
from .errors import DeviceError, TrainingError
from .model import GPT
from .optimizer import AdamW, Schedule


@dataclass(frozen=True)
class Step:
    """One step of training. loss, norm and speed are read only at logged steps, else None.

    loss: in nats; norm: of the whole gradient before clipping; rate: the learning rate; speed: in
    tokens that count for the loss, per second, since the last logged step.
    """

    step: int
    rate: float
    loss: float | None = None
    norm: float | None = None
    speed: float | None = None


class Batches:
    """The batch of every step, decided by the seed and the step number alone.

    sources: lists of rows; each step takes at most `size` rows of every source. A source that is
    not larger is taken whole and in order, otherwise rows are drawn anew for each step. So a run
    that is resumed sees the same batches without keeping a generator's state.
    """

    def __init__(self, sources: Sequence[list[Row]], size: int, pad_id: int, seed: int = 0):
        if size < 1:
            raise TrainingError(f"batch_size {size} is not possible; choose 1 or more.")
        self.sources, self.size, self.pad_id, self.seed = sources, size, pad_id, seed
        fixed = all(len(rows) <= size for rows in sources)
        self._only = batch([row for rows in sources for row in rows], pad_id) if fixed else None

    def __call__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets (B, T) of a step, counted from 1."""
        if self._only:
            return self._only
        rng = np.random.default_rng([self.seed, step])
        rows = []
        for source in self.sources:
            count = min(self.size, len(source))
            rows += [source[i] for i in rng.choice(len(source), count, replace=False)]
        return batch(rows, self.pad_id)


def train_steps(
    model: GPT,
    optimizer: AdamW,
    batches: Callable[[int], tuple[np.ndarray, np.ndarray]],
    schedule: Schedule,
    *,
    first: int = 1,
    log_every: int = 10,
    gradient: Callable | None = None,
) -> Iterator[Step]:
    """Makes the steps first .. schedule.steps one by one and yields each when it is on its way.

    The device works on while the next step is prepared; it is waited for only at logged steps:
    number 1, every log_every-th and the last. Raises TrainingError there when a loss or gradient
    was not finite; the weights are then those before that step. A DeviceError, when memory runs
    out in a step, leaves weights and moments as they were before it as well.
    gradient: what takes the place of loss_and_gradient, as in `parallel.py`.
    """
    start, tokens = time.perf_counter(), 0
    for step in range(first, schedule.steps + 1):
        ids, targets = batches(step)
        rate = schedule.at(step)
        status = _make_step(model, optimizer, ids, targets, rate, gradient or loss_and_gradient)
        tokens += int((targets >= 0).sum())
        if step % log_every and step not in (1, schedule.steps):
            yield Step(step, rate)
            continue
        value, norm = check_finite(model, status)
        now = time.perf_counter()
        yield Step(step, rate, value, norm, tokens / (now - start))
        start, tokens = now, 0


def loss_and_gradient(model: GPT, ids: np.ndarray, targets: np.ndarray):
    """The mean loss (1,) of a batch on the engine; the model's `gradients` are then those of it."""
    loss = model.loss(ids, targets)
    model.backward()
    return loss


def _make_step(model, optimizer, ids, targets, rate, gradient):
    try:
        with np.errstate(all="ignore"):  # what is not finite is found in the status
            return optimizer.step(gradient(model, ids, targets), rate)
    except DeviceError:
        model.forget()  # so that a smaller batch finds room in this process
        raise


def check_finite(model: GPT, status) -> tuple[float, float]:
    """The loss and the gradient's norm of the last step; waits for the device.

    status: what AdamW.step() gave. Raises TrainingError, which names the step and a tensor, when
    the loss or a gradient of this step or an earlier one was not finite.
    """
    norm, _, finite, loss, step = (float(x) for x in model.engine.to_host(status))
    if finite:
        return loss, norm
    groups = {"the weights": model.parameters, "the gradient of": model.gradients}
    damaged = [
        f"{kind} {name}"
        for kind, tensors in groups.items()
        for name, tensor in tensors.items()
        if not np.isfinite(model.engine.to_host(tensor)).all()
    ]
    where = f", first in {damaged[0]}" if damaged else ""
    raise TrainingError(
        f"the loss ({loss}) or the gradient's norm ({norm}) stopped being a number at step "
        f"{step:.0f}{where}; no weight was changed from that step on; choose a smaller learning "
        "rate."
    )
