"""Checks, exercises, questions and pictures of the notebooks."""

import dataclasses

import numpy as np
import pytest

from llmcl.errors import DataError, LlmclError
from llmcl.lab import exercises, kernels, lessons, pictures, questions, session
from llmcl.lab.checks import CheckFailed, check


def rows_to_shares(x):
    return x / x.sum(axis=-1, keepdims=True)


def columns_to_shares(x):
    return x / x.sum(axis=0, keepdims=True)


TASK = lessons.Exercise(
    rows_to_shares,
    cases=[(np.array([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]),), (np.ones((5, 2)),)],
    mistakes=[(columns_to_shares, "Is the sum taken over a row?")],
)
LESSON = lessons.Lesson(
    {"00.1": TASK},
    {"00.q1": lessons.Question("B", {"A": "warm-up 00b helps", "B": "yes"})},
)


@pytest.fixture
def lesson(monkeypatch):
    monkeypatch.setattr(lessons, "of", lambda number: LESSON)
    monkeypatch.delenv("LLMCL_GRADE", raising=False)
    session.done.clear()


# ---- exercises ----


def test_a_right_function_is_returned(lesson, capsys):
    @exercises.exercise("00.1")
    def shares(x):
        return x / x.sum(axis=1)[:, None]

    assert shares is not rows_to_shares
    assert capsys.readouterr().out == "✓ shares: 2 cases agree\n"


def test_a_missing_function_is_replaced_by_the_reference(lesson, capsys):
    @exercises.exercise("00.1")
    def shares(x):
        raise NotImplementedError()

    assert shares is rows_to_shares
    out = capsys.readouterr().out
    assert out == "○ shares: not written yet; the lesson goes on with the reference\n"


def test_a_wrong_function_is_told_its_likely_mistake(lesson, capsys):
    @exercises.exercise("00.1")
    def shares(x):
        return x / x.sum(axis=0)

    assert shares is rows_to_shares
    out = capsys.readouterr().out
    assert out.startswith("✗ shares: at (0, 0) you have 0.25, expected 0.1667.")
    assert "Is the sum taken over a row?" in out


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: None, "not written yet"),
        (lambda x: x.sort(), "returns nothing"),
        (lambda x: x.sum(axis=1), "returns the shape (2,), expected (2, 3)"),
        (lambda x: 1 // 0, "raises ZeroDivisionError"),
        (lambda x: x.__itruediv__(x.sum(axis=-1, keepdims=True)), "changes what it was given"),
        (lambda x: x * np.nan, "you have nan"),
        (lambda x: "a", "you have 'a'"),
    ],
)
def test_what_an_outcome_says(function, words):
    outcome = exercises.judge(function, TASK)
    assert outcome.state != "right"
    assert words in outcome.line


@pytest.mark.parametrize("answer", ("BA", " ba ", "B A", "b, a"))
def test_letters_may_be_small_and_apart(answer):
    task = lessons.Exercise(lambda: "BA", [()], [(lambda: "AB", "Which comes first?")], secret=True)
    assert exercises.judge(lambda: answer, task).state == "right"


def test_a_known_mistake_that_fails_gets_its_question():
    def flat(x):
        return x / x.sum(axis=1)

    task = dataclasses.replace(TASK, mistakes=[(flat, "Does each row meet its own sum?")])
    line = exercises.judge(lambda x: x / x.sum(axis=-1), task).line
    assert "raises ValueError: operands" in line and line.endswith(
        "Does each row meet its own sum?"
    )
    assert "own sum" not in exercises.judge(lambda x: x[7], task).line


def test_a_secret_answer_is_not_told():
    task = lessons.Exercise(lambda: "BA", [()], [(lambda: "AB", "Which comes first?")], secret=True)
    assert exercises.judge(lambda: "AB", task).line.endswith("'AB' is not it. Which comes first?")
    assert "BA" not in exercises.judge(lambda: "XX", task).line


@pytest.mark.parametrize(
    ("got", "wanted", "same"),
    [
        (3, 3, True),
        (3, 4, False),
        ("a", "a", True),
        ("a", b"a", False),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.nan, np.nan, True),
        (1.0 + 1e-9, 1.0, True),
        (1.0 + 1e-3, 1.0, False),
        (None, None, True),
        ({"a": 1}, {"a": 1}, True),
    ],
)
def test_difference(got, wanted, same):
    assert (exercises.difference(got, wanted, 1e-6) == "") is same


@pytest.mark.parametrize("function", [lambda x: None, columns_to_shares])
def test_a_grader_sees_missing_and_wrong_exercises(lesson, monkeypatch, function):
    monkeypatch.setenv("LLMCL_GRADE", "1")
    with pytest.raises(LlmclError, match="exercise 00.1 is (missing|wrong)"):
        exercises.exercise("00.1")(function)


def test_a_grader_sees_an_exercise_whose_cell_is_gone(lesson, monkeypatch):
    session.summary("00")
    monkeypatch.setenv("LLMCL_GRADE", "1")
    with pytest.raises(LlmclError, match="exercise 00.1 was not run"):
        session.summary("00")


def test_an_unknown_exercise_or_lesson_is_named(lesson):
    with pytest.raises(LlmclError, match="no '00.9' here; this lesson has 00.1, 00.q1"):
        exercises.exercise("00.9")


def test_a_number_of_another_kind_is_told():
    with pytest.raises(LlmclError, match="'01a.3' is a kernel to write, and a function to write"):
        exercises.exercise("01a.3")
    with pytest.raises(LlmclError, match="'00.1' is a function to write, and a question is wanted"):
        questions.quiz("00.1")


def test_an_unknown_lesson_is_named():
    with pytest.raises(LlmclError, match="no lesson '77'"):
        lessons.find("77.1")


# ---- questions ----


def test_answers_are_right_or_name_a_remedy(lesson, capsys):
    questions.quiz("00.q1", "b")
    questions.quiz("00.q1", "A")
    assert capsys.readouterr().out == "✓ B: yes\n✗ A: warm-up 00b helps\n"
    with pytest.raises(LlmclError, match="no answer 'Z'; it has A, B"):
        questions.quiz("00.q1", "Z")


def test_a_click_on_a_button_is_an_answer(lesson):
    box = questions._buttons("00.q1", LESSON.questions["00.q1"])
    _, buttons, said = box.children
    buttons.value = "B"
    assert ">✓ B: yes<" in said.value
    assert session.done == {"00.q1": True}


@pytest.mark.parametrize(
    ("guess", "words"),
    [(None, "there was none"), (10.5, "near"), (3.0, "too low"), (40.0, "too high")],
)
def test_a_guess_is_compared_in_words(capsys, guess, words):
    questions.predict("00.2", guess)
    questions.reveal("00.2", 10.0)
    assert words in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize("guess", ["five", [1, 2]])
def test_a_guess_that_is_no_number_is_refused_in_a_sentence(guess):
    with pytest.raises(LlmclError, match="guess 00.2 is a number"):
        questions.predict("00.2", guess)


# ---- checks ----


def test_check_speaks_in_words_and_raises_above_the_bound(capsys):
    check("softmax", [1.0, 2.0], [1.0, 2.0 + 1e-9], 1e-6)
    assert capsys.readouterr().out == "✓ softmax: agrees with NumPy (error below its bound)\n"
    with pytest.raises(CheckFailed, match=r"softmax: at \(1,\)"):
        check("softmax", [1.0, 2.0], [1.0, 2.1], 1e-6)
    with pytest.raises(CheckFailed):
        check("softmax", [np.nan], [1.0], 1e-6)


# ---- pictures ----


def test_a_picture_needs_words():
    with pytest.raises(LlmclError, match="needs a text"):
        pictures.figure(" ")


def test_the_same_drawing_gives_the_same_bytes():
    def draw():
        made, axes = pictures.figure("A line that rises.")
        axes.plot([1, 2, 3])
        return pictures.png(made)

    assert draw() == draw()
    assert draw().startswith(b"\x89PNG")


def test_a_slider_changes_the_picture_and_its_words():
    drawn = []

    def frame(value):
        drawn.append(value)
        return bytes([value]), f"at {value} <b>", 640

    line, view = pictures._slider(frame, [1, 2, 3], 2, "step").children
    slider, chosen = line.children
    assert chosen.value == "2"
    before = view.value
    slider.value = 3
    assert chosen.value == "3"
    assert drawn == [2, 3]
    assert view.value != before
    assert "at 3 &lt;b&gt;" in view.value
    assert "max-width: 100%" in view.value


# ---- kernels ----


def test_a_kernel_is_shown_whole_with_the_numbers_of_its_file():
    lines, first = kernels.find_kernel("softmax", "softmax_forward")
    text = kernels.numbered(lines, first)
    assert "__kernel void softmax_forward" in text
    assert lines[-1] == "}"
    assert text.splitlines()[0].split()[0] == str(first)
    assert text.count("__kernel") == 1


def test_unknown_files_and_kernels_are_named():
    with pytest.raises(DataError, match="no kernels/sotfmax.cl; there are"):
        kernels.find_kernel("sotfmax", "softmax_forward")
    with pytest.raises(DataError, match="no 'softmax'; it has softmax_forward"):
        kernels.find_kernel("softmax", "softmax")


# ---- the frame of a lesson ----


def test_a_lesson_writes_to_one_folder_wherever_it_is_started(monkeypatch, tmp_path):
    monkeypatch.delenv("LLMCL_LAB", raising=False)
    here = session.folder("00")
    monkeypatch.chdir(tmp_path)
    assert session.folder("00") == here
    assert here.parts[-2:] == ("build", "lesson-00")


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path / "한글 folder"))
    assert session.folder("04a") == tmp_path / "한글 folder" / "lesson-04a"
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("LLMCL_LAB", str(tmp_path / "file"))
    with pytest.raises(LlmclError, match="cannot write to"):
        session.folder("00")
