"""Builds the notebooks: notebooks/src/NAME.py becomes notebooks/NAME.ipynb, executed.

    python notebooks/build.py [NAME ...]              build these, or all
    python notebooks/build.py --check [NAME ...]      run nothing, say what is out of date
    python notebooks/build.py --solutions [NAME ...]  run the solutions, store nothing

A source is jupytext's percent format. Its header holds the lesson's metadata under
`jupyter: llmcl:`. Every prose cell has an id (`# %% [markdown] id="idea"`), which becomes the
notebook's cell id, so a translation can be laid over block by block: prose() gives the blocks and
their digests. Code and outputs are the same in every language.

The lines between `### BEGIN SOLUTION` and `### END SOLUTION` (`//` in a kernel's text) become a
stub, and follow the cell as a folded block. A cell tagged `varies` prints what differs from
device to device: nobody compares it, and a note is stored in place of its output.

Two builds on one machine give the same bytes.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
VARIES = "(Run this cell: what it prints differs from device to device.)\n"
SECONDS_PER_CELL = 120

SOLUTION = re.compile(
    r"^(?P<indent>[ ]*)(?P<mark>###|//) BEGIN SOLUTION\n"
    r"(?P<body>.*?)"
    r"^[ ]*(?:###|//) END SOLUTION\n?",
    re.MULTILINE | re.DOTALL,
)
STUBS = {"###": "raise NotImplementedError()\n", "//": "#error not written yet\n"}


class BuildError(Exception):
    """A source that cannot become a notebook, or a notebook that must not be stored."""


def read_source(name: str) -> tuple[nbformat.NotebookNode, str]:
    """The source as a notebook that has not run, and the digest of its text."""
    path = FOLDER / "src" / f"{name}.py"
    if not path.is_file():
        raise BuildError(f"{name}: there is no notebooks/src/{name}.py.")
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    notebook = jupytext.reads(text, fmt="py:percent")
    if not {"title", "needs", "introduces", "minutes"} <= set(notebook.metadata.get("llmcl", {})):
        raise BuildError(f"{name}: the header needs title, needs, introduces and minutes.")
    return notebook, digest(text)


def digest(text: str) -> str:
    """A short sum of a text, to see whether it has changed."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def prose(name: str) -> dict[str, tuple[str, str]]:
    """Each prose block of a source: its id -> (digest of the English, the English)."""
    cells = assemble(name).cells
    return {c.id: (digest(c.source), c.source) for c in cells if c.cell_type == "markdown"}


def stub_and_solution(source: str) -> tuple[str, str]:
    """The cell as a learner gets it, and the cell as solved ("" if there is nothing to solve)."""
    stub = SOLUTION.sub(lambda m: m["indent"] + STUBS[m["mark"]], source).rstrip("\n")
    solved = SOLUTION.sub(lambda m: m["body"], source).rstrip("\n")
    if "BEGIN SOLUTION" in stub or "END SOLUTION" in stub:
        raise BuildError(f"a solution's markers do not match in:\n{source}")
    return stub, solved if solved != stub else ""


def assemble(name: str, solved: bool = False) -> nbformat.NotebookNode:
    """The notebook that has not run yet: stubs or solutions, ids, fixed metadata."""
    source, source_digest = read_source(name)
    number = name.split("_")[0]
    cells, blocks, codes = [], set(), 0
    for cell in source.cells:
        if cell.cell_type == "markdown":
            block = cell.metadata.get("id")
            if not block or block in blocks:
                first = cell.source.splitlines()[0]
                raise BuildError(f"{name}: the prose cell {first!r} needs an id of its own.")
            blocks.add(block)
            cells.append(new_cell("markdown", f"{number}-{block}", cell.source))
            continue
        codes += 1
        stub, solution = stub_and_solution(cell.source)
        shown = solution if solved and solution else stub
        code = new_cell("code", f"{number}-code-{codes}", shown)
        tags = cell.metadata.get("tags", [])
        if tags:
            code.metadata["tags"] = tags + ["nbval-ignore-output"] * ("varies" in tags)
        cells.append(code)
        if solution and not solved:
            cells.append(new_cell("markdown", f"{number}-code-{codes}-solution", fold(solution)))
    lesson = dict(source.metadata["llmcl"])
    lesson |= {"source": source_digest, "cells": digest_of_cells(cells)}
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
        "llmcl": lesson,
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def digest_of_cells(cells: list[nbformat.NotebookNode]) -> str:
    """A sum of the cells' ids and text, to see whether somebody has written in them."""
    return digest("\n".join(f"{cell.id}\n{cell.source}" for cell in cells))


def has_own_work(path: Path) -> bool:
    """Whether the stored notebook's cells are no longer those that were built."""
    stored = nbformat.read(path, as_version=4)
    return stored.metadata.get("llmcl", {}).get("cells") != digest_of_cells(stored.cells)


def new_cell(kind: str, cell_id: str, source: str) -> nbformat.NotebookNode:
    """A cell with an id of ours."""
    make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
    return make(source, id=cell_id)


def fold(solution: str) -> str:
    """The solution as a folded block of Markdown."""
    return f"<details><summary>Solution</summary>\n\n```python\n{solution}\n```\n\n</details>"


def run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Executes the notebook in a folder, by a kernel that finds this checkout's llmcl."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
    metadata = notebook.metadata.copy()
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    # What the kernel's process itself writes (not its cells) is about sockets, and not for readers.
    client.execute(env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    notebook.metadata = metadata  # without the kernel's version and the widgets' state


def clean(notebook: nbformat.NotebookNode) -> None:
    """Takes out what differs from run to run; raises BuildError for what must not be stored."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if cell.execution_count is None:
            raise BuildError(f"cell {cell.id} was not run.")
        if "varies" in cell.metadata.get("tags", []):
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=VARIES)]
        outputs = [stable(output) for output in cell.outputs]
        cell.outputs = [output for output in outputs if output]
        for output in cell.outputs:
            refuse(cell, output)


def stable(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    """The output without its live widget; None if nothing else was in it."""
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
        output.metadata.pop(WIDGET_VIEW, None)
        if not output.data:
            return None
    return output


def refuse(cell: nbformat.NotebookNode, output: nbformat.NotebookNode) -> None:
    """Raises BuildError for standard error and for whatever names this machine."""
    if output.get("name") == "stderr":
        raise BuildError(f"cell {cell.id} writes to standard error: {output.text}")
    texts = [output.get("text", "")]
    texts += [str(v) for kind, v in output.get("data", {}).items() if kind.startswith("text/")]
    private = [str(ROOT), str(Path.home()), tempfile.gettempdir()]
    for text in texts:
        for word in private:
            if len(word) > 1 and word in text:
                raise BuildError(f"cell {cell.id} prints {word!r}, which is this machine's own.")


def build(name: str, force: bool = False) -> None:
    """Runs a source and stores the notebook; never over a reader's own work unless forced."""
    path = FOLDER / f"{name}.ipynb"
    if not force and path.is_file() and has_own_work(path):
        raise BuildError(
            "the notebook holds work of your own; keep a copy under another name, then "
            f"run `python notebooks/build.py --force {name}`."
        )
    notebook = assemble(name)
    run(notebook, FOLDER)
    clean(notebook)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook, version=4).rstrip("\n") + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def out_of_date(name: str) -> str:
    """Why the stored notebook is not what its source would give; "" if it is."""
    path = FOLDER / f"{name}.ipynb"
    if not (FOLDER / "src" / f"{name}.py").is_file():
        return "it has no source in notebooks/src"
    if not path.is_file():
        return "it has not been built"
    stored, fresh = nbformat.read(path, as_version=4), assemble(name)
    if stored.metadata.get("llmcl", {}).get("source") != fresh.metadata["llmcl"]["source"]:
        return "its source has changed since it was built"
    if has_own_work(path) or stored.metadata["llmcl"] != fresh.metadata["llmcl"]:
        return "somebody has written in it since it was built"
    return ""


def run_solutions(name: str, folder: Path = FOLDER) -> None:
    """Runs a source with every solution in place, where a missing or wrong one raises."""
    notebook = assemble(name, solved=True)
    os.environ["LLMCL_GRADE"] = "1"
    try:
        run(notebook, folder)
    finally:
        del os.environ["LLMCL_GRADE"]


def all_names() -> list[str]:
    """Every lesson that has a source or a notebook, in the order of reading."""
    paths = [*(FOLDER / "src").glob("*.py"), *FOLDER.glob("*.ipynb")]
    return sorted({path.stem for path in paths})


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, or 1 when something is out of date or cannot be built."""
    parser = argparse.ArgumentParser(description="Build the notebooks from notebooks/src.")
    parser.add_argument("names", nargs="*", help="such as 00_start_here; all without one")
    parser.add_argument("--check", action="store_true", help="run nothing, say what is out of date")
    parser.add_argument("--force", action="store_true", help="build over a reader's own work too")
    parser.add_argument("--solutions", action="store_true", help="run the solutions, store nothing")
    options = parser.parse_args(arguments)
    status = 0
    for name in [Path(n).stem for n in options.names] or all_names():
        try:
            if options.check:
                reason = out_of_date(name)
                if reason:
                    print(f"{name}: {reason}; run `make notebooks`")
                    status = 1
            elif options.solutions:
                run_solutions(name)
                print(f"{name}: every solution passes")
            else:
                build(name, options.force)
                print(f"{name}: built")
        except (BuildError, CellExecutionError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
