"""Every stored notebook is what its source gives, and keeps to the form of a lesson."""

import re
import statistics

import nbformat
import pytest

from lesson_helpers import NOTEBOOKS, code, prose, words
from llmcl.lab import lessons
from notebook_builder import FOLDER, ROOT, build

LESSONS = [name for name in NOTEBOOKS if name < "9"]
HYPE = (
    "simply obviously amazing awesome powerful blazing effortless seamless magic revolutionary "
    "cutting-edge state-of-the-art unleash supercharge game-changer exciting incredible trivial"
).split()
EXERCISE = re.compile(r"\*\*Exercise (\w+\.\d+)\*\* · (easy|medium|hard) · (\d+) minutes?")


@pytest.fixture(params=NOTEBOOKS)
def name(request):
    return request.param


@pytest.fixture
def notebook(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def outputs(notebook):
    return [(cell, output) for cell in code(notebook) for output in cell.outputs]


def test_there_is_a_lesson():
    assert "00_start_here" in NOTEBOOKS


@pytest.mark.parametrize("any_name", build.all_names())
def test_it_is_up_to_date(any_name):
    assert build.out_of_date(any_name) == ""


def test_every_cell_was_run_and_none_failed(notebook):
    assert [cell.execution_count for cell in code(notebook)] == list(
        range(1, len(code(notebook)) + 1)
    )
    for cell, output in outputs(notebook):
        assert output.output_type != "error", cell.id
        assert output.get("name") != "stderr", cell.id


def test_it_can_be_published(name, notebook):
    """No path of the machine that built it, no live widget, no run time, and not too large."""
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert len(text.encode("utf-8")) < 2_000_000
    for private in (str(ROOT), "/home/", "/Users/", "/tmp/", "/root/", "C:\\\\"):
        assert private not in text, private
    assert "widget-view+json" not in text
    assert set(notebook.metadata) == {"kernelspec", "language_info", "llmcl"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)


def test_every_picture_says_what_it_shows(notebook):
    for cell, output in outputs(notebook):
        if "image/png" in output.get("data", {}):
            alt = output.metadata["image/png"].get("alt", "")
            assert len(words(alt)) >= 5, cell.id
            assert output.data["text/plain"] == alt, cell.id
    for cell in prose(notebook):
        assert "![](" not in cell.source, cell.id


def test_cells_are_short(notebook):
    lengths = [len(cell.source.splitlines()) for cell in code(notebook)]
    assert statistics.median(lengths) <= 6
    assert max(lengths) <= 30


def test_a_cell_that_is_not_compared_is_followed_by_one_that_is(notebook):
    cells = code(notebook)
    for cell, following in zip(cells, cells[1:] + [None], strict=True):
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            assert following is not None, cell.id
            assert "nbval-ignore-output" not in following.metadata.get("tags", []), cell.id
            checks = ("assert ", "lab.check(", "lab.run_broken(")
            assert any(check in following.source for check in checks), following.id


def test_the_words_are_plain(name, notebook):
    text = "\n".join(cell.source for cell in prose(notebook))
    assert len(words(text)) < 2_500 or name == "90_glossary"  # where a reader reads one entry
    # A file's magic number is what the field calls it.
    found = {word for word in words(text.lower().replace("magic number", "")) if word in HYPE}
    assert not found
    sentences = re.sub(r"```.*?```|`[^`]*`|!\[|!=", " ", text, flags=re.DOTALL)
    assert "!" not in sentences


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_minutes_are_an_honest_estimate(lesson):
    notebook = nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in prose(notebook))
    exercises = sum(int(minutes) for _, _, minutes in EXERCISE.findall(text))
    estimate = len(words(text)) / 150 + 0.7 * len(code(notebook)) + exercises
    minutes = notebook.metadata.llmcl.minutes
    assert minutes["core"] <= minutes["full"]
    assert abs(minutes["full"] - estimate) <= 0.3 * estimate, f"estimated {estimate:.0f} minutes"


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_exercise_has_its_line_and_its_check(lesson):
    notebook = nbformat.read(FOLDER / f"{lesson}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in prose(notebook))
    programs = "\n".join(cell.source for cell in code(notebook))
    stated = [number for number, _, _ in EXERCISE.findall(text)]
    assert len(set(stated)) == len(stated)
    assert text.count("**Exercise ") == len(stated), "an exercise lacks difficulty or minutes"
    book = lessons.of(lesson.split("_")[0])
    assert set(book.exercises) <= set(stated)
    for number in (*book.exercises, *book.questions):
        assert f'"{number}"' in programs, number
    for question in book.questions.values():
        assert question.answer in question.replies
