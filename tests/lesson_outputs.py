"""What a lesson printed, compared with what is stored, by the rules of `make test`."""

import re

WIDGET = "application/vnd.jupyter.widget-view+json"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def compared(cell) -> bool:
    """Whether a cell prints the same on every device, so that it is compared."""
    return cell.cell_type == "code" and "nbval-ignore-output" not in cell.metadata.get("tags", [])


def words(outputs) -> list:
    """What outputs say: the text printed, then the texts shown; no pictures, no widgets."""
    printed = "".join(o["text"] for o in outputs if o.get("name") == "stdout")
    found = [printed] if printed else []
    for output in outputs:
        if output["output_type"] == "error":
            found.append(ANSI.sub("", f"{output['ename']}: {output['evalue']}"))
        shown = {k: v for k, v in output.get("data", {}).items() if k.startswith("text/")}
        found += ["".join(shown[kind]) for kind in sorted(shown)]
    return found


def differing(stored, outputs_by_id) -> tuple[int, list[str]]:
    """(how many cells were compared, a line for each that differs).

    outputs_by_id: the outputs of each code cell that ran, by the cell's id.
    """
    cells = [cell for cell in stored.cells if compared(cell)]
    lines = []
    for cell in cells:
        got = words(outputs_by_id[cell.id]) if cell.id in outputs_by_id else "not run"
        if got != words(cell.outputs):
            lines.append(f"{cell.id}: {got} is not {words(cell.outputs)}")
    return len(cells), lines
