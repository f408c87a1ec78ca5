"""Training over MPI: real processes under a real mpiexec, on small models and texts."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import llmcl.device
from llmcl import parallel, scaling
from llmcl.checkpoint import load_checkpoint
from llmcl.errors import DeviceError, TrainingError
from llmcl.pipeline import RUNNING
from llmcl.settings import STAGES

HERE = Path(__file__).parent
TEXTS = (
    ("sentences.txt", "The sun rises in the east.\nRivers carry water to the sea.\nBees make.\n"),
    ("dialogues.jsonl", '{"user": "Hello", "assistant": "Hello, nice to meet you."}\n'
                        '{"user": "What do bees make?", "assistant": "Honey."}\n'),
)  # fmt: skip
SMALL = (
    "--vocab-size 290 --d-model 32 --n-heads 2 --n-layers 1 --d-ff 64 --pretrain-steps 60 "
    "--tune-steps 4 --quiet"
).split()
CLI = ("-m", "llmcl.cli", "train", "--out")
JOB = str(HERE / "parallel_jobs.py")
pytestmark = pytest.mark.skipif(
    scaling.launcher() is None, reason="MPI is not installed (the extra `mpi`)"
)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """The options of a small run."""
    folder = tmp_path_factory.mktemp("texts")
    for name, text in TEXTS:
        (folder / name).write_text(text, encoding="utf-8")
    return [*SMALL, "--pretrain", str(folder / TEXTS[0][0]), "--tune", str(folder / TEXTS[1][0])]


def start(ranks, *arguments, device="numpy", **env):
    """A finished process of mpiexec; device: LLMCL_DEVICE, or None for the best one."""
    env |= {"PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])} | scaling.ONE_THREAD
    env |= {"LLMCL_DEVICE": device} if device else {}
    if ranks is None:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=120, env=os.environ | env
        )
    return scaling.start(ranks, *map(str, arguments), seconds=120, env=env)


def told(done):
    """The JSON that rank 0 printed."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[0])


def metrics_of(folder):
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def alone(options, tmp_path_factory):
    """The folder of a run by one process."""
    folder = tmp_path_factory.mktemp("alone") / "out"
    done = start(None, *CLI, str(folder), *options)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def shared(options, tmp_path_factory):
    """(folder, finished process) by number of ranks; each is run once."""
    known = {}

    def run(ranks):
        if ranks not in known:
            folder = tmp_path_factory.mktemp(f"by_{ranks}") / "out"
            known[ranks] = folder, start(ranks, *CLI, folder, *options)
        return known[ranks]

    return run


# ---- the same result ----


# Three rows in a batch: 2 does not divide them, and of 4 ranks one has none.
@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_give_the_loss_curve_of_one_process(alone, shared, ranks):
    folder, done = shared(ranks)
    assert done.returncode == 0, done.stderr
    mine, whole = metrics_of(folder), metrics_of(alone)
    assert mine["device"] == f"{ranks} x NumPy"
    for stage in STAGES:
        got, want = (np.array(m["curves"][stage])[:, :4] for m in (mine, whole))
        # step and rate to the bit; loss and norm carry the rounding of up to 60 steps of AdamW
        np.testing.assert_array_equal(got[:, [0, 3]], want[:, [0, 3]])
        np.testing.assert_allclose(got[:, 1:3], want[:, 1:3], rtol=2e-3, err_msg=stage)
        np.testing.assert_allclose(got[0, 1:3], want[0, 1:3], rtol=1e-5, err_msg=stage)
    assert whole["curves"]["pretrain"][-1][1] < 0.5 * whole["curves"]["pretrain"][0][1]


def test_rank_0_alone_writes_and_speaks(alone, shared):
    folder, done = shared(4)
    assert {p.name for p in folder.iterdir()} == {p.name for p in alone.iterdir()}
    lines = done.stderr.splitlines()
    assert lines.count("4 x NumPy") == 1
    assert sum("sentences known" in line for line in lines) == len(STAGES)
    assert sum("Talk to it" in line for line in lines) == 1 and not done.stdout.strip()


def test_the_others_neither_read_nor_write_the_folder(shared, options, tmp_path):
    done = start(2, JOB, "apart", tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    for name in ("model.gguf", "Modelfile"):
        assert (tmp_path / "0" / name).read_bytes() == (shared(2)[0] / name).read_bytes()


def test_gradients_of_unequal_rows_are_those_of_the_whole_batch():
    found = told(start(3, JOB, "gradients"))
    assert list(found) == ["1", "2", "5", "7"]
    for rows, (loss, gradient) in found.items():
        assert loss < 1e-12 and gradient < 1e-12, rows


def test_the_status_is_the_same_in_all_ranks_whoever_met_what_is_not_finite():
    good, bad = told(start(2, JOB, "statuses"))
    assert good[0] == good[1] and good[0][2] == 1
    np.testing.assert_array_equal(bad[0], bad[1])
    assert bad[0][2] == 0 and bad[0][4] == 2


def test_ranks_are_aligned_with_the_first():
    sums, first = told(start(2, JOB, "aligned"))
    assert sums[0] == sums[1] == [first, 0.0, 0.0]


def test_on_the_chosen_opencl_device(options, tmp_path):
    assert start(2, *CLI, tmp_path / "two", *options, device=None).returncode == 0
    assert start(None, *CLI, str(tmp_path / "one"), *options, device=None).returncode == 0
    two, one = (metrics_of(tmp_path / name) for name in ("two", "one"))
    assert two["device"] == f"2 x {one['device']}"
    got, want = (np.array(m["curves"]["pretrain"])[:, 1] for m in (two, one))
    np.testing.assert_allclose(got, want, rtol=2e-3)


# ---- stopping, and going on ----


def test_one_rank_wants_to_stop_all_do_and_the_run_goes_on_to_the_same_bytes(
    options, shared, tmp_path
):
    done = start(2, JOB, "run", "stop", 52, tmp_path, *options)
    assert done.returncode == 130
    assert done.stderr.count("stopped at step 53 of pretrain") == 1
    assert load_checkpoint(tmp_path / RUNNING).state["step"] == 53
    done = start(2, *CLI, tmp_path, *options, "--resume")
    assert done.returncode == 0, done.stderr
    whole = shared(2)[0]
    assert (tmp_path / "model.gguf").read_bytes() == (whole / "model.gguf").read_bytes()
    found, wanted = (load_checkpoint(d / "tune.safetensors").weights for d in (tmp_path, whole))
    assert all(np.array_equal(found[key], wanted[key]) for key in wanted)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_a_killed_rank_ends_all_with_a_sentence_and_a_whole_checkpoint(options, tmp_path):
    done = start(2, JOB, "run", "kill", 57, tmp_path, *options)
    assert done.returncode != 0
    assert "llmcl: one of the 2 processes ended, so all were stopped" in done.stderr
    assert f"what was stored in {tmp_path} is whole" in done.stderr
    stored = load_checkpoint(tmp_path / RUNNING, STAGES)
    assert stored.state["step"] == 50 and stored.m
    assert not (tmp_path / "model.gguf").exists()


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("error", "llmcl: process 2 of 2: this one is not possible; choose another."),
        ("bug", "ZeroDivisionError: a mistake in the program"),
    ],
)
def test_an_error_in_one_rank_ends_all(options, tmp_path, act, said):
    done = start(2, JOB, "run", act, 55, tmp_path, *options)
    assert done.returncode != 0
    assert said in done.stderr
    assert "one of the 2 processes ended, so all were stopped" in done.stderr
    assert load_checkpoint(tmp_path / RUNNING, STAGES).state["step"] == 50


def test_an_error_of_all_is_said_once(options, tmp_path):
    done = start(2, *CLI, tmp_path, *options, "--pretrain-rate", "1e30")
    assert done.returncode == 2
    assert done.stderr.count("stopped being a number at step 2") == 1
    assert "one of the" not in done.stderr
    assert not (tmp_path / "model.gguf").exists()


def test_ranks_with_other_settings_are_refused(options, tmp_path):
    done = start(2, JOB, "unlike", tmp_path, *options)
    assert done.returncode == 2
    assert done.stderr.count("process 2 of 2 has other settings or texts than the first") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_at_the_launcher_stops_with_a_checkpoint(options, tmp_path):
    env = os.environ | {"PYTHONPATH": str(HERE.parent), "LLMCL_DEVICE": "numpy"}
    more = ["--pretrain-steps", "100000"]
    process = subprocess.Popen(
        [scaling.launcher(), "-n", "2", sys.executable, *CLI, str(tmp_path), *options, *more],
        env=env | scaling.ONE_THREAD, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (tmp_path / RUNNING).exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert said.count("--resume goes on from it") == 1, said
    assert load_checkpoint(tmp_path / RUNNING, STAGES).state["step"] >= 50


# ---- without MPI ----


def test_one_process_does_not_import_mpi4py(options, alone, tmp_path):
    code = (
        "import sys; from llmcl.cli import main; status = main(sys.argv[1:]); "
        "sys.exit(status or 3 * ('mpi4py' in sys.modules))"
    )
    done = start(1, "-c", code, *CLI[2:], tmp_path, *options)  # under a launcher of one
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.gguf").read_bytes() == (alone / "model.gguf").read_bytes()


def test_a_launcher_without_mpi4py_is_told_in_one_sentence(options, tmp_path):
    fake = tmp_path / "fake"
    (fake / "mpi4py").mkdir(parents=True)
    text = "raise ImportError('not to be had')\n"
    (fake / "mpi4py" / "__init__.py").write_text(text, encoding="utf-8")
    code = "import sys; sys.path.insert(0, sys.argv.pop(1))\nfrom llmcl.cli import main\n"
    code += "sys.exit(main())"
    done = start(3, "-c", code, fake, "train", "--out", tmp_path / "out", *options)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "llmcl: the launcher started 3 processes, but mpi4py cannot be used (not to be had); "
        "install it with `pip install 'llmcl[mpi]'`, or start llmcl without the launcher."
    )
    assert not (tmp_path / "out").exists()


def test_a_launcher_of_another_mpi_is_told(options, tmp_path):
    env = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "3"}
    done = start(None, *CLI, str(tmp_path / "out"), *options, **env)
    assert done.returncode == 2
    assert "started 3 processes, but mpi4py, which uses" in done.stderr
    assert "sees 1; use the mpiexec that belongs to it." in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, (0, 1)),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, (2, 4)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3"}, (1, 3)),
        ({"PMIX_RANK": "5", "SLURM_STEP_NUM_TASKS": "8"}, (5, 8)),
        ({"SLURM_STEP_NUM_TASKS": "8", "PMI_RANK": "x", "PMI_SIZE": ""}, (0, 1)),
    ],
)
def test_what_a_launcher_says(monkeypatch, env, found):
    for pair in parallel._LAUNCHERS:
        for name in pair:
            monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert parallel.launched() == found
    if found[1] == 1:
        assert parallel.join() is None


# ---- devices ----


def device(index, platform, kind, ok=True):
    return SimpleNamespace(
        index=index, platform=platform, kind=kind, name=f"{platform} {index}", ok=ok,
        platform_version="OpenCL 3.0", driver_version="1", label=lambda: f"{platform} {index}",
    )  # fmt: skip


TWO_GPUS = [device(0, "Maker", "gpu"), device(1, "Maker", "gpu"), device(2, "PoCL", "cpu"),
            device(3, "Oclgrind", "simulator")]  # fmt: skip
BROKEN = [device(0, "Maker", "gpu", ok=False), *TWO_GPUS[1:]]
NO_GPU = [device(0, "Maker", "gpu", ok=False), device(1, "PoCL", "cpu")]


@pytest.mark.parametrize(
    ("devices", "wanted", "chosen"),
    [
        (TWO_GPUS, None, [0, 1, 0, 1]),
        (TWO_GPUS, "maker", [0, 1, 0, 1]),
        (TWO_GPUS, "1", [1, 1, 1, 1]),
        (TWO_GPUS, "pocl", [2, 2, 2, 2]),
        (BROKEN, None, [1, 1, 1, 1]),
        (NO_GPU, None, [1, 1, 1, 1]),
        (TWO_GPUS, "numpy", ["numpy"] * 4),
        ([], None, [None] * 4),
        ([], "maker", ["maker"] * 4),
    ],
)
def test_ranks_of_a_machine_take_devices_of_one_kind_in_turn(monkeypatch, devices, wanted, chosen):
    monkeypatch.delenv("LLMCL_DEVICE", raising=False)
    monkeypatch.setattr(llmcl.device, "list_devices", lambda: devices)
    monkeypatch.setattr(llmcl.device, "try_device", lambda info: info)
    monkeypatch.setattr(parallel, "get_engine", lambda name: name)
    found = []
    for place in range(4):
        team = object.__new__(parallel.Team)
        team.place = place
        found.append(team.engine(wanted))
    assert found == chosen


def test_a_name_that_no_device_has_is_refused(monkeypatch):
    monkeypatch.setattr(llmcl.device, "list_devices", lambda: TWO_GPUS)
    with pytest.raises(DeviceError, match="No device is called 'other'"):
        parallel.Team.engine(object(), "other")


# ---- what it costs ----


def test_the_cost_that_was_put_in_is_found_again():
    put = scaling.Cost(0.024, 0.004, 5e-5, 8e8, 1_600_000)
    one = {"step": put.seconds(1), "half": put.fixed + put.compute / 2}
    two = {"short": 2 * put.latency, "long": 2 * put.latency + put.bytes / put.bandwidth}
    found = scaling.fit(one, two | {"bytes": put.bytes})
    for n in (1, 2, 3, 4, 16, 1000):
        assert found.seconds(n) == pytest.approx(put.seconds(n), rel=1e-9)
    assert put.seconds(1) == pytest.approx(0.028)
    assert put.seconds(4) == pytest.approx(0.006 + 0.004 + 6 * 5e-5 + 1.5 * 1.6e6 / 8e8)
    assert 1 < put.speedup(4) < 4 and put.speedup(1000) < put.speedup(16)


def test_ranks_that_share_cores_take_turns():
    machines = scaling.Cost(0.024, 0.004, 5e-5, 8e8, 1_600_000)
    here = scaling.Cost(0.024, 0.004, 5e-5, 8e8, 1_600_000, cores=2)
    assert here.seconds(2) == machines.seconds(2)
    assert here.seconds(4) == pytest.approx(2 * machines.seconds(4))
    assert here.parts(4)["compute"] == pytest.approx(here.parts(2)["compute"])


def test_noise_gives_no_negative_parts():
    cost = scaling.fit({"step": 0.01, "half": 0.012}, {"short": 2e-5, "long": 1e-5, "bytes": 4})
    assert cost.compute == 0 and cost.fixed == 0.01 and cost.bandwidth > 0


def test_measuring_two_ranks(monkeypatch):
    monkeypatch.setenv("LLMCL_DEVICE", "numpy")
    found = scaling.measure(2)
    assert found["ranks"] == 2 and found["bytes"] > 1e6
    assert all(0 < found[name] < 10 for name in ("step", "half", "short", "long"))
    assert found["short"] < found["step"]


def test_the_table_of_predictions_and_measurements(monkeypatch):
    put = scaling.Cost(0.02, 0.004, 5e-5, 8e8, 1_600_000, cores=2)
    times = {n: {"step": put.seconds(n), "half": 0.014, "device": "x"} for n in (1, 2, 4)}
    times[2] |= {"short": 1e-4, "long": 1e-4 + 0.002, "bytes": put.bytes}
    times[4]["step"] = 0.05
    monkeypatch.setattr(scaling, "measure", times.__getitem__)
    monkeypatch.setattr(scaling, "cores", lambda: 2)
    lines = scaling.report(4).splitlines()
    assert lines[0].startswith(
        "x, 2 cores: compute 20.0 ms, fixed 4.0 ms, latency 50 µs, 0.80 GB/s"
    )
    assert [line.split() for line in lines[2:]] == [
        ["1", "24.0", "24.0"], ["2", "16.1", "16.1"], ["4", "24.6", "50.0"]
    ]  # fmt: skip


def test_whether_mpi_starts_is_said_in_a_sentence(monkeypatch):
    assert scaling.why_not() == ""
    monkeypatch.setattr(scaling, "launcher", lambda: sys.executable)
    said = scaling.why_not()
    assert said.startswith("mpiexec cannot start two processes that find each other (")
    assert said.endswith(").") and "\n" not in said


def test_the_words_of_a_launcher_are_told_without_their_frame(monkeypatch):
    framed = SimpleNamespace(returncode=1, stdout="", stderr="-----\nNo slots left.\n-----\n")
    monkeypatch.setattr(scaling, "start", lambda *_, **__: framed)
    assert scaling.why_not().endswith(" (No slots left.).")
    with pytest.raises(TrainingError, match=r"\(No slots left\.\)"):
        scaling.measure(2)
    framed.stderr = "-----\n"
    assert "(it says nothing)" in scaling.why_not()


def test_no_mpiexec_and_one_that_fails_are_told(monkeypatch):
    monkeypatch.setattr(scaling, "launcher", lambda: None)
    with pytest.raises(TrainingError, match="no mpiexec here"):
        scaling.measure(2)
    monkeypatch.setattr(scaling, "launcher", lambda: sys.executable)
    with pytest.raises(TrainingError, match="could not start 2 processes"):
        scaling.measure(2)
