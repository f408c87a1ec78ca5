"""One word: what it is in Korean, what it means, and which lesson introduces it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word of the lessons.

    korean: as the field says it in Korea, with the English word behind it where Koreans write that.
    lesson: the number of the lesson that introduces it; a warm-up only where no other lesson does.
    also: other names of the same thing. formula: a short one, as text, or "".
    """

    word: str
    korean: str
    meaning: str
    lesson: str
    also: tuple[str, ...] = ()
    formula: str = ""
