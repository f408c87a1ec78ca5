"""Writes notebooks, never over anybody's own work, and says which are out of date."""

from pathlib import Path

import nbformat

from builder import places
from builder.execute import clean, run
from builder.places import BuildError
from builder.source import assemble, digest_of_cells


def write(notebook: nbformat.NotebookNode, path: Path, force: bool = False) -> None:
    """Stores a notebook; raises BuildError where somebody has written in the one that is there."""
    if not force and path.is_file() and has_own_work(path):
        raise BuildError(
            f"{path.name} holds work of your own; keep a copy under another name, then run the "
            "same command with --force."
        )
    nbformat.validate(notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = nbformat.writes(notebook, version=4).rstrip("\n") + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def has_own_work(path: Path) -> bool:
    """Whether the stored notebook's cells are no longer those that were built."""
    stored = nbformat.read(path, as_version=4)
    return stored.metadata.get("llmcl", {}).get("cells") != digest_of_cells(stored.cells)


def build(name: str, force: bool = False) -> dict[str, float]:
    """Runs a source and stores the notebook: the seconds of each code cell, by its id."""
    path = places.FOLDER / f"{name}.ipynb"
    if not force and path.is_file() and has_own_work(path):
        raise BuildError(  # before the run, which takes a while
            "the notebook holds work of your own; keep a copy under another name, then "
            f"run `python notebooks/build.py --force {name}`."
        )
    notebook = assemble(name)
    seconds = run(notebook, places.FOLDER)
    clean(notebook)
    write(notebook, path, force=True)
    return seconds


def out_of_date(name: str) -> str:
    """Why the stored notebook is not what its source would give; "" if it is."""
    path = places.FOLDER / f"{name}.ipynb"
    if not (places.FOLDER / "src" / f"{name}.py").is_file():
        return "it has no source in notebooks/src"
    if not path.is_file():
        return "it has not been built"
    stored, fresh = nbformat.read(path, as_version=4), assemble(name)
    if stored.metadata.get("llmcl", {}).get("source") != fresh.metadata["llmcl"]["source"]:
        return "its source has changed since it was built"
    if has_own_work(path):
        return "somebody has written in it since it was built"
    if stored.metadata["llmcl"] != fresh.metadata["llmcl"]:
        return "the glossary, or the builder, has changed since it was built"
    return ""


def stored(name: str) -> nbformat.NotebookNode:
    """The built notebook with its outputs; raises BuildError if it is out of date."""
    reason = out_of_date(name)
    if reason:
        raise BuildError(f"{reason}; run `python notebooks/build.py {name}` first.")
    return nbformat.read(places.FOLDER / f"{name}.ipynb", as_version=4)
