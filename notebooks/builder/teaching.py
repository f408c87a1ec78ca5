"""Reads a teacher's page, docs/teaching/NN.md: its plan, its misconceptions and its votes.

The page's form is plain Markdown. The plan is the first table of `## Minute plan`. A misconception
is a `### 1. "…"` below `## Misconceptions`, with paragraphs that begin with **Ask:**, **With the
belief:**, **Right:** and **Cure:**. A vote is a `### Vote 1 · after *Heading*` below `## Votes`: a
question, a list with the options A to D, a paragraph that begins with **Right: B.**, and a list
that says of each wrong option what it reveals.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from builder.places import ROOT, BuildError

FOLDER = ROOT / "docs" / "teaching"
HEADING = re.compile(r"(?<!\*)\*(?!\*)(?P<title>[^*|]+?)\*(?!\*)")
EXERCISE = re.compile(r"`(\d\d[a-z]?\.\d+)`")
MINUTES = re.compile(r"^(\d+)–(\d+)$")
OPTION = re.compile(r"^- (.*?)(?=^- |\Z)", re.MULTILINE | re.DOTALL)
LETTERS = re.compile(r"\*\*([A-D])\*\*")


@dataclass(frozen=True)
class Row:
    """A line of the plan: minutes from and to, what teacher and class do, headings, exercises."""

    begin: int
    end: int
    teacher: str
    learners: str
    headings: tuple[str, ...]
    exercises: tuple[str, ...]


@dataclass(frozen=True)
class Misconception:
    """The belief in a learner's words, the question, both answers, and the cure."""

    belief: str
    ask: str
    believed: str
    right: str
    cure: str


@dataclass(frozen=True)
class Vote:
    """A question with four options; `reveals` says of each wrong letter what it shows."""

    when: str  # before or after
    heading: str
    question: str
    options: dict[str, str]
    right: str
    because: str
    reveals: dict[str, str]


@dataclass(frozen=True)
class Page:
    """A lesson's page."""

    number: str
    text: str
    plan: tuple[Row, ...]
    misconceptions: tuple[Misconception, ...]
    votes: tuple[Vote, ...]


def read(number: str, folder: Path = FOLDER) -> Page:
    """The page of a lesson such as "04a"; raises BuildError if it is not there or not whole."""
    path = folder / f"{number}.md"
    if not path.is_file():
        raise BuildError(f"lesson {number} has no page docs/teaching/{number}.md.")
    text = path.read_text(encoding="utf-8")
    parts = sections(text, "## ")
    try:
        return Page(
            number,
            text,
            tuple(map(row, table(parts["Minute plan"]))),
            tuple(misconception(*item) for item in sections(parts["Misconceptions"]).items()),
            tuple(vote(*item) for item in sections(parts["Votes"]).items()),
        )
    except KeyError as missing:
        raise BuildError(f"{path.name} lacks the part {missing}.") from None


def sections(text: str, mark: str = "### ") -> dict[str, str]:
    """The parts of a text by their headings of one level, in order."""
    found = re.split(rf"^{mark}(.+)$\n", text, flags=re.MULTILINE)
    return {
        title.strip(): body.strip() for title, body in zip(found[1::2], found[2::2], strict=True)
    }


def table(text: str) -> list[list[str]]:
    """The cells of the first table of a text, without its head."""
    block = next(b for b in text.split("\n\n") if b.lstrip().startswith("|"))
    lines = block.strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def row(cells: list[str]) -> Row:
    """A line of the plan; raises BuildError if its minutes or its columns are wrong."""
    minutes = MINUTES.match(cells[0])
    if minutes is None or len(cells) != 4:
        raise BuildError(f"the plan's line {cells} is not: minutes, teacher, class, cells.")
    return Row(int(minutes[1]), int(minutes[2]), cells[1], cells[2], *named(cells[3]))


def named(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The headings in *italics* and the exercises in `code` that a text names."""
    plain = re.sub(r"`[^`]*`", " ", text)
    return tuple(m["title"] for m in HEADING.finditer(plain)), tuple(EXERCISE.findall(text))


def paragraphs(text: str, *labels: str) -> list[str]:
    """What follows each bold label, up to the next one; raises KeyError for one that is missing."""
    found = dict(
        re.findall(r"^\*\*([^*]+?):?\*\*:?(.*?)(?=^\*\*|\Z)", text, re.MULTILINE | re.DOTALL)
    )
    return [" ".join(found[label].split()) for label in labels]


def misconception(title: str, text: str) -> Misconception:
    """One misconception, from its heading and its text."""
    belief = re.sub(r"^\d+\. ", "", title).strip('"')
    return Misconception(belief, *paragraphs(text, "Ask", "With the belief", "Right", "Cure"))


def vote(title: str, text: str) -> Vote:
    """One vote, from its heading and its text."""
    when = re.match(r"Vote \d · (before|after) \*(.+)\*$", title)
    question, right, rest = re.split(r"^\*\*Right: ([A-D])\.\*\*", text, flags=re.MULTILINE)
    if when is None:
        raise BuildError(f"a vote's heading is not {title!r}, but: Vote 1 · after *Heading*.")
    asked, options = lettered(question)
    because, reveals = lettered(rest)
    return Vote(when[1], when[2], asked, options, right, because, reveals)


def lettered(text: str) -> tuple[str, dict[str, str]]:
    """The text in front of a list, and the list's items by their letters; one may have several."""
    front, _, rest = text.partition("\n- ")
    items = {}
    for item in OPTION.findall("- " + rest if rest else ""):
        words = " ".join(item.split())
        head = re.match(r"(?:\*\*[A-D]\*\*(?:, | and )?)+", words)
        if head is None:
            raise BuildError(f"the list's item {words!r} does not begin with its letter in bold.")
        items |= {letter: words[head.end() :].strip() for letter in LETTERS.findall(head[0])}
    return " ".join(front.split()), items
