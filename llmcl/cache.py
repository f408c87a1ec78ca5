"""A cache folder for compiled kernels that belongs to this process alone while it lives.

Drivers write compiled kernels to one folder for each user. Processes that share it spoil each
other's builds, and a file that was cut short can end a later process without a word (PoCL maps
it into memory and stops with a bus error). So the user's cache holds numbered slots:

    <user cache>/llmcl/slot-0.lock      held by the process that uses the slot
    <user cache>/llmcl/slot-0/          its files: pocl/, pyopencl/, xdg/, vendors/
    .../in-use                          there while the owner lives; left behind if it was killed
    .../contents.json                   size of every file at the last clean end

A process takes the first free slot, so a later one finds the kernels of an earlier one. A slot
is wiped when a listed file has another size; after a killed owner, what is not listed goes.

`LLMCL_CACHE` is the one switch: a folder of your own, or `off` for a temporary folder that is
removed at the end.
"""

import atexit
import contextlib
import json
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs
from filelock import BaseFileLock, FileLock, Timeout

from . import __version__
from .errors import DeviceError

MAX_SLOTS = 64
MAX_BYTES = 1 << 30  # a slot that has grown beyond this starts again
LENT = "LLMCL_CACHE_LENT"  # set only for the child of a trial: its parent holds the lock
_MARKER = "in-use"
_ROOM = 1 << 16  # bytes that must be free
_CONTENTS = "contents.json"
_TRIED = "tried.json"
_CHOICES = "choices.json"
_STRAY = "tempfile_"  # PoCL leaves two of these behind in each process
_CHECKED = ("pocl", "pyopencl")  # xdg holds a database that looks after itself


@dataclass(eq=False)
class Cache:
    """The cache folder of this process: where it is, of which kind, and what went wrong."""

    folder: Path
    kind: str  # "slot", "temporary" or "lent"
    notes: list[str] = field(default_factory=list)
    lock: BaseFileLock | None = None
    pid: int = field(default_factory=os.getpid)

    def part(self, name: str) -> Path:
        """The sub-folder `name`, made if it is not there."""
        path = self.folder / name
        with writing(path):
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def knows(self, device: str) -> bool:
        """Whether `device` has worked in this cache before."""
        return device in _read_json(self.folder / _TRIED, [])

    def remember(self, device: str) -> None:
        """Keeps that `device` worked, so that the next process need not test it apart."""
        known = _read_json(self.folder / _TRIED, [])
        if device not in known:
            with contextlib.suppress(OSError):  # it is only tested apart once more
                _write_json(self.folder / _TRIED, [*known, device])

    def choice(self, key: str) -> int | None:
        """The number that keep_choice() kept under `key`, or None."""
        found = _read_json(self.folder / _CHOICES, {}).get(key)
        return found if isinstance(found, int) else None

    def keep_choice(self, key: str, number: int) -> None:
        """Keeps the result of a timed trial for the next process."""
        known = _read_json(self.folder / _CHOICES, {}) | {key: number}
        with contextlib.suppress(OSError):  # it is only measured once more
            _write_json(self.folder / _CHOICES, known)


_cache: Cache | None = None
_inherited: Cache | None = None  # a parent's; kept so that nothing ends its lock
_guard = threading.Lock()


def process_cache() -> Cache:
    """The Cache of this process; the first call takes a slot, which is given back at the end.

    A folder that cannot be used is replaced by a temporary one, and a note says so. Raises
    DeviceError when no folder at all can be written.
    """
    global _cache
    with _guard:
        if _cache is None:
            _cache = _open()
            atexit.register(_close, _cache)
        return _cache


@contextlib.contextmanager
def writing(path: Path):
    """What is written inside raises DeviceError where there is no room or no right to write."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:  # pyopencl keeps a database
        reason = getattr(error, "strerror", None) or str(error)
        raise DeviceError(
            f"The cache folder {path} cannot be written ({reason}); free some disk space, "
            "or set LLMCL_CACHE to another folder."
        ) from error


def usable(folder: Path) -> bool:
    """Whether files can be made in `folder`, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _after_fork() -> None:
    # The lock stays the parent's; a child that needs a cache takes a slot of its own.
    global _cache, _inherited, _guard
    _cache, _inherited, _guard = None, _cache, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _open() -> Cache:
    lent = os.environ.get(LENT)
    if lent:
        return Cache(Path(lent), "lent")
    wanted = os.environ.get("LLMCL_CACHE", "").strip()
    if wanted.lower() == "off":
        return _temporary([])
    root = None
    try:
        root = Path(wanted).expanduser().absolute() if wanted else _default_root()
        _make_root(root)
        return _take_slot(root)
    except (OSError, RuntimeError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        where = root if root is not None else "of this user"
        return _temporary(
            [
                f"The cache folder {where} cannot be used ({reason}), so compiled kernels are not "
                "kept; set LLMCL_CACHE to a folder of your own."
            ]
        )


def _default_root() -> Path:
    root = Path(platformdirs.user_cache_dir("llmcl", appauthor=False))
    home = Path.home()
    # A home that does not exist is a mistake in the set-up: do not make one.
    if root.is_relative_to(home) and not home.is_dir():
        raise FileNotFoundError(2, f"the home folder {home} does not exist")
    return root


def _make_root(root: Path) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = root.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise PermissionError(1, "everybody may write there")


def _is_ours(folder: Path) -> bool:
    """A real folder of this user that nobody else may enter: kernels in it will be executed."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


def _take_slot(root: Path) -> Cache:
    refused: OSError | None = None
    for number in range(MAX_SLOTS):
        lock = FileLock(root / f"slot-{number}.lock", mode=0o600, thread_local=False)
        folder = root / f"slot-{number}"
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        except PermissionError as error:  # a slot of another user, or a folder closed to us
            refused = error
            continue
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_ours(folder):
                _mend(folder)
                _mark(folder)
                return Cache(folder, "slot", lock=lock)
            refused = PermissionError(1, f"{folder.name} is not a folder of this user alone")
        except FileExistsError as error:
            refused = error
        except BaseException:
            lock.release()
            raise
        lock.release()
    raise refused or OSError(f"all {MAX_SLOTS} slots are in use")


def _mark(folder: Path) -> None:
    """Writes the marker; it is as large as a small kernel, so that a full disk shows here."""
    (folder / _MARKER).write_bytes(bytes(_ROOM))


def _temporary(notes: list[str]) -> Cache:
    try:
        folder = Path(tempfile.mkdtemp(prefix="llmcl-"))
        _mark(folder)
        return Cache(folder, "temporary", notes)
    except OSError as error:
        raise DeviceError(
            f"No folder can be written for compiled kernels ({error.strerror}); free some disk "
            "space, or set LLMCL_CACHE or TMPDIR to a folder that can be written."
        ) from error


def _files(folder: Path) -> dict[str, int]:
    """Size of every cached file, by its path below `folder`."""
    sizes = {}
    for part in _CHECKED:
        for path, _, names in os.walk(folder / part):
            for name in names:
                if name.startswith(_STRAY):
                    continue
                file = Path(path, name)
                sizes[file.relative_to(folder).as_posix()] = file.lstat().st_size
    return sizes


def _mend(folder: Path) -> None:
    """Leaves only files that a clean end has listed and that still have their size."""
    contents = _read_json(folder / _CONTENTS, {})
    listed = contents.get("files", {})
    there = _files(folder)
    damaged = any(there.get(name) != size for name, size in listed.items())
    if contents.get("llmcl") != __version__ or damaged or sum(there.values()) > MAX_BYTES:
        _wipe(folder)
    elif (folder / _MARKER).exists():
        for name in there.keys() - listed.keys():
            (folder / name).unlink()
        shutil.rmtree(folder / "xdg", ignore_errors=True)
    for stray in (folder / "pocl").glob(_STRAY + "*"):
        stray.unlink()


def _wipe(folder: Path) -> None:
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _close(cache: Cache) -> None:
    if cache.pid != os.getpid():
        return
    if cache.kind == "temporary":
        shutil.rmtree(cache.folder, ignore_errors=True)
    elif cache.kind == "slot":
        try:
            _write_json(
                cache.folder / _CONTENTS, {"llmcl": __version__, "files": _files(cache.folder)}
            )
            (cache.folder / _MARKER).unlink()
        except OSError:
            pass  # a full disk or a folder that is gone: the marker tells the next owner
        assert cache.lock  # a slot has one
        cache.lock.release()


def _read_json(path: Path, default):
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return default
    return value if type(value) is type(default) else default


def _write_json(path: Path, value) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(value), encoding="utf-8")
    new.replace(path)
