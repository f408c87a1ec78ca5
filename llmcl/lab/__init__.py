"""What only the notebooks use: checks, exercises, questions, pictures and widgets.

Everything printed here is words: the same on every device, so that a stored notebook can be
compared on any of them. Nothing outside this package imports it.
"""

from .broken import device_answer, run_broken, show_broken
from .cells import cells, explore_pieces, heat, show_pieces
from .checks import CheckFailed, check
from .exercises import exercise
from .file_map import explore_file, gguf_parts
from .glossary import term
from .items import (
    atomic_inc,
    get_global_id,
    get_global_size,
    get_group_id,
    get_local_id,
    get_local_size,
    get_num_groups,
    local,
    run_items,
)
from .kernel_exercises import build, kernel_exercise
from .kernels import show_kernel
from .llama import ask_llama, llama_logs, llama_refusal
from .models import checkpoint, keep_checkpoint
from .monitor import watch
from .pictures import COLORS, explore, figure, show
from .questions import predict, quiz, reveal
from .session import folder, keep, kept, mark, start, summary
from .timing import launches, medians
from .troubles import show_troubles, trouble
from .viewer import gaps, touch_counts, view_items

__all__ = [
    "COLORS", "CheckFailed", "ask_llama", "atomic_inc", "build", "cells", "check", "checkpoint",
    "device_answer", "exercise", "explore", "explore_file", "explore_pieces", "figure", "folder",
    "gaps", "get_global_id", "get_global_size", "get_group_id", "get_local_id", "get_local_size",
    "get_num_groups", "gguf_parts", "heat", "keep", "keep_checkpoint", "kept", "kernel_exercise",
    "launches", "llama_logs", "llama_refusal", "local", "mark", "medians",
    "predict", "quiz", "reveal", "run_broken", "run_items", "show", "show_broken", "show_kernel",
    "show_pieces", "show_troubles", "start", "summary", "term", "touch_counts", "trouble",
    "view_items", "watch",
]  # fmt: skip
