"""What the tests of the operations share: odd sizes, guarded tensors, central differences."""

import dataclasses
import math

import numpy as np
import pyopencl as cl
from hypothesis import given
from hypothesis import strategies as st

from llmcl import ops, reference
from llmcl.check import Sizes, compare, make_cases
from llmcl.program import Program
from llmcl.ranking import pocl_version
from llmcl.reference import bounds
from llmcl.tensor import FLOAT32, Tensor
from llmcl.versions import CPU, GPU, SMALL_GPU

LOCAL_SIZES = (1, 3, 7, 16, 64)
VERSIONS = (CPU, GPU, SMALL_GPU)  # every device can run the kernels of the other kind
GUARD = 64  # elements behind every tensor that no kernel may touch
# Kernels that no operation launches: rungs of a ladder, and measurements. Their file's own test
# calls them by name.
RUNGS = {
    "matmul": ("matmul_naive", "matmul_swapped"),
    "matmul_gpu": ("matmul_parts",),  # an operation launches it at large sizes only
    "roofline": ("roofline_copy", "roofline_copy_wide", "roofline_arithmetic"),
}


@st.composite
def sizes(draw) -> Sizes:
    """Sizes of which no two above 1 are equal: 1, primes, more than any work-group of the tests."""
    s = Sizes(
        B=draw(st.sampled_from((2, 1, 5))),
        T=draw(st.sampled_from((7, 1, 2, 17, 31, 71))),
        H=draw(st.sampled_from((3, 1, 4))),
        d=draw(st.sampled_from((11, 1, 8, 13, 23))),
        V=draw(st.sampled_from((37, 1, 6, 67, 131))),
        F=draw(st.sampled_from((19, 1, 9, 65, 97))),
    )
    return s


def _different(s: Sizes) -> bool:
    above_one = [n for n in (s.B, s.T, s.H, s.d, s.V, s.F) if n > 1]
    matrices = s.C != s.F and s.C != s.V and s.V != s.F
    return len(set(above_one)) == len(above_one) and (matrices or s.C == 1)


# Runs a test over sizes and random numbers: it takes `size` and `seed`.
at_any_size = given(size=sizes().filter(_different), seed=st.integers(0, 2**32 - 1))


def use(engine, versions) -> None:
    """Gives an engine the kernels of this kind of device from now on."""
    for field in dataclasses.fields(versions):
        setattr(engine, field.name, getattr(versions, field.name))


class OneGroupMore:
    """A kernel that is launched with a group more than asked for, in these directions."""

    def __init__(self, kernel, more: tuple[int, int]):
        self.kernel, self.more, self.max_group = kernel, more, kernel.max_group

    def __call__(self, size, group, *args):
        size = tuple(n + m * g for n, m, g in zip(size, self.more, group, strict=False))
        self.kernel(size, group, *args)


class HurriedProgram(Program):
    """A program that builds a GPU's kernels without optimizing them, where a CPU is to run them.

    A CPU's compiler takes up to 20 s for one that is unrolled for a GPU. PoCL 5.0 makes wrong code
    of fused attention with this option, right code without it; with PoCL 3.0 and AVX-512 it is the
    other way round.
    """

    def __init__(self, device):
        super().__init__(device)
        cpu = device.info.kind == "cpu"
        hurried = cpu and pocl_version(device.info.platform_version) < (5,)
        self.gpu_options = ("-cl-opt-disable",) if hurried else ()

    def kernel(self, file, name, options=()):
        gpu_options = self.gpu_options if file.endswith("_gpu") else ()
        return super().kernel(file, name, (*options, *gpu_options))


class RecordingProgram(HurriedProgram):
    """A hurried program that notes which kernels were asked for.

    most: as if the device allowed no more work-items in a group, for kernels of groups of any size.
    """

    def __init__(self, device):
        super().__init__(device)
        self.asked: set[tuple[str, str]] = set()
        self.most: int | None = None
        self._allowed: dict = {}

    def kernel(self, file, name, options=()):
        self.asked.add((file, name))
        kernel = super().kernel(file, name, options)
        allowed = self._allowed.setdefault(kernel, kernel.max_group)
        any_size = file not in ("matmul", "matmul_gpu", "fused_attention_gpu")
        kernel.max_group = min(allowed, self.most) if self.most and any_size else allowed
        if file in ("fused_attention", "embedding") or name == "sum_squares_wide":
            return OneGroupMore(kernel, (1, 1))
        return OneGroupMore(kernel, (1, 0)) if file == "fused_attention_gpu" else kernel


class GuardedEngine(ops.Engine):
    """An engine whose tensors begin as NaN and end in a guard zone.

    An element that a kernel forgets stays NaN and fails its check; a write behind the end changes
    the guard; a read behind the end brings a number above 12345 into the result. Where kernels
    guard their range, more work-items than needed are launched: they must do nothing.
    """

    def __init__(self, device, **options):
        super().__init__(device, **options)
        self.program = RecordingProgram(device)
        self._guarded: list[tuple[Tensor, np.ndarray]] = []

    def launch(self, file, name, items, *args):
        super().launch(file, name, items + 1, *args)

    def launch_rows(self, file, name, rows, *args, **options):
        super().launch_rows(file, name, rows + 1, *args, **options)

    def launch_columns(self, file, name, columns, *args):
        super().launch_columns(file, name, columns + 1, *args)

    def launch2d(self, file, name, columns, rows, *args):
        super().launch2d(file, name, columns + 1, rows + 1, *args)

    def use(self, versions) -> None:
        """Takes the kernels of this kind of device from now on."""
        use(self, versions)

    def empty(self, shape, dtype=FLOAT32):
        dtype, size = np.dtype(dtype), math.prod(shape)
        if size < 1:
            return super().empty(shape, dtype)  # which refuses it
        whole = super().empty((size + GUARD,), dtype)
        host = np.empty(size + GUARD, dtype)
        floating = dtype == FLOAT32
        host[:size] = np.nan if floating else -99
        # A different number each time: the copy of one guard into another must not look untouched.
        host[size:] = 12345 + len(self._guarded) % 1000 if floating else 1
        cl.enqueue_copy(self.queue, whole.buffer, host, is_blocking=True)
        self._guarded.append((whole, host[size:].copy()))
        return Tensor(whole.buffer, tuple(shape), dtype, self)

    def check_guards(self) -> None:
        """Fails if anything was written behind a tensor since the last call."""
        guarded, self._guarded = self._guarded, []
        for whole, before in guarded:
            after = self.to_host(whole)[-GUARD:]
            changed = np.flatnonzero(after != before)
            assert not changed.size, (
                f"a write past the end, at index {whole.size - GUARD + changed[0]} of a tensor "
                f"of {whole.size - GUARD} elements"
            )


def check_operations(engine, names, size, seed, local_size) -> None:
    """Fails unless every case of these operations is right in every version, and in its tensors."""
    engine.local_size = local_size
    engine.program.most = 5 * local_size  # groups that share a row: 5, 15, 35, 64
    cases = [c for c in make_cases(np.random.default_rng(seed), size) if c.name in names]
    assert {case.name for case in cases} == set(names)
    for case in cases:
        wants, allowed = case.run(reference.Engine()), case.bounds()
        for versions in VERSIONS:
            engine.use(versions)
            for i, got in enumerate(case.run(engine)):
                what = f"{case.name}, output {i}, {versions}, {size}:"
                assert_within(got, wants[i], allowed[i], what)
    engine.check_guards()


def assert_within(got, want, bound, what="") -> None:
    """Fails unless every element lies within its bound."""
    comparison = compare(got, want, bound)
    assert comparison.ok, f"{what} {comparison}"


def assert_rejected(name, args, wrong, output=0, **options) -> None:
    """Fails unless the bound of an operation tells its result from a wrong one.

    wrong: what a plausible mistake gives for output number `output` (returned, then written).
    """
    want, bound = expected(name, args, output, **options)
    assert compare(want.astype(np.float32), want, bound).ok, "the bound rejects the truth"
    assert not compare(wrong, want, bound).ok, f"the bound of {name} lets a mistake pass"


def expected(name, args, output=0, written=(), **options):
    """(the float64 result, its bound) of one output of an operation of the reference."""
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    bound = getattr(bounds, name)(*args, **options)[output]
    returned = getattr(reference, name)(*args, **options)
    outputs = list(returned) if isinstance(returned, tuple) else [returned]
    outputs = [out for out in outputs if out is not None] + [args[i] for i in written]
    return outputs[output], bound


def rounded(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Normal random numbers that float32 holds exactly, in float64."""
    return (scale * rng.normal(size=shape)).astype(np.float32).astype(np.float64)


def check_gradient(loss, array, gradient, rng, entries=6, step=1e-5) -> None:
    """Fails unless `gradient` is the derivative of loss() with respect to `array`, in float64.

    loss: a function without arguments that reads `array`, which is changed and restored here. A
    few entries are compared with central differences, whose own error is near 1e-10.
    """
    flat, found = array.reshape(-1), gradient.reshape(-1)
    assert np.shares_memory(flat, array) and found.shape == flat.shape
    typical = np.sqrt(np.mean(found**2))
    for i in rng.choice(flat.size, min(entries, flat.size), replace=False):
        kept = flat[i]
        flat[i] = kept + step
        above = loss()
        flat[i] = kept - step
        below = loss()
        flat[i] = kept
        slope = (above - below) / (2 * step)
        allowed = 1e-6 * (abs(slope) + typical) + 1e-9 * abs(above)
        assert abs(slope - found[i]) <= allowed, (
            f"entry {i}: the backward pass gives {found[i]:.9g}, differences give {slope:.9g}"
        )


def remainder_ratio(loss, array, gradient, rng, step=2.0**-11) -> float:
    """What remains after the first-order term, for a step over what remains for half of it.

    4 for a right gradient, whatever its size, because the remainder shrinks with the square of the
    step; 2 for a wrong one. So no tolerance is needed.
    """
    kept, direction = array.copy(), rng.normal(size=array.shape)
    start, remainders = loss(), []
    for h in (step, step / 2):
        array[...] = kept + h * direction
        remainders.append(abs(loss() - start - h * float((gradient * direction).sum())))
    array[...] = kept
    return remainders[0] / remainders[1]
