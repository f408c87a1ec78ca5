"""Every lesson in JupyterLab, as a reader has it: run, looked at, moved, stopped, written in.

The tests of one lesson stand together (the fixture `lesson` opens it once), in the order of
reading, since a lesson uses what those before it have kept.
"""

import ast
import re

import nbformat
import pytest

from browser.chromium import NAMES, VARIABLE
from browser.lesson_page import LABEL, OPEN, STEP
from lesson_helpers import NOTEBOOKS
from notebook_builder import FOLDER

# What lab.* displays with a slider, in one call.
SLIDERS = {"explore", "explore_file", "explore_pieces", "view_items"}
# The lessons whose first training is stopped, and from which step on.
STOP = {"09_training": 20, "15_your_own_text": 20}
# What JupyterLab logs of itself: it looks for language servers, and there are none.
NOT_OURS = re.compile(r"404 \(Not Found\) \(http://[^ ]+/lsp/status")
# Lesson -> (exercise, the line that is typed over, wrong lines, their question, right lines).
TYPED = {
    "00_start_here": (
        "00.1", "raise NotImplementedError()",
        "return ids[1:], ids[:-1]", "Which of the two is the question?",
        "return ids[:-1], ids[1:]",
    ),
    "01a_a_first_kernel": (
        "01a.3", "#error not written yet",
        "if (i > n) return;\ny[i] = factor * x[i];",
        "Which work-items have no element of their own, and do they leave?",
        "if (i >= n) return;\ny[i] = factor * x[i];",
    ),
}  # fmt: skip


def lessons(names):
    """Runs a test for these lessons."""
    params = [pytest.param((name, STOP.get(name)), id=name) for name in names]
    return pytest.mark.parametrize("lesson", params, indirect=True)


def calls(source):
    """The names of the functions of `lab` that a cell calls."""
    return [
        node.func.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and getattr(node.func.value, "id", "") == "lab"
    ]


def faults(lesson, patience=STEP):
    """What a reader must not see after Run All; a widget may take so many milliseconds."""
    found = []
    for cell in lesson.cells():
        if not cell["count"]:
            found.append(f"{cell['id']}: has not run")
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                found.append(f"{cell['id']}: {output['ename']}: {output['evalue']}")
            if output.get("name") == "stderr":
                found.append(f"{cell['id']}: stderr: {output['text']}")
    blank = "images => images.filter(i => !(i.complete && i.naturalWidth > 0)).map(i => i.alt)"
    blank = lesson.page.locator(".jp-Notebook img").evaluate_all(blank)
    found += [f"a picture without pixels: {alt}" for alt in blank]
    return found + lesson.broken_widgets(patience)


@lessons(NOTEBOOKS)
def test_it_runs_to_its_end(lesson):
    lesson.to_the_top()
    lesson.shot("top")
    for number, picture in enumerate(lesson.pictures(), 1):
        lesson.shot(f"picture_{number}", picture)
    assert faults(lesson) == []


@lessons(NOTEBOOKS)
def test_its_sliders_move_by_mouse_and_by_keys(lesson):
    wanted = sum(call in SLIDERS for cell in lesson.cells() for call in calls(cell["source"]))
    sliders = lesson.sliders()
    assert len(sliders) == wanted
    for number, box in enumerate(sliders, 1):
        lesson.shot(f"slider_{number}_start", box)
        assert box.evaluate(LABEL), f"slider {number} does not say where it is"
        key = []
        lesson.changed(box, lambda box=box, key=key: key.append(lesson.drag(box)))
        lesson.shot(f"slider_{number}_mouse", box)
        handle = box.locator(".noUi-handle")
        handle.focus()
        for _ in range(lesson.places(box) - 1):
            lesson.changed(box, lambda key=key: lesson.page.keyboard.press(key[0]))
        lesson.shot(f"slider_{number}_keys", box)


@lessons(NOTEBOOKS)
def test_its_questions_reply_to_a_click(lesson):
    wanted = sum(call == "quiz" for cell in lesson.cells() for call in calls(cell["source"]))
    asked = lesson.page.locator(".jp-Notebook .widget-vbox:has(> .widget-toggle-buttons)")
    assert asked.count() == wanted
    for question in asked.all():
        question.get_by_role("button", name="A", exact=True).click()
        question.get_by_text(re.compile("^[✓✗] A: .")).wait_for()


@lessons(STOP)
def test_stop_leaves_a_usable_model(lesson):
    texts = "".join(cell["text"] for cell in lesson.cells())
    steps = [int(n) for n in re.findall(r"Stopped after step (\d+)\.", texts)]
    assert len(steps) == 1 and lesson.stopped_at <= steps[0] < 150
    if lesson.name == "09_training":
        assert lesson.value("optimizer.steps") == str(steps[0])
        assert "✓ a usable model: as it was when you stopped it" in texts


@lessons(["09_training"])
def test_the_cells_of_the_stopped_training_run_again_to_the_end(lesson):
    for source, said in (
        ("model, optimizer = fresh()\ngrown = {}", ""),
        ("run = await lab.watch(", "✓ trained to step 150"),
        ("assert run.stopped or", "✓ a usable model: all 25 sentences are known"),
    ):
        cell = lesson.cell(source)
        lesson.run(cell)
        if said:
            lesson.shows(cell, said)
            lesson.shot(f"to_the_end_{said.split()[-1]}", cell)


@lessons(TYPED)
def test_an_exercise_is_solved_by_typing(lesson):
    number, line, wrong, question, right = TYPED[lesson.name]
    cell = lesson.cell(f'exercise("{number}"')
    lesson.shows(cell, "○")
    lesson.type_over(cell, line, wrong)
    lesson.shows(cell, "✗")
    lesson.shot("typed_wrong", cell)
    assert question in cell.inner_text()
    lesson.type_over(cell, wrong, right)
    lesson.shows(cell, "✓")
    lesson.shot("typed_right", cell)


@lessons(NOTEBOOKS)
def test_the_console_has_no_error_of_ours(lesson):
    assert [line for line in lesson.console if not NOT_OURS.search(line)] == []


def test_the_script_that_installs_chromium_looks_for_the_same_names():
    script = (FOLDER.parent / "tests" / "install_chromium.sh").read_text(encoding="utf-8")
    assert f"{{{VARIABLE}:-{' '.join(NAMES)}}}" in script


def test_a_fault_is_seen(lab, browser, pytestconfig):
    """The same checks on a notebook with a picture that does not move, and three bad cells."""
    cells = [
        "from llmcl import lab\n"
        "lab.explore(lambda axes, v: axes.plot([v > 9, 2]), [1, 2, 11], lambda v: f'at {v}')",
        "import sys\nprint('a warning', file=sys.stderr)",
        "from IPython.display import display\n"
        'display({"application/vnd.jupyter.widget-view+json": {"model_id": "none"}}, raw=True)',
        "raise ValueError('on purpose')",
        "print('never')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, lab.folder / "faulty.ipynb")
    with lab.tab(browser, "faulty") as lesson:
        pytestconfig.stash[OPEN] = lesson
        lab.open(lesson)
        lesson.run_all()
        lesson.wait_for_the_end()
        found = " ".join(faults(lesson, patience=5000))
        for words in ("stderr: a warning", "ValueError: on purpose", "has not run", "widget"):
            assert words in found
        (box,) = lesson.sliders()
        box.locator(".noUi-handle").focus()
        right = lambda: lesson.page.keyboard.press("ArrowRight")  # noqa: E731
        with pytest.raises(AssertionError, match="the picture stays the same at 1"):
            lesson.changed(box, right, patience=5000)
        lesson.changed(box, right)
