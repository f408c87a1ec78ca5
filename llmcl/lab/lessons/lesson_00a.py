"""Warm-up 00a, C for Python people."""

import numpy as np

from . import Broken, Exercise, KernelTask, Question, blank
from .lesson_00 import orders

ONE = ((1,), (1,))  # one work-item, in a group of its own


def _one_number(engine, kernel, x):
    out = blank(engine, 1)
    kernel(*ONE, engine.from_host(x), out, len(x))
    return engine.to_host(out)


def _whole(*numbers):
    return (np.array(numbers, np.float32),)


SUM = KernelTask(
    """__kernel void total(__global const float *restrict x,   // (n)
                    __global float *restrict out,       // (1)
                    const int n)
{
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += x[i];
    out[0] = sum;
}
""",
    "total",
    _one_number,
    lambda x: (x.sum(dtype=np.float64)[None], 0.0),  # small whole numbers: no rounding
    cases=[_whole(3, 1, 4, 1, 5), _whole(7)],
    mistakes=[("i < n", "i <= n", "Where does the line of numbers end?")],
)

MEAN = KernelTask(
    """__kernel void mean(__global const int *restrict x,     // (n)
                   __global float *restrict out,       // (1)
                   const int n)
{
    int sum = 0;
    for (int i = 0; i < n; ++i) sum += x[i];
    out[0] = (float)sum / n;
}
""",
    "mean",
    _one_number,
    lambda x: (np.array([x.mean()]), 1e-6 * abs(x).max()),
    cases=[(np.array([1, 2, 4, 8], np.int32),), (np.array([-7, 0], np.int32),)],
    mistakes=[
        (
            "(float)sum / n",
            "(float)(sum / n)",
            "The brackets divide first; what is left to convert then?",
        ),
        ("int sum = 0;", "int sum = 1;", "What does an empty sum begin with?"),
        ("(float)sum / n", "(float)sum / 2", "How many numbers are there: always two?"),
        ("(float)sum / n", "(float)sum", "A mean is a sum, and then?"),
    ],
    given=("(float)sum / n", "sum / n"),
)

_BELOW_ZERO = "What if every number is below zero?"
_VERY_SMALL = "Is there no number below that one? Which number is surely not too large?"
_BEGIN = "float best = x[0];\n    for (int i = 1;"
_END = "        if (x[i] > best) best = x[i];\n    out[0] = best;"

LARGEST = KernelTask(
    """__kernel void largest(__global const float *restrict x,   // (n)
                      __global float *restrict out,       // (1)
                      const int n)
{
    float best = x[0];
    for (int i = 1; i < n; ++i)
        if (x[i] > best) best = x[i];
    out[0] = best;
}
""",
    "largest",
    _one_number,
    lambda x: (np.array([x.max()]), 0.0),
    cases=[
        _whole(3, 9, 4),
        _whole(1, 2),
        _whole(-5, -2, -8, -3),
        _whole(6),
        _whole(0.5, 2.75, 1.25),
        _whole(-3e38, -2e38),
    ],
    mistakes=[
        ("float best = x[0];", "float best = 0.0f;", _BELOW_ZERO),
        (_BEGIN, _BEGIN.replace("x[0]", "0.0f").replace("= 1", "= 0"), _BELOW_ZERO),
        (_BEGIN, _BEGIN.replace("x[0]", "-1e9f").replace("= 1", "= 0"), _VERY_SMALL),
        ("float best", "int best", "Of which kind is the place that remembers the best?"),
        ("int i = 1; i < n", "int i = 1; i <= n", "Where does the line of numbers end?"),
        ("(x[i] > best) best", "(x[i] < best) best", "Is that the largest, or the smallest?"),
        (
            "        if (x[i] > best) best",
            "        best",
            "Which numbers may take the place of best?",
        ),
        ("out[0] = best;", "", "Who writes the result into memory?"),
        (_END, "{" + _END.strip() + " }", "What is written if n is 1, and the loop has no round?"),
    ],
)

EXERCISES = {
    "00a.1": Exercise(
        lambda: 10,
        cases=[()],
        mistakes=[
            (lambda: 30, "Which numbers does i skip?"),
            (lambda: 35, "Which numbers does i take, and is 5 one of them?"),
            (lambda: 4, "Are the numbers squared before they are added?"),
            (lambda: 16, "Are the numbers squared before they are added?"),
            (lambda: 9, "That is the last square. What was in sum before?"),
            (lambda: 1, "How many rounds does the loop make?"),
            (lambda: 5, "That is i at the end. What is in sum?"),
            (lambda: 14, "By how much does i grow after a round?"),
            (lambda: 20, "Where does i begin, and where does it end?"),
            (lambda: 26, "Which numbers does i take, and is 5 one of them?"),
            (lambda: [1, 10], "That is sum after each round. What is it at the end?"),
            (lambda: "10", "Right, but as text. Write the number without quotes."),
        ],
        secret=True,
    ),
    "00a.2": Exercise(
        lambda row, col, n: row * n + col,
        cases=[(2, 1, 5), (0, 4, 5), (3, 0, 7), (1, 6, 9)],
        mistakes=[
            (lambda row, col, n: col * n + row, "Are whole rows in front of it, or whole columns?"),
            (lambda row, col, n: row + col, "How many elements does each row in front have?"),
            (lambda row, col, n: row * n + col + 1, "Does the counting begin at 0?"),
            (lambda row, col, n: row * col + n, "How many elements does each row in front have?"),
            (
                lambda row, col, n: row * n * col,
                "Which of the three is multiplied, and which added?",
            ),
            (
                lambda row, col, n: row * (n + col),
                "Which of the three is multiplied, and which added?",
            ),
            (lambda row, col, n: row * n, "That is where the row begins. How much further is it?"),
            (lambda row, col, n: (row + 1) * n + col, "How many rows lie in front of row 0?"),
            (lambda row, col, n: (row - 1) * n + col, "How many rows lie in front of row 1?"),
            (
                lambda row, col, n: (row - 1) * n + col - 1,
                "Do rows and columns begin at 0, or at 1?",
            ),
        ],
    ),
    "00a.3": Exercise(
        lambda place, n: (place // n, place % n),
        cases=[(11, 5), (4, 5), (21, 7), (0, 3)],
        mistakes=[
            (lambda place, n: (place % n, place // n), "Which of the two is the row?"),
            (lambda place, n: (place / n, place % n), "Is the row a whole number?"),
            (lambda place, n: (round(place / n), place % n), "Does a row begin before it is full?"),
            (
                lambda place, n: (place // n, place - n),
                "How many whole rows have to be taken away?",
            ),
            (lambda place, n: (place // n, n % place if place else 0), "What is divided by what?"),
            (lambda place, n: (n // place if place else 0, place % n), "What is divided by what?"),
            (lambda place, n: (place // n + 1, place % n), "Which number has the first row?"),
            (lambda place, n: (place // n + 1, place % n + 1), "Do rows and columns begin at 0?"),
            (lambda place, n: place // n, "That is the row. Where is the column?"),
            (lambda place, n: place % n, "That is the column. Where is the row?"),
        ],
    ),
    "00a.4": MEAN,
    "00a.5": Exercise(
        lambda: "CAEB",
        cases=[()],
        mistakes=orders(
            "CAEB",
            "D",
            "Two of the lines are loops. Which one goes past the end?",
            [
                ("C", "E", "Can a number be added to a sum that does not exist yet?"),
                ("C", "A", "Should the sum begin anew in every round?"),
                ("E", "B", "Is the sum whole when it is written?"),
                ("A", "E", "Which line does the loop repeat?"),
                ("A", "B", "Which line does the loop repeat?"),
            ],
        ),
        secret=True,
    ),
    "00a.6": LARGEST,
}

QUESTIONS = {
    "00a.e1": Question("C", {
        "A": "that is what Python's / says; in C both sides are whole, so the result is whole",
        "B": "that is Python's //, which rounds down; C drops what is behind the point",
        "C": "C drops what is behind the point, so the result moves towards zero",
    }),
    "00a.q1": Question("B", {
        "A": "7 and 2 would give 3; but 7.0f is a float, so nothing is dropped",
        "B": "one float is enough: the other side becomes one too, and the result is 3.5",
        "C": "the language says it, not the device: one float, so the result is the float 3.5",
    }),
    "00a.q2": Question("A", {
        "A": "three rows of seven lie before it, and two more steps lead to column 2",
        "B": "that is row 2, column 3: which of the two counts whole rows?",
        "C": "that counts one whole row of seven; three lie before row 3, and then come two steps",
    }),
    "00a.q3": Question("C", {
        "A": "Python does that; C compares nothing",
        "B": "C knows no length of an array, so it cannot give 0 either",
        "C": "nobody checks: what lies behind is read as if it were a number of yours",
    }),
}  # fmt: skip

BROKEN = {
    "00a.past_end": Broken(
        SUM,
        "i < n",
        "i <= n",
        tries=[("five numbers", _whole(3, 1, 4, 1, 5))],
        finder="invalid read",
        reason="The last round of the loop reads x[n], which is one past the end.",
        luck=True,
    ),
}
