"""The OpenCL engine: arrays on one device, and every operation by its name."""

import math
from collections import deque
from functools import cached_property

import numpy as np
import pyopencl as cl
import pyopencl.tools

from ..errors import DeviceError, ShapeError
from ..layout import layout
from ..program import Program, driver_error, no_room
from ..reference.shapes import to_int32
from ..tensor import FLOAT32, INT32, Tensor
from ..versions import Block, choose_block, versions_for
from . import OPERATIONS

# Work-items of a group that shares a row: two of NVIDIA's warps, one wavefront of AMD's; more for
# a row of LONG numbers or more. And the most in a group of launch2d, whose rows may be narrow.
ROW_GROUP, LONG_ROW_GROUP, LONG = 64, 256, 1000
GROUP_2D = 128


class Engine:
    """OpenCL in float32 on one device.

    It has the same methods as llmcl.reference.Engine: from_host, to_host, empty, zeros, flat, copy,
    and every operation of llmcl.ops by name. With exact=True every tensor gets a buffer of exactly
    its size, so that a strict device such as Oclgrind sees a write past its end. Such buffers live
    as long as the engine, because Oclgrind takes a new buffer at a released one's address for the
    old one.
    """

    dtype = FLOAT32

    def __init__(self, device, *, exact: bool = False):
        self.device = device
        self.exact = exact
        self.name = device.info.name
        self.program = Program(device)
        self.queue = device.queue
        self.local_size = device.local_size
        versions = versions_for(device.info)
        self.product, self.wide, self.groups = versions.product, versions.wide, versions.groups
        self._pool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(device.queue))
        self._kept = []
        self._uploads = deque()
        for operation in OPERATIONS:
            setattr(self, operation.__name__, operation)

    @cached_property
    def block(self) -> Block:
        """The block of this device's matrix products."""
        return choose_block(self)

    # ---- launching ----

    def launch(self, file: str, name: str, items: int, *args) -> None:
        """One work-item for each of `items`, in groups of the device's own size."""
        kernel = self.program.kernel(file, name)
        kernel((items,), (min(self.local_size, kernel.max_group),), *args)

    def launch_wide(self, file: str, name: str, items: int, *args) -> None:
        """One work-item for each of `items`, or NAME_wide with one for each eight of them."""
        if self.wide:
            self.launch(file, f"{name}_wide", -(-items // 8), *args)
        else:
            self.launch(file, name, items, *args)

    def launch_rows(
        self, file: str, name: str, rows: int, *args, length: int = 0, wide: bool = True
    ) -> None:
        """A group for each row on a GPU; elsewhere one work-item, of NAME_wide if there is one.

        length: how many numbers a row has, where long rows are better shared by larger groups.
        """
        if self.groups:
            kernel = self.program.kernel(f"{file}_gpu", f"{name}_group")
            size = min(LONG_ROW_GROUP if length >= LONG else ROW_GROUP, kernel.max_group)
            kernel((rows * size,), (size,), *args)
        else:
            self.launch(file, f"{name}_wide" if self.wide and wide else name, rows, *args)

    def launch_columns(self, file: str, name: str, columns: int, *args) -> None:
        """One work-item for each column, or eight; on a GPU groups that share the rows."""
        if self.groups:
            kernel = self.program.kernel(f"{file}_gpu", f"{name}_group")
            high = max(1, min(64, kernel.max_group // 4))
            kernel((columns, high), (4, high), *args)
        else:
            self.launch_wide(file, name, columns, *args)

    def launch2d(self, file: str, name: str, columns: int, rows: int, *args) -> None:
        """One work-item for each column (id 0) of each row (id 1)."""
        kernel = self.program.kernel(file, name)
        kernel((columns, rows), (min(self.local_size, GROUP_2D, kernel.max_group), 1), *args)

    # ---- data ----

    def _buffer(self, count_bytes: int):
        try:
            if self.exact:
                buffer = cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, count_bytes)
                self._kept.append(buffer)
                return buffer
            return self._pool.allocate(count_bytes)
        except cl.Error as error:
            if not no_room(error):
                raise driver_error(self.name, "a new buffer", error) from error
            raise DeviceError(
                f"{self.name} has no room for {count_bytes / 2**20:.1f} MiB more (it has "
                f"{self.device.info.global_mem_bytes / 2**20:.0f} MiB in all); "
                "use a smaller batch, context or model."
            ) from error

    def empty(self, shape: tuple[int, ...], dtype=FLOAT32) -> Tensor:
        """A tensor whose contents are whatever lay there before."""
        tensor = self._without_buffer(tuple(shape), np.dtype(dtype))
        tensor.buffer = self._buffer(4 * tensor.size)
        return tensor

    def _without_buffer(self, shape: tuple[int, ...], dtype: np.dtype) -> Tensor:
        """A tensor that has no buffer yet; ShapeError if a kernel cannot count its elements."""
        tensor = Tensor(None, shape, dtype, self)
        if not 0 < tensor.size < 2**31:
            raise ShapeError(
                f"a tensor of shape {tensor.shape} has {tensor.size} elements; kernels count with "
                "32-bit integers, so it must be from 1 to 2147483647."
            )
        return tensor

    def zeros(self, shape: tuple[int, ...], dtype=FLOAT32) -> Tensor:
        """A tensor of zeros."""
        return self.from_host(np.zeros(shape, dtype))

    def from_host(self, array) -> Tensor:
        """A copy on the device of anything NumPy can read.

        Floating point numbers are rounded to float32, whole numbers become int32 (ShapeError names
        the first that does not fit); rows are laid one after the other, whatever their order was.
        """
        array = np.asarray(array)
        if array.dtype.kind == "f":
            host = np.ascontiguousarray(array, dtype=np.float32)
        elif array.dtype.kind in "iu":
            host = to_int32(array)
        else:
            raise ShapeError(f"an array of {array.dtype} cannot go to a device; use numbers.")
        host = host.reshape(array.shape)
        tensor = self.empty(array.shape, host.dtype)
        if host.dtype == INT32:
            tensor.host = np.array(host)  # the caller may change the array later
            self._upload_later(tensor.buffer, tensor.host)
        else:
            self._copy(tensor.buffer, host, is_blocking=True)
        return tensor

    def _copy(self, target, source, **options):
        """The event of a copy. A GPU tells here what went wrong in the launches before it."""
        try:
            return cl.enqueue_copy(self.queue, target, source, **options)
        except cl.Error as error:
            raise driver_error(self.name, "a copy", error) from error

    def _upload_later(self, buffer, host) -> None:
        """Puts an upload on the queue without waiting: the next batch must not stop the device.

        The event keeps `host` alive, and waits when it is dropped, so it is kept until it is done.
        """
        self._uploads.append(self._copy(buffer, host, is_blocking=False))
        done = cl.command_execution_status.COMPLETE
        while self._uploads and self._uploads[0].command_execution_status == done:
            self._uploads.popleft()

    def to_host(self, tensor: Tensor) -> np.ndarray:
        """A NumPy copy of a tensor; waits for all launches before it."""
        host = np.empty(tensor.shape, tensor.dtype)
        self._copy(host, tensor.buffer, is_blocking=True)
        return host

    def flat(self, shapes: dict[str, tuple[int, ...]]) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Zeros for all shapes in one buffer: (the whole, the parts by name).

        Every part starts at a multiple of 1024 bytes; the padding between is zero. An exact engine
        gives each part a buffer of its own instead, and the list holds them all.
        """
        if self.exact:
            parts = {name: self.zeros(shape) for name, shape in shapes.items()}
            return list(parts.values()), parts
        starts, end = layout(shapes)
        tensor = self._without_buffer((end,), FLOAT32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        try:
            whole = cl.Buffer(self.device.context, flags, hostbuf=np.zeros(end, np.float32))
        except cl.Error as error:
            if not no_room(error):
                raise driver_error(self.name, "a new buffer", error) from error
            raise DeviceError(
                f"{self.name} has no room for {4 * end / 2**20:.1f} MiB of parameters; "
                "use a smaller model."
            ) from error
        tensor.buffer = whole
        parts = {
            name: Tensor(
                whole.get_sub_region(4 * starts[name], 4 * math.prod(shape)), shape, FLOAT32, self
            )
            for name, shape in shapes.items()
        }
        return [tensor], parts

    def write(self, tensor: Tensor, array, row: int = 0) -> None:
        """Copies host rows into a tensor, the first of them to `row`."""
        host = np.ascontiguousarray(array, dtype=tensor.dtype)
        start = self._span(tensor, host.shape, row)
        self._copy(tensor.buffer, host, dst_offset=start, is_blocking=True)
        if tensor.host is not None:
            tensor.host.reshape(-1)[start // 4 : start // 4 + host.size] = host.reshape(-1)

    def copy(self, target: Tensor, source: Tensor, row: int = 0) -> None:
        """Copies the rows of `source` into `target`, the first of them to `row`, on the device."""
        start = self._span(target, source.shape, row)
        self._copy(target.buffer, source.buffer, dst_offset=start, byte_count=4 * source.size)

    def _span(self, target, shape, row):
        width = target.shape[-1]
        start = row * width
        if shape[-1] != width or row < 0 or start + math.prod(shape) > target.size:
            raise ShapeError(
                f"rows of shape {shape} do not fit into {target.shape} from row {row} on."
            )
        return 4 * start

    def memory_held(self) -> int:
        """The bytes that the memory pool has taken from the device, in use or free."""
        return self._pool.managed_bytes

    def forget_free_memory(self) -> None:
        """Gives the free part of the memory pool back to the device."""
        self.finish()
        self._pool.free_held()

    def finish(self) -> None:
        """Waits until all launches are done."""
        try:
            self.queue.finish()
        except cl.Error as error:
            raise driver_error(self.name, "the end of a launch", error) from error
