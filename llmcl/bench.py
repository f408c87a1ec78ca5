"""How fast it is, always as a ratio to something else, measured side by side.

Contestants take turns, after a warm-up, and the medians are compared: a machine that is busy slows
both down. A ratio above 1 means that ours is faster. Peers that are not installed are left out.
"""

import importlib.util
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from . import reference
from .config import Config
from .data import read_sentences
from .generate import generate
from .gguf_file import write_gguf
from .llama_cpp import ask_llama
from .load import load_model
from .model import GPT
from .optimizer import AdamW
from .resources import data_dir
from .tokenizer import ByteBPE

PRODUCTS = ((800, 128, 384), (800, 512, 128), (800, 128, 512), (512, 512, 512))  # m, k, n
KINDS = {"a b": (False, False), "a b^T": (False, True), "a^T b": (True, False)}
BATCH, TIME = 25, 32
COPIES = 10  # in one measurement, so that a launch's own time does not count
REST = 0.2  # seconds before a turn, in which the other's threads fall asleep
WARM = 0.1  # seconds of runs before those that are measured
CONTEXTS = WIDTHS = (64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Result:
    """One comparison: seconds of ours and of the peer (medians), and how often ours is as fast."""

    what: str
    peer: str
    ours: float
    theirs: float
    work: float = 0.0  # floating point operations or tokens in one run
    unit: str = ""

    @property
    def ratio(self) -> float:
        """Above 1: ours is faster."""
        return self.theirs / self.ours

    def to_dict(self) -> dict:
        """The fields and the ratio as a plain dictionary."""
        return asdict(self) | {"ratio": self.ratio}

    def __str__(self) -> str:
        def rate(seconds):
            if not self.work:
                return f"{seconds * 1e3:10.2f} ms"
            return f"{self.work / seconds:10.4g} {self.unit}"

        ours, theirs = rate(self.ours), rate(self.theirs)
        return f"{self.what:<34}{ours}  {self.peer:<22}{theirs} {self.ratio:8.2f}"


def compare(
    ours: Callable, theirs: Callable, seconds: float = 1.5, rest: float = 0.0
) -> tuple[float, float]:
    """The median times of two functions that take turns for about `seconds`, warm.

    rest: seconds to wait before each turn, so that threads that one of the two leaves awake do not
    take a core from the other. A turn then begins with WARM seconds of unmeasured runs, in which
    the threads wake up and find a core, and goes on with as long a time of measured ones.
    """
    for function in (ours, theirs, ours, theirs):
        function()
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for function, found in zip((ours, theirs), times, strict=True):
            if rest:
                time.sleep(rest)
                run_for(WARM, function)
            found += run_for(WARM if rest else 0.0, function)
    return statistics.median(times[0]), statistics.median(times[1])


def run_for(seconds: float, function: Callable) -> list[float]:
    """The times of as many runs as fit into `seconds`; one at least."""
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return times


def products(engine) -> list[Result]:
    """Matrix products against NumPy in float32, plain and both transposed kinds."""
    from .ops.linear import multiply

    rng = np.random.default_rng(0)
    results = []
    for m, k, n in PRODUCTS:
        for kind, (left, right) in KINDS.items():
            a = rng.normal(size=(k, m) if left else (m, k)).astype(np.float32)
            b = rng.normal(size=(n, k) if right else (k, n)).astype(np.float32)
            on_a, on_b, c = engine.from_host(a), engine.from_host(b), engine.zeros((m, n))

            def ours(on_a=on_a, on_b=on_b, c=c, m=m, n=n, k=k, left=left, right=right):
                for _ in range(COPIES):
                    multiply(on_a, on_b, c, m, n, k, transpose_a=left, transpose_b=right, add=left)
                engine.finish()

            def theirs(a=a, b=b, left=left, right=right):
                for _ in range(COPIES):
                    (a.T if left else a) @ (b.T if right else b)

            times = compare(ours, theirs, 4.0, rest=REST)
            what, work = f"{m}x{k}x{n} {kind}", COPIES * 2e-9 * m * n * k
            results.append(Result(what, "NumPy", *times, work, "GFLOP/s"))
    return results


def bench_config(n_layers: int) -> Config:
    """The model of the step's comparison: width 128, 4 heads, vocabulary 256, context 32."""
    return Config(256, TIME, 128, 4, n_layers, 512)


def make_step(engine, config: Config, ids: np.ndarray) -> Callable:
    """A function that makes one whole training step on an engine and waits for it."""
    model = GPT(config, engine)
    model.initialize(0)
    optimizer = AdamW(model)

    def step():
        loss = model.loss(ids, ids)
        model.backward()
        optimizer.step(loss, 1e-3)
        engine.finish()

    return step


def training_steps(engine) -> list[Result]:
    """A training step of one and two blocks, against our NumPy engine and PyTorch, if there."""
    ids = np.random.default_rng(0).integers(0, 256, (BATCH, TIME))
    results = []
    for n_layers in (1, 2):
        config = bench_config(n_layers)
        peers = {"our NumPy engine": make_step(reference.Engine(np.float32), config, ids)}
        if importlib.util.find_spec("torch"):
            from .bench_torch import device_for, make_torch_step

            kind = device_for(engine)
            peers[f"PyTorch eager, {kind}"] = make_torch_step(config, ids, kind)
        ours = make_step(engine, config, ids)
        what = f"training step, {n_layers} block{'s' * (n_layers > 1)}"
        for peer, step in peers.items():
            results.append(Result(what, peer, *compare(ours, step, 12.0, rest=REST)))
    return results


def random_model(path) -> None:
    """Writes a GGUF file of the default size with random weights; speed does not depend on them."""
    texts = read_sentences(data_dir() / "pretrain.txt")
    tokenizer = ByteBPE.train(texts, 512)
    model = GPT(Config(tokenizer.vocab_size), reference.Engine(np.float32))
    model.initialize(0)
    write_gguf(path, model.config, model.weights(), tokenizer)


def generation(engine, path) -> list[Result]:
    """Tokens per second of greedy generation with the cache, against llama.cpp on the same file."""
    if not importlib.util.find_spec("xllamacpp"):
        return []
    model, tokenizer = load_model(path, engine)
    text, count = "The sun", 100
    request = {
        "prompt": text, "n_predict": count, "temperature": 0, "ignore_eos": True,
        "cache_prompt": False,
    }  # fmt: skip
    threads = os.cpu_count() or 1
    answers, _ = ask_llama(path, [("/completion", request)] * 7, threads=threads)
    speeds = [answer["timings"]["predicted_per_second"] for answer in answers[2:]]
    ids, times = tokenizer.encode(text), []
    for _ in range(7):
        start = time.perf_counter()
        generate(model, ids, max_new_tokens=count)
        times.append(time.perf_counter() - start)
    theirs = count / statistics.median(speeds)
    what = f"generation of {count} tokens"
    return [Result(what, "llama.cpp", statistics.median(times[2:]), theirs, count, "tokens/s")]


def roofline(engine) -> dict[str, float]:
    """The device's measured limits: bytes/s of a copy, and float32 operations/s."""
    n = 1 << (27 if engine.device.info.kind == "gpu" else 24)
    x, y = engine.zeros((n,)), engine.zeros((n,))
    name, each = ("roofline_copy_wide", 8) if engine.wide else ("roofline_copy", 4)
    items, rounds = (4096, 2000) if engine.device.info.kind != "gpu" else (1 << 18, 2000)

    def copy():
        for _ in range(COPIES):
            engine.launch("roofline", name, n // each, x, y, n)
        engine.finish()

    def arithmetic():
        engine.launch("roofline", "roofline_arithmetic", items, y, items, rounds, 0.999)
        engine.finish()

    copied, made = compare(copy, arithmetic, 2.0)
    return {
        "bytes_per_s": COPIES * 8 * n / copied,
        "flop_per_s": 2 * 12 * 16 * rounds * items / made,
    }


def scaling(engine) -> list[dict]:
    """What a training step costs for a token as context and width grow; one block, one row a time.

    Each row: what grows, its size, microseconds for a token, and the memory pool's bytes for a
    token when the step is over.
    """
    rows = []
    for what, sizes in (("context", CONTEXTS), ("width", WIDTHS)):
        for size in sizes:
            time_, width = (size, 128) if what == "context" else (128, size)
            batch = max(1, 1024 // time_)
            config = Config(256, time_, width, width // 32, 1, 4 * width)
            ids = np.random.default_rng(0).integers(0, 256, (batch, time_))
            engine.forget_free_memory()
            before = engine.memory_held()  # by whoever else uses this engine
            step = make_step(engine, config, ids)
            seconds, _ = compare(step, lambda: None, 0.7)
            tokens = batch * time_
            memory = (engine.memory_held() - before) / tokens
            row = {"grows": what, "size": size, "us_per_token": 1e6 * seconds / tokens}
            rows.append(row | {"bytes_per_token": memory})
    return rows


def everything(engine, model=None):
    """Yields every Result, one after the other; model: a GGUF file, or None for a random one."""
    yield from products(engine)
    yield from training_steps(engine)
    if model:
        yield from generation(engine, model)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.gguf"
        random_model(path)
        yield from generation(engine, path)


def run(engine, model=None, with_scaling: bool = False) -> dict:
    """Measures everything, prints a line for each result, and returns them all."""
    report = {"device": engine.device.describe(), "date": time.strftime("%B %Y"), "results": []}
    print(report["device"])
    print(f"{'what':<34}{'ours':>18}  {'peer':<22}{'the peer':>18} {'ratio':>6}")
    for result in everything(engine, model):
        print(result, flush=True)
        report["results"].append(result.to_dict())
    limits = report["limits"] = roofline(engine)
    print(
        f"limits: {limits['bytes_per_s'] / 1e9:.1f} GB/s copied, "
        f"{limits['flop_per_s'] / 1e9:.0f} GFLOP/s"
    )
    if with_scaling:
        report["scaling"] = scaling(engine)
        for row in report["scaling"]:
            print(
                f"{row['grows']:>8} {row['size']:5d} {row['us_per_token']:9.1f} us a token "
                f"{row['bytes_per_token'] / 1024:8.1f} KiB a token"
            )
    return report
