"""Runs a notebook, and takes out of it what differs from run to run."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from builder import places
from builder.places import BuildError
from builder.source import assemble

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
VARIES = "(Run this cell: what it prints differs from device to device.)\n"
# A cell is stopped at four times what a lesson's cell may take on two cores with PoCL.
SECONDS_FOR_A_CELL, SECONDS_FOR_A_LESSON = 30, 90
SECONDS_BEFORE_STOPPING = 4 * SECONDS_FOR_A_CELL


def run(notebook: nbformat.NotebookNode, folder: Path, **variables: str) -> dict[str, float]:
    """Executes the notebook in a folder: the seconds of each code cell, by its id.

    The kernel finds this checkout's llmcl; `variables` are added to its environment. What it writes
    goes to a folder of its own, so that no model or number of an earlier run shows in the result.
    """
    paths = [str(places.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
    metadata = notebook.metadata.copy()
    began, seconds = {}, {}

    def begin(cell: nbformat.NotebookNode, **_) -> None:
        began[cell.id] = time.monotonic()

    def end(cell: nbformat.NotebookNode, **_) -> None:
        seconds[cell.id] = time.monotonic() - began[cell.id]

    client = NotebookClient(
        notebook,
        timeout=SECONDS_BEFORE_STOPPING,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        on_cell_execute=begin,
        on_cell_executed=end,
        resources={"metadata": {"path": str(folder)}},
    )
    # What the kernel's process itself writes (not its cells) is about sockets, and not for readers.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as lab:
        client.execute(env=environment | {"LLMCL_LAB": lab} | variables, **quiet)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            rename(output, lab, "build")
    notebook.metadata = metadata  # without the kernel's version and the widgets' state
    return seconds


def run_solutions(name: str, folder: Path | None = None) -> dict[str, float]:
    """Runs a source with every solution in place: the seconds of each code cell, by its id.

    A missing or a wrong solution raises CellExecutionError, as it does for a grader.
    """
    notebook = assemble(name, solved=True)
    return run(notebook, folder or places.FOLDER, LLMCL_GRADE="1")


def too_slow(seconds: dict[str, float], factor: float = 1.0) -> list[str]:
    """What takes longer than a lesson's cell, or a lesson, may; [] when all is well."""
    limit, whole = factor * SECONDS_FOR_A_CELL, factor * SECONDS_FOR_A_LESSON
    lines = [
        f"cell {cell} takes {s:.0f} s, more than {limit:.0f} s"
        for cell, s in seconds.items()
        if s > limit
    ]
    total = sum(seconds.values())
    return lines + [f"the lesson takes {total:.0f} s, more than {whole:.0f} s"] * (total > whole)


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
    private = [str(places.ROOT), str(Path.home()), tempfile.gettempdir()]
    for text in texts(output):
        for word in private:
            if len(word) > 1 and word in text:
                raise BuildError(f"cell {cell.id} prints {word!r}, which is this machine's own.")


def rename(output: nbformat.NotebookNode, folder: str, shown: str) -> None:
    """Shows a folder by another name wherever an output names it."""
    if "text" in output:
        output.text = output.text.replace(folder, shown)
    for kind, value in output.get("data", {}).items():
        if kind.startswith("text/"):
            output.data[kind] = value.replace(folder, shown)


def texts(output: nbformat.NotebookNode) -> list[str]:
    """What can be read in an output."""
    data = output.get("data", {})
    return [output.get("text", "")] + [str(v) for k, v in data.items() if k.startswith("text/")]
