"""How long a step of data-parallel training takes: a model of the cost, and what is measured.

With n ranks a step takes

    t(n) = turns · (compute / n + fixed + 2 (n - 1) · latency + 2 (n - 1) / n · bytes / bandwidth)

compute is the work on the rows, which the ranks share; fixed is what each does whatever its rows
are, such as the optimizer. The last two are the all-reduce as a ring: 2 (n - 1) messages one after
the other, in which each rank sends 2 (n - 1) / n times the gradient's bytes. turns is n / cores
where the ranks are more than the cores they share, else 1 (Patarasuk and Yuan 2009, section 3).
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import TrainingError

ROWS = 24  # texts in a step that is measured; 1, 2, 3 and 4 divide it
LENGTH = 32  # tokens of each
STEPS = 12  # timed ones; the median counts
RANK = "--rank"  # tells a process that measure() has started it
# One of them speaks, as two at once may write into each other's line.
_TRIAL = """
from mpi4py import MPI
found = MPI.COMM_WORLD.allreduce(1)
if MPI.COMM_WORLD.rank == 0:
    print(found)
"""
# A rank is to have one core for itself, as if it were a machine.
ONE_THREAD = dict.fromkeys(
    ("POCL_MAX_PTHREAD_COUNT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
)


@dataclass(frozen=True)
class Cost:
    """What a step costs. compute, fixed, latency: seconds; bandwidth: bytes a second.

    bytes: of the gradient. cores: how many the ranks share, or None where each has its own machine.
    """

    compute: float
    fixed: float
    latency: float
    bandwidth: float
    bytes: int
    cores: int | None = None

    def parts(self, n: int) -> dict[str, float]:
        """The seconds of a step of n ranks, by what they go to."""
        turns = max(1.0, n / self.cores) if self.cores else 1.0
        return {
            "compute": turns * self.compute / n,
            "fixed": turns * self.fixed,
            "latency": turns * 2 * (n - 1) * self.latency,
            "carrying": turns * 2 * (n - 1) / n * self.bytes / self.bandwidth,
        }

    def seconds(self, n: int) -> float:
        """The seconds of a step of n ranks."""
        return sum(self.parts(n).values())

    def speedup(self, n: int) -> float:
        """How many times as fast n ranks are as one."""
        return self.seconds(1) / self.seconds(n)


def fit(one: dict, two: dict, cores: int | None = None) -> Cost:
    """The Cost that measure(1) and measure(2) tell of.

    One rank tells compute and fixed, from a whole batch and a half; two tell latency and bandwidth,
    from a short and a long all-reduce.
    """
    whole, half = one["step"], one["half"]
    compute = min(whole, max(0.0, 2 * (whole - half)))
    carried = max(1e-9, two["long"] - two["short"])  # seconds for the gradient's bytes, once
    return Cost(
        compute, whole - compute, two["short"] / 2, two["bytes"] / carried, two["bytes"], cores
    )


# ---- measuring ----


def launcher() -> str | None:
    """The path of mpiexec: the one beside this Python, else the first that the system finds."""
    # Intel's wheel for Windows puts it into the second.
    beside = Path(sys.executable).parent, Path(sys.prefix, "Library", "bin")
    found = (shutil.which("mpiexec", path=str(folder)) for folder in beside)
    return next(filter(None, found), None) or shutil.which("mpiexec")


def start(ranks: int, *arguments: str, seconds: float = 60, env: dict | None = None):
    """The subprocess.CompletedProcess of `python ARGUMENTS` in as many processes, with its output.

    env: variables to add. Raises TrainingError where there is no mpiexec, or where it takes longer
    than the given seconds.
    """
    command = launcher()
    if command is None:
        raise TrainingError(
            "there is no mpiexec here; install MPI with `pip install 'llmcl[mpi]'`, or as your "
            "system does."
        )
    here = str(Path(__file__).parents[1])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        return subprocess.run(
            [command, "-n", str(ranks), sys.executable, *arguments],
            env=os.environ | {"PYTHONPATH": path} | (env or {}),
            capture_output=True, encoding="utf-8", errors="replace", timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TrainingError(
            f"{ranks} processes took longer than {seconds:g} s; give them more, or take fewer."
        ) from None


def measure(ranks: int, seconds: float = 60) -> dict:
    """What a step costs that many ranks of one thread each, in seconds (medians).

    step, half: a step with ROWS rows, and with half of them; short, long: an all-reduce of one
    number, and of the gradient, which has `bytes`. Raises TrainingError where MPI does not start.
    """
    done = start(ranks, "-m", "llmcl.scaling", RANK, seconds=seconds, env=ONE_THREAD)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        said = _lines(done.stderr)[0]
        raise TrainingError(
            f"mpiexec could not start {ranks} processes that find each other ({said}); "
            "see whether `mpiexec -n 2 python -m mpi4py.bench helloworld` works."
        )
    return json.loads(lines[0])


def why_not() -> str:
    """Why several processes cannot be started here, as a sentence; "" where they can."""
    try:
        done = start(2, "-c", _TRIAL)
    except (TrainingError, OSError) as error:
        return str(error)
    if done.returncode == 0 and done.stdout.split() == ["2"]:
        return ""
    said = _lines(done.stderr)[-1]
    return f"mpiexec cannot start two processes that find each other ({said})."


def _lines(text: str) -> list[str]:
    """The lines with a word in them; launchers frame theirs with dashes."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalpha, line))]
    return lines or ["it says nothing"]


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _timed(team, run) -> float:
    """The median seconds of a run that all ranks begin together; the slowest counts."""
    times = []
    for number in range(STEPS + 2):
        team.comm.Barrier()
        began = time.perf_counter()
        run()
        took = max(team.comm.allgather(time.perf_counter() - began))
        if number >= 2:  # the first ones compile kernels and find memory
            times.append(took)
    return statistics.median(times)


def report(*counts: int) -> str:
    """A table: what the cost that was fitted on one and two ranks predicts, beside what it takes.

    counts: of ranks, besides 1 and 2. Raises TrainingError where MPI does not start.
    """
    found = {n: measure(n) for n in sorted({1, 2, *counts})}
    cost = fit(found[1], found[2], cores())
    lines = [
        f"{found[1]['device']}, {cores()} cores: compute {1e3 * cost.compute:.1f} ms, fixed "
        f"{1e3 * cost.fixed:.1f} ms, latency {1e6 * cost.latency:.0f} µs, "
        f"{cost.bandwidth / 1e9:.2f} GB/s for {cost.bytes:,} bytes",
        f"{'ranks':>5} {'predicted ms':>13} {'measured ms':>12}",
    ]
    lines += [
        f"{n:5} {1e3 * cost.seconds(n):13.1f} {1e3 * times['step']:12.1f}"
        for n, times in found.items()
    ]
    return "\n".join(lines)


def _as_rank() -> None:
    """In each of the processes that measure() starts: the times, as a line of JSON from rank 0."""
    from .model import GPT
    from .optimizer import AdamW
    from .parallel import Team, launched
    from .settings import Settings

    team = Team(launched()[1])
    engine = team.engine()
    model = GPT(Settings().config(512), engine)
    model.initialize(0)
    optimizer = AdamW(model)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 512, (ROWS, LENGTH + 1))

    def step(rows: int):
        loss = team.gradient(model, ids[:rows, :-1], ids[:rows, 1:])
        engine.to_host(optimizer.step(loss, 1e-3))

    size = sum(whole.size for whole in model.flat_gradients)
    numbers = {name: np.zeros(n, engine.dtype) for name, n in (("short", 1), ("long", size))}
    found = {"step": _timed(team, lambda: step(ROWS))}
    found["half"] = _timed(team, lambda: step(ROWS // 2))
    for name, sent in numbers.items():
        found[name] = _timed(team, lambda sent=sent: team.add_up(sent))
    if team.lead:
        about = {"bytes": numbers["long"].nbytes, "ranks": team.size, "device": engine.name}
        print(json.dumps(found | about), flush=True)


if __name__ == "__main__":  # python -m llmcl.scaling 4: the table, with four ranks besides
    if RANK in sys.argv:
        _as_rank()
    else:
        print(report(*map(int, sys.argv[1:] or ["4"])))
