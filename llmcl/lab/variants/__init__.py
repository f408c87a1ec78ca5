"""Graded questions whose numbers differ from learner to learner: each number of one gives a sheet.

`python -m llmcl.lab.variants` writes a sheet, its key, and the points of a sheet that was filled
in. Every answer is computed by this package itself, in float64.
"""

from .questions import LESSONS, Item, items
from .sheet import Mark, key, marks, read_answers, sheet, table

__all__ = [
    "LESSONS", "Item", "Mark", "items", "key", "marks", "read_answers", "sheet", "table",
]  # fmt: skip
