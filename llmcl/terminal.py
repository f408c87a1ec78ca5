"""The command's own input and output, made to take any character and to survive being closed."""

import codecs
import io
import os
import sys


def prepare_streams() -> None:
    """Makes printing and reading possible whatever the locale is and whoever closed a stream.

    A terminal that says ASCII (the locale C) is taken to speak UTF-8, as all of today's do; what
    another encoding lacks is written as \\u.... Bytes of the input that are no text of its encoding
    become surrogates, which a tokenizer refuses with a sentence.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # Opened in this order, each gets the number of the closed one. Otherwise the next file
            # would get it, and whatever a driver prints would land in there.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            encoding = codecs.lookup(stream.encoding).name
            encoding = "utf-8" if encoding == "ascii" else encoding
            keeps = name == "stdin" or encoding == "utf-8"
            stream.reconfigure(
                encoding=encoding, errors="surrogateescape" if keeps else "backslashreplace"
            )


def discard_output() -> None:
    """Sends what is still to be printed nowhere, when nobody reads it any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
