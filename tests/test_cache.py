"""Cache slots: one process each, found again later, never trusted when something is off."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmcl import cache

ROOT = Path(__file__).resolve().parent.parent
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs POSIX processes and modes")


def run_python(code: str, *, home: Path | None = None, **settings) -> subprocess.Popen:
    """Python with `code`, a home of its own and no setting from outside."""
    names = ("LLMCL_CACHE", "LLMCL_DEVICE", "POCL_CACHE_DIR", "XDG_CACHE_HOME", cache.LENT)
    environment = {k: v for k, v in os.environ.items() if k not in names}
    environment.update({k: str(v) for k, v in settings.items()}, PYTHONIOENCODING="utf-8")
    if home is not None:
        environment["HOME"] = str(home)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def answer(process: subprocess.Popen) -> dict:
    """What the child printed as JSON in its last line."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out.splitlines()[-1])


TELL = """
import json
from llmcl.cache import process_cache
c = process_cache()
print(json.dumps({"folder": str(c.folder), "kind": c.kind, "notes": c.notes}))
"""
CHOOSE = """
import json
from llmcl.device import choose
from llmcl.cache import process_cache
d = choose()
c = process_cache()
print(json.dumps({"folder": str(c.folder), "kind": c.kind, "notes": d.notes, "ok": d.trial.ok}))
"""


def kernel_file(taken: cache.Cache, name: str = "a/kernel.so", text: str = "machine code") -> Path:
    file = taken.part("pocl") / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_slot_is_kept_for_the_next_process(tmp_path):
    first = cache._take_slot(tmp_path)
    file = kernel_file(first)
    first.remember("device")
    cache._close(first)
    second = cache._take_slot(tmp_path)
    assert second.folder == first.folder
    assert file.read_text(encoding="utf-8") == "machine code"
    assert second.knows("device") and not second.knows("another device")
    cache._close(second)


def test_slot_in_use_is_left_alone(tmp_path):
    first, second = cache._take_slot(tmp_path), cache._take_slot(tmp_path)
    assert [first.folder.name, second.folder.name] == ["slot-0", "slot-1"]
    cache._close(first)
    third = cache._take_slot(tmp_path)
    assert third.folder.name == "slot-0"
    for taken in (second, third):
        cache._close(taken)


@pytest.mark.parametrize("damage", ["truncated", "removed", "foreign version", "no list", "large"])
def test_slot_that_is_not_as_it_was_left_is_wiped(tmp_path, monkeypatch, damage):
    first = cache._take_slot(tmp_path)
    file, other = kernel_file(first), kernel_file(first, "b/kernel.so")
    cache._close(first)
    if damage == "truncated":
        os.truncate(file, 5)
    elif damage == "removed":
        file.unlink()
    elif damage == "foreign version":
        monkeypatch.setattr(cache, "__version__", "0.0.0")
    elif damage == "no list":
        (first.folder / "contents.json").write_text("{", encoding="utf-8")
    else:
        monkeypatch.setattr(cache, "MAX_BYTES", 10)
    second = cache._take_slot(tmp_path)
    assert second.folder == first.folder
    assert not other.exists()
    cache._close(second)


def test_after_a_killed_owner_only_listed_files_stay(tmp_path):
    first = cache._take_slot(tmp_path)
    whole = kernel_file(first)
    cache._close(first)
    killed = cache._take_slot(tmp_path)
    half = kernel_file(killed, "b/kernel.so", "half a ker")
    killed.lock.release()  # as the system does for a process that is gone
    third = cache._take_slot(tmp_path)
    assert third.folder == first.folder
    assert whole.exists() and not half.exists()
    cache._close(third)


def test_files_that_pocl_leaves_behind_are_removed_and_harmless(tmp_path):
    first = cache._take_slot(tmp_path)
    kept, stray = kernel_file(first), kernel_file(first, "tempfile_Ab3")
    cache._close(first)
    second = cache._take_slot(tmp_path)
    assert kept.exists() and not stray.exists()
    cache._close(second)


@posix_only
@pytest.mark.parametrize("trap", ["link", "open to others", "a file", "foreign"])
def test_slot_that_is_not_ours_alone_is_passed_over(tmp_path, trap):
    root, slot, elsewhere = tmp_path / "root", tmp_path / "root" / "slot-0", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "valuable").touch()
    if trap == "link":
        slot.symlink_to(elsewhere)
    elif trap == "a file":
        slot.touch()
    else:
        slot.mkdir(mode=0o700)
        if trap == "open to others":
            slot.chmod(0o755)
        elif os.getuid() == 0:
            os.chown(slot, 12345, -1)
        else:
            pytest.skip("only root can give a folder away")
    taken = cache._take_slot(root)
    assert taken.folder.name == "slot-1"
    assert (elsewhere / "valuable").exists()
    cache._close(taken)


@posix_only
def test_folder_where_everybody_may_write_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    told = answer(run_python(TELL, LLMCL_CACHE=tmp_path))
    assert told["kind"] == "temporary"
    assert str(tmp_path) in told["notes"][0] and "LLMCL_CACHE" in told["notes"][0]
    assert not Path(told["folder"]).exists()


def test_the_switch_off_gives_a_folder_that_is_removed_at_the_end(tmp_path):
    told = answer(run_python(TELL, home=tmp_path, LLMCL_CACHE="OFF"))
    assert told["kind"] == "temporary" and told["notes"] == []
    assert not Path(told["folder"]).exists()
    assert list(tmp_path.iterdir()) == []


def test_no_folder_at_all_is_one_sentence(monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.tempfile, "mkdtemp", full)
    with pytest.raises(cache.DeviceError, match="No space left on device.*LLMCL_CACHE"):
        cache._temporary([])


@posix_only
@pytest.mark.parametrize("home", ["missing", "file", "XDG_CACHE_HOME", "LLMCL_CACHE"])
def test_unusable_folders_give_a_temporary_one_and_a_note(tmp_path, home):
    file = tmp_path / "file"
    file.touch()
    if home in ("missing", "file"):
        told = answer(run_python(TELL, home=tmp_path / home))
    else:
        told = answer(run_python(TELL, home=tmp_path, **{home: file / "cache"}))
    assert told["kind"] == "temporary"
    assert str(tmp_path) in told["notes"][0]
    assert sorted(tmp_path.iterdir()) == [file]  # nothing was made


@posix_only
def test_devices_work_without_any_folder_of_the_users(tmp_path):
    file = tmp_path / "file"
    file.touch()
    told = answer(run_python(CHOOSE, home=file, XDG_CACHE_HOME=file, POCL_CACHE_DIR=file / "x"))
    assert told["ok"] and told["kind"] == "temporary"
    assert any("POCL_CACHE_DIR" in note and str(file) in note for note in told["notes"])


@posix_only
def test_home_with_hangul_and_a_space_keeps_its_kernels(tmp_path):
    home = tmp_path / "한글 사용자"
    home.mkdir()
    first = answer(run_python(CHOOSE, home=home, LLMCL_DEVICE="cpu"))
    before = cache._files(Path(first["folder"]))
    second = answer(run_python(CHOOSE, home=home, LLMCL_DEVICE="cpu"))
    assert first == second == {**first, "kind": "slot", "notes": [], "ok": True}
    assert Path(first["folder"]).is_relative_to(home)
    assert before and cache._files(Path(first["folder"])) == before  # nothing was built again


@posix_only
def test_eight_processes_at_once_with_one_fresh_home(tmp_path):
    told = [answer(p) for p in [run_python(CHOOSE, home=tmp_path) for _ in range(8)]]
    assert all(one["ok"] and one["kind"] == "slot" and one["notes"] == [] for one in told)
    # The first may have ended before the last began.
    assert {Path(one["folder"]).name for one in told} <= {f"slot-{n}" for n in range(8)}


@posix_only
def test_killed_process_leaves_its_slot_to_the_next(tmp_path):
    code = (
        TELL
        + """
import sys, time
(c.part("pocl") / "half.so").write_text("half")
sys.stdout.flush()
time.sleep(60)
"""
    )
    process = run_python(code, home=tmp_path)
    folder = Path(json.loads(process.stdout.readline())["folder"])
    assert answer(run_python(TELL, home=tmp_path))["folder"] == str(folder.with_name("slot-1"))
    while not (folder / "pocl" / "half.so").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (folder / "in-use").exists()
    assert answer(run_python(TELL, home=tmp_path))["folder"] == str(folder)
    assert not (folder / "pocl" / "half.so").exists() and not (folder / "in-use").exists()


@posix_only
def test_forked_child_keeps_the_parents_slot_locked(tmp_path):
    code = (
        TELL
        + """
import os, subprocess, sys
child = os.fork()
if child == 0:
    other = process_cache()
    sys.exit(0 if other.folder.name == "slot-1" else 3)  # ends as a program does, not by _exit
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
held = (c.folder / "in-use").exists() and (c.folder.parent / "slot-1").exists()
third = subprocess.run([sys.executable, "-c", "from llmcl.cache import process_cache;"
                        "print(process_cache().folder.name)"], capture_output=True, text=True)
print(json.dumps({"status": status, "held": held, "third": third.stdout.strip()}))
"""
    )
    told = answer(run_python(code, home=tmp_path))
    assert told == {"status": 0, "held": True, "third": "slot-1"}
