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


EXERCISES = {
    "00b.1": Exercise(
        lambda: (8, 6),
        cases=[()],
        mistakes=[
            (lambda: (4, 4), "Which of the lengths stand next to each other, and disappear?"),
            (lambda: (6, 8), "Whose rows are the rows of the result?"),
            (lambda: (8, 4), "How many columns does the second matrix bring?"),
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
        ],
    ),
    "00b.3": Exercise(
        lambda: (4, 4),
        cases=[()],
        mistakes=[
            (lambda: (4,), "One of the two has a second length. Can it vanish?"),
            (lambda: (4, 1), "What happens to a length of 1 that meets a 4?"),
            (lambda: (1, 4), "What happens to a length of 1 that meets a 4?"),
        ],
        secret=True,
    ),
    "00b.4": Exercise(
        lambda x: x.T,
        cases=[*((x,) for x in _numbers(4, (5, 3), (2, 7)))],
        mistakes=[
            (lambda x: x.T[::-1], "Is channel 0 still the first row?"),
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
        "A": "reshape never moves a number: it cuts the same line into other rows",
        "B": "the line of numbers is the same before and after a reshape",
        "C": "it is the transpose that gives a number other neighbours",
    }),
    "00b.q3": Question("A", {
        "A": "each row gets the same bias; a bias is one number for each channel",
        "B": "the 4 of the bias meets the last length, which is the channels",
        "C": "NumPy lines the shapes up from the right: (8, 4) and (4) fit",
    }),
}  # fmt: skip
