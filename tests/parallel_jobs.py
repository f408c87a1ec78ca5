"""What tests/test_parallel.py starts under mpiexec: `python parallel_jobs.py JOB …`.

Each job runs in every rank; rank 0 prints a line of JSON where there is something to tell.
"""

import json
import os
import signal
import sys

import numpy as np

from llmcl import parallel
from llmcl.cli import main
from llmcl.config import Config
from llmcl.data import IGNORED
from llmcl.errors import DataError
from llmcl.model import GPT
from llmcl.optimizer import AdamW
from llmcl.pipeline import Listener
from llmcl.reference import Engine
from llmcl.train import loss_and_gradient

CONFIG = Config(vocab_size=31, context_length=16, d_model=12, n_heads=2, n_layers=1, d_ff=20)


def _batch(rows: int):
    """Rows with 1 to 11 targets, so that no two ranks have equally many."""
    rng = np.random.default_rng(rows)
    ids, targets = rng.integers(0, 31, (2, rows, 11))
    for row in range(rows):
        targets[row, 1 + 3 * row % 11 :] = IGNORED
    return ids, targets


def gradients():
    """The largest difference from one process, for batches of several sizes, in float64."""
    team, found = parallel.Team(parallel.launched()[1]), {}
    for rows in (1, 2, 5, 7):
        models = [GPT(CONFIG, Engine()) for _ in range(2)]
        for model in models:
            model.initialize(1)
        losses = [
            loss_and_gradient(models[0], *_batch(rows)),
            team.gradient(models[1], *_batch(rows)),
        ]
        flat = [model.flat_gradients[0] for model in models]
        found[rows] = [float(np.abs(a - b).max()) for a, b in (losses, flat)]
    _tell(team, found)


def statuses():
    """For each rank its status, with a NaN that only the last rank has met."""
    team, model = parallel.Team(parallel.launched()[1]), GPT(CONFIG, Engine(np.float32))
    model.initialize(1)
    optimizer, found = AdamW(model), []
    for damaged in (False, True):
        if damaged and team.rank == team.size - 1:
            model.parameters["output_norm.bias"][:] = np.nan
        with np.errstate(all="ignore"):
            status = optimizer.step(team.gradient(model, *_batch(5)), 1e-3)
        found.append(team.comm.allgather([float(x) for x in status]))
    _tell(team, found)


def aligned():
    """Whether the weights and moments that rank 1 changed are rank 0's again."""
    team, model = parallel.Team(parallel.launched()[1]), GPT(CONFIG, Engine(np.float32))
    model.initialize(team.rank)
    optimizer = AdamW(model)
    optimizer.flat_m[0][:], optimizer.flat_v[0][:] = team.rank, team.rank
    team.align(model, optimizer)
    own = [model.flat_parameters[0], optimizer.flat_m[0], optimizer.flat_v[0]]
    sums = team.comm.allgather([float(np.abs(array).sum()) for array in own])
    first = GPT(CONFIG, Engine(np.float32))
    first.initialize(0)
    _tell(team, [sums, float(np.abs(first.flat_parameters[0]).sum())])


class _Acts(Listener):
    """At a step of the first stage, one rank does something."""

    def __init__(self, team, act, at: int):
        self.team, self.act, self.at, self.stop, self.made = team, act, at, False, 0

    def step(self, step):
        self.made += 1
        if self.made == self.at and self.team.rank == self.team.size - 1:
            self.stop = self.act == "stop"
            if self.act == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.act == "bug":
                raise ZeroDivisionError("a mistake in the program")
            if self.act == "error":
                raise DataError("this one is not possible; choose another.")

    def stop_wanted(self):
        return self.stop


def run(act: str, at: str, out: str, *options: str):
    """`llmcl train --out OUT OPTIONS` with a listener that acts in the last rank."""
    parallel.PATIENCE = 0.5
    team = parallel.join()

    def with_listener(team, *args, listener, **more):
        return whole(team, *args, listener=_Acts(team, act, int(at)), **more)

    parallel.join, whole = lambda: team, parallel.train_to_gguf
    parallel.train_to_gguf = with_listener
    sys.exit(main(["train", "--out", out, *options]))


def unlike(out: str, *options: str):
    """Rank 1 is given other settings than rank 0."""
    parallel.PATIENCE = 5.0
    rank = parallel.launched()[0]
    sys.exit(main(["train", "--out", out, *options, "--seed", str(rank)]))


def apart(out: str, *options: str):
    """Each rank has a folder of its own, as on machines that share no disk."""
    rank = parallel.launched()[0]
    sys.exit(main(["train", "--out", f"{out}/{rank}", *options]))


def _tell(team, value):
    if team.lead:
        print(json.dumps(value))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
