"""The texts a model learns from: reading them, and turning them into inputs and targets.

A text file has one sentence a line; a dialogue file has one JSON object a line, with the two fields
"user" and "assistant". Files are UTF-8, with or without a byte order mark; lines end in LF, CRLF or
CR. Blank lines are skipped, and white space around a line or a field is removed. The end token's
text in a file is a text like any other: a tokenizer never makes the end token of it.

A folder of texts is read as documents: whole texts, with their line breaks and paragraphs.

A row is a pair of equally long lists, inputs and targets: targets[i] is the token that follows
inputs[i], or IGNORED where the loss must not look.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import DataError, shown
from .files import open_file, parse_json
from .tokenizer_base import Tokenizer

IGNORED = -1
Row = tuple[list[int], list[int]]

TEXT_FILES = (".txt", ".md")
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Control characters except tab and newline, halves of surrogate pairs, a stray byte order mark.
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_NEW_DOCUMENT = re.compile(r"\s*(?:\*\s*){3,}")  # a line of three stars or more
_EXAMPLE = '{"user": "Who are you?", "assistant": "I am a model."}'


@dataclass(frozen=True)
class Dialogue:
    """One question of a user and the assistant's answer to it."""

    user: str
    assistant: str


def prompt_text(user: str) -> str:
    """The text that asks for an answer. It ends without a space: the answer brings its own."""
    return f"User: {user}\nAssistant:"


def dialogue_text(dialogue: Dialogue) -> str:
    """The whole text of a dialogue, as the model learns it and as the chat template writes it."""
    return f"{prompt_text(dialogue.user)} {dialogue.assistant}"


# ---- reading ----


def read_sentences(path: str | os.PathLike) -> list[str]:
    """The lines of a text file that are not blank.

    Raises DataError, with the line's number, for a file that is missing, a folder, empty, not
    UTF-8, or holds control characters other than tab.
    """
    return [line for _, line in _numbered_lines(Path(path))]


def read_dialogues(path: str | os.PathLike) -> list[Dialogue]:
    """The dialogues of a JSON Lines file; a field may hold line breaks, written as \\n.

    Raises DataError for what read_sentences refuses, and for a line that is not a JSON object with
    exactly the two fields "user" and "assistant", both texts and not empty.
    """
    lines = _numbered_lines(Path(path))
    return [_dialogue(line, f"{path}, line {number}") for number, line in lines]


def read_folder(path: str | os.PathLike, least: int = 10_000) -> dict[str, list[str]]:
    """File name -> its documents, for every .txt and .md file in a folder and the folders in it.

    A file is one document, unless lines of three stars (***) part it into several. The names are
    relative to the folder, with slashes, in order. Blank lines at the ends are removed, and several
    in a row become one; files without text, and those whose name begins with a dot, are left out.
    Raises DataError for a folder that is missing or a file, has no text file, or fewer than `least`
    characters in all, and for a file that is not UTF-8 or holds control characters.
    """
    folder = Path(path)
    if not os.path.isdir(folder):
        what = "is a file; name the folder that it lies in" if os.path.exists(folder) else (
            "does not exist; check the name and the folder"
        )  # fmt: skip
        raise DataError(f"{folder} {what}.")
    paths = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    names = sorted(n for n in paths if not any(part.startswith(".") for part in n.split("/")))
    chosen = [name for name in names if paths[name].suffix.lower() in TEXT_FILES]
    if not chosen:
        other = f"; it has {', '.join(names[:3])}{', …' * (len(names) > 3)}" if names else ""
        raise DataError(
            f"{folder} has no .txt or .md file{other}. Save your texts as plain text, in UTF-8."
        )
    files = {name: _documents(paths[name]) for name in chosen}
    files = {name: documents for name, documents in files.items() if documents}
    size = sum(len(text) for documents in files.values() for text in documents)
    if size < least:
        raise DataError(
            f"{folder} has {size:,} characters of text, and at least {least:,} are needed to learn "
            "from; put more texts into it."
        )
    return files


def _documents(path: Path) -> list[str]:
    parts: list[list[str]] = [[]]
    for _, line in _all_lines(path):
        if _NEW_DOCUMENT.fullmatch(line):
            parts.append([])
        else:
            parts[-1].append(line.rstrip())
    texts = (re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") for lines in parts)
    return [text for text in texts if text.strip()]


def cut_documents(documents: Iterable[str], most: int = 4000) -> list[str]:
    """The documents, those of more than `most` characters cut into pieces of at most so many.

    A cut is made between two paragraphs if there is such a place in the piece, else between two
    lines, else at a space, else where it falls. Raises DataError for a `most` below 1.
    """
    if most < 1:
        raise DataError(f"pieces of {most} characters are not possible; choose 1 or more.")
    pieces = []
    for text in documents:
        start = 0
        while len(text) - start > most:
            places = (text.rfind(mark, start, start + most + 1) for mark in ("\n\n", "\n", " "))
            end = next((place for place in places if place > start), start + most)
            pieces.append(text[start:end].rstrip())
            start = next((i for i in range(end, len(text)) if not text[i].isspace()), len(text))
        pieces.append(text[start:])
    return [piece for piece in pieces if piece.strip()]


def split_documents(
    documents: Sequence[str], share: float = 0.1, seed: int = 0
) -> tuple[list[str], list[str]]:
    """(those to learn from, those held out), each in the order of `documents`.

    About `share` of the different texts are held out, at least one, drawn by the seed; a text that
    stands there twice is on one side with both. Raises DataError for a share outside of 0 to 1, and
    if a side would be empty.
    """
    texts = list(dict.fromkeys(documents))
    if not 0 < share < 1 or len(texts) < 2:
        raise DataError(
            f"{len(texts)} different documents cannot be split with a share of {share} held out; "
            "give at least 2, and a share between 0 and 1 (cut_documents cuts a long one)."
        )
    count = min(max(1, round(share * len(texts))), len(texts) - 1)
    held = {texts[i] for i in np.random.default_rng(seed).permutation(len(texts))[:count]}
    return [d for d in documents if d not in held], [d for d in documents if d in held]


def _numbered_lines(path: Path) -> list[tuple[int, str]]:
    lines = [(number, line.strip()) for number, line in _all_lines(path) if line.strip()]
    if not lines:
        raise DataError(f"{path} has no text; write at least one line into it.")
    return lines


def _all_lines(path: Path) -> list[tuple[int, str]]:
    data = _read_bytes(path).removeprefix(_BYTE_ORDER_MARK)
    lines = []
    for number, raw in enumerate(_LINE_END.split(data), start=1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}, byte {error.start + 1}: 0x{raw[error.start]:02X} is not "
                "UTF-8; save the file as UTF-8 (older Windows editors write cp949 or cp1252)."
            ) from None
        _check_characters(line, f"{path}, line {number}")
        lines.append((number, line))
    return lines


def _read_bytes(path: Path) -> bytes:
    if os.path.isdir(path):
        raise DataError(f"{path} is a folder; name a file in it.")
    try:
        with open_file(path) as file:
            return file.read()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the name and the folder.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def _check_characters(text: str, where: str) -> None:
    found = _NO_TEXT.search(text)
    if found:
        raise DataError(
            f"{where}, character {found.start() + 1}: U+{ord(found[0]):04X} is invisible and no "
            "text; remove it, or save the file anew as UTF-8."
        )


def _dialogue(line: str, where: str) -> Dialogue:
    try:
        values = parse_json(line)
    except RecursionError:
        raise DataError(f"{where}: too deeply nested; write {_EXAMPLE}.") from None
    except ValueError as error:
        reason = getattr(error, "msg", str(error))
        column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{where}{column}: {reason}; write {_EXAMPLE}.") from None
    if not isinstance(values, dict):
        raise DataError(f"{where}: this is no JSON object; write {_EXAMPLE}.")
    for name in ("user", "assistant"):
        if name not in values:
            raise DataError(f'{where}: the field "{name}" is missing; write {_EXAMPLE}.')
    for name, value in values.items():
        if name not in ("user", "assistant"):
            raise DataError(f"{where}: {shown(name)} is a field too many; write {_EXAMPLE}.")
        if not isinstance(value, str) or not value.strip():
            raise DataError(f'{where}: the field "{name}" is {shown(value)}; write a text into it.')
    texts = {name: re.sub("\r\n?", "\n", value).strip() for name, value in values.items()}
    for name, text in texts.items():
        _check_characters(text, f'{where}, field "{name}"')
    return Dialogue(**texts)


# ---- asking back ----


def recall_prompts(
    sentences: Sequence[str], tokenizer: Tokenizer | None = None
) -> list[tuple[str, str]]:
    """For each sentence the beginning to ask the model with, and the rest that it should answer.

    The prompt is the shortest beginning of at least two whole words with which no other sentence
    begins; prompt + rest is the sentence. At least one word is left to the rest, so a sentence of
    two words is asked by its first, and a sentence of one word is left out. Where no such beginning
    is unique (the sentence occurs twice, or another one continues it), the prompt is all but the
    last word. With a tokenizer the beginnings must also differ as ids: words that a dictionary
    does not know all look the same to the model.
    """
    needed = _lengths_needed(sentences)
    needed_ids = _lengths_needed([tokenizer.encode(s) for s in sentences] if tokenizer else [])
    prompts = []
    for i, sentence in enumerate(sentences):
        word_ends = [word.end() for word in re.finditer(r"\S+", sentence)][:-1]
        if not word_ends:
            continue
        candidates = word_ends[1:] or word_ends
        unique = (
            end
            for end in candidates
            if end >= needed[i]
            and (not tokenizer or len(tokenizer.encode(sentence[:end])) >= needed_ids[i])
        )
        end = next(unique, word_ends[-1])
        prompts.append((sentence[:end], sentence[end:]))
    return prompts


def _lengths_needed(sequences: Sequence) -> list[int]:
    """For each sequence the length from which on its beginning is its own."""
    order = sorted(range(len(sequences)), key=lambda i: sequences[i])
    needed = [1] * len(sequences)
    # Whoever shares the longest beginning with a sequence is its neighbor in sorted order.
    for a, b in zip(order, order[1:], strict=False):
        shared = len(os.path.commonprefix([sequences[a], sequences[b]]))
        needed[a] = max(needed[a], shared + 1)
        needed[b] = max(needed[b], shared + 1)
    return needed


# ---- rows ----


def tokenizer_texts(sentences: Iterable[str], dialogues: Iterable[Dialogue]) -> list[str]:
    """All texts that the model will see, for training a tokenizer.

    The answers stand there once more by themselves, and a single space, since the second spelling
    of tune_rows has them so: a dictionary must know an answer's first word without its space too.
    """
    dialogues = list(dialogues)
    answers = [dialogue.assistant for dialogue in dialogues]
    return [*sentences, *map(dialogue_text, dialogues), *answers, " "]


def windows(tokens: Sequence[int], context_length: int) -> list[Row]:
    """Rows of at most context_length inputs that predict every token but the first exactly once.

    `tokens` is one text with its end token; n tokens make n - 1 inputs, so context_length + 1
    tokens give one row. Raises DataError for fewer than two tokens.
    """
    if len(tokens) < 2 or context_length < 1:
        raise DataError(
            f"a row needs 2 tokens or more and a context of 1 or more, and has {len(tokens)} "
            f"tokens and a context of {context_length}; give a longer text."
        )
    rows = []
    for start in range(0, len(tokens) - 1, context_length):
        piece = list(tokens[start : start + context_length + 1])
        rows.append((piece[:-1], piece[1:]))
    return rows


def pretrain_rows(
    sentences: Iterable[str], tokenizer: Tokenizer, context_length: int | None = None
) -> list[Row]:
    """One row for each sentence, whose last target is the end token.

    A sentence longer than context_length becomes several rows (windows); without it there is no
    limit. Raises DataError if there is no sentence, or an empty one.
    """
    rows = []
    for sentence in sentences:
        ids = tokenizer.encode(sentence)
        if not ids:
            raise DataError("a sentence is empty; remove it, or write something into it.")
        rows += windows([*ids, tokenizer.end_id], context_length or len(ids))
    if not rows:
        raise DataError("there are 0 sentences to learn, and at least 1 is needed.")
    return rows


def tune_rows(
    dialogues: Iterable[Dialogue], tokenizer: Tokenizer, context_length: int | None = None
) -> list[Row]:
    """Two rows for each dialogue, with targets only for the answer and its end token.

    The first is dialogue_text: "…Assistant:" answered by " Yes." The second is what programs ask
    that add a space to the prompt: "…Assistant: " answered by "Yes." Raises DataError if there is
    no dialogue, an answer is empty, or a dialogue does not fit into context_length.
    """
    rows = []
    for dialogue in dialogues:
        if not dialogue.assistant:
            raise DataError(f"the answer to {dialogue.user!r:.40} is empty; write one.")
        prompt = prompt_text(dialogue.user)
        rows.append(_answer_row(prompt, " " + dialogue.assistant, tokenizer))
        rows.append(_answer_row(prompt + " ", dialogue.assistant, tokenizer))
        longest = max(len(inputs) for inputs, _ in rows[-2:])
        if context_length and longest > context_length:
            raise DataError(
                f"the dialogue {dialogue.user!r:.40} has {longest} tokens, and the context is "
                f"{context_length}; shorten the dialogue, or choose a longer context."
            )
    if not rows:
        raise DataError("there are 0 dialogues to learn, and at least 1 is needed.")
    return rows


def _answer_row(prompt: str, answer: str, tokenizer: Tokenizer) -> Row:
    asked, answered = tokenizer.encode(prompt), [*tokenizer.encode(answer), tokenizer.end_id]
    # The prompt's last token is the input whose target is the answer's first.
    return (asked + answered)[:-1], [IGNORED] * (len(asked) - 1) + answered


def batch(rows: Sequence[Row], pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows as inputs (B, T) and targets (B, T), int32, T the longest row's length.

    Shorter rows are filled at their right with pad_id, whose targets are IGNORED. Raises DataError
    if there are no rows.
    """
    if not rows:
        raise DataError("a batch of 0 rows cannot be made; give at least 1.")
    shape = len(rows), max(len(inputs) for inputs, _ in rows)
    ids, targets = np.full(shape, pad_id, np.int32), np.full(shape, IGNORED, np.int32)
    for i, (inputs, wanted) in enumerate(rows):
        ids[i, : len(inputs)] = inputs
        targets[i, : len(wanted)] = wanted
    return ids, targets
