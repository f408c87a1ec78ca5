"""Warm-up 07b, Slopes."""

import numpy as np

from . import Exercise, Question


def _slope(f, x, step=1e-4):
    return (f(x + step) - f(x - step)) / (2 * step)


def _square(x):
    return x * x


def _cube(x):
    return x**3


def _soft(x):
    """y = log(1 + exp(x)), by its chain of three slopes."""
    return np.exp(x) * 1 * (1 / (1 + np.exp(x)))


_POINTS = [(0.5,), (1.5,), (-2.0,)]

EXERCISES = {
    "07b.2": Exercise(
        _slope,
        cases=[(_square, 3.0, 0.01), (_cube, 2.0, 0.01), (np.exp, 0.5, 0.1)],
        mistakes=[
            (lambda f, x, step: (f(x + step) - f(x)) / step,
             "That looks to one side only. Where else does a central difference look?"),
            (lambda f, x, step: (f(x + step) - f(x - step)) / step,
             "How far apart are the two places: one step, or two?"),
            (lambda f, x, step: (f(x - step) - f(x + step)) / (2 * step),
             "Does the slope have the right sign when y grows with x?"),
            (lambda f, x, step: f(x + step) - f(x - step),
             "That is how far y moved. How far did x move?"),
            (lambda f, x, step: (f(x + step) - f(x - step)) / 2 * step,
             "`a / 2 * step` divides by 2, and then multiplies. Which brackets are missing?"),
            (lambda f, x, step: (f(x + step) - f(x - step)) / step * 2,
             "`a / step * 2` divides by step, and then multiplies. Which brackets are missing?"),
            (lambda f, x, step: f(x + step) - f(x - step) / (2 * step),
             "Division comes before minus. What belongs into brackets?"),
            (lambda f, x, step: (f(x) - f(x - step)) / step,
             "That looks to one side only. Where else does a central difference look?"),
            (lambda f, x, step: (f(x + step) - f(x)) / (2 * step),
             "The two places are `x + step` and `x - step`. Are both in it?"),
            (lambda f, x, step: (f(x + step) + f(x - step)) / (2 * step),
             "How far is one above the other: a sum, or a difference?"),
            (lambda f, x, step: _slope(f, x),
             "The caller may give a step. Is it used?"),
        ],
    ),
    "07b.3": Exercise(
        _soft,
        cases=_POINTS,
        mistakes=[
            (lambda x: np.exp(x) + 1 + 1 / (1 + np.exp(x)),
             "Are the slopes of a chain added, or multiplied?"),
            (lambda x: np.exp(x) / x,
             "At which number is the slope of log taken: at x, or at v?"),
            (lambda x: 1.0,
             "At which number is the slope of log taken: at u, or at v?"),
            (lambda x: 1 / (1 + np.exp(x)),
             "Which of the three slopes is missing?"),
            (lambda x: np.log(1 + np.exp(x)),
             "That is y. What is asked for is its slope."),
            (lambda x: np.exp(x),
             "That is the first slope. What does log do with a small step of v?"),
            (lambda x: np.exp(x) / (1 + x),
             "What does log get: 1 + x, or 1 + exp(x)?"),
            (lambda x: np.exp(x) * np.log(1 + np.exp(x)),
             "The last one is log itself. What is its slope?"),
            (lambda x: np.exp(x) * (1 + np.exp(x)) * np.log(1 + np.exp(x)),
             "Those are the three values. What are their slopes?"),
            (lambda x: np.exp(x) * (1 + np.exp(x)),
             "log's slope is 1 divided by v. Is it divided?"),
        ],
    ),
    "07b.4": Exercise(
        lambda x: 1 + 18 * x,
        cases=[(2.0,), (-1.0,), (0.5,)],
        mistakes=[
            (lambda x: 18 * x, "x goes two ways. Which of them is missing?"),
            (lambda x: 1 + 6 * x,
             "u² has the slope 2·u, and u moves three times as fast as x. Are both threes in it?"),
            (lambda x: 1 + 2 * 3 * 3, "The slope of u² is not the same everywhere. Where is x?"),
            (lambda x: x + (3 * x) ** 2, "That is y. What is asked for is its slope."),
            (lambda x: 4 + 6 * x,
             "3 and 2·u lie on one way, one behind the other. Do they add, or multiply?"),
            (lambda x: 6 * x,
             "That is the slope of u² in u. How fast does u move, and is there another way?"),
            (lambda x: 19 * x, "How far does y move by the direct way, if x moves by 1?"),
            (lambda x: 1 + 9 * x, "What is the slope of u²?"),
            (lambda x: 1 + 9 * x * x, "That is u² itself. What is its slope?"),
        ],
    ),
}  # fmt: skip

QUESTIONS = {
    "07b.q1": Question("B", {
        "A": "that is what comes out of the function; the slope says how fast it changes there",
        "B": "at 3 the slope of x² is 6, so y moves six times as far as x",
        "C": "0.01² is what the corner of the square adds, and that hardly counts",
    }),
    "07b.q2": Question("A", {
        "A": "2 times 5 times -1",
        "B": "along a chain slopes are multiplied; they are added where ways meet",
        "C": "the slope of the whole is not that of its last part alone",
    }),
    "07b.q3": Question("C", {
        "A": "both ways carry a change from x to y, and neither replaces the other",
        "B": "multiplied are the slopes along one way; here are two ways",
        "C": "a step of x arrives twice, and both parts move y",
    }),
}  # fmt: skip
