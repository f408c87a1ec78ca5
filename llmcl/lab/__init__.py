"""What only the notebooks use: checks, exercises, questions, pictures and widgets.

Everything printed here is words: the same on every device, so that a stored notebook can be
compared on any of them. Nothing outside this package imports it.
"""

from .checks import CheckFailed, check
from .exercises import exercise
from .kernels import show_kernel
from .pictures import COLORS, explore, figure, show
from .questions import predict, quiz, reveal
from .session import folder, start, summary

__all__ = [
    "COLORS", "CheckFailed", "check", "exercise", "explore", "figure", "folder", "predict", "quiz",
    "reveal", "show", "show_kernel", "start", "summary",
]  # fmt: skip
