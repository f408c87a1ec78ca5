"""What both tokenizers share: the byte alphabet, decoding, and the file a tokenizer is kept in."""

import codecs
import hashlib
import json
import operator
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from .errors import TokenizerError, shown
from .files import open_file, parse_json, replacing

END_TOKEN = "<|endoftext|>"
FORMAT = "llmcl-tokenizer-1"

# GGUF's numbers for kinds of tokens (gguf.TokenType): ordinary text, unknown, control.
NORMAL, UNKNOWN, CONTROL = 1, 2, 3

# A token's bytes need not be readable text, yet files keep tokens as strings. GPT-2's answer is an
# alphabet of 256 visible characters, one for each byte: a printable byte stands for itself, and the
# others, in order, get the characters from U+0100 on. Space is Ġ (U+0120), newline is Ċ (U+010A).
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_ORDER = bytes(_PRINTABLE + _OTHERS)  # token i, for i below 256, is the byte BYTE_ORDER[i]
CHAR_OF_BYTE = {b: chr(b) for b in _PRINTABLE} | {b: chr(256 + i) for i, b in enumerate(_OTHERS)}
BYTE_OF_CHAR = {char: byte for byte, char in CHAR_OF_BYTE.items()}
ID_OF_BYTE = {byte: i for i, byte in enumerate(BYTE_ORDER)}
BYTE_TOKENS = [CHAR_OF_BYTE[byte] for byte in BYTE_ORDER]

# llama.cpp refuses an empty list of merges. No text needs this one: UTF-8 has no byte 255.
NO_MERGE = ["ÿ ÿ"]


def to_alphabet(data: bytes) -> str:
    """The bytes as a string of GPT-2's byte alphabet: b" the" becomes "Ġthe"."""
    return "".join(CHAR_OF_BYTE[byte] for byte in data)


def from_alphabet(token: str) -> bytes:
    """The bytes that a string of GPT-2's byte alphabet stands for.

    Raises TokenizerError for a character that is not in the alphabet.
    """
    foreign = [char for char in token if char not in BYTE_OF_CHAR]
    if foreign:
        raise TokenizerError(
            f"the token {shown(token)} holds {foreign[0]!r}, which is not in GPT-2's byte alphabet."
        )
    return bytes(BYTE_OF_CHAR[char] for char in token)


def utf8(text: str) -> bytes:
    """The text's UTF-8 bytes; raises TokenizerError for what is not a text."""
    if not isinstance(text, str):
        raise TokenizerError(f"a tokenizer reads text, and was given {type(text).__name__}.")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TokenizerError(
            f"U+{ord(text[error.start]):04X} at position {error.start} is one half of a surrogate "
            "pair and no character; remove it from the text."
        ) from None


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list; raises TokenizerError if they are one string, or one is no text."""
    if isinstance(texts, str):
        raise TokenizerError("a tokenizer learns from a list of texts; put the one text in a list.")
    texts = list(texts)
    for text in texts:
        utf8(text)
    return texts


class Tokenizer:
    """The part of a tokenizer that is the same for words and for bytes.

    `tokens` are the entries of the vocabulary as strings of GPT-2's byte alphabet, special tokens
    by their names; a token's place in the list is its id. `token_types` are GGUF's numbers.
    The last token is END_TOKEN, of id `end_id`; no text is ever encoded to it.
    """

    kind = ""  # the class's name in a file
    pre = ""  # llama.cpp's name for the rule that splits the text
    settings: tuple[str, ...] = ()  # the constructor's arguments: what a file has to keep
    merges: list[str]  # as GGUF has them

    def __init__(self, tokens: list[str], token_types: list[int], special: dict[str, bytes]):
        self.tokens = tokens
        self.token_types = token_types
        self._bytes = [
            from_alphabet(token) if token_type == NORMAL else special[token]
            for token, token_type in zip(tokens, token_types, strict=True)
        ]

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @property
    def end_id(self) -> int:
        """The id of the token that ends a text."""
        return len(self.tokens) - 1

    def encode(self, text: str) -> list[int]:
        """The text's ids, never end_id; raises TokenizerError for what is no text."""
        raise NotImplementedError

    # ---- from ids to text ----

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token adds to the text; none for the end token.

        Raises TokenizerError for an id outside the vocabulary, or of another type than an integer.
        """
        try:
            index = operator.index(token_id)
        except TypeError:
            raise TokenizerError(
                f"a token id is a whole number, and not {shown(token_id)}."
            ) from None
        if not 0 <= index < len(self._bytes):
            raise TokenizerError(
                f"token id {index} is outside the vocabulary of {self.vocab_size} tokens; "
                "do the model and the tokenizer belong together?"
            )
        return self._bytes[index]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes that the ids stand for, exactly; raises TokenizerError as token_bytes does."""
        return b"".join([self.token_bytes(token_id) for token_id in ids])

    def decode(self, ids: Iterable[int]) -> str:
        """The text that the ids stand for; bytes that are no valid UTF-8 are shown as U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    # ---- the file ----

    def to_dict(self) -> dict:
        """Everything that from_dict needs, ready for JSON."""
        own = {name: getattr(self, name) for name in self.settings}
        return {"format": FORMAT, "kind": self.kind, **own, "fingerprint": self.fingerprint()}

    @classmethod
    def from_dict(cls, values: dict) -> "Tokenizer":
        """A tokenizer equal to the one whose to_dict() this is; raises TokenizerError otherwise."""
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise TokenizerError(f"this is no tokenizer of ours; its format should be {FORMAT!r}.")
        if values.get("kind") != cls.kind:
            raise TokenizerError(
                f"this is a tokenizer of kind {shown(values.get('kind'))}, and {cls.kind!r} is "
                "wanted."
            )
        wanted = {"format", "kind", "fingerprint", *cls.settings}
        if set(values) != wanted:
            raise TokenizerError(
                f"a tokenizer of kind {cls.kind!r} has the fields {sorted(wanted)}, and this one "
                f"has {shown(sorted(values))}."
            )
        tokenizer = cls(**{name: values[name] for name in cls.settings})
        if tokenizer.fingerprint() != values["fingerprint"]:
            raise TokenizerError(
                f"the tokenizer was changed after it was written: its fingerprint should be "
                f"{shown(values['fingerprint'])} and is {tokenizer.fingerprint()!r}; make it anew."
            )
        return tokenizer

    def fingerprint(self) -> str:
        """16 hexadecimal digits that differ for tokenizers that encode differently (SHA-256)."""
        own = [self.kind, self.tokens, *(getattr(self, name) for name in self.settings)]
        return hashlib.sha256(json.dumps(own).encode("ascii")).hexdigest()[:16]

    def save(self, path: str | os.PathLike) -> None:
        """Writes the tokenizer as JSON, whole or not at all; raises TokenizerError if it cannot."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n"
        with replacing(path, TokenizerError) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Tokenizer":
        """The tokenizer that save() wrote; raises TokenizerError for any other file."""
        return read_json(Path(path), cls.from_dict)


class StreamDecoder:
    """Turns ids into text one at a time, and holds back the bytes of an unfinished character.

    The joined results of push() and finish() equal tokenizer.decode(ids).
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The text that this token completes; often one word, sometimes empty."""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def finish(self) -> str:
        """What was still held back, shown as U+FFFD; afterwards a new text can begin."""
        return self._decoder.decode(b"", final=True)


def read_json(path: Path, build: Callable[[dict], Tokenizer]) -> Tokenizer:
    """What build() makes of a JSON file; raises TokenizerError, with the path, if that fails."""
    try:
        with open_file(path) as file:
            text = file.read().decode("utf-8-sig")
        return build(parse_json(text))
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror or error}.") from error
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        raise TokenizerError(
            f"{path} is damaged, or no tokenizer file; make the tokenizer anew."
        ) from None
