"""What takes longer than a suite may: kills, many steps, and a crowd of processes; run by hand.

    python tests/endurance.py kills --times 100      runs that are killed and resumed
    python tests/endurance.py steps --steps 20000    memory and speed of one long run
    python tests/endurance.py crowd --rounds 10      eight runs at once, with one home that is new

Each prints its numbers, and ends with status 1 if something is wrong. test_faults.py runs a short
version of each.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from llmcl import pipeline  # noqa: E402
from llmcl.checkpoint import Checkpoint, load_checkpoint, save_checkpoint  # noqa: E402
from llmcl.engine import get_engine  # noqa: E402
from llmcl.settings import STAGES, Settings  # noqa: E402

LINES = [f"Number {n} is followed by {n + 1}{', and then by more' * (n % 3)}." for n in range(12)]
ASKED = [{"user": f"After {n}?", "assistant": f"{n + 1}, of course."} for n in range(5)]
SMALL = {
    "vocab_size": 300, "d_model": 32, "n_heads": 2, "n_layers": 1, "d_ff": 64, "batch_size": 4,
    "pretrain_steps": 420, "tune_steps": 320,
}  # fmt: skip
CLI = "import sys; from llmcl.cli import main; sys.exit(main())"
OUTSIDE = ("LLMCL_CACHE", "LLMCL_CACHE_LENT", "POCL_CACHE_DIR", "XDG_CACHE_HOME")
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Wrong(AssertionError):
    """What a long run found; the sentence says where."""


def need(condition: object, text: str) -> None:
    """Raises Wrong with the text unless the condition holds."""
    if not condition:
        raise Wrong(text)


# ---- runs ----


def texts(folder: Path) -> dict[str, Path]:
    """The two text files that every run here learns, made in the folder if they are not there."""
    found = {"pretrain": folder / "lines.txt", "tune": folder / "asked.jsonl"}
    found["pretrain"].write_text("\n".join(LINES), encoding="utf-8")
    found["tune"].write_text("\n".join(map(json.dumps, ASKED)), encoding="utf-8")
    return found


def start(
    out: Path, *options: str, device: str = "", settings=None, at=None, code=CLI, **popen
) -> subprocess.Popen:
    """`llmcl train` as a process. device: empty for the best one; at: where the texts lie."""
    command = [sys.executable, "-c", code, "train", "--out", out, *options]
    for name, path in texts(at or out.parent).items():
        command += [f"--{name}", path]
    for name, value in (SMALL | (settings or {})).items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    environment = os.environ | {"LLMCL_DEVICE": device, "PYTHONPATH": str(ROOT)}
    environment |= popen.pop("env", {})
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env=environment, encoding="utf-8", **(streams | popen)
    )


def finish(process: subprocess.Popen, status: int = 0) -> str:
    """The process's stderr; Wrong if it ends with another status, or with a traceback."""
    _, told = process.communicate(timeout=300)
    need(process.returncode == status, f"status {process.returncode}: {told}")
    need("Traceback" not in told, told)
    return told


def wait_for_lock(out: Path, process: subprocess.Popen) -> None:
    """Returns as soon as the process has the folder, or is gone."""
    while not (out / ".lock").exists() and process.poll() is None:
        time.sleep(0.001)


def untimed(value):
    """Metrics or a state without what the clock decides."""
    if isinstance(value, dict):
        return {k: untimed(v) for k, v in value.items() if not k.startswith("seconds")}
    if isinstance(value, list) and len(value) == 5 and isinstance(value[-1], float):
        return value[:-1]  # a row of the curve; the last column is the speed
    return [untimed(v) for v in value] if isinstance(value, list) else value


def digest(checkpoint: Checkpoint) -> str:
    """A hash of everything in a checkpoint but its times."""
    whole = hashlib.sha256()
    for group in (checkpoint.weights, checkpoint.m, checkpoint.v):
        for name in sorted(group):
            whole.update(name.encode() + np.ascontiguousarray(group[name], np.float32).tobytes())
    whole.update(json.dumps(untimed(checkpoint.state), sort_keys=True).encode())
    return whole.hexdigest()


def results(folder: Path) -> dict[str, object]:
    """What a finished run has left, by file name, without its times; Wrong for a file too many."""
    found = {}
    for path in folder.iterdir():
        if path.suffix == ".safetensors":
            found[path.name] = digest(load_checkpoint(path))
        elif path.name == "metrics.json":
            found[path.name] = untimed(json.loads(path.read_text(encoding="utf-8")))
        elif path.name != ".lock":
            found[path.name] = path.read_bytes()
    wanted = {"model.gguf", "Modelfile", "metrics.json", *(f"{s}.safetensors" for s in STAGES)}
    need(found.keys() == wanted, f"a finished run left {sorted(found)}")
    return found


@dataclass
class Reference:
    """An uninterrupted run: its results, and the digest of each of its checkpoints.

    seconds: from the moment it has the folder to its end; before, there is nothing to lose.
    """

    results: dict
    seconds: float
    digests: dict[tuple[str, int], set[str]] = field(default_factory=dict)


def reference(folder: Path, device: str = "", settings=None) -> Reference:
    """Two uninterrupted runs, one in this process and one in its own, which must agree."""
    digests = {}

    def keep(path, checkpoint):
        where = checkpoint.state["stage"], checkpoint.state["step"]
        digests.setdefault(where, set()).add(digest(checkpoint))
        save_checkpoint(path, checkpoint)

    here, there = folder / "here", folder / "there"
    wanted, engine = Settings(**(SMALL | (settings or {}))), get_engine(device or None)
    with patch.object(pipeline, "save_checkpoint", keep):
        pipeline.train_to_gguf(here, wanted, engine, **texts(folder))
    process = start(there, device=device, settings=settings)  # the kernels are in the cache now
    wait_for_lock(there, process)
    began = time.perf_counter()
    finish(process)
    seconds = time.perf_counter() - began
    need(results(here) == results(there), "two uninterrupted runs differ")
    return Reference(results(there), seconds, digests)


# ---- kills ----


def killed(out: Path, good: Reference, seconds: float, writing: bool, **options) -> str:
    """Kills a run `seconds` after it began, or at the next write behind that, and resumes it.

    Returns where it was killed. Wrong if a file in the folder is not a whole checkpoint of the
    uninterrupted run, or the resumed run does not end as that did.
    """
    process = start(out, "--resume", **options)
    wait_for_lock(out, process)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    while writing and process.poll() is None and not list(out.glob(".*.tmp")):
        time.sleep(0.0002)
    process.kill()
    _, told = process.communicate()
    need(process.returncode in (0, -9), told)
    where = check_checkpoints(out, good)
    left = len(list(out.glob(".*.tmp"))) if out.exists() else 0
    told = finish(start(out, "--resume", **options))
    need("changed since" not in told, told)
    need(results(out) == good.results, f"killed {where}, the resumed run ended otherwise")
    return where + (", a file half written" if left else "")


def check_checkpoints(out: Path, good: Reference) -> str:
    """Where an unfinished run stands; Wrong unless each checkpoint is one of the whole run's."""
    names = {path.name for path in out.glob("*.safetensors")}
    for name in names:
        stored = load_checkpoint(out / name)
        where = stored.state["stage"], stored.state["step"]
        need(digest(stored) in good.digests.get(where, ()), f"{name} at {where} differs")
    ended = (out / "metrics.json").exists()
    need(pipeline.RUNNING in names or not names or ended, f"only {sorted(names)} are there")
    if pipeline.RUNNING not in names:
        return "at the end" if ended else "before the first checkpoint"
    state = load_checkpoint(out / pipeline.RUNNING).state
    return f"behind step {state['step']} of {state['stage']}"


def kills(times: int, seed: int = 0, device: str = "") -> dict[str, int]:
    """Kills `times` runs at times drawn over the whole of a run; returns how many died where."""
    rng, places = random.Random(seed), {}
    with tempfile.TemporaryDirectory() as place:
        good = reference(Path(place), device)
        for n in range(times):
            # One in each slice of the run, so that few kills are spread as well.
            seconds = (n + rng.random()) / times * good.seconds
            where = killed(Path(place) / f"run-{n}", good, seconds, n % 3 == 2, device=device)
            places[where] = places.get(where, 0) + 1
    return {"seconds of a run": round(good.seconds, 2), **dict(sorted(places.items()))}


# ---- steps ----


class Watch(pipeline.Listener):
    """Time, resident memory and the engine's memory at each logged step of pretraining.

    compare_at: steps at which the run stands still while a new process trains for a moment; what
    that needs for a step goes to `young`. Speeds of two minutes cannot be compared on a machine
    that does other things as well.
    """

    def __init__(self, device="", compare_at=()):
        self.engine = get_engine(device or None)
        self.device, self.compare_at = device, compare_at
        self.rows, self.young, self.stood, self.pretraining = [], [], 0.0, True

    def stage(self, name, done, steps):
        self.pretraining = name == "pretrain"

    def step(self, step):
        if step.loss is not None and self.pretraining:
            held, now = self.engine.memory_held() if self.engine.device else 0, time.perf_counter()
            self.rows.append((step.step, now - self.stood, resident(), held, step.loss))
            if step.step in self.compare_at:
                command = [sys.executable, __file__, "pace", "--device", self.device]
                done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
                self.young.append(float(done.stdout.split()[0]))
                self.stood += time.perf_counter() - now


def resident() -> int:
    """The bytes of memory that this process has in use; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except OSError:
        return 0


def watched(count: int, device: str = "", compare_at=()) -> tuple[Watch, np.ndarray]:
    """A run of `count` steps of the small model in drawn batches, and the ms of each step."""
    watch = Watch(device, compare_at)
    settings = Settings(**(SMALL | {"pretrain_steps": count, "tune_steps": 1}))
    with tempfile.TemporaryDirectory() as place:
        out, options = Path(place) / "out", texts(Path(place))
        pipeline.train_to_gguf(out, settings, watch.engine, **options, listener=watch)
    at, when = np.array([row[:2] for row in watch.rows]).T
    return watch, np.diff(when) / np.diff(at) * 1e3


def pace(count: int = 600, device: str = "") -> dict[str, float]:
    """The median ms of a step of a new process, behind its first third."""
    _, ms = watched(count, device)
    return {"ms": median(ms[len(ms) // 3 :])}


def steps(count: int, device: str = "", compare: bool = True) -> dict[str, float]:
    """A run of `count` steps with a checkpoint at each 50th, watched for what grows.

    Returns the growth of memory behind the first tenth of the steps, in MiB, the median ms of a
    step behind that and in the last twentieth, that of new processes meanwhile, the last loss.
    """
    last = count // 20
    watch, ms = watched(count, device, range(count - last, count, 100) if compare else ())
    _, _, used, held, losses = np.array(watch.rows).T
    warm = len(ms) // 10
    need(watch.rows[-1][0] == count and np.isfinite(losses).all(), "a step is not finite")
    return {
        "resident MiB": used[-1] / 2**20,
        "grown MiB": (used[warm:].max() - used[warm]) / 2**20,
        "engine MiB": held[-1] / 2**20,
        "engine grown MiB": (held[warm:].max() - held[warm]) / 2**20,
        "ms at first": median(ms[warm : 2 * warm]),
        "ms at last": median(ms[-(last // 10) :]),
        "ms in new processes then": median(watch.young) if compare else np.nan,
        "loss": losses[-1],
    }


# ---- a crowd ----


def crowd(rounds: int, size: int = 8, device: str = "", settings=None) -> dict[str, float]:
    """Starts `size` runs at once in each round, with one new home; all must end alike."""
    few = {"pretrain_steps": 12, "tune_steps": 6} | (settings or {})
    ended, found, seconds = 0, set(), []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as place, patch.dict(os.environ):
            for name in OUTSIDE:
                os.environ.pop(name, None)
            began, home = time.perf_counter(), Path(place) / "home"
            home.mkdir()
            outs = [Path(place) / f"run-{n}" for n in range(size)]
            env = {"HOME": str(home)}
            running = [start(out, device=device, settings=few, env=env) for out in outs]
            for out, process in zip(outs, running, strict=True):
                finish(process)
                found.add(json.dumps(results(out), default=bytes.hex, sort_keys=True))
                ended += 1
            seconds.append(time.perf_counter() - began)
    need(len(found) == 1, f"{len(found)} different results of {ended} runs")
    return {"ended alike": ended, "of": rounds * size, "seconds of a round": median(seconds)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, option, usual in (
        ("kills", "times", 100), ("steps", "steps", 20_000), ("crowd", "rounds", 10),
        ("pace", "steps", 600),
    ):  # fmt: skip
        one = kinds.add_parser(kind)
        one.add_argument(f"--{option}", dest="count", type=int, default=usual)
        one.add_argument("--device", default="", help="as for `llmcl train` (default: the best)")
        if kind == "kills":
            one.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    options = vars(parser.parse_args())
    kind, count = options.pop("kind"), options.pop("count")
    try:
        told = {"kills": kills, "steps": steps, "crowd": crowd, "pace": pace}[kind](
            count, **options
        )
    except Wrong as found:
        print(f"wrong: {found}", file=sys.stderr)
        return 1
    for name, value in told.items():
        print(f"{value:>10.3f}  {name}" if isinstance(value, float) else f"{value:>10}  {name}")
    if kind == "steps":
        slower = told["ms at last"] / told["ms in new processes then"]
        print(f"{slower:>10.3f}  times as long a step as in a new process (at most 1.3)")
        return int(slower > 1.3 or told["grown MiB"] > 8 or told["engine grown MiB"] > 0.1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
