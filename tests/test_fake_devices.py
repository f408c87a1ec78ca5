"""Devices that our machines do not have: each ends in a sentence, with the state before it kept.

A machine without a platform or a device, and folders that cannot be written, are in
test_device.py and test_cache.py as well; here the commands meet them.
"""

import dataclasses
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from fake_driver import SmallPool, pretend
from model_helpers import make_batch, make_model
from ops_helpers import VERSIONS, GuardedEngine
from test_cache import run_python
from test_device import machine, platform  # noqa: F401  (a fixture)

from llmcl import reference, trial, versions
from llmcl.check import Sizes, make_cases
from llmcl.checkpoint import load_checkpoint
from llmcl.cli import main
from llmcl.device import choose, open_device
from llmcl.errors import DeviceError, KernelError
from llmcl.generate import generate
from llmcl.ops import Engine
from llmcl.optimizer import AdamW, Schedule
from llmcl.pipeline import RUNNING, Listener, train_to_gguf
from llmcl.program import Program
from llmcl.resources import kernels_dir
from llmcl.settings import Settings
from llmcl.train import train_steps

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about Linux")


@pytest.fixture
def driver(monkeypatch):
    return pretend(monkeypatch)


def device_like(**limits):
    """The default device with other limits in its description."""
    device = choose()
    return dataclasses.replace(device, info=dataclasses.replace(device.info, **limits))


# ---- nothing to compute on ----


@pytest.mark.parametrize(
    "platforms, words",
    [((), "No OpenCL driver was found"), ((platform("Empty", "OpenCL 1.2"),), "offers no device")],
    ids=["no platform", "a platform without devices"],
)
def test_commands_without_a_device_say_so_and_touch_nothing(
    machine, tmp_path, capsys, platforms, words  # noqa: F811
):  # fmt: skip
    machine(*platforms)
    kept = tmp_path / RUNNING
    kept.write_bytes(b"an unfinished run")
    for command in (["check"], ["train", "--out", str(tmp_path), "--resume"]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert words in said and "LLMCL_DEVICE=numpy" in said and said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [RUNNING]
    assert kept.read_bytes() == b"an unfinished run"
    assert main(["check", "--device", "numpy"]) == 0  # the way out that the sentence names


# ---- narrow limits ----


def check_every_version(engine):
    for chosen in VERSIONS:
        engine.use(chosen)
        for case in make_cases(np.random.default_rng(0), Sizes(B=2, T=5, H=2, d=3, V=11, F=7)):
            assert all(found.ok for found in case.check(engine)), case.name
    engine.check_guards()


def test_kernels_that_allow_one_work_item_train_and_write_as_numpy_does(driver):
    """As Apple's driver for CPUs treats every kernel with a barrier, whatever its device says."""
    driver.max_group = 1
    device = choose()
    assert trial.run_trial(*open_device(device.info)).ok
    engine, other, ids = Engine(device), reference.Engine(np.float32), make_batch()
    models = [make_model(engine), make_model(other)]
    losses = []
    for model in models:
        steps = train_steps(model, AdamW(model), lambda _: ids, Schedule(0.01, 3), log_every=1)
        losses.append([step.loss for step in steps])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert len(set(driver.launched)) > 15
    texts = [generate(model, [1, 2, 3], max_new_tokens=5) for model in models]
    assert texts[0] == texts[1]


def test_a_kernel_that_must_share_a_group_says_that_one_item_is_too_few(driver):
    driver.max_group = 1
    engine = Engine(choose())
    engine.product = "tiled"
    a = engine.from_host(np.ones((3, 3)))
    launched = len(driver.launched)
    with pytest.raises(KernelError, match="a work-group of 256 .* allows 1. Choose a smaller"):
        engine.matmul(a, a)
    assert len(driver.launched) == launched
    engine.product = "blocked"
    assert (engine.to_host(engine.matmul(a, a)) == 3).all()


def test_a_device_with_small_groups_gets_the_kernels_of_a_cpu():
    info = device_like(kind="gpu", max_group_size=1).info
    assert versions.versions_for(info) == versions.CPU
    info = dataclasses.replace(info, max_group_size=256, local_mem_bytes=16 * 1024)
    assert versions.versions_for(info) == versions.SMALL_GPU


@pytest.mark.parametrize("kind, local", [("cpu", 16), ("gpu", 32)])
def test_every_version_fits_into_32_kib_of_local_memory(driver, kind, local):
    """A CPU's driver may keep a part for itself: Oclgrind refuses 24 of its 32 KiB."""
    driver.local_bytes = local * 1024
    engine = GuardedEngine(device_like(local_mem_bytes=32 * 1024))
    assert engine.block == versions.SHALLOW
    if kind == "gpu":
        check_every_version(engine)
        return
    for case in make_cases(np.random.default_rng(0), Sizes(B=2, T=40, H=2, d=17, V=71, F=67)):
        assert all(found.ok for found in case.check(engine)), case.name


@pytest.mark.parametrize("kib, fitting", [(32, 0), (48, 1), (64, 2), (2048, 2)])
def test_a_block_takes_half_of_the_local_memory_at_most(kib, fitting):
    engine = Engine(device_like(local_mem_bytes=kib * 1024))
    assert engine.block in (versions.BLOCKS[:fitting] or (versions.SHALLOW,))


def test_no_kernel_needs_double(driver):
    driver.double = False
    program = Program(choose())
    for path in sorted(kernels_dir().glob("*.cl")):
        options = ("-DD_HEAD=8",) if path.stem.startswith("fused_attention") else ()
        if path.stem.endswith("_gpu"):
            driver.check_build(path.read_text(encoding="utf-8"))
        else:
            assert program.kernel(path.stem, first_kernel(path), options)


def first_kernel(path):
    from llmcl.program import read_signatures

    return next(iter(read_signatures(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("line", ["double y = x[0];", "x[0] = 0.5 * x[0];"])
def test_a_kernel_of_ones_own_with_double_is_shown_its_line(driver, line):
    driver.double = False
    text = f"__kernel void mine(__global float *x)\n{{\n    {line}\n}}\n"
    with pytest.raises(KernelError) as caught:
        Program(choose()).compile(text, "mine.cl")
    said = str(caught.value)
    assert "Line 3: use of type 'double'" in said and f">   3 |     {line}" in said


# ---- calls that fail ----

LOG = "clBuildProgram failed: BUILD_PROGRAM_FAILURE\n\nBuild on <d>:\n\nunknown target CPU 'z9'"
BUILDS = {
    "the compiler's words": (cl.RuntimeError(LOG), KernelError, "unknown target CPU 'z9'; if"),
    "no words": (cl.RuntimeError("clBuildProgram failed: BUILD_PROGRAM_FAILURE - "), KernelError,
                 "gives no reason; if the text is right, the disk may be full"),
    "no memory": (cl.MemoryError("clBuildProgram failed: OUT_OF_HOST_MEMORY"), DeviceError,
                  "could not compile softmax.cl .*OUT_OF_HOST_MEMORY.*free some memory"),
    "a broken driver": (cl.LogicError("clBuildProgram failed: INVALID_BINARY"), DeviceError,
                        "could not compile softmax.cl .*INVALID_BINARY.*llmcl doctor"),
}  # fmt: skip


@pytest.mark.parametrize("build", BUILDS)
def test_a_build_that_fails_is_told_and_tried_again(driver, build):
    engine = Engine(choose())
    x = engine.from_host(np.zeros((2, 4)))
    driver.build_error, kind, words = BUILDS[build]
    with pytest.raises(kind, match=words):
        engine.softmax(x)
    driver.build_error = None
    np.testing.assert_array_equal(engine.to_host(engine.softmax(x)), 0.25)


OUT = cl.RuntimeError("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES")
FULL = cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")


@pytest.mark.parametrize("error", [OUT, FULL], ids=["resources", "memory"])
def test_a_launch_without_resources_names_the_kernel_and_the_way_out(driver, error):
    engine = Engine(choose())
    x = engine.from_host(np.zeros((2, 4)))
    driver.launch_error = error
    with pytest.raises(DeviceError, match=r"ran out of memory or registers at softmax.*smaller"):
        engine.softmax(x)
    driver.launch_error = cl.LogicError("clEnqueueNDRangeKernel failed: INVALID_GLOBAL_OFFSET")
    with pytest.raises(KernelError, match="could not be launched.*try a smaller local size"):
        engine.softmax(x)
    driver.launch_error = None
    assert (engine.to_host(x) == 0).all()


def test_a_launch_that_fails_anywhere_in_a_step_leaves_the_step_to_be_made_again(driver):
    ids, targets = make_batch()

    def run(fails_at=None):
        model = make_model(engine)
        optimizer = AdamW(model)
        for number in range(3):
            if number == 1 and fails_at is not None:
                before, steps = model.weights(), optimizer.steps
                driver.launched.clear()
                driver.launch_error, driver.fails_at = OUT, fails_at
                with pytest.raises(DeviceError, match="ran out of memory or registers"):
                    made(model, optimizer)
                driver.launch_error = None
                assert optimizer.steps == steps
                assert all((before[n] == w).all() for n, w in model.weights().items())
            driver.launched.clear()
            made(model, optimizer)
        return model.weights()

    def made(model, optimizer):
        loss = model.loss(ids, targets)
        model.backward()
        optimizer.step(loss, 0.01)

    engine = Engine(choose())
    want = run()
    count = len(driver.launched)
    assert count > 40 and "adamw" in driver.launched[-1]
    for fails_at in range(0, count, 3 if count % 3 else 4):
        got = run(fails_at)
        assert all((got[name] == want[name]).all() for name in want), fails_at
    got = run(count - 1)  # the step's last launch is the one that changes the weights
    assert all((got[name] == want[name]).all() for name in want)


LOST = cl.LogicError("clEnqueueReadBuffer failed: INVALID_COMMAND_QUEUE")


def test_a_device_that_was_lost_is_told_wherever_the_program_meets_it(driver, monkeypatch):
    engine = Engine(choose())
    x = engine.zeros((3, 4))
    driver.copy_error = LOST
    for call in (
        lambda: engine.to_host(x),
        lambda: engine.from_host(np.ones(3)),
        lambda: engine.from_host(np.ones(3, np.int32)),
        lambda: engine.write(x, np.ones((1, 4))),
        lambda: engine.copy(x, x),
    ):
        with pytest.raises(DeviceError, match="failed at a copy .*QUEUE.*restart the program"):
            call()

    def lost(*_):
        raise LOST

    monkeypatch.setattr(engine, "queue", SimpleNamespace(finish=lost))
    with pytest.raises(DeviceError, match="failed at the end of a launch .*restart"):
        engine.finish()
    for error, words in ((LOST, "failed at a new buffer"), (
        cl.LogicError("clCreateBuffer failed: INVALID_BUFFER_SIZE"), "no room for 4.0 MiB more"
    )):  # fmt: skip

        def refuse(_, error=error):
            raise error

        monkeypatch.setattr(engine, "_pool", SimpleNamespace(allocate=refuse))
        with pytest.raises(DeviceError, match=words):
            engine.empty((2**20,))


# ---- memory that runs out ----


def small_engine() -> Engine:
    engine = Engine(choose())
    engine._pool = SmallPool(engine._pool)
    return engine


def test_memory_that_runs_out_in_training_keeps_weights_and_a_smaller_batch_goes_on():
    ids, targets = make_batch(rows=30)
    schedule = Schedule(0.01, 6)

    def halves(step):
        rows = 30 if step < 4 else 5
        return ids[:rows], targets[:rows]

    def start(engine):
        model = make_model(engine)
        return model, AdamW(model)

    model, optimizer = start(small_engine())
    list(train_steps(model, optimizer, halves, schedule))
    want = model.weights()
    need = model.engine.memory_held()

    for share in (0.3, 0.5, 0.8, 0.95):  # in forward, in backward, near the end
        engine = small_engine()
        model, optimizer = start(engine)
        steps = train_steps(model, optimizer, lambda _: (ids, targets), schedule)
        for _ in range(3):
            next(steps)
        before = model.weights()
        engine.finish()
        engine._pool.budget = share * engine._pool.active_bytes
        with pytest.raises(DeviceError, match="no room for .* MiB more .*use a smaller batch"):
            next(steps)
        assert optimizer.steps == 3
        assert all((before[name] == w).all() for name, w in model.weights().items())
        list(train_steps(model, optimizer, halves, schedule, first=4))
        assert all((want[name] == w).all() for name, w in model.weights().items()), share
    assert need > 0


class Narrow(Listener):
    """Takes the memory away behind a step."""

    def __init__(self, engine, at: int):
        self.engine, self.at, self.messages = engine, at, []

    def step(self, step):
        if step.step == self.at:
            self.engine._pool.budget = 0.9 * self.engine._pool.active_bytes

    def message(self, text):
        self.messages.append(text)


def test_a_run_that_is_out_of_memory_resumes_with_a_smaller_batch_in_this_process(tmp_path):
    engine = small_engine()
    small = dict(vocab_size=290, d_model=32, n_heads=2, n_layers=1, d_ff=64, tune_steps=3)
    settings = Settings(**small, pretrain_steps=60, batch_size=20)
    with pytest.raises(DeviceError, match="no room for .*use a smaller batch"):
        train_to_gguf(tmp_path, settings, engine, listener=Narrow(engine, 53))
    kept = load_checkpoint(tmp_path / RUNNING)
    assert kept.state["step"] == 50 and kept.m
    assert all(np.isfinite(array).all() for array in kept.weights.values())
    listener = Narrow(engine, -1)
    less = dataclasses.replace(settings, batch_size=3)
    metrics = train_to_gguf(tmp_path, less, engine, resume=True, listener=listener)
    assert metrics["settings"]["batch_size"] == 3 and (tmp_path / "model.gguf").exists()
    assert any("batch size" in message for message in listener.messages)
    assert json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))


# ---- a cache that cannot be written ----

FULL_DISK = """
import resource, signal, sys
sys.path.insert(0, "tests")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
"""
AT_THE_START = "from llmcl.cli import main\nfill()\nsys.exit(main(['check']))"
LATER = """
import numpy as np
from llmcl.cli import main
from llmcl import check
def cases(*_):
    fill()
    return whole(*_)
whole, check.make_cases = check.make_cases, cases
sys.exit(main(["check"]))
"""


@linux_only
@pytest.mark.parametrize(
    "code, words", [(AT_THE_START, "No folder can be written"), (LATER, "disk")],
    ids=["before the first kernel", "behind it"],
)  # fmt: skip
def test_a_full_disk_ends_in_one_sentence(tmp_path, code, words):
    child = run_python(FULL_DISK + code, home=tmp_path, LLMCL_CACHE=tmp_path / "cache")
    _, said = child.communicate(timeout=120)
    assert child.returncode == 2, said
    assert words in said and said.startswith("llmcl: ") and said.count("\n") == 1
    after = run_python(
        "from llmcl.cli import main; main(['check'])",
        home=tmp_path, LLMCL_CACHE=tmp_path / "cache",
    )  # fmt: skip
    out, said = after.communicate(timeout=180)
    assert "every kernel agrees with NumPy" in out, said
    assert os.listdir(tmp_path / "cache")
