"""The folders, and the one error, that all of the builder shares."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]
ROOT = FOLDER.parent


class BuildError(Exception):
    """A source that cannot become a notebook, or a notebook that must not be stored."""


def all_names() -> list[str]:
    """Every lesson that has a source or a notebook, in the order of reading."""
    paths = [*(FOLDER / "src").glob("*.py"), *FOLDER.glob("*.ipynb")]
    return sorted({path.stem for path in paths})


def number_of(name: str) -> str:
    """A lesson's number: `04a` of `04a_one_head`."""
    return name.split("_")[0]
