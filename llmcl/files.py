"""Writing a file whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import LlmclError


@contextmanager
def replacing(path: str | os.PathLike, error: type[LlmclError]) -> Iterator[Path]:
    """Gives a new path in the same folder, and moves it to `path` when the block went well.

    Until then an older file at `path` stays as it is, and after a failure too. Raises `error` if
    the folder or the disk refuses.
    """
    target = Path(path)
    temporary = target.parent / f".{secrets.token_hex(6)}.tmp"
    try:
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
        with suppress(OSError):
            temporary.unlink()
