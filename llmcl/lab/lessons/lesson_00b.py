"""Warm-up 00b, Shapes."""

import numpy as np

from . import Exercise, Question


def _numbers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape) for shape in shapes)


def _product(a, b):
    return a @ b


def _without_adding(a, b):
    return a[:, -1:] * b[-1:, :]


def _first_step_lost(a, b):
    return a[:, 1:] @ b[1:, :]


def _last_step_lost(a, b):
    return a[:, :-1] @ b[:-1, :]


def _part(a, b, rows, cols, steps):
    """What is there if the loops stop early."""
    c = np.zeros((a.shape[0], b.shape[1]))
    c[:rows, :cols] = a[:rows, :steps] @ b[:steps, :cols]
    return c


def _first_term(a, b):
    return _part(a, b, 1, 1, 1)


def _first_element(a, b):
    return _part(a, b, 1, 1, None)


def _first_row(a, b):
    return _part(a, b, 1, None, None)


EXERCISES = {
    "00b.1": Exercise(
        lambda: (8, 6),
        cases=[()],
        mistakes=[
            (lambda: (4, 4), "Which of the lengths stand next to each other, and disappear?"),
            (lambda: (6, 8), "Whose rows are the rows of the result?"),
            (lambda: (8, 4), "How many columns does the second matrix bring?"),
            (lambda: (4, 6), "How many words go in, and how many rows must come out?"),
            (lambda: (8, 4, 6), "The lengths in the middle: are they still there after the sum?"),
            (
                lambda: (8, 4, 4, 6),
                "The lengths in the middle: are they still there after the sum?",
            ),
            (lambda: 48, "That is how many numbers come out. In how many rows and columns?"),
            (lambda: "(8, 6)", "Right, but as text. Write the tuple without quotes."),
        ],
        secret=True,
    ),
    "00b.2": Exercise(
        _product,
        cases=[
            _numbers(1, (3, 5), (5, 2)),
            _numbers(2, (4, 1), (1, 7)),
            _numbers(3, (2, 3), (3, 3)),
        ],
        mistakes=[
            (_without_adding, "Is every step of the sum added to the ones before?"),
            (_first_step_lost, "Does the sum begin at step 0?"),
            (lambda a, b: 0 * (a @ b), "Is anything written into the result?"),
            (_last_step_lost, "How often does the inner loop run?"),
            (_first_element, "Does the `return` stand behind all three loops?"),
            (_first_term, "Does the `return` stand behind all three loops?"),
            (_first_row, "Does the `return` stand behind all three loops?"),
            (
                lambda a, b: (a @ b).T,
                "Which index comes first in c: the row of a, or the column of b?",
            ),
        ],
    ),
    "00b.3": Exercise(
        lambda: (4, 4),
        cases=[()],
        mistakes=[
            (lambda: (4,), "One of the two has a second length. Can it vanish?"),
            (lambda: (4, 1), "What happens to a length of 1 that meets a 4?"),
            (lambda: (1, 4), "What happens to a length of 1 that meets a 4?"),
            (
                lambda: (4, 4, 1),
                "Are the two aligned at the right? How many lengths has the longer?",
            ),
            (lambda: (4, 1, 4), "How many lengths has the longer of the two?"),
            (lambda: 16, "That is how many numbers come out. In how many rows and columns?"),
            (lambda: (16,), "That is how many numbers come out. In how many rows and columns?"),
            (lambda: (8,), "Broadcasting repeats. Does it put one behind the other?"),
            (lambda: "error", "NumPy finds a way. Write both under each other, at the right."),
            (lambda: "(4, 4)", "Right, but as text. Write the tuple without quotes."),
        ],
        secret=True,
    ),
    "00b.4": Exercise(
        lambda x: x.T,
        cases=[*((x,) for x in _numbers(4, (5, 3), (2, 7)))],
        mistakes=[
            (lambda x: x.T[::-1], "Is channel 0 still the first row?"),
            (
                lambda x: x.reshape(x.shape[1], x.shape[0]).T,
                "The order was already lost by the reshape. Is it needed at all?",
            ),
            (
                lambda x: x.reshape(x.shape[1], x.shape[0], order="F"),
                "Whose numbers stand in row 0: those of one channel?",
            ),
            (
                lambda x: x,
                "Which way does the result lie: a row for each word, or for each channel?",
            ),
        ],
        given=lambda x: x.reshape(x.shape[1], x.shape[0]),
    ),
    "00b.5": Exercise(
        lambda x: x.mean(axis=-1),
        cases=[_numbers(5, (2, 5, 3)), _numbers(6, (4, 1, 7))],
        mistakes=[
            (lambda x: x.mean(axis=0), "Which axis are the channels: the first, or the last?"),
            (lambda x: x.mean(axis=1), "Which axis are the channels: the middle one, or the last?"),
            (lambda x: x.mean(), "One number for each word, or one for everything?"),
            (lambda x: x.sum(axis=-1), "A mean is a sum, and then?"),
            (lambda x: x.sum(axis=-1) / x.shape[1], "How many numbers were added: T, or C?"),
            (lambda x: x.mean(axis=-1, keepdims=True), "May the last axis stay, with length 1?"),
            (lambda x: x.mean(axis=(0, 1)), "Which single axis should disappear?"),
            (lambda x: x.mean(axis=(1, 2)), "Which single axis should disappear?"),
            (lambda x: x.mean(axis=(0, 2)), "Which single axis should disappear?"),
        ],
    ),
}

QUESTIONS = {
    "00b.q1": Question("C", {
        "A": "7 and 5 stand next to each other, and they differ, so this has no product",
        "B": "the lengths in the middle are 5 and 7; they would have to agree",
        "C": "3 and 3 agree and disappear; 5 and 7 remain",
    }),
    "00b.q2": Question("B", {
        "A": "that is the transpose; a reshape moves no number, it cuts the same line elsewhere",
        "B": "the line of numbers is the same before and after a reshape",
        "C": "it is the transpose that gives a number other neighbours",
    }),
    "00b.q3": Question("A", {
        "A": "each row gets the same bias; a bias is one number for each channel",
        "B": "the 4 of the bias meets the last length, the channels: number c goes to channel c",
        "C": "NumPy lines the shapes up from the right: (8, 4) and (4,) fit",
    }),
}  # fmt: skip
