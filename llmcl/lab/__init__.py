"""What only the notebooks use: checks, exercises, questions, pictures and widgets.

Everything printed here is words: the same on every device, so that a stored notebook can be
compared on any of them. Nothing outside this package imports it.
"""

from .broken import device_answer, run_broken, show_broken
from .cells import cells, explore_pieces, heat, show_pieces
from .checks import CheckFailed, check
from .exercises import exercise
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
from .models import checkpoint, keep_checkpoint
from .pictures import COLORS, explore, figure, show
from .questions import predict, quiz, reveal
from .session import folder, keep, kept, start, summary
from .viewer import gaps, touch_counts, view_items

__all__ = [
    "COLORS", "CheckFailed", "atomic_inc", "build", "cells", "check", "checkpoint",
    "device_answer", "exercise", "explore", "explore_pieces", "figure", "folder", "gaps",
    "get_global_id", "get_global_size", "get_group_id", "get_local_id", "get_local_size",
    "get_num_groups", "heat", "keep", "keep_checkpoint", "kept", "kernel_exercise", "local",
    "predict", "quiz", "reveal", "run_broken", "run_items", "show", "show_broken", "show_kernel",
    "show_pieces", "start", "summary", "touch_counts", "view_items",
]  # fmt: skip
