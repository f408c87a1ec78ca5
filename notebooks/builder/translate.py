"""Lays a translation over a lesson's prose, block by block; code and outputs stay as they are.

notebooks/i18n/LANG/NN.po holds the translations of lesson NN in gettext's format, which
translators' programs read. Each entry has the block's id as its context, the digest of the English
in an extracted comment (`#. english: …`), the English as msgid and the translation as msgstr.
A block is shown translated when its entry has a translation, is not marked fuzzy, and its digest is
that of the English of today.
"""

from io import BytesIO
from pathlib import Path

import nbformat
from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import PoFileError, read_po, write_po

from builder import glossary, places
from builder.places import BuildError, number_of
from builder.source import FOLDED, digest, prose, seal
from builder.store import stored

DIGEST = "english: "
MARKUP = ("```", "<details", "</details>", "$$")
HEADER = '''# Lesson {number} in the language {language}. See notebooks/i18n/README.md.
msgid ""
msgstr ""
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"'''


def po_path(language: str, name: str) -> Path:
    """Where a lesson's translation lies; raises BuildError for a language that is none."""
    sentence = f"{language!r} is no language; write a code such as ko or pt_BR."
    if not language.replace("_", "").isalnum():  # it becomes a folder's name
        raise BuildError(sentence)
    try:
        Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        raise BuildError(sentence) from None
    return places.FOLDER / "i18n" / language / f"{number_of(name)}.po"


def read(path: Path) -> Catalog:
    """The translations in a file, none if there is no file; raises BuildError if it is broken."""
    if not path.is_file():
        return Catalog()
    try:
        return read_po(BytesIO(path.read_bytes()), charset="utf-8", abort_invalid=True)
    except (PoFileError, UnicodeDecodeError) as error:
        raise BuildError(f"{path.name} is not a PO file in UTF-8: {error}") from None


def blocks(name: str) -> dict[str, str]:
    """The blocks that can be translated: the id in the source -> the English."""
    number = number_of(name)
    found = prose(name).items()
    return {i.removeprefix(f"{number}-"): text for i, (_, text) in found if not FOLDED.search(i)}


def entries(catalog: Catalog) -> dict[str, Message]:
    """The entries by the id of their block, in the file's order."""
    return {message.context or "(no msgctxt)": message for message in catalog if message.id}


def not_usable(message: Message | None, english: str) -> str:
    """Why a block must be shown in English; "" if its translation can be shown."""
    if message is None or not message.string:
        return "not translated"
    if f"{DIGEST}{digest(english)}" not in message.auto_comments:
        return "its English has changed"
    if message.fuzzy:
        return "marked fuzzy, so somebody has to look at it"
    if any(english.count(mark) != message.string.count(mark) for mark in MARKUP):
        return "its code or folded blocks are not those of the English"
    return ""


def translate(language: str, name: str) -> tuple[nbformat.NotebookNode, list[str]]:
    """The stored notebook in another language, and a line for each block that is not in it."""
    notebook, path = stored(name), po_path(language, name)
    messages, english = entries(read(path)), blocks(name)
    number, report = number_of(name), []
    by_id = {cell.id: cell for cell in notebook.cells}
    for block, text in english.items():
        reason = not_usable(messages.get(block), text)
        if reason:
            report.append(f"{block}: {reason}")
        else:
            words = messages[block].string
            linked = glossary.link_words(words) if block == "promise" else words
            by_id[f"{number}-{block}"].source = linked
    report += [f"{b}: the lesson has no such block" for b in messages if b not in english]
    notebook.metadata["llmcl"]["language"] = language
    return seal(notebook), report


def write_template(language: str, name: str) -> Path:
    """Writes or updates a lesson's PO file and returns its path.

    Translations are kept. One whose English has changed is marked fuzzy. One whose block is gone is
    kept as obsolete, at the end, and comes back as fuzzy if the block does.
    """
    path = po_path(language, name)
    old = read(path)
    known, english = entries(old), blocks(name)
    gone = {message.context: message for message in old.obsolete.values()}
    new = Catalog(locale=language)
    for block, text in english.items():
        before = known.get(block) or gone.pop(block, None)
        new[text] = updated(block, text, before, back=block not in known)
    gone |= {block: message for block, message in known.items() if block not in english}
    new.obsolete.update({(m.id, block): m for block, m in gone.items() if m.string})
    body = BytesIO()
    write_po(body, new, width=0, omit_header=True)
    header = HEADER.format(number=number_of(name), language=language)
    if path.is_file():
        header = path.read_text(encoding="utf-8").split("\n\n")[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = header + "\n\n" + body.getvalue().decode("utf-8").strip("\n") + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def updated(block: str, english: str, old: Message | None, back: bool = False) -> Message:
    """A block's entry for the English of today, with the translation that there was."""
    comments = [DIGEST + digest(english)]
    message = Message(english, "", auto_comments=comments, context=block)
    if old is not None and old.string:
        message.string = old.string
        message.user_comments = old.user_comments
        if old.fuzzy or old.id != english or back:
            message.flags.add("fuzzy")
    return message
