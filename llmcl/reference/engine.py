"""The NumPy engine: the same interface as llmcl.ops.Engine, without a device."""

import math

import numpy as np

from ..errors import ShapeError
from ..layout import layout
from . import OPERATIONS
from .shapes import to_int32


class Engine:
    """NumPy in float64 (the judge of every check) or float32 (to go on without OpenCL)."""

    name = "NumPy"
    device = None
    exact = False

    def __init__(self, dtype=np.float64):
        self.dtype = np.dtype(dtype)
        for operation in OPERATIONS:
            setattr(self, operation.__name__, operation)

    def empty(self, shape, dtype=None):
        """An array whose contents are whatever lay there before."""
        return np.empty(shape, dtype or self.dtype)

    def zeros(self, shape, dtype=None):
        """An array of zeros."""
        return np.zeros(shape, dtype or self.dtype)

    def from_host(self, array):
        """A copy in the engine's precision; whole numbers become int32."""
        array = np.asarray(array)
        if array.dtype.kind in "iu":
            return np.array(to_int32(array))
        if array.dtype.kind != "f":
            raise ShapeError(f"an array of {array.dtype} cannot be computed with; use numbers.")
        return np.array(array, dtype=self.dtype)

    def to_host(self, tensor):
        """A copy of an array."""
        return np.array(tensor)

    def flat(self, shapes):
        """Zeros for all shapes in one array: ([the whole], the parts by name)."""
        starts, end = layout(shapes)
        whole = np.zeros(end, self.dtype)
        parts = {
            name: whole[starts[name] : starts[name] + math.prod(shape)].reshape(shape)
            for name, shape in shapes.items()
        }
        return [whole], parts

    def write(self, tensor, array, row=0):
        """Copies host rows into an array, the first of them to `row`."""
        self.copy(tensor, np.asarray(array), row)

    def copy(self, target, source, row=0):
        """Copies the rows of `source` into `target`, the first of them to `row`."""
        rows = target.reshape(-1, target.shape[-1])
        new = source.reshape(-1, source.shape[-1])
        if rows.shape[1] != new.shape[1] or row < 0 or row + len(new) > len(rows):
            raise ShapeError(
                f"rows of shape {source.shape} do not fit into {target.shape} from row {row} on."
            )
        rows[row : row + len(new)] = new

    def finish(self):
        """NumPy never has anything left to do."""
