"""Finds the entries that a message, or a part of one, belongs to."""

import difflib
import math
import re
from collections import Counter
from collections.abc import Sequence

from .entry import Trouble

LEAST_LETTERS = 5  # a template with fewer fits everything, and a part that is shorter as well
SPELLED = 0.8  # how near a misspelled word must be to one of the messages
DESCRIBED = 0.7  # the share of a description's weight that stands in an entry, at least
LIKE = 0.5  # the share of the words' weight that a similar message has in common, at least
_VALUE = "…"
# They stand in every other sentence and say nothing about which trouble it is.
_EMPTY = set(
    "an and are as at be by can do does for from has have how if in is it its me my no not of on "
    "or so that the there this to was what when where which who why with you your".split()
)


class Search:
    """The entries, prepared: a pattern for each, and how telling each word is."""

    def __init__(self, entries: Sequence[Trouble]):
        self._entries = entries
        self._texts = [plain(entry.message) for entry in entries]
        self._patterns = [pattern(text) for text in self._texts]
        self._words = [words(text) for text in self._texts]
        self._all_words = [
            words(plain(f"{entry.message} {entry.cause} {entry.cure}")) for entry in entries
        ]
        self._known = set().union(*self._all_words)
        counts = Counter(word for found in self._words for word in found)
        self._weights = {w: math.log(len(entries) / n) for w, n in counts.items()}
        self._unknown = math.log(len(entries)) / 4

    def find(self, message: str) -> tuple[list[Trouble], bool]:
        """(entries, best first; whether the message is theirs and not only like theirs)."""
        text = plain(message)
        exact = [i for i in range(len(self._entries)) if self._is(i, text)]
        if exact:
            exact.sort(key=lambda i: (self._entries[i].wraps, -letters(self._texts[i])))
            return [self._entries[i] for i in exact], True
        asked = {self._spelled(word) for word in words(text)}
        like = [i for i, known in enumerate(self._words) if self._likeness(asked, known) >= LIKE]
        # Who has no message describes what is wrong; cause and cure may have these words.
        if not like and len(asked) > 1:
            shares = [self._described(asked, known) for known in self._all_words]
            like = [i for i, share in enumerate(shares) if share >= DESCRIBED]
            like.sort(key=lambda i: (self._entries[i].kind != "question", -shares[i]))
        else:
            like.sort(key=lambda i: -self._weight(asked & self._words[i]))
        return [self._entries[i] for i in like], False

    def _is(self, i: int, text: str) -> bool:
        """Whether the entry's message stands in the text, or the text in the entry's message."""
        pattern = self._patterns[i]
        if pattern and pattern.search(text):
            return True
        part = text.strip(" .:;,")
        if letters(part) < LEAST_LETTERS:
            return False
        return part in self._texts[i] or begins_within(part, self._texts[i].split(_VALUE))

    def _likeness(self, asked: set[str], known: set[str]) -> float:
        """The weight of the shared words, as a share of the shorter side's; 0 for a single one."""
        shared = asked & known
        if len(shared) < min(2, len(asked)):
            return 0.0
        weight = self._weight(shared)
        return weight / max(min(self._weight(asked), self._weight(known)), 1e-9)

    def _described(self, asked: set[str], known: set[str]) -> float:
        """The share of a description's weight that an entry has words for; 0 for a single one."""
        shared = asked & known
        return self._weight(shared) / self._weight(asked) if len(shared) > 1 else 0.0

    def _spelled(self, word: str) -> str:
        """The word, or the one of the messages' words that it is a misspelling of."""
        if word in self._known or len(word) < LEAST_LETTERS:
            return word
        return next(iter(difflib.get_close_matches(word, self._weights, 1, SPELLED)), word)

    def _weight(self, some: set[str]) -> float:
        return sum(self._weights.get(word, self._unknown) for word in some)


def plain(text: str) -> str:
    """The text in one line of small letters, with single spaces."""
    return " ".join(text.split()).casefold()


def pattern(text: str) -> re.Pattern | None:
    """A pattern that finds the message in a text, whatever stands in place of its "…"."""
    if letters(text) < LEAST_LETTERS:
        return None
    pieces = text.strip(_VALUE + " .").split(_VALUE)
    return re.compile(".*?".join(map(re.escape, pieces)))


def begins_within(part: str, pieces: list[str]) -> bool:
    """Whether a part of a message, values and all, begins at a word of one of its pieces.

    At least ten letters, and half of the part's, must be the message's own.
    """
    for i, piece in enumerate(pieces):
        for word in re.finditer(r"\S+", piece):
            head = piece[word.start() :]
            if not part.startswith(head):
                continue
            own, place = letters(head), len(head)
            for following in pieces[i + 1 :]:
                found = part.find(following, place)
                if found < 0:
                    break
                own, place = own + letters(following), found + len(following)
            if own >= max(10, letters(part) / 2):
                return True
    return False


def letters(text: str) -> int:
    """How many letters of the text are its own, and no values."""
    return sum(char.isalpha() for char in text)


def words(text: str) -> set[str]:
    """The words of a text that say something, without numbers."""
    return set(re.findall(r"[^\W\d_]{2,}", text)) - _EMPTY
