"""The comparison that the class tests use notices what make test would notice."""

import copy

import nbformat

from lesson_outputs import WIDGET, differing
from notebook_builder import FOLDER

STORED = nbformat.read(FOLDER / "00_start_here.ipynb", as_version=4)


def ran():
    """Outputs by cell id, as if the lesson had run."""
    return {c.id: copy.deepcopy(c.outputs) for c in STORED.cells if c.cell_type == "code"}


def stream(text, name="stdout"):
    return nbformat.v4.new_output("stream", name=name, text=text)


def test_the_same_outputs_are_equal_whatever_else_a_live_page_gets():
    outputs = ran()
    count, lines = differing(STORED, outputs)
    assert count > 30 and lines == []
    for cell in STORED.cells:
        if cell.cell_type == "code" and "varies" in cell.metadata.get("tags", []):
            outputs[cell.id] = [stream("another device\n")]
    first = next(iter(outputs))
    text = outputs[first][0].text
    outputs[first] = [stream(text[:3]), stream("a warning", "stderr"), stream(text[3:])]
    shown = next(o for cell in outputs.values() for o in cell if "image/png" in o.get("data", {}))
    shown["data"] |= {"image/png": "other", WIDGET: {"model_id": "x"}}
    assert differing(STORED, outputs) == (count, [])


def test_a_changed_word_an_error_and_a_cell_that_did_not_run_are_noticed():
    compared = [c for c in STORED.cells if c.cell_type == "code" and not c.metadata.get("tags")]
    changed, failed, gone = compared[1].id, compared[2].id, compared[3].id
    outputs = ran()
    outputs[changed].append(stream("x"))
    outputs[failed].append(nbformat.v4.new_output("error", ename="E", evalue="no", traceback=[]))
    del outputs[gone]
    _, lines = differing(STORED, outputs)
    assert [line.split(":")[0] for line in lines] == [changed, failed, gone]
    assert "not run" in lines[2]
