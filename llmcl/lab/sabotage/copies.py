"""Copies of the package: written with faults in them, and imported under a name of their own."""

import importlib.util
import itertools
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ...errors import LlmclError
from ...resources import data_dir, kernels_dir
from .faults import EXAMPLE, Fault, faults_of

NAME, MARK = "sabotaged", "number.txt"
_loads = itertools.count(1)
PACKAGE = Path(__file__).resolve().parents[2]
# What a package under test offers as m.data, m.model, …
MODULES = (
    "chat_format checkpoint config data engine evaluate generate gguf_file layers model ops "
    "optimizer reference resources settings tokenizer train"
).split()
TESTS = '''"""Your tests. Each takes a package m, and fails when there is a fault in m."""

import numpy as np


def test_example(m):
    """Softmax gives shares: every row has the sum 1."""
    shares = m.reference.softmax(np.random.default_rng(0).normal(size=(5, 7)))
    assert np.allclose(shares.sum(axis=-1), 1)
'''


def prepare(number: str, folder: Path) -> Path:
    """The folder of a number's sabotaged copy; made anew only where there is none.

    It holds the package `sabotaged`, which the student mends, and tests.py, which they fill.
    Raises LlmclError if the folder holds the copy of another number.
    """
    folder, there = Path(folder), number_of(folder)
    if there is not None:
        if there != str(number).strip():
            raise LlmclError(
                f"{folder.name} holds the copy of number {there}; choose that number again, or "
                "delete the folder to begin anew."
            )
        return folder
    write_copy(folder, faults_of(number))
    (folder / "tests.py").write_text(TESTS, encoding="utf-8", newline="\n")
    (folder / MARK).write_text(str(number).strip(), encoding="utf-8")
    return folder


def number_of(folder: Path) -> str | None:
    """The number whose copy a folder holds, or None."""
    mark = Path(folder) / MARK
    return mark.read_text(encoding="utf-8").strip() if mark.is_file() else None


def example(folder: Path, *, sound: bool = False) -> Path:
    """The folder of the lesson's example, made anew: a copy with one fault, or a sound one."""
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    write_copy(folder, [] if sound else [EXAMPLE])
    return folder


def write_copy(folder: Path, faults: Sequence[Fault]) -> None:
    """Writes folder/sabotaged: the package without its lab, with these faults in it."""
    target = folder / NAME
    unwanted = shutil.ignore_patterns("lab", "__pycache__", "kernels", "data", "*bench*", "cli.py")
    shutil.copytree(PACKAGE, target, ignore=unwanted, dirs_exist_ok=True)
    shutil.copytree(kernels_dir(), target / "kernels", dirs_exist_ok=True)
    shutil.copytree(data_dir(), target / "data", dirs_exist_ok=True)
    for fault in faults:
        for file, right, wrong in fault.changes:
            path = target / file
            text = path.read_text(encoding="utf-8")
            if right not in text:
                raise LlmclError(f"the fault {fault.name} finds no place in {file}.")
            path.write_text(text.replace(right, wrong), encoding="utf-8", newline="\n")


def load(folder: Path) -> ModuleType:
    """The copy in the folder, imported afresh, so that a changed file counts.

    Its modules are attributes: m.data, m.model, m.engine, … Each load has a name of its own, since
    a package that imports late must find itself, not the copy that was loaded after it. Raises
    LlmclError for a copy that Python cannot import.
    """
    name = f"{NAME}_{next(_loads)}"
    place = Path(folder) / NAME
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode  # a stale .pyc would count
    try:
        spec = importlib.util.spec_from_file_location(
            name, place / "__init__.py", submodule_search_locations=[str(place)]
        )
        assert spec and spec.loader  # the file is there: it was copied
        package = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
        for module in MODULES:
            importlib.import_module(f"{name}.{module}")
    except Exception as error:
        raise LlmclError(
            f"the copy cannot be imported: {type(error).__name__}: {error}; "
            "look at the file that you changed last."
        ) from error
    finally:
        sys.dont_write_bytecode = before
    return package
