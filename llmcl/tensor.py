"""A buffer on a device with a shape: what the OpenCL operations hand to each other."""

import math

import numpy as np

FLOAT32 = np.dtype(np.float32)
INT32 = np.dtype(np.int32)


class Tensor:
    """An array on a device, in rows (C order), float32 or int32.

    buffer: the pyopencl buffer; engine: the llmcl.ops.Engine that owns it; host: for token ids,
    the NumPy array that was uploaded, so that a wrong id can be named without asking the device.
    """

    __slots__ = ("buffer", "dtype", "engine", "host", "shape", "size")

    def __init__(self, buffer, shape: tuple[int, ...], dtype: np.dtype, engine, host=None):
        self.buffer = buffer
        self.shape = shape
        self.size = math.prod(shape)
        self.dtype = dtype
        self.engine = engine
        self.host = host

    def reshape(self, *shape: int) -> "Tensor":
        """The same buffer under another shape of the same size; nothing is copied."""
        if math.prod(shape) != self.size:
            from .errors import ShapeError

            raise ShapeError(
                f"a tensor of shape {self.shape} has {self.size} elements "
                f"and cannot take the shape {shape}."
            )
        return Tensor(self.buffer, shape, self.dtype, self.engine, self.host)

    def __repr__(self) -> str:
        return f"Tensor{self.shape} {self.dtype} on {self.engine.name}"
