"""The errors that llmcl raises: one sentence with the value that is wrong and what to do about it.

The command line prints the sentence and ends with status 2; a notebook shows it as it is.
"""

import re
import reprlib

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LONGEST = 1000  # characters of a sentence about a file
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxlevel = 3


def shown(value: object) -> str:
    """The value as Python writes it, cut short where it is long or deeply nested."""
    return _SHORT.repr(value)


class LlmclError(Exception):
    """The root of all errors that are meant for the person in front of the screen."""


class DeviceError(LlmclError):
    """No device, an unknown device, or a device that cannot do what was asked."""


class FileError(LlmclError):
    """An error whose sentence may quote what stands in a file; it stays one printable line.

    Line breaks and control characters are shown as Python escapes, and a long sentence loses its
    middle: a file cannot write on the screen what it likes.
    """

    def __init__(self, text: str = ""):
        text = _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
        super().__init__(text)


class KernelError(LlmclError):
    """A kernel that does not compile, or was launched with the wrong arguments."""


class ShapeError(LlmclError):
    """Arrays whose shapes or types do not fit the operation."""


class ConfigError(FileError):
    """A model configuration that contradicts itself."""


class DataError(FileError):
    """A text file, prompt or folder that cannot be used."""


class TokenizerError(FileError):
    """A tokenizer that cannot be trained, read or applied."""


class CheckpointError(FileError):
    """A checkpoint that is damaged, foreign, or does not fit the model."""


class GgufError(FileError):
    """A GGUF file that is damaged, foreign, or cannot be written."""


class TrainingError(LlmclError):
    """A training run that had to stop."""
