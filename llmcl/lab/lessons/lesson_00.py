"""Lesson 00, Start here."""

from . import Exercise, Question


def _shifted(ids):
    return ids[:-1], ids[1:]


EXERCISES = {
    "00.1": Exercise(
        _shifted,
        cases=[([11, 12, 13, 14],), ([5, 5, 7],), ([1, 2],)],
        mistakes=[
            (lambda ids: (ids[1:], ids[:-1]), "Which of the two is the question?"),
            (lambda ids: (ids, ids), "Does the answer stand one token further on?"),
            (lambda ids: (ids, ids[1:]), "What follows the last token?"),
            (lambda ids: (ids[:-2], ids[2:]), "Is that one token further on, or two?"),
            (lambda ids: (ids[:-1], ids[:-1]), "Does the answer stand one token further on?"),
        ],
    ),
    "00.3": Exercise(
        lambda: "BEFAC",
        cases=[()],
        mistakes=[
            (lambda: "BEAFC", "Can the weights be mended before the mistake is measured?"),
            (lambda: "BAEFC", "Can the weights be mended before the mistake is measured?"),
            (lambda: "BFEAC", "Can a mistake be measured before there is a prediction?"),
            (lambda: "EBFAC", "Does the model read letters, or numbers?"),
            *(
                (lambda order=order: order, "One line does not belong. Which stays the same?")
                for order in ("DBEFAC", "BDEFAC", "BEDFAC", "BEFDAC", "BEFADC", "BEFACD")
            ),
        ],
        secret=True,
    ),
}

_SHAPES = "warm-up 00b, Shapes, is for you before lesson 03"
_C = "warm-up 00a, C for Python people, is for you before lesson 01a"
_SLOPES = "warm-up 07b, Slopes, is for you before lesson 08a"

QUESTIONS = {
    "00.e1": Question("C", {
        "A": f"both are whole numbers, so C drops what is behind the point; {_C}",
        "B": f"C does not round up, it drops what is behind the point; {_C}",
        "C": "whole numbers divide to a whole number in C",
    }),
    "00.e2": Question("B", {
        "A": f"two rows lie before it, not one; {_C}",
        "B": "two rows of five lie before it, then one more step",
        "C": f"a row has five elements, not three; {_C}",
    }),
    "00.e3": Question("A", {
        "A": "the inner lengths agree, and the outer ones remain",
        "B": f"the inner lengths, 3 and 3, disappear; {_SHAPES}",
        "C": f"3 and 3 stand next to each other, so they fit; {_SHAPES}",
    }),
    "00.e4": Question("B", {
        "A": f"that is how large x is, not how fast y grows; {_SLOPES}",
        "B": "the slope of x squared is twice x",
        "C": f"that is how large y is, not how fast it grows; {_SLOPES}",
    }),
    "00.q1": Question("B", {
        "A": "it can read any text: every byte has a token",
        "B": "it learns pairs of what stood before and what came next, nothing else",
        "C": "no list of sentences is stored; only the weights are",
    }),
    "00.q2": Question("C", {
        "A": "the last bit is too much to ask: the order of a sum changes its rounding",
        "B": "a tenth of a percent can hide a wrong formula; the bound comes from the arithmetic",
        "C": "the bound is what rounding can do, and odd shapes leave no place to hide",
    }),
    "00.q3": Question("A", {
        "A": "the lesson went on with the reference, and nothing stopped",
        "B": "Run All goes on; only a grader's run stops there",
        "C": "the cells below get the reference, which is right",
    }),
}  # fmt: skip
