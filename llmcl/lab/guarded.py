"""An engine that sees a write past a tensor's end where no strict device does."""

import numpy as np

from ..ops import Engine

# What lies behind every tensor: 64 KiB of one NaN.
MARKS = np.full(1 << 14, 0x7FC0FFEE, np.uint32)


class Guarded(Engine):
    """The OpenCL engine with marked room behind each tensor, so that a write there is noticed."""

    def __init__(self, device, *, exact: bool = False):
        super().__init__(device, exact=exact)
        self._ends: list[tuple] = []

    def _buffer(self, count_bytes):
        buffer = super()._buffer(count_bytes + MARKS.nbytes)
        self._copy(buffer, MARKS, dst_offset=count_bytes, is_blocking=True)
        self._ends.append((buffer, count_bytes))
        return buffer

    def past_the_end(self) -> str:
        """What was written behind a tensor since the last call, in words, or ""."""
        found, ends, self._ends = np.empty_like(MARKS), self._ends, []
        for buffer, count_bytes in ends:
            self._copy(found, buffer, src_offset=count_bytes, is_blocking=True)
            changed = np.flatnonzero(found != MARKS)
            if len(changed):
                size = count_bytes // 4
                return f"it writes element {size + changed[0]} of a tensor of {size} elements"
        return ""
