"""A sheet as a text to hand out, its key, and the points of one that was filled in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import LlmclError
from .questions import Item

_LINE = re.compile(r"^Answer (\d+):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
SLACK = 2  # in units of the last digit asked for: two roundings on the way are forgiven


@dataclass(frozen=True)
class Mark:
    """What an answer came to: what was written, and whether it is right."""

    item: Item
    written: str
    right: bool


def sheet(number: str, questions: Sequence[Item]) -> str:
    """The questions as Markdown, with a line for each answer."""
    parts = [
        f"# Sheet {number}",
        "Write each answer behind its colon, and change nothing else. A decimal number has three "
        "digits behind the point; a calculator or Python may be used.",
    ]
    for place, item in enumerate(questions, start=1):
        parts += [f"## {place} · lesson {item.lesson}", item.text, f"Answer {place}: "]
    return "\n\n".join(parts) + "\n"


def key(number: str, questions: Sequence[Item]) -> str:
    """The answers, a line each."""
    lines = [f"Key of sheet {number}"]
    for place, item in enumerate(questions, start=1):
        lines.append(f"{place:>2}  lesson {item.lesson:<4} {_told(item)}")
    return "\n".join(lines)


def read_answers(text: str) -> dict[int, str]:
    """What stands behind `Answer N:`, by N; raises LlmclError where there is no such line."""
    found = {int(place): written for place, written in _LINE.findall(text)}
    if not found:
        raise LlmclError("the sheet has no line such as `Answer 1: 42`; hand in the sheet itself.")
    return found


def marks(questions: Sequence[Item], written: dict[int, str]) -> list[Mark]:
    """A Mark for each question; an answer that is missing is wrong."""
    return [
        Mark(item, written.get(place, ""), is_right(item, written.get(place, "")))
        for place, item in enumerate(questions, start=1)
    ]


def is_right(item: Item, written: str) -> bool:
    """Whether a written answer is right: whole numbers exactly, others to three digits.

    `1,234` and `1 234` are whole numbers too; a decimal comma is as good as a point.
    """
    text = re.sub(r"[_\s]", "", written.strip("`*"))
    text = text.replace(",", "." if item.decimals else "").replace("\N{MINUS SIGN}", "-")
    try:
        value = float(text)
    except ValueError:
        return False
    if not item.decimals:
        return value == item.answer
    return abs(value - item.answer) <= SLACK * 10**-item.decimals


def table(number: str, result: Sequence[Mark]) -> str:
    """The marks as lines of text for the teacher."""
    lines = [f"Sheet {number}"]
    for place, mark in enumerate(result, start=1):
        sign = "✓" if mark.right else "✗" if mark.written else "○"
        said = "" if mark.right else f"   key: {_told(mark.item)}"
        lines.append(f"{place:>2}  lesson {mark.item.lesson:<4} {sign} {mark.written}{said}")
    return "\n".join([*lines, f"{sum(m.right for m in result)} of {len(result)} points"])


def _told(item: Item) -> str:
    return f"{item.answer:.{item.decimals}f}"
