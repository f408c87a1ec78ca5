"""What can happen to a run from outside: killed, no room, no right to write, a crowd beside it."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import endurance
import pytest
from endurance import finish, need, results, start

from llmcl import files
from llmcl.checkpoint import load_checkpoint
from llmcl.errors import DataError, LlmclError
from llmcl.lab import session
from llmcl.lab.sabotage import notes
from llmcl.pipeline import RUNNING, WRITTEN

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes and modes")
# What NumPy computes is enough where the folder is what matters; it starts faster.
FEW = {"pretrain_steps": 60, "tune_steps": 5}
QUICK = {"device": "numpy", "settings": FEW}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """What an uninterrupted run leaves, and the digest of each of its checkpoints."""
    return endurance.reference(tmp_path_factory.mktemp("good"), **QUICK)


def refusal(process: subprocess.Popen) -> str:
    """The last line of a run that says on one line why it does not go on."""
    last = finish(process, status=2).splitlines()[-1]
    assert last.startswith("llmcl: ") and "; choose" in last or "make room" in last, last
    return last


def no_litter(folder: Path, names=(*WRITTEN, ".lock")) -> None:
    assert {path.name for path in folder.iterdir()} <= set(names)


# ---- killed ----


def test_killed_at_four_moments_and_resumed():
    told = endurance.kills(4, seed=1)
    assert sum(count for where, count in told.items() if "seconds" not in where) == 4


@pytest.mark.parametrize("number", [1, 2, 3, 7, 8, 10])
def test_killed_in_the_middle_of_a_write_leaves_no_litter_behind_the_next(tmp_path, good, number):
    """The number-th file is on the disk under its temporary name when the process is gone."""
    code = (
        "import os, signal, sys\nfrom llmcl import cli, files\ncount, sync = 0, os.fsync\n"
        "def last(descriptor):\n    global count\n    count += 1\n"
        f"    if count == {number}: os.kill(os.getpid(), signal.SIGKILL)\n    sync(descriptor)\n"
        "files.os.fsync = last\nsys.exit(cli.main(sys.argv[1:]))"
    )
    out = tmp_path / "새 [a] *"
    process = start(out, **QUICK, code=code)
    process.communicate(timeout=60)
    assert process.returncode == -9
    left = [path.name for path in out.glob(".*.tmp")]
    assert len(left) == 1, left
    endurance.check_checkpoints(out, good)
    finish(start(out, "--resume", **QUICK))
    assert results(out) == good.results  # which also says that no other file is there


def test_only_leftovers_of_the_runs_own_files_are_removed(tmp_path):
    own = [f".{name[:30]}.0123456789ab.tmp" for name in WRITTEN]
    others = [
        ".other.gguf.0123456789ab.tmp", "model.gguf.tmp", ".model.gguf.tmp", ".0123456789ab.tmp",
        ".model.gguf.0123456789xy.tmp", ".model.gguf.0123456789ab.tmp.mine",
    ]  # fmt: skip
    for name in own + others:
        (tmp_path / name).touch()
    files.remove_leftovers(tmp_path, WRITTEN)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


@pytest.mark.parametrize("name", ["model.gguf", "글" * 80, "a" * 250, "a.b [*]"])
def test_what_a_killed_write_leaves_is_found_by_its_name(tmp_path, name):
    with contextlib.suppress(KeyError), files.replacing(tmp_path / name, DataError) as temporary:
        copy = tmp_path / f"{temporary.name}"
        raise KeyError
    assert not copy.exists()
    copy.touch()
    files.remove_leftovers(tmp_path, [name])
    assert not copy.exists()


# ---- no room ----


@contextlib.contextmanager
def mounted(folder: Path, options: str):
    """A file system in memory at the folder; skips the test where nothing may be mounted."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nothing may be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("kib", [4, 200, 480, 520])
def test_full_disk(tmp_path, good, kib):
    """A disk with room for nothing, for the first checkpoint, for some, and for nearly all."""
    with mounted(tmp_path / "disk", f"size={kib}k") as disk:
        out = disk / "out"
        told = refusal(start(out, **QUICK, at=tmp_path))
        assert "No space left on device" in told and str(out) in told
        if kib > 4:
            no_litter(out)
            endurance.check_checkpoints(out, good)
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        finish(start(out, "--resume", **QUICK, at=tmp_path))
        assert results(out) == good.results


def test_full_disk_under_an_older_result(tmp_path, good):
    with mounted(tmp_path / "disk", "size=4m") as disk:
        out = disk / "out"
        finish(start(out, **QUICK, at=tmp_path))
        with open(disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        assert "No space left" in refusal(start(out, **QUICK, at=tmp_path))
        assert results(out) == good.results


# ---- no right to write ----


def bound_by_modes():
    """Called in a child: takes from root the power to pass over permission bits."""
    if os.getuid() == 0:
        prctl = ctypes.CDLL(None).prctl
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                os._exit(77)


@pytest.fixture(scope="module")
def bound():
    """Options for a child that may not write where the permission bits do not let it."""
    child = [sys.executable, "-c", "import os; print(os.access('.', os.W_OK))"]
    options = {"preexec_fn": bound_by_modes}
    if subprocess.run(child, **options, capture_output=True).returncode:
        pytest.skip("root is not bound by permission bits here")
    return options


@contextlib.contextmanager
def read_only(folder: Path):
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


def test_folder_read_only(tmp_path, bound, good):
    out = tmp_path / "out"
    for place in (tmp_path, out):  # where the folder must be made, and in the folder
        with read_only(place):
            told = refusal(start(out, **QUICK, **bound, at=tmp_path))
        assert f"the folder {out} cannot be written (Permission denied)" in told
        out.mkdir(exist_ok=True)
    finish(start(out, **QUICK))
    for name in results(out):
        (out / name).chmod(0o444)
    before = results(out)
    with read_only(out):
        told = refusal(start(out, **QUICK, **bound, at=tmp_path))
    assert "Permission denied" in told and results(out) == before == good.results
    finish(start(out, **QUICK, **bound))  # a file that is read-only is replaced all the same


def test_folder_read_only_in_the_middle(tmp_path, bound, good):
    out = tmp_path / "out"
    process = start(out, **QUICK, **bound)
    while not (out / RUNNING).exists():
        need(process.poll() is None, "the run ended before its first checkpoint")
        time.sleep(0.001)
    with read_only(out):
        told = refusal(process)
        assert "cannot write" in told and "Permission denied" in told
    endurance.check_checkpoints(out, good)
    assert load_checkpoint(out / RUNNING).state["stage"] == "pretrain"
    finish(start(out, "--resume", **QUICK))
    assert results(out) == good.results


def test_file_system_read_only(tmp_path, good):
    with mounted(tmp_path / "disk", "size=4m") as disk:
        out = disk / "out"
        finish(start(out, **QUICK, at=tmp_path))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert "(Read-only file system)" in refusal(start(out, **QUICK, at=tmp_path))
        assert results(out) == good.results


def test_folder_that_goes_away(tmp_path):
    out = tmp_path / "out"
    process = start(out, **QUICK)
    while not (out / ".lock").exists():
        need(process.poll() is None, "the run ended at once")
        time.sleep(0.001)
    out.rename(tmp_path / "elsewhere")
    assert re.search("cannot (write|be written)", refusal(process)) and not out.exists()


def test_a_link_to_a_folder_that_is_not_there_yet(tmp_path, good):
    (tmp_path / "link").symlink_to(tmp_path / "out")
    finish(start(tmp_path / "link", **QUICK))
    assert results(tmp_path / "out") == good.results


# ---- a crowd ----


def test_many_runs_in_one_folder_are_one(tmp_path, good):
    out, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(out)
    running = [start(out if n % 2 else link, "--resume", **QUICK) for n in range(6)]
    ended = 0
    for process in running:
        _, told = process.communicate(timeout=120)
        assert process.returncode == 0 or "another run is writing to" in told, told
        ended += process.returncode == 0
    assert ended >= 1 and results(out) == good.results


def test_three_runs_at_once_with_one_new_home():
    # Each builds its kernels, which is what takes time; eight are a long run by hand.
    assert endurance.crowd(1, size=3)["ended alike"] == 3


# ---- many steps ----


@pytest.mark.parametrize("device", ["numpy", ""])
def test_memory_over_some_hundred_steps(device):
    told = endurance.steps(600, device, compare=False)
    assert told["grown MiB"] < 8 and told["engine grown MiB"] < 0.1, told


# ---- what a lesson keeps ----


def test_what_a_lesson_keeps_stays_when_the_disk_refuses(tmp_path, monkeypatch):
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path))
    session.keep("10", "loss", 0.5)
    notes.note_finding(tmp_path, "update", "gelu.cl", "gelu_forward", "a wrong constant")
    before = (tmp_path / notes.FILE).read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(LlmclError, match=r"cannot write .*kept.json \(No space left"):
        session.keep("10", "loss", 0.25)
    with pytest.raises(LlmclError, match=r"cannot write .*findings.json \(No space left"):
        notes.note_finding(tmp_path, "update", "other.cl", "other", "none")
    assert session.kept("10", "loss") == 0.5
    assert (tmp_path / notes.FILE).read_bytes() == before
    no_litter(tmp_path / "lesson-10", ["kept.json"])
