"""Where the files that are not Python lie: beside the package, or inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _folder(name: str) -> Path:
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def kernels_dir() -> Path:
    """The folder that holds the .cl files."""
    return _folder("kernels")


def data_dir() -> Path:
    """The folder that holds pretrain.txt and tune.jsonl."""
    return _folder("data")
