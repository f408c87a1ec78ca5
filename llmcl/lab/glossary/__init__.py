"""Every new word of the lessons in plain words and in Korean; lesson 90 and `lab.term` show it."""

import difflib
import re
import textwrap

from . import devices, files, learning, model, numbers, text
from .entry import Term

__all__ = ["TERMS", "Term", "find", "term"]

_MODULES = (devices, files, learning, model, numbers, text)
TERMS: tuple[Term, ...] = tuple(
    sorted((t for module in _MODULES for t in module.TERMS), key=lambda t: t.word.casefold())
)
WIDTH = 92


def find(word: str) -> Term | None:
    """The entry of a word in English or Korean, or None; "top-p (nucleus)" finds top-p."""
    return _NAMES.get(_plain(word)) or _NAMES.get(_plain(_without_brackets(word)))


def term(word: str) -> None:
    """Prints what a word means, its Korean name and its lesson; or the words nearest to it."""
    entry = find(str(word))
    if entry is None:
        near = _nearest(str(word))
        print(f"The glossary has no {word!r}." + (f" Near it: {', '.join(near)}." if near else ""))
        return
    print(f"{entry.word} · {entry.korean} · lesson {entry.lesson}")
    print(textwrap.fill(entry.meaning, WIDTH, break_long_words=False, break_on_hyphens=False))
    if entry.formula:
        print(entry.formula)
    if entry.also:
        print(f"also: {', '.join(entry.also)}")


def _nearest(word: str) -> list[str]:
    """At most three English words whose names, in either language, are like this one."""
    names = difflib.get_close_matches(_plain(word), _NAMES, n=6, cutoff=0.6)
    return list(dict.fromkeys(_NAMES[name].word for name in names))[:3]


def names_of(entry: Term) -> set[str]:
    """All that finds an entry; a Korean term also by what stands before or in its brackets."""
    korean = [entry.korean, _without_brackets(entry.korean)]
    return {_plain(name) for name in (entry.word, *entry.also, *korean)}


def _without_brackets(text: str) -> str:
    return re.sub(r"\s*\([^)]*\)", "", text)


def _plain(text: str) -> str:
    """Small letters without spaces and hyphens, so that `Work item` finds work-item."""
    return re.sub(r"[\s-]+", "", text.casefold())


_NAMES = {name: entry for entry in TERMS for name in names_of(entry)}
