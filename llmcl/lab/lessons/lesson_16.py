"""Lesson 16, The sabotaged model. The faults themselves lie in llmcl.lab.sabotage."""

from . import Exercise
from .lesson_00 import orders

EXERCISES = {
    "16.1": Exercise(
        lambda: "CAEBD",
        cases=[()],
        mistakes=orders(
            "CAEBD",
            "F",
            "One line does not belong. Which of them only hides the fault?",
            [
                ("C", "A", "What do you halve, before you have seen that something is wrong?"),
                ("A", "E", "Can you name the line before you know the part?"),
                ("E", "B", "A test written before you know the line: what would it look at?"),
                ("B", "D", "Mended first: how will you see your test fail without the cure?"),
            ],
        ),
        secret=True,
    ),
}

QUESTIONS = {}
