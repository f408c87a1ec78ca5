"""A driver of narrow limits that fails on demand, in front of the default device's own.

pretend(monkeypatch) puts itself before pyopencl's programs, kernels and copies. What it lets pass
is computed by the real device, so results can be compared.
"""

import math
import re
from dataclasses import dataclass, field

import pyopencl as cl

_INFO = cl.kernel_work_group_info
NO_DOUBLE = "<kernel>:{line}:5: error: use of type 'double' requires cl_khr_fp64 support"


@dataclass
class Driver:
    """The limits; and what fails: each error is raised at its own call until it is taken out."""

    max_group: int = 4096  # work-items, for every kernel
    local_bytes: int = 1 << 20
    double: bool = True
    build_error: Exception | None = None
    copy_error: Exception | None = None
    launch_error: Exception | None = None
    fails_at: int | None = None  # the launch that fails, counted from 0; None: every one
    launched: list[str] = field(default_factory=list)

    def check_build(self, text: str) -> None:
        """Raises what a build of this text ends in here."""
        if self.build_error is not None:
            raise self.build_error
        bare = re.sub(r"//[^\n]*", "", text)
        found = re.search(r"\bdouble\d*\b|(?<![\w.])\d+\.\d*(?![\w.])", bare)
        if found and not self.double:
            line = bare[: found.start()].count("\n") + 1
            raise cl.RuntimeError(f"clBuildProgram failed\n{NO_DOUBLE.format(line=line)}")

    def check_launch(self, name: str, declared: int, group: tuple, args: tuple) -> None:
        """Raises what a launch with these arguments ends in here."""
        self.launched.append(name)
        if self.launch_error is not None and self.fails_at in (None, len(self.launched) - 1):
            raise self.launch_error
        if math.prod(group) > self.max_group:
            raise cl.LogicError("clEnqueueNDRangeKernel failed: INVALID_WORK_GROUP_SIZE")
        given = sum(arg.size for arg in args if isinstance(arg, cl.LocalMemory))
        if declared + given > self.local_bytes:
            raise cl.RuntimeError("clEnqueueNDRangeKernel failed: OUT_OF_RESOURCES")


def pretend(monkeypatch) -> Driver:
    """The Driver that stands before pyopencl until the test ends."""
    driver, real_copy = Driver(), cl.enqueue_copy
    real_program, real_kernel = cl.Program, cl.Kernel

    class Program(real_program):
        def __init__(self, context, text):
            super().__init__(context, text)
            self.own_text = text

        def build(self, *args, **options):
            driver.check_build(self.own_text)
            return super().build(*args, **options)

    class Kernel:
        def __init__(self, program, name):
            self._real = real_kernel(program, name)

        def __getattr__(self, name):
            return getattr(self._real, name)

        def get_work_group_info(self, what, device):
            value = self._real.get_work_group_info(what, device)
            return min(value, driver.max_group) if what == _INFO.WORK_GROUP_SIZE else value

        def __call__(self, queue, size, group, *args):
            declared = self._real.get_work_group_info(_INFO.LOCAL_MEM_SIZE, queue.device)
            driver.check_launch(self._real.function_name, declared, group, args)
            return self._real(queue, size, group, *args)

    def copy(*args, **options):
        if driver.copy_error is not None:
            raise driver.copy_error
        return real_copy(*args, **options)

    monkeypatch.setattr(cl, "Program", Program)
    monkeypatch.setattr(cl, "Kernel", Kernel)
    monkeypatch.setattr(cl, "enqueue_copy", copy)
    return driver


class SmallPool:
    """A memory pool with room for `budget` bytes at once."""

    def __init__(self, pool, budget: float = math.inf):
        self._pool, self.budget = pool, budget

    def __getattr__(self, name):
        return getattr(self._pool, name)

    def allocate(self, count_bytes: int):
        """A buffer of the real pool while the budget lasts."""
        if self._pool.active_bytes + count_bytes > self.budget:
            raise cl.MemoryError("clCreateBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE")
        return self._pool.allocate(count_bytes)
