"""The errors that llmcl raises: one sentence with the value that is wrong and what to do about it.

The command line prints the sentence and ends with status 2; a notebook shows it as it is.
"""


class LlmclError(Exception):
    """The root of all errors that are meant for the person in front of the screen."""


class DeviceError(LlmclError):
    """No device, an unknown device, or a device that cannot do what was asked."""


class KernelError(LlmclError):
    """A kernel that does not compile, or was launched with the wrong arguments."""


class ShapeError(LlmclError):
    """Arrays whose shapes or types do not fit the operation."""


class ConfigError(LlmclError):
    """A model configuration that contradicts itself."""


class DataError(LlmclError):
    """A text file, prompt or folder that cannot be used."""


class TokenizerError(LlmclError):
    """A tokenizer that cannot be trained, read or applied."""


class CheckpointError(LlmclError):
    """A checkpoint that is damaged, foreign, or does not fit the model."""


class GgufError(LlmclError):
    """A GGUF file that is damaged, foreign, or cannot be written."""


class TrainingError(LlmclError):
    """A training run that had to stop."""
