"""Writing a file whole or not at all, and reading one that may be anything."""

import errno
import glob
import json
import os
import secrets
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .errors import LlmclError

_NO_NAME = "no file can have this name"
_NO_FILE = "it is a folder, a pipe or a device, and no ordinary file"
_NAME = 30  # characters of a file's name that are kept in the name of its replacement


def open_file(path: str | os.PathLike) -> BinaryIO:
    """An ordinary file, open for reading bytes.

    Raises OSError for everything else, also for a name that the system does not allow, and for a
    pipe or a device, which might never end.
    """
    try:
        file = open(path, "rb", opener=_open_at_once)
    except ValueError:  # a NUL, or half of a surrogate pair
        raise OSError(errno.EINVAL, _NO_NAME) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, _NO_FILE)
    return file


def _open_at_once(path: str, flags: int) -> int:
    # Opening a pipe waits for whoever writes into it, unless told not to.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse_json(text: str) -> Any:
    """What a JSON text says.

    Raises ValueError if it is none, and if an object has a field twice, of which Python would take
    the last; RecursionError if it is too deeply nested.
    """
    return json.loads(text, object_pairs_hook=_each_once)


def _each_once(pairs: list[tuple[str, object]]) -> dict:
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the field {name!r:.40} stands twice")
    return dict(pairs)


@contextmanager
def replacing(path: str | os.PathLike, error: type[LlmclError]) -> Iterator[Path]:
    """Gives a new path in the same folder, and moves it to `path` when the block went well.

    Until then an older file at `path` stays as it is, and after a failure too. Raises `error` if
    the folder or the disk refuses, and if a folder, a pipe or a device has the name.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name[:_NAME]}.{secrets.token_hex(6)}.tmp"
    try:
        _check_target(target)
        temporary.touch()
        usual = temporary.stat().st_mode  # a library may write the file with another mode
        yield temporary
        os.chmod(temporary, usual)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as reason:
        # NumPy's own error for a full disk brings no text of the system's.
        raise error(
            f"cannot write {target} ({reason.strerror or 'no space left on the disk'}): choose "
            "another folder or make room; what was there before is unchanged."
        ) from reason
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink()


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Removes what replacing() left for files of these names when its process was killed.

    Only for a caller who knows that nobody else is writing those files.
    """
    for name in names:
        for path in folder.glob(f".{glob.escape(name[:_NAME])}.{'[0-9a-f]' * 12}.tmp"):
            with suppress(OSError):  # it takes room, and does no other harm
                path.unlink()


def _check_target(path: Path) -> None:
    """Raises OSError where os.replace() would put a file in the place of something else."""
    try:
        mode = os.stat(path).st_mode
    except ValueError:
        raise OSError(errno.EINVAL, _NO_NAME) from None
    except OSError:
        return  # nothing is there yet, or the next step says what is wrong
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, _NO_FILE)
