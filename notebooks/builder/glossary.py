"""The glossary's page, made from llmcl.lab.glossary, and the links to it from the lessons."""

import re
from itertools import groupby

from builder import places
from builder.places import BuildError, number_of
from llmcl.lab.glossary import TERMS, Term, find

PAGE = "90_glossary.ipynb"
# The last row of the table of `promise`: New words in English, and its translation elsewhere.
ROW = re.compile(r"^\| \*\*(?P<label>[^*|\n]+)\*\* \| (?P<words>[^|\n]+) \|$", re.MULTILINE)
SYLLABLES = "가나다라마바사아자차카타파하"


def link_words(promise: str) -> str:
    """The block with every new word of its table as a link to its entry.

    Raises BuildError for an English word that the glossary lacks; a translated one stays as it is.
    """
    rows = list(ROW.finditer(promise))
    if not rows:
        return promise
    row, linked = rows[-1], []
    for word in row["words"].split(", "):
        term = find(word)
        if term is None and row["label"] == "New words":
            raise BuildError(f"the new word {word!r} has no entry in llmcl/lab/glossary.")
        linked.append(word if term is None else f"[{word}]({PAGE}#{anchor(term.word)})")
    start, end = row.span("words")
    return promise[:start] + ", ".join(linked) + promise[end:]


def anchor(word: str) -> str:
    """What JupyterLab calls the heading of this text in a link."""
    return word.replace(" ", "-")


def blocks() -> list[tuple[str, str]]:
    """The prose blocks of the page: (id, text) of the line of letters, each letter, the Korean."""
    names = {number_of(name): name for name in places.all_names()}
    lines = [(term.word, entry(term, names)) for term in TERMS]
    lines += [(other, pointer(other, term)) for term in TERMS for other in term.also]
    lines = sorted((word.strip("_").casefold(), line) for word, line in lines)
    letters = {k.upper(): list(g) for k, g in groupby(lines, key=lambda line: line[0][0])}
    jump = " · ".join(f"[{letter}](#{letter})" for letter in letters)
    found = [("letters", f"## The terms\n\n{jump} · [한국어](#Korean)")]
    for letter, group in letters.items():
        text = "\n\n".join([f"## {letter}", *(line for _, line in group)])
        found.append((f"letter-{letter.lower()}", text))
    return [*found, ("korean", korean_index())]


def entry(term: Term, names: dict[str, str]) -> str:
    """A term under a heading of its own, which links can reach."""
    if term.lesson not in names:
        raise BuildError(f"the glossary says that lesson {term.lesson} introduces {term.word!r}.")
    lesson = f"[lesson {term.lesson}]({names[term.lesson]}.ipynb)"
    lines = [f"### {term.word}", f"**{term.korean}** · {lesson}", term.meaning]
    lines += [f"`{term.formula}`"] if term.formula else []
    lines += [f"Also: {', '.join(term.also)}."] if term.also else []
    return "\n\n".join(lines)


def pointer(other: str, term: Term) -> str:
    """The line of a second name, which leads to the entry."""
    return f"**{other}**: see [{term.word}](#{anchor(term.word)})."


def korean_index() -> str:
    """The Korean terms in their own order, each with its English one.

    The heading is in Latin letters: JupyterLab does not find one in Hangul.
    """
    parts = ["## Korean", "한국어 색인, 가나다순. 로마자나 숫자로 시작하는 말은 맨 앞에 있어요."]
    ordered = sorted(TERMS, key=lambda term: term.korean.split("(")[0].casefold())
    for first, group in groupby(ordered, key=lambda term: initial(term.korean)):
        links = [f"{term.korean} → [{term.word}](#{anchor(term.word)})" for term in group]
        parts.append(f"**{first}**  \n" + "  \n".join(links))
    return "\n\n".join(parts)


def initial(korean: str) -> str:
    """The part of the Korean index that a term stands in: 가, 나, …, or A–Z."""
    return max((s for s in SYLLABLES if s <= korean[0]), default="A–Z")
