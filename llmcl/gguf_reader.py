"""A GGUF file's parts, read with distrust: its counts, types and offsets may all be wrong.

gguf's own GGUFReader believes what a file says. `Reader` stops where that cannot be true, and where
llama.cpp, which is as strict, would refuse the file.
"""

import math

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType

from .errors import GgufError, shown

ARCHITECTURE = "gpt2"


class Reader(GGUFReader):
    """The keys (`fields`) and `tensors` of a GGUF file whose parts lie where they should.

    Raises GgufError for a file of another architecture or byte order, one that is cut short, and
    one whose tensors do not fill it one after the other. Other damage ends in whatever Python
    raises at that point.
    """

    parts_left = 2**19  # GPT-2's own 50,257 tokens need half of it; each takes memory

    def _get(self, offset, dtype, count=1, override_order=None):
        """`count` numbers at an offset, as a plain array: a memmap takes five times the memory."""
        self.parts_left -= 1
        kind = np.dtype(dtype).newbyteorder(override_order or self.byte_order)
        start, end = int(offset), int(offset) + int(count) * kind.itemsize
        if end > len(self.data) or self.parts_left < 0:
            raise GgufError("it is cut short, or one of its counts is wrong")
        return np.asarray(self.data)[start:end].view(kind)

    def _get_field_parts(self, orig_offs, raw_type):
        """As GGUFReader's, but a list of numbers is one part, and not one part for each number."""
        if raw_type != GGUFValueType.ARRAY:
            return super()._get_field_parts(orig_offs, raw_type)
        kind, count = self._get(orig_offs, np.uint32), self._get(orig_offs + 4, np.uint64)
        number = self.gguf_scalar_to_np.get(int(kind[0]))
        if number is None or count[0] == 0:
            return super()._get_field_parts(orig_offs, raw_type)
        values = self._get(orig_offs + 12, number, count[0])
        types = [GGUFValueType.ARRAY, GGUFValueType(int(kind[0]))]
        return 12 + values.nbytes, [kind, count, values], [2], types

    def _push_field(self, field, skip_sum=False):
        if self.byte_order != "I":
            raise GgufError("it is written for machines of the other byte order")
        if field.name in self.fields:
            raise GgufError(f"the key {shown(field.name)} stands in it twice")
        # A foreign file may have a vocabulary of millions; its first key says what it is.
        if field.name == "general.architecture" and field.contents() != ARCHITECTURE:
            raise GgufError(
                f"it is of architecture {shown(field.contents())}, and not {ARCHITECTURE!r}"
            )
        return super()._push_field(field, skip_sum)

    def _build_tensors(self, start_offs, fields):
        self._check_places(int(start_offs), fields)
        super()._build_tensors(start_offs, fields)

    def _check_places(self, start: int, fields: list) -> None:
        """Raises GgufError unless the tensors lie one after the other, and fill the file.

        A count of tensors that is too small shows itself here: the data would begin too early.
        """
        place, end = 0, 0  # where the next tensor begins, and where the last one ends
        for field in fields:
            _, _, _, sizes, kind, offset = field.parts
            if offset[0] != place:
                raise GgufError(
                    f"the tensor {shown(field.name)} has offset {offset[0]}, and {place} is "
                    "expected"
                )
            block, size = GGML_QUANT_SIZES[GGMLQuantizationType(int(kind[0]))]
            end = place + math.prod(int(n) for n in sizes) * size // block
            place = -(-end // int(self.alignment)) * int(self.alignment)
        if start + end > len(self.data):
            raise GgufError("it is cut short, or one of its counts is wrong")
        if start + place < len(self.data):
            raise GgufError(
                f"it has {len(self.data) - start - place} bytes more than its tensors need"
            )
