"""Compiles kernels/*.cl for one device, and launches them after checking what they are given.

A wrong argument is found before anything runs: the signature is read from the .cl text.
"""

import math
import re
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyopencl as cl

from .errors import DeviceError, KernelError
from .resources import kernels_dir
from .tensor import Tensor
from .trial import first_useful_line

# Local memory that every OpenCL 1.2 device has; PoCL accepts more than it has without a word.
PORTABLE_LOCAL_BYTES = 32 * 1024

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)")
_KERNEL = re.compile(r"\b(?:__)?kernel\s+void\s+(\w+)\s*\(([^)]*)\)", re.DOTALL)
# `x,  // (n) or NULL` says that x may be missing; the comma or bracket must not cut it off.
_OR_NULL = re.compile(r"([,)]?)[ \t]*//[^\n]*\bor NULL\b[^\n]*")
_DTYPES = {"float": np.dtype(np.float32), "int": np.dtype(np.int32), "uint": np.dtype(np.uint32)}
# A NumPy float handed to an int parameter, or the reverse, would arrive as other bits.
# For each type: Python's types that may be given, the smallest and the largest that it holds.
_FLOAT = float(np.finfo(np.float32).max)
_NUMBERS = {
    "float": ((float, int), -_FLOAT, _FLOAT),
    "int": ((int,), -(2**31), 2**31 - 1),
    "uint": ((int,), 0, 2**32 - 1),
}
# A driver's words for no room. Some find out at the allocation, others only at a launch.
_NO_ROOM = (
    "MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY",
    "INVALID_BUFFER_SIZE",
)  # fmt: skip
# As many global sizes are remembered for a kernel; a text of every length needs a few hundred.
MOST_GRIDS = 1000


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as its text declares it."""

    name: str
    type: str  # "float", "int", "uint"
    space: str  # "global", "local" or "value"
    written: bool
    restrict: bool
    optional: bool = False  # None may be given for it

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of its elements."""
        return _DTYPES[self.type]


def read_signatures(text: str) -> dict[str, list[Parameter]]:
    """The parameters of every kernel in an OpenCL C text, by kernel name.

    A pointer whose comment says "or NULL" may be missing. Raises KernelError for an unknown type.
    """
    bare = _ATTRIBUTE.sub(" ", _COMMENT.sub(" ", _OR_NULL.sub(r" or_null\1", text)))
    return {
        name: [_parameter(part) for part in arguments.split(",")]
        if arguments.strip() not in ("", "void")
        else []
        for name, arguments in _KERNEL.findall(bare)
    }


def _parameter(text: str) -> Parameter:
    words = [word.removeprefix("__") for word in re.findall(r"\w+", text)]
    optional = "or_null" in words
    words = [word for word in words if word != "or_null"]
    space = next((s for s in ("global", "constant", "local") if s in words), "value")
    kind = "uint" if "unsigned" in words else next((w for w in words if w in _DTYPES), None)
    if kind is None:
        raise KernelError(
            f"the kernel parameter '{text.strip()}' has a type that llmcl does not know; "
            f"use {', '.join(_DTYPES)}."
        )
    written = space == "global" and "const" not in words
    space = "global" if space == "constant" else space
    return Parameter(words[-1], kind, space, written, "restrict" in words, optional)


def no_room(error: Exception) -> bool:
    """Whether a driver's error says that memory, registers or another resource ran out."""
    return isinstance(error, cl.MemoryError) or any(word in str(error) for word in _NO_ROOM)


def driver_error(device_name: str, where: str, error: Exception) -> DeviceError:
    """The DeviceError for what a driver raised at `where`, with the remedy for its kind."""
    reason = first_useful_line(str(error))
    if no_room(error):
        return DeviceError(
            f"{device_name} ran out of memory or registers at {where} ({reason}); use a smaller "
            "batch, context or model."
        )
    return DeviceError(
        f"{device_name} failed at {where} ({reason}), perhaps because an earlier kernel wrote "
        "outside its buffers; restart the program, and see `llmcl check`."
    )


def explain_build_log(title: str, text: str, log: str) -> str:
    """The compiler's first error in words, with the numbered lines of our text around it."""
    # Compilers write FILE:LINE:COLUMN: error: WORDS; PoCL writes error: FILE:LINE:COLUMN: WORDS.
    found = re.search(r"(?:^|:)(\d+):(?:\d+:)?\s*(?:fatal )?error:\s*(.+)", log, re.MULTILINE)
    found = found or re.search(r"error:\s*\S.*?:(\d+):(?:\d+:)?\s*(.+)", log)
    if not found:
        # Without what pyopencl writes around the compiler's own words, of which PoCL may have none.
        own = re.sub(r"clBuildProgram failed: \w+( - )?|Build on <.*>:|\(options: .*\)", "", log)
        reason = first_useful_line(own) or "the compiler gives no reason"
        return (
            f"{title} does not compile: {reason}; if the text is right, the disk may be full or "
            "the driver broken, see `llmcl doctor`."
        )
    number, message = int(found[1]), found[2].strip()
    lines = text.splitlines()
    around = range(max(1, number - 2), min(len(lines), number + 1) + 1)
    shown = "\n".join(f"{'>' if i == number else ' '}{i:4d} | {lines[i - 1]}" for i in around)
    return f"{title} does not compile. Line {number}: {message}\n{shown}"


class Kernel:
    """One compiled kernel that checks its arguments and launches itself."""

    def __init__(self, handle: cl.Kernel, parameters: list[Parameter], program: "Program"):
        device = program.device
        self.name = handle.function_name
        self.parameters = parameters
        self.device = device
        self._handle = handle
        self._queue = device.queue
        self._lock = program.lock
        self._prepare_checks()
        self._grids: dict[tuple, tuple] = {}
        handle.set_scalar_arg_dtypes([p.dtype if p.space == "value" else None for p in parameters])
        info = cl.kernel_work_group_info
        self.max_group = handle.get_work_group_info(info.WORK_GROUP_SIZE, device.info.handle)

    def _prepare_checks(self):
        """Puts what a launch has to check into lists: every launch goes through them."""
        numbered = list(enumerate(self.parameters))
        pointers = [(i, p) for i, p in numbered if p.space == "global"]
        self._tensors = [(i, p.dtype, p.optional) for i, p in pointers]
        self._local = [i for i, p in numbered if p.space == "local"]
        self._numbers = [(i, *_NUMBERS[p.type]) for i, p in numbered if p.space == "value"]
        # A buffer that is written and declared restrict must not be any other argument.
        alone = {i for i, p in pointers if p.written and p.restrict}
        self._pairs = [(i, j) for i in alone for j, _ in pointers if i != j]

    def __call__(self, global_size: tuple, local_size: tuple, *args) -> None:
        """Puts one launch on the queue. Global sizes are rounded up to whole groups.

        A tensor goes to a __global pointer (or None, where the kernel's text says "or NULL"), a
        number of bytes to a __local pointer, a Python or NumPy number to a value. Raises
        KernelError before anything runs.
        """
        if len(args) != len(self.parameters):
            self._wrong_count(args)
        values = list(args)
        for i, dtype, optional in self._tensors:
            arg = args[i]
            if type(arg) is Tensor and arg.dtype is dtype:
                values[i] = arg.buffer
            elif arg is not None or not optional:
                self._wrong_argument(self.parameters[i], arg)
        for i, types, lowest, highest in self._numbers:
            if type(args[i]) not in types or not lowest <= args[i] <= highest:
                self._check_number(self.parameters[i], args[i])
        for i in self._local:
            values[i] = self._local_memory(self.parameters[i], args[i])
        for i, j in self._pairs:
            if values[i] is values[j] and values[i] is not None:
                self._aliased(i, j)
        try:
            rounded = self._grids.get((global_size, local_size))
            rounded = rounded or self._check_grid(global_size, local_size)
        except (TypeError, ValueError, ZeroDivisionError):
            self._wrong_sizes(global_size, local_size)
        try:
            with self._lock:
                self._handle(self._queue, rounded, local_size, *values)  # type: ignore[arg-type]
        except (TypeError, cl.Error, OverflowError, RuntimeError) as error:
            if no_room(error):
                raise driver_error(self.device.info.name, self.name, error) from error
            raise KernelError(
                f"{self.name} could not be launched with global size {rounded} and local size "
                f"{local_size} on {self.device.info.name} ({error}); try a smaller local size, "
                "and see `llmcl check`."
            ) from error

    def _check_grid(self, global_size, local_size):
        """The global size in whole groups, kept for the next launch of these sizes."""
        rounded = tuple(-(-g // w) * w for g, w in zip(global_size, local_size, strict=True))
        if min(rounded) < 1 or min(local_size) < 1:
            raise ValueError
        size = math.prod(local_size)
        if size > self.max_group:
            raise KernelError(
                f"{self.name}: a work-group of {size} was asked for; this kernel on "
                f"{self.device.info.name} allows {self.max_group}. Choose a smaller local size."
            )
        if len(self._grids) >= MOST_GRIDS:
            self._grids.clear()
        self._grids[global_size, local_size] = rounded
        return rounded

    def _local_memory(self, parameter, count_bytes):
        limit = min(self.device.info.local_mem_bytes, PORTABLE_LOCAL_BYTES)
        whole = isinstance(count_bytes, (int, np.integer)) and count_bytes % 4 == 0
        if not whole or not 0 < count_bytes <= limit:
            raise KernelError(
                f"{self.name}: {parameter.name} asks for {count_bytes!r} bytes of local memory; "
                f"give a multiple of 4 bytes from 4 to {limit} (this device has "
                f"{self.device.info.local_mem_bytes}, every OpenCL 1.2 device "
                f"{PORTABLE_LOCAL_BYTES})."
            )
        return cl.LocalMemory(int(count_bytes))

    def _wrong_count(self, args):
        names = ", ".join(p.name for p in self.parameters)
        raise KernelError(
            f"{self.name} takes {len(self.parameters)} arguments ({names}); {len(args)} were given."
        )

    def _wrong_argument(self, parameter, arg):
        wanted = f"a {parameter.dtype.name} tensor"
        if isinstance(arg, Tensor):
            given, remedy = f"a tensor of {arg.dtype.name}", "convert it first"
        elif isinstance(arg, np.ndarray):
            given = f"a NumPy array of {arg.dtype.name}"
            remedy = "move it to the device with engine.from_host(array)"
        else:
            given, remedy = repr(arg)[:60], "see the kernel's text for the order of its arguments"
        raise KernelError(
            f"{self.name}: argument {parameter.name} must be {wanted}, and is {given}; {remedy}."
        )

    def _aliased(self, i, j):
        raise KernelError(
            f"{self.name}: {self.parameters[i].name} and {self.parameters[j].name} are the same "
            f"buffer, but {self.parameters[i].name} is written and declared restrict; "
            "give the result a buffer of its own."
        )

    def _check_number(self, parameter, arg):
        """Raises KernelError unless the parameter can hold the number; inf and nan are numbers."""
        types, lowest, highest = _NUMBERS[parameter.type]
        real = float in types
        if not isinstance(arg, (*types, np.floating if real else np.integer)):
            raise KernelError(
                f"{self.name}: argument {parameter.name} must be "
                f"{'a number' if real else 'a whole number'} ({parameter.type}), and is "
                f"{type(arg).__name__} {repr(arg)[:60]}."
            )
        value = arg.item() if isinstance(arg, np.number) else arg
        if not lowest <= value <= highest and value - value == 0:
            raise KernelError(
                f"{self.name}: argument {parameter.name} is {repr(value)[:60]}; {parameter.type} "
                f"holds {'' if real else 'whole '}numbers from {lowest} to {highest}."
            )

    def _wrong_sizes(self, global_size, local_size):
        raise KernelError(
            f"{self.name}: the global size {global_size!r} and the local size {local_size!r} must "
            "be tuples of one to three whole numbers above zero, both of one length."
        ) from None


class Program:
    """The kernels of one device, compiled when they are first asked for and kept."""

    def __init__(self, device, folder: Path | None = None):
        self.device = device
        # Oclgrind's detectors misread what the optimizer makes of a condition or a division.
        self.options = ["-cl-opt-disable"] if device.info.kind == "simulator" else []
        self.folder = folder or kernels_dir()
        self._files: dict[tuple, dict[str, Kernel]] = {}
        self._kernels: dict[tuple, Kernel] = {}
        self.lock = threading.RLock()

    def kernel(self, file: str, name: str, options: tuple[str, ...] = ()) -> Kernel:
        """The kernel `name` of kernels/`file`.cl; raises KernelError when there is none."""
        known = self._kernels.get((file, name, options))
        if known is not None:
            return known
        kernels = self._files.get((file, options))
        if kernels is None:
            with self.lock:
                kernels = self._files[file, options] = self._compile_file(file, options)
        if name not in kernels:
            raise KernelError(f"{file}.cl has no kernel {name!r}; it has {', '.join(kernels)}.")
        self._kernels[file, name, options] = kernels[name]
        return kernels[name]

    def _compile_file(self, file, options):
        path = self.folder / f"{file}.cl"
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            there = ", ".join(sorted(p.stem for p in self.folder.glob("*.cl"))) or "none"
            raise KernelError(f"there is no kernel file {file}.cl; there are: {there}.") from None
        return self.compile(text, f"{file}.cl", options)

    def compile(
        self, text: str, title: str = "the kernel text", options: tuple[str, ...] = ()
    ) -> dict[str, Kernel]:
        """The kernels of an OpenCL C text by name; KernelError shows the line that is wrong."""
        signatures = read_signatures(text)
        if not signatures:
            raise KernelError(f"{title} holds no __kernel function.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a compiler's chatter is not an error
            built = self._build(text, title, list(options))
            try:
                return {
                    name: Kernel(cl.Kernel(built, name), parameters, self)
                    for name, parameters in signatures.items()
                }
            except cl.Error as error:
                raise self._could_not_compile(title, error) from error

    def _build(self, text, title, options):
        try:
            # PoCL writes a line to standard error when there are warnings; -w is for none.
            flags = ["-cl-std=CL1.2", "-w", *self.options, *options]
            handles = [self.device.info.handle]
            return cl.Program(self.device.context, text).build(options=flags, devices=handles)
        except cl.RuntimeError as error:
            raise KernelError(explain_build_log(title, text, str(error))) from error
        except cl.Error as error:
            raise self._could_not_compile(title, error) from error

    def _could_not_compile(self, title, error):
        return DeviceError(
            f"{self.device.info.name} could not compile {title} "
            f"({first_useful_line(str(error))}); free some memory and disk space, and see "
            "`llmcl doctor`."
        )
