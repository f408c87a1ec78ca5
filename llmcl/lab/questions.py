"""Questions with lettered answers, and guesses that are made before a cell is run.

The text of a question stands in the lesson's prose, where it can be translated.
"""

import html

from .. import errors
from . import lessons, session
from .display import bundle
from .pictures import close_lines

_guesses: dict[str, float] = {}


def quiz(number: str, answer: str = "") -> None:
    """Asks a question: buttons where there is a reader, a line of text everywhere.

    The answer may also be typed, as in quiz("00.q1", "B"). Raises LlmclError for a letter that
    the question does not have.
    """
    question = lessons.find(number, lessons.Question)
    if answer:
        print(reply(number, question, answer))
        return
    letters = ", ".join(question.replies)
    session.note(number, False)
    bundle(f"○ question {number}: choose one of {letters}", widget=_buttons(number, question))


def reply(number: str, question: lessons.Question, answer: str) -> str:
    """What is said to an answer."""
    letter = answer.strip().upper()
    if letter not in question.replies:
        letters = ", ".join(question.replies)
        raise errors.LlmclError(f"question {number} has no answer {answer!r}; it has {letters}.")
    right = letter == question.answer
    session.note(number, right)
    return f"{'✓' if right else '✗'} {letter}: {question.replies[letter]}"


def _buttons(number: str, question: lessons.Question):
    try:
        from ipywidgets import HTML, ToggleButtons, VBox
    except ImportError:  # the answer is typed then
        return None
    label = HTML(f"question {number}")
    buttons = ToggleButtons(options=list(question.replies), value=None)
    buttons.style.button_width = "4em"
    said = HTML()

    def choose(change):
        if change["new"]:
            said.value = close_lines(html.escape(reply(number, question, change["new"])))

    buttons.observe(choose, "value")
    return VBox([label, buttons, said])


def predict(number: str, guess: float | None = None) -> None:
    """Notes a guess that is made before the next cell is run; reveal() compares it.

    Raises LlmclError for what is no number.
    """
    if guess is None:
        _guesses.pop(number, None)
        print(f"○ guess {number}: none yet; write one into this cell, and run it again")
        return
    try:
        _guesses[number] = float(guess)
    except (TypeError, ValueError):
        raise errors.LlmclError(
            f"guess {number} is a number, such as guess=3.5; {guess!r} is none."
        ) from None
    print(f"✓ guess {number}: noted")


def reveal(number: str, value: float) -> None:
    """Says in words how near the guess came to the value."""
    guess = _guesses.get(number)
    if guess is None:
        print(f"○ guess {number}: there was none, so there is nothing to compare")
        return
    low, high = sorted((0.8 * value, 1.25 * value))
    words = "near" if low <= guess <= high else "too low" if guess < value else "too high"
    print(f"{'✓' if words == 'near' else '✗'} guess {number}: {words}")
