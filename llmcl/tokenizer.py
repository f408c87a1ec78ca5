"""Two ways from text to numbers and back: a dictionary of words, and byte-level BPE.

Both have encode(text) -> ids, decode(ids) -> text, and what Tokenizer in tokenizer_base.py offers.
The dictionary is the idea in its plainest form, and loses what it does not know. Byte-level BPE
loses nothing, and is what the model uses.
"""

import os
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import regex

from . import reference
from .errors import TokenizerError, shown
from .tokenizer_base import (
    BYTE_TOKENS,
    CONTROL,
    END_TOKEN,
    ID_OF_BYTE,
    NO_MERGE,
    NORMAL,
    UNKNOWN,
    StreamDecoder,
    Tokenizer,
    check_texts,
    from_alphabet,
    read_json,
    to_alphabet,
    utf8,
)

__all__ = [
    "END_TOKEN", "UNKNOWN_TOKEN", "ByteBPE", "StreamDecoder", "Tokenizer", "WordDictionary",
    "load_tokenizer", "merge_pair", "tokenizer_from_dict", "tokenizer_from_gguf",
]  # fmt: skip

UNKNOWN_TOKEN = "<unk>"

# GPT-2's rule, llama.cpp's "gpt-2": English endings, or letters, or digits, or signs, each with one
# space before it, or white space; the last space of a run goes to the word behind it.
GPT2_SPLIT = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
# Llama 3's rule, llama.cpp's "llama-bpe". With it llama.cpp takes a piece that is a token as it is,
# without any merging; that is what makes a dictionary of words work there.
WORD_SPLIT = regex.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# A table of counts has vocab_size x vocab_size entries of four bytes: 256 MiB at this size.
LARGEST_TRAINED = 8192


class WordDictionary(Tokenizer):
    """A dictionary of the training text: every word, with the space before it, is a token.

    WORD_SPLIT says what a word is: " sun" is one, "sun" another, "." as well; digits go by threes.
    Known text is decoded exactly. What is lost, with the default spell_unknown=False:
    - a word, sign, or run of white space that the training text lacks becomes UNKNOWN_TOKEN, id 0,
      and decodes to "<unk>": "The zebra" -> "The<unk>"; two unknown words look the same;
    - a word is known only as it was written: "Sun", "sun" and " sun" are three words;
    - the text "<unk>" itself has no token, and is encoded like any other word.
    The ids are 0 for UNKNOWN_TOKEN, then the words, the most frequent first, then END_TOKEN.

    With spell_unknown=True nothing is lost: the 256 bytes come first, an unknown word is spelled
    with them, and there is no UNKNOWN_TOKEN. Only such a dictionary can be exported to GGUF.
    """

    kind = "words"
    pre = "llama-bpe"
    settings = ("words", "spell_unknown")

    def __init__(self, words: list[str], spell_unknown: bool = False):
        if not isinstance(words, list) or not isinstance(spell_unknown, bool):
            raise TokenizerError("a dictionary needs a list of words and true or false.")
        first = BYTE_TOKENS if spell_unknown else [UNKNOWN_TOKEN]
        tokens = [*first, *(to_alphabet(utf8(word)) for word in words), END_TOKEN]
        for word in words:
            if WORD_SPLIT.findall(word) != [word]:
                raise TokenizerError(
                    f"{shown(word)} is not one word, and cannot be in a dictionary."
                )
        twice = [token for token, count in Counter(tokens).items() if count > 1]
        if twice:
            raise TokenizerError(f"the token {shown(twice[0])} stands in the dictionary twice.")
        types = [NORMAL if spell_unknown else UNKNOWN] * len(first)
        types += [NORMAL] * len(words) + [CONTROL]
        super().__init__(tokens, types, {UNKNOWN_TOKEN: b"<unk>", END_TOKEN: b""})
        self.words, self.spell_unknown = list(words), spell_unknown
        self.unknown_id = None if spell_unknown else 0
        self._ids = {word: len(first) + i for i, word in enumerate(words)}

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int | None = None, spell_unknown: bool = False
    ) -> "WordDictionary":
        """A dictionary of the words in the texts, the most frequent first, then by alphabet.

        With vocab_size the rarest words are left out so that there are at most so many tokens.
        Raises TokenizerError if that leaves no room for a word, or the texts have none.
        """
        counts: dict[str, int] = Counter(
            word for text in check_texts(texts) for word in WORD_SPLIT.findall(text)
        )
        if spell_unknown:  # single bytes are tokens already
            counts = {word: n for word, n in counts.items() if len(utf8(word)) > 1}
        words = sorted(counts, key=lambda word: (-counts[word], word))
        if not words:
            raise TokenizerError("the training text has no words; give it at least one sentence.")
        special = 257 if spell_unknown else 2
        if vocab_size is not None and vocab_size <= special:
            raise TokenizerError(
                f"vocab_size {vocab_size} leaves no room for words; it must be above {special}."
            )
        return cls(words[: None if vocab_size is None else vocab_size - special], spell_unknown)

    def encode(self, text: str) -> list[int]:
        """The ids of the text's words; never end_id. Raises TokenizerError for what is no text."""
        utf8(text)
        ids = []
        for word in WORD_SPLIT.findall(text):
            if word in self._ids:
                ids.append(self._ids[word])
            elif self.unknown_id is None:
                ids.extend(ID_OF_BYTE[byte] for byte in utf8(word))
            else:
                ids.append(self.unknown_id)
        return ids

    @property
    def merges(self) -> list[str]:  # type: ignore[override]  # read only
        """NO_MERGE, the list for llama.cpp, which takes a dictionary's words as they are.

        Raises TokenizerError without spell_unknown: llama.cpp would drop unknown words silently.
        """
        if not self.spell_unknown:
            raise TokenizerError(
                f"llama.cpp knows no {UNKNOWN_TOKEN} and would drop unknown words silently; "
                "make the dictionary with spell_unknown=True to export it."
            )
        return list(NO_MERGE)


class ByteBPE(Tokenizer):
    """Byte-level byte-pair encoding, as GPT-2 and llama.cpp's "gpt-2" do it; nothing is lost.

    The text is split by GPT2_SPLIT, every piece becomes bytes, and merges fuse neighbors within a
    piece, the earliest learned merge first (Sennrich et al. 2016; Radford et al. 2019, 2.2).
    The ids are the 256 bytes in the order of BYTE_TOKENS, then one token for each merge, then
    END_TOKEN. `merges` are strings such as "Ġ t": two earlier tokens with a space between them.
    The text "<|endoftext|>" is encoded as ordinary text, never as END_TOKEN.
    """

    kind = "byte-bpe"
    pre = "gpt-2"
    settings = ("merges",)

    def __init__(self, merges: list[str]):
        if not isinstance(merges, list) or not all(isinstance(merge, str) for merge in merges):
            raise TokenizerError("byte-level BPE needs a list of merges, each a string.")
        ids = {token: i for i, token in enumerate(BYTE_TOKENS)}
        self._merged = {}  # (left id, right id) -> id of the two together
        for merge in merges:
            left, _, right = merge.partition(" ")
            token = left + right
            if left not in ids or right not in ids or token in ids or token == END_TOKEN:
                raise TokenizerError(
                    f"merge {len(self._merged)}, {shown(merge)}, does not join two earlier tokens "
                    "into a new one; the list of merges is damaged."
                )
            self._merged[ids[left], ids[right]] = ids[token] = len(ids)
        types = [NORMAL] * len(ids) + [CONTROL]
        super().__init__([*ids, END_TOKEN], types, {END_TOKEN: b""})
        self.merges = list(merges)
        self._piece_ids = lru_cache(maxsize=65536)(self._merge_piece)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int, engine=None) -> "ByteBPE":
        """A tokenizer whose merges fuse, one after the other, the most frequent pair in the texts.

        Of equally frequent pairs the one with the lowest ids is taken, left id first. An engine
        (llmcl.ops or llmcl.reference) counts the pairs; the merges are the same with each, and
        without. When every piece is one token there is nothing left to merge, and the vocabulary
        stays smaller than vocab_size: ask the result for its own. Raises TokenizerError for a
        vocab_size outside 257 to LARGEST_TRAINED.
        """
        if not isinstance(vocab_size, int) or not 257 <= vocab_size <= LARGEST_TRAINED:
            raise TokenizerError(
                f"vocab_size is {vocab_size!r}; byte-level BPE needs 257 (256 bytes and the end "
                f"token) to {LARGEST_TRAINED}."
            )
        engine = engine or reference.Engine()
        ids = _training_ids(check_texts(texts))
        tokens, merges = list(BYTE_TOKENS), []
        while len(tokens) < vocab_size - 1 and len(ids) > 1:
            counts = engine.to_host(engine.pair_counts(engine.from_host(ids), len(tokens)))
            # argmax takes the first of equals, and the table's order is the order of the pairs.
            left, right = (int(i) for i in np.unravel_index(counts.argmax(), counts.shape))
            if counts[left, right] == 0:
                break
            ids = merge_pair(ids, (left, right), len(tokens))
            merges.append(f"{tokens[left]} {tokens[right]}")
            tokens.append(tokens[left] + tokens[right])
        return cls(merges)

    def encode(self, text: str) -> list[int]:
        """The ids of the text; never end_id. Raises TokenizerError for what is no text."""
        utf8(text)
        return [i for piece in GPT2_SPLIT.findall(text) for i in self._piece_ids(piece)]

    def _merge_piece(self, piece: str) -> tuple[int, ...]:
        ids = np.array([ID_OF_BYTE[byte] for byte in utf8(piece)], np.int32)
        while True:
            row = ids.tolist()
            known = [pair for pair in zip(row, row[1:], strict=False) if pair in self._merged]
            if not known:
                return tuple(row)
            first = min(known, key=self._merged.__getitem__)  # ids grow in the order of learning
            ids = merge_pair(ids, first, self._merged[first])


def merge_pair(ids: np.ndarray, pair: tuple[int, int], new_id: int) -> np.ndarray:
    """The ids (n,) with every occurrence of the pair, from the left, replaced by new_id."""
    at = np.flatnonzero((ids[:-1] == pair[0]) & (ids[1:] == pair[1]))
    if pair[0] == pair[1] and len(at):
        # In a run such as a a a the pairs overlap; every second one, from the run's start, counts.
        starts = np.flatnonzero(np.diff(at, prepend=-2) > 1)
        run_start = np.repeat(at[starts], np.diff(starts, append=len(at)))
        at = at[(at - run_start) % 2 == 0]
    merged = ids.copy()
    merged[at] = new_id
    return np.delete(merged, at + 1)


def _training_ids(texts: list[str]) -> np.ndarray:
    """Byte ids of all pieces in one int32 row, with -1 between pieces so that no pair crosses."""
    pieces = [piece for text in texts for piece in GPT2_SPLIT.findall(text)]
    return np.array([i for p in pieces for i in (*(ID_OF_BYTE[b] for b in utf8(p)), -1)], np.int32)


def tokenizer_from_dict(values: dict) -> Tokenizer:
    """The tokenizer of either kind whose to_dict() this is; raises TokenizerError otherwise."""
    kind = values.get("kind") if isinstance(values, dict) else None
    return (WordDictionary if kind == WordDictionary.kind else ByteBPE).from_dict(values)


def load_tokenizer(path: str | os.PathLike) -> Tokenizer:
    """The tokenizer of either kind that save() wrote; raises TokenizerError for any other file."""
    return read_json(Path(path), tokenizer_from_dict)


def tokenizer_from_gguf(pre: str, tokens: list[str], merges: list[str]) -> Tokenizer:
    """The tokenizer that has these tokens; raises TokenizerError if it is not one of ours.

    `pre`, `tokens` and `merges` are GGUF's tokenizer.ggml.pre, .tokens and .merges.
    """
    tokenizer: Tokenizer
    if pre == ByteBPE.pre:
        tokenizer = ByteBPE([] if merges == NO_MERGE else merges)
    elif pre == WordDictionary.pre:
        words = [from_alphabet(token).decode("utf-8", "replace") for token in tokens[256:-1]]
        tokenizer = WordDictionary(words, spell_unknown=True)
    else:
        raise TokenizerError(f"the tokenizer {shown(pre)} is none of ours (gpt-2 or llama-bpe).")
    if tokenizer.tokens != tokens or (tokenizer.merges or NO_MERGE) != merges:
        raise TokenizerError(
            f"the file's {len(tokens)} tokens are not the ones that its merges make, followed by "
            f"{END_TOKEN}; only files with our own tokenizer can be read."
        )
    return tokenizer
