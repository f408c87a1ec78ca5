"""Questions from a keyboard or a pipe, answered as the tokens come."""

import sys
from collections.abc import Iterator

from .errors import DataError, LlmclError
from .generate import Sampling, reply
from .model import GPT
from .tokenizer_base import Tokenizer


def talk(model: GPT, tokenizer: Tokenizer, sampling: Sampling) -> None:
    """Answers every question on the standard input, a line each, on the standard output.

    At a terminal a question that cannot be answered is explained on stderr, and the talk goes on;
    from a file or a pipe it ends there, with the LlmclError.
    """
    alive = sys.stdin.isatty()
    for question in _typed() if alive else _piped():
        try:
            _check_encoding(question)
            for piece in reply(model, tokenizer, question, sampling=sampling):
                print(piece, end="", flush=True)
            print()
        except LlmclError as error:
            if not alive:
                raise
            print(f"\nllmcl: {error}", file=sys.stderr)


def _typed() -> Iterator[str]:
    """Lines from the keyboard up to an empty one or Ctrl-D."""
    while True:
        try:
            question = input("User: ")
        except EOFError:
            print()
            return
        if not question.strip():
            return
        print("Assistant: ", end="", flush=True)
        yield question


def _piped() -> Iterator[str]:
    """The lines that are not blank."""
    return filter(str.strip, sys.stdin)


def _check_encoding(question: str) -> None:
    # What the terminal's encoding lacks has become halves of surrogate pairs (see terminal.py).
    if any("\ud800" <= char <= "\udfff" for char in question):
        raise DataError(
            f"the question has bytes that are not {sys.stdin.encoding}; "
            "save it as that, or set the variable PYTHONIOENCODING to what it is."
        )
