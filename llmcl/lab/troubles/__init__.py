"""Every message that a reader may meet, with its cause and its cure; the search and the tables.

The modules of this folder hold the entries, an area each. tests/test_lab_troubles.py fails when a
message of the package has no entry here, or an entry no message.
"""

import html
import re
import textwrap

from ...errors import LlmclError
from ..display import bundle_page
from . import (
    data,
    device,
    doctor,
    files,
    kernels,
    llama_cpp,
    notebook,
    programs,
    questions,
    shapes,
    tokens,
    tools,
    training,
)
from .entry import Trouble
from .search import Search

__all__ = ["AREAS", "TROUBLES", "Trouble", "show_troubles", "trouble"]

# In the order of the tables.
AREAS: dict[str, tuple[Trouble, ...]] = {
    module.__name__.rsplit(".", 1)[-1]: module.TROUBLES
    for module in (
        device, doctor, kernels, shapes, data, tokens, training, files, llama_cpp, programs,
        notebook, tools, questions,
    )
}  # fmt: skip
TROUBLES = tuple(entry for entries in AREAS.values() for entry in entries)
MOST = 3
WIDTH = 92
NOTHING = (
    "Nothing like it is known here. Try a shorter piece of it, without names and numbers. "
    "If that finds nothing either, report it: the whole message, and what `llmcl doctor` prints."
)
_search = Search(TROUBLES)


def trouble(message: str | Exception) -> None:
    """Prints what is known about a message, or about a part of one: at most three entries.

    Entries whose message it is come first; without one, those that share the most words with it.
    """
    found, exact = _search.find(str(message))
    if not found:
        print(textwrap.fill(NOTHING, WIDTH))
        return
    if not exact:
        print("No message is exactly this; the nearest:\n")
    print("\n\n".join(map(as_text, found[:MOST])))


def as_text(entry: Trouble) -> str:
    """The entry as lines of text."""
    parts = (("", entry.message), ("  why: ", entry.cause), ("  do:  ", entry.cure))
    return "\n".join(
        textwrap.fill(
            text, WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark),
            break_long_words=False, break_on_hyphens=False,
        )
        for mark, text in parts
    )  # fmt: skip


def show_troubles(area: str) -> None:
    """Displays all entries of an area as a table, in which a browser's search finds a message.

    Raises LlmclError for an area that does not exist.
    """
    if area not in AREAS:
        raise LlmclError(f"there is no area {area!r} of troubles; there are {', '.join(AREAS)}.")
    entries = AREAS[area]
    bundle_page("\n\n".join(map(as_text, entries)), as_table(entries))


def as_table(entries: tuple[Trouble, ...]) -> str:
    """The entries as a table in HTML: the message at the left, cause and cure at the right."""
    cell = 'style="text-align:left;vertical-align:top"'
    asked = all(entry.kind == "question" for entry in entries)
    heads = ("What you ask" if asked else "What you read", "Why, and what to do")
    rows = [f"<th {cell}>{head}</th>" for head in heads]
    lines = [f"<tr>{''.join(rows)}</tr>"]
    for entry in entries:
        why = f"{_marked(entry.cause)}<br><strong>Do:</strong> {_marked(entry.cure)}"
        said = _marked(entry.message) if asked else html.escape(entry.message)
        lines.append(f'<tr><td {cell} width="40%">{said}</td><td {cell}>{why}</td></tr>')
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _marked(text: str) -> str:
    """`code` and *emphasis* as HTML."""
    parts = html.escape(text).split("`")
    parts[::2] = [re.sub(r"\*([^*]+)\*", r"<em>\1</em>", part) for part in parts[::2]]
    parts[1::2] = [f"<code>{part}</code>" for part in parts[1::2]]
    return "".join(parts)
