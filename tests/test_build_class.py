"""A lesson's versions for a class: nothing gives an answer away, and the answers stand apart."""

import json

import nbformat
import pytest

from notebook_builder import FOLDER, HEADER, LESSON, build, own_folder, store, write

TASK = (
    LESSON.split("# %%\ndef double")[0]
    + '''\
# %% [markdown] id="task"
# **Exercise 77.1** · easy · 2 minutes. Write `spread`.
#
# <details><summary>Hint</summary>
#
# The mean goes away first.
#
# </details>
#
# <details><summary>Solution in words</summary>
#
# Subtract the mean, then take the largest.
#
# </details>
#
# <details>
# <summary>What to expect</summary>
#
# About three.
#
# </details>
#
# Go on.

# %%
def spread(x):
    """The largest distance from the mean."""
    ### BEGIN SOLUTION
    mean = sum(x) / len(x)
    return max(abs(v - mean) for v in x)
    ### END SOLUTION

KERNEL = """
    // BEGIN SOLUTION
    y[i] = 5 * x[i];
    // END SOLUTION
"""

# %% [markdown] id="only"
# <details><summary>Solution</summary>
#
# All of it.
#
# </details>

# %%
print("after")
'''
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    return own_folder(monkeypatch, tmp_path)


@pytest.fixture
def lesson(folder):
    name = write(folder, TASK)
    store(folder, name)
    return name


def test_the_learners_version_has_hints_and_outputs_and_no_answer(lesson, folder):
    build.build(lesson)
    assert build.main(["--class", str(folder / "class"), lesson]) == 0
    path = folder / "class" / "learner" / f"{lesson}.ipynb"
    text = path.read_text(encoding="utf-8")
    for answer in ("mean = sum(x)", "max(abs(", "5 * x[i]", "Subtract the mean", "About three"):
        assert answer not in text, answer
    assert "All of it" not in text
    notebook = nbformat.read(path, as_version=4)
    ids = [cell.id for cell in notebook.cells]
    assert ids == ["77-promise", "77-code-1", "77-task", "77-code-2", "77-code-3"]
    task = notebook.cells[2].source
    assert "The mean goes away first." in task
    assert task.endswith("</details>\n\nGo on.")
    assert "raise NotImplementedError()" in notebook.cells[3].source
    assert "#error not written yet" in notebook.cells[3].source
    assert notebook.cells[4].outputs[0].text == "after\n"


def test_the_teachers_version_has_the_solutions_in_the_cells(lesson, folder):
    assert build.main(["--class", str(folder / "class"), lesson]) == 0
    path = folder / "class" / "teacher" / f"{lesson}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    assert "    ### BEGIN SOLUTION\n    mean = sum(x) / len(x)\n" in cells["77-code-2"].source
    assert "// BEGIN SOLUTION\n    y[i] = 5 * x[i];" in cells["77-code-2"].source
    assert "77-code-2-solution" not in cells
    assert "About three." in cells["77-task"].source
    assert not any(cell.get("outputs") for cell in notebook.cells)
    assert build.main(["--class", str(folder / "class"), "--execute", lesson]) == 0
    assert nbformat.read(path, as_version=4).cells[-1].outputs[0].text == "after\n"


def test_a_class_that_was_written_in_is_kept(lesson, folder, capsys):
    order = ["--class", str(folder / "class"), lesson]
    assert build.main(order) == 0
    path = folder / "class" / "learner" / f"{lesson}.ipynb"
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["cells"][-1]["source"] = ["print('mine')"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert build.main(order) == 1
    assert "work of your own" in capsys.readouterr().err
    assert "mine" in path.read_text(encoding="utf-8")
    assert build.main([*order, "--force"]) == 0
    assert "mine" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'print("after")',
            "mean = sum(x) / len(x)\nreturn max(abs(v - mean) for v in x)",
            "the solution of cell 77-code-2 can also be read in cell 77-code-3",
        ),
        ("# Go on.", "# It is `y[i] =  5 * x[i];`", "can also be read in cell 77-task"),
        ("Solution in words", "The solution", "must begin with the word Solution"),
        ("# All of", "# <details>a</details> All of", "side by side"),
    ],
)
def test_an_answer_that_is_left_is_refused(folder, capsys, old, new, words):
    assert TASK.count(old) == 1
    name = write(folder, TASK.replace(old, new))
    store(folder, name)
    assert build.main(["--class", str(folder / "class"), name]) == 1
    assert words in capsys.readouterr().err
    assert not (folder / "class").exists()


def test_an_answer_in_an_output_is_refused(lesson, folder):
    notebook = build.without_answers(lesson)
    text = "mean = sum(x) / len(x)\n  return max(abs(v - mean) for v in x)\n"
    notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    assert "77-code-3" in build.answers_left(lesson, notebook)[0]


def test_a_lesson_that_is_out_of_date_is_not_handed_out(lesson, folder, capsys):
    write(folder, TASK.replace("after", "behind"))
    assert build.main(["--class", str(folder / "class")]) == 1
    assert "its source has changed" in capsys.readouterr().err


def test_the_folder_cannot_be_left_out_before_a_name(lesson, capsys):
    with pytest.raises(SystemExit):
        build.main(["--class", lesson])
    assert f"--class build/class {lesson}" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ipynb")))
def test_no_lesson_gives_an_answer_away(name):
    notebook = build.without_answers(name)
    assert build.answers_left(name, notebook) == []
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "<summary>Solution" not in text
    assert "BEGIN SOLUTION" not in text
    for bodies in build.solutions(name).values():
        for body in bodies:
            assert len(body.strip().splitlines()) == 1 or body not in text


def test_the_search_finds_what_a_lesson_with_solutions_says():
    name = "00_start_here"
    stored = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    assert len(build.answers_left(name, stored)) == sum(map(len, build.solutions(name).values()))


def test_a_source_without_exercises_has_no_solutions(folder):
    assert build.solutions(write(folder, HEADER + "# %%\nprint(1)\n")) == {}
