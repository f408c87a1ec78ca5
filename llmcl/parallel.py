"""Data-parallel training over MPI: several processes, rows of its own for each, one gradient.

`mpiexec -n 4 llmcl train --out DIR` starts four processes, which MPI calls ranks. All hold the
whole model. In each step they build the same batch from the seed and the step's number, and rank r
takes the rows r, r + 4, r + 8 …. The gradient of the whole batch is the sum of theirs, each weighed
by its share of the targets; one all-reduce adds them up and gives the sum to all. From there on
every rank makes the same step, so that nothing else has to be sent.

Rank 0 alone reads and writes the folder, and talks. Without a launcher nothing here is used, and
mpi4py is not imported.
"""

import atexit
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np

from . import pipeline
from .engine import get_engine
from .errors import DataError, LlmclError, TrainingError
from .pipeline import Run, Stopped, own_folder
from .progress import Progress

# How launchers tell a process its number and the count: MPICH, Intel, Microsoft; Open MPI; Slurm.
_LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_STEP_NUM_TASKS"),
)
PATIENCE = 3.0  # seconds that the others leave rank 0 to say what may be wrong with all
_PASSED_ON = 1.0  # seconds in which the launcher passes on the last words, before it ends all
_NAP = 0.01  # seconds between two looks, while rank 0 does something alone
# The witness: it outlives what the launcher ends, and speaks if rank 0 never wrote to it.
_WITNESS = """
import sys
if not sys.stdin.buffer.read(1):
    sys.stderr.buffer.write(sys.argv[1].encode("utf-8", "replace") + b"\\n")
"""


def launched() -> tuple[int, int]:
    """(rank, number of processes), as an MPI launcher has told this process; (0, 1) without one."""
    for rank, size in _LAUNCHERS:
        found = os.environ.get(rank, ""), os.environ.get(size, "")
        if all(text.isdecimal() for text in found):
            return int(found[0]), int(found[1])
    return 0, 1


def join() -> "Team | None":
    """The team of processes that this one belongs to, or None where it was started alone.

    Raises TrainingError, in rank 0 only, when a launcher started several that cannot find together;
    the others end without a word.
    """
    rank, size = launched()
    if size < 2:
        return None
    try:
        return Team(size)
    except TrainingError:
        if rank == 0:
            raise
        time.sleep(PATIENCE)  # some launchers end rank 0 as soon as another one has failed
        raise SystemExit(2) from None


def _import_mpi(size: int):
    try:
        from mpi4py import MPI
    except Exception as error:  # without an MPI library it raises RuntimeError
        raise TrainingError(
            f"the launcher started {size} processes, but mpi4py cannot be used ({error}); install "
            "it with `pip install 'llmcl[mpi]'`, or start llmcl without the launcher."
        ) from error
    # What ranks tell each other is JSON, so that nothing of it can be run.
    choose = MPI.pickle.__init__  # type: ignore[misc]  # mpi4py's own way to take another one
    choose(_to_bytes, lambda data: json.loads(bytes(data)))
    return MPI


def _to_bytes(value) -> bytes:
    return json.dumps(value).encode("ascii")


class Team:
    """The processes of one training: who this one is, and what they do together.

    rank: from 0; size: how many; lead: whether this is rank 0; place: its number among the ranks of
    this machine. stop: whether any rank wanted to stop when the last gradient was made.
    """

    def __init__(self, size: int = 1):
        self._mpi = MPI = _import_mpi(size)
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        if self.size != size:
            raise TrainingError(
                f"the launcher started {size} processes, but mpi4py, which uses "
                f"{MPI.Get_library_version().splitlines()[0].strip()}, sees {self.size}; "
                "use the mpiexec that belongs to it."
            )
        self.lead = self.rank == 0
        self.place = self.comm.Split_type(MPI.COMM_TYPE_SHARED).rank
        self.stop = False
        self._story = ""
        atexit.register(self._abort_if_failed)

    # ---- what is sent ----

    def gradient(self, model, ids, targets, stop: bool = False):
        """The mean loss (1,) of the whole batch; the gradient of it is then in the model.

        ids, targets: NumPy (B, T), the same in all ranks. The mean over all N targets is the sum of
        the ranks' means, each times n / N, where n is how many targets the rank's own rows have.
        """
        own = slice(self.rank, None, self.size)
        count, total = int((targets[own] >= 0).sum()), int((targets >= 0).sum())
        flat = model.flat_gradients
        # The gradient, and behind it the loss and the wish to stop; zeros without own targets.
        sent = np.zeros(sum(whole.size for whole in flat) + 2, model.engine.dtype)
        parts = np.split(sent[:-2], np.cumsum([whole.size for whole in flat])[:-1])
        if count or not total:
            loss = model.loss(ids[own], targets[own])
            model.backward()
            for part, whole in zip(parts, flat, strict=True):
                part[:] = model.engine.to_host(whole).reshape(-1)
            sent[-2] = model.engine.to_host(loss)[0]
        sent *= sent.dtype.type(count / total)
        sent[-1] = stop
        self.add_up(sent)
        self.stop = bool(sent[-1] > 0)
        for part, whole in zip(parts, flat, strict=True):
            model.engine.write(whole, part.reshape(whole.shape))
        return model.engine.from_host(sent[-2:-1])

    def add_up(self, numbers: np.ndarray) -> None:
        """Puts the sum over all ranks into each rank's array, the same bits in all of them."""
        request = self.comm.Iallreduce(self._mpi.IN_PLACE, numbers)
        while not request.Test():
            time.sleep(0)  # lets another rank have the core, where they share one

    def tell(self, value):
        """Rank 0's value, in every rank; it must be what JSON can hold."""
        self.wait()
        return self.comm.bcast(value)

    def align(self, model, optimizer) -> None:
        """Gives every rank the weights and moments of rank 0, to the bit.

        Equal devices have them equal anyway; unlike ones round otherwise and would drift apart.
        """
        self.wait()
        for tensors in (model.flat_parameters, optimizer.flat_m, optimizer.flat_v):
            for tensor in tensors:
                host = model.engine.to_host(tensor)
                self.comm.Bcast(host)
                if not self.lead:
                    model.engine.write(tensor, host)

    def wait(self) -> None:
        """Waits until all ranks are here, without keeping a core busy as MPI itself would."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(_NAP)

    # ---- its device ----

    def engine(self, wanted: str | None = None):
        """An engine on a device of this rank's own, where the machine has several of one kind.

        wanted: as for llmcl.engine.get_engine; words that mean several devices deal them out.
        Raises DeviceError when there is none.
        """
        wanted = os.environ.get("LLMCL_DEVICE") or None if wanted is None else wanted
        if str(wanted).strip().lower().startswith("numpy"):
            return get_engine(wanted)
        from .device import list_devices, try_device
        from .ranking import find

        devices = list_devices()
        left = [info for info in devices if info.kind != "simulator"]
        if wanted is not None and devices:
            left = find(devices, wanted)
        while left:
            alike = [i for i in left if (i.platform, i.kind) == (left[0].platform, left[0].kind)]
            usable = [info for info in alike if try_device(info).ok]
            if usable:
                return get_engine(usable[self.place % len(usable)].index)
            left = [info for info in left if info not in alike]
        return get_engine(wanted)  # which says what is wrong

    # ---- when one fails ----

    @contextmanager
    def whole(self, out: Path) -> Iterator[None]:
        """What ends in an error inside ends all ranks with a sentence; so does a killed process.

        The error goes on its way, so that the caller can print it; the ranks are ended when this
        process is.
        """
        story = (
            f"llmcl: one of the {self.size} processes ended, so all were stopped; what was stored "
            f"in {out} is whole, and --resume goes on from it."
        )
        witness = self._witness(story) if self.lead else None
        try:
            yield
        except Stopped:
            self.wait()  # a launcher may end all when one has ended without success
            raise
        except BaseException as error:
            self._story = story
            if not self.lead:
                time.sleep(PATIENCE)  # rank 0 may have met the same, and says it once for all
                if isinstance(error, LlmclError):
                    raise TrainingError(
                        f"process {self.rank + 1} of {self.size}: {error}"
                    ) from error
            raise
        finally:
            if witness:
                witness.communicate(b".")

    def _witness(self, story: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WITNESS, story],
            stdin=subprocess.PIPE,
            start_new_session=True,  # the launcher ends rank 0's own session
        )

    def _abort_if_failed(self) -> None:
        if self._story:
            if not self.lead:  # what rank 0 has said is about all
                print(self._story, file=sys.stderr)
            sys.stderr.flush()
            time.sleep(_PASSED_ON)
            self.comm.Abort(2)


class Silent(Progress):
    """What the ranks behind 0 tell: nothing. A wish to stop is heard all the same."""

    def message(self, text: str) -> None:
        """Says nothing; rank 0 says it."""


class SharedRun(Run):
    """A Run of several processes, of which rank 0 alone reads and writes the folder."""

    def __init__(self, team: Team, *args):
        super().__init__(*args)
        self.team = team
        facts = team.comm.allgather(self.facts)
        other = next((rank for rank in range(team.size) if facts[rank] != facts[0]), None)
        if other is not None:
            raise DataError(
                f"process {other + 1} of {team.size} has other settings or texts than the first; "
                "give all of them the same options and files."
            )
        devices = Counter(team.comm.allgather(super().environment()["device"]))
        self._devices = "; ".join(f"{count} x {name}" for name, count in devices.items())

    def environment(self) -> dict:
        return super().environment() | {"device": self._devices}

    def gradient(self, model, ids, targets):
        return self.team.gradient(model, ids, targets, self.listener.stop_wanted())

    def unfinished(self, resume, restart):
        last = super().unfinished(resume, restart) if self.team.lead else None
        self.results = self.team.tell(self.results)
        return last

    def _begin(self, stage, last, optimizer):
        state = super()._begin(stage, last, optimizer) if self.team.lead else None
        state = self.team.tell(state)
        self.team.align(self.model, optimizer)
        optimizer.steps = state["step"]
        return state

    def _stop_wanted(self):
        return self.team.stop

    def _keep(self, state, optimizer, every):
        if state["step"] % every == 0:
            self.team.align(self.model, optimizer)
        super()._keep(state, optimizer, every)

    def _finish_stage(self, stage):
        if self.team.lead:
            super()._finish_stage(stage)

    def _save(self, *args):
        if self.team.lead:
            super()._save(*args)

    def _export(self):
        metrics = super()._export() if self.team.lead else {}
        self.team.wait()
        return metrics


def train_to_gguf(team: Team, out: str | os.PathLike, settings, engine, **options) -> dict:
    """As llmcl.pipeline.train_to_gguf, by all processes of a team; {} but in rank 0."""
    begin, enter = partial(SharedRun, team), own_folder if team.lead else nullcontext
    return pipeline.train_to_gguf(out, settings, engine, begin=begin, enter=enter, **options)
