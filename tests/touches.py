"""Proof that a Python item and its kernel touch the same elements.

A test for a lesson's item is three lines:

    x, y = rng.normal(size=(5, 7)).astype(np.float32), np.zeros((5, 7), np.float32)
    text = (kernels_dir() / "softmax.cl").read_text(encoding="utf-8")
    assert_same_touches(softmax_item, 5, (x, y, 5, 7), text, "softmax_forward")

The item and the kernel get the same arguments in the same order; lab.local(n) stands for a __local
pointer, and is left out where the kernel declares its local memory itself. Take odd sizes, all of
them different: they tell rows from columns.

How: `name[expr]` of every __global pointer in the kernel becomes `name[touch_(...)]`, which writes
the element's address and "read" or "write" into a log of the work-item, and gives expr back. What
cannot be followed so (a pointer that is given to a function, `*p`, a vector load) is refused.
"""

import re
import warnings
from collections import defaultdict

import numpy as np
import pyopencl as cl
import pytest

from llmcl.device import choose, list_devices
from llmcl.lab.items import local, run_items
from llmcl.program import read_signatures

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_POINTER = re.compile(r"(?:__)?global\b[^;*(]*\*[^;]*;")  # a declaration in a kernel's body
_ASSIGNED = re.compile(r"\*\s*(?:(?:const|restrict)\s+)*(\w+)\s*=(?!=)")
_HEAD = """
int touch_(__global ulong *log_, __global int *counts_, int room_, ulong address, int kind, int i)
{
    const size_t me = (get_global_id(2) * get_global_size(1) + get_global_id(1))
                      * get_global_size(0) + get_global_id(0);
    const int n = counts_[me]++;
    if (n < room_) log_[me * room_ + n] = address * 4 + kind;
    return i;
}
"""
_MORE = ", __global ulong *log_, __global int *counts_, __global ulong *bases_, const int room_"
_KINDS = ("read", "write", "both", "atomic")


class Unfollowable(AssertionError):
    """A kernel whose accesses the log would miss."""


def assert_same_touches(
    item, size, args, kernel_text, kernel_name, *, group=1, order=True, rtol=1e-4
) -> None:
    """Fails if item and kernel differ in a result, or in what a work-item touches.

    order: whether each work-item must read and write the elements of an array in the same order and
    equally often; without it, only the sets are compared. rtol: the error allowed in a float, in
    parts of the largest one of its array. The args are not changed.
    """
    mine = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    run = run_items(item, size, *mine, group=group)
    assert not run.findings, f"the item is not clean: {run.findings[0]}"
    names = [name for name in run.shapes if name not in run.locals]
    theirs, touched = trace_kernel(kernel_text, kernel_name, run.size, run.local, args, names)
    own = _by_item((a.item, a.array, a.place, a.kind) for a in run.accesses if a.array in names)
    for key in sorted(set(own) | set(touched)):
        a, b = own.get(key, []), touched.get(key, [])
        if not order:
            a, b = sorted(set(a)), sorted(set(b))
        assert a == b, f"work-item {key[0]} and {key[1]}: the item does {a}, the kernel {b}"
    arrays = [a for a in mine if isinstance(a, np.ndarray)]
    for name, got, want in zip(names, theirs, arrays, strict=True):
        atol = rtol * float(np.abs(want).max(initial=0)) if want.dtype.kind == "f" else 0
        np.testing.assert_allclose(got, want, rtol=0, atol=atol, err_msg=f"the results in {name}")


def _by_item(accesses) -> dict:
    """(work-item, array) -> [(place, kind)] in order."""
    found = defaultdict(list)
    for item, array, place, kind in accesses:
        found[item, array].append((place, kind))
    return found


def trace_kernel(text, name, size, group, args, names) -> tuple[list[np.ndarray], dict]:
    """The arrays after a kernel ran, and what every work-item touched: see assert_same_touches.

    names are the arrays' names in the answer, in the order of args. Work-items and arrays that
    touch nothing are left out.
    """
    parameters = read_signatures(text)[name]
    if not any(p.space == "local" for p in parameters):
        args = [a for a in args if not isinstance(a, local)]
    assert len(args) == len(parameters), f"{name} takes {len(parameters)}, {len(args)} were given"
    device = _device()
    queue, flags = device.queue, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays, values, buffers = [], [], []
    for p, arg in zip(parameters, args, strict=True):
        if isinstance(arg, np.ndarray):
            assert arg.dtype == p.dtype, f"{p.name} is {p.type}, the array {arg.dtype}"
            arrays.append(arg.copy())
            buffers.append(cl.Buffer(device.context, flags, hostbuf=arrays[-1]))
            values.append(buffers[-1])
        elif isinstance(arg, local):
            values.append(cl.LocalMemory(4 * arg.count))
        else:
            values.append(p.dtype.type(arg))
    room = 16 + 8 * sum(a.size for a in arrays)
    counts = np.zeros(int(np.prod(size)), np.int32)
    log = np.zeros((counts.size, room), np.uint64)
    bases = np.zeros(len(arrays), np.uint64)
    extra = [cl.Buffer(device.context, flags, hostbuf=a) for a in (log, counts, bases)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(device.context, instrument(text, name)).build()
    kernel = getattr(program, name)
    kernel(queue, size, group, *values, *extra, np.int32(room))
    for host, there in zip([*arrays, log, counts, bases], [*buffers, *extra], strict=True):
        cl.enqueue_copy(queue, host, there)
    assert counts.max(initial=0) <= room, f"{name} touches more elements than the log has room for"
    return arrays, _read_log(log, counts, bases, arrays, names, size)


def _device():
    """A CPU that compiles and runs kernels, else another device that is no simulator."""
    real = [info for info in list_devices() if info.kind != "simulator"]
    if not real:
        pytest.skip("there is no OpenCL device to run a kernel on")
    return choose(next((info for info in real if info.kind == "cpu"), real[0]).index)


def _read_log(log, counts, bases, arrays, names, size) -> dict:
    accesses = []
    for number, line in enumerate(log):
        item = tuple(int(i) for i in np.unravel_index(number, size[::-1]))[::-1]
        for entry in line[: counts[number]]:
            address, kind = divmod(int(entry), 4)
            name, place = _find(address, bases, arrays, names)
            kinds = ("read", "write") if _KINDS[kind] == "both" else (_KINDS[kind],)
            accesses += [(item, name, place, k) for k in kinds]
    return _by_item(accesses)


def _find(address, bases, arrays, names) -> tuple[str, int]:
    """The array and the element at an address."""
    for base, array, name in zip(bases, arrays, names, strict=True):
        place, rest = divmod(address - int(base), array.itemsize)
        if 0 <= place < array.size and not rest:
            return name, place
    raise AssertionError(f"the kernel touches the address {address:#x}, which is in no array")


# ---- the kernel's text ----


def instrument(text: str, name: str) -> str:
    """The text with one kernel rewritten so that it logs its accesses to global memory.

    Raises Unfollowable for a pointer that is used in another way than as name[expr].
    """
    text = _COMMENT.sub(" ", text)
    pointers = [p.name for p in read_signatures(text)[name] if p.space == "global"]
    found = re.search(rf"kernel\s+void\s+{name}\s*\(", text)
    end_of_head = _closing(text, found.end() - 1)
    start = text.index("{", end_of_head)
    end = _closing(text, start)
    bases = "".join(
        f" bases_[{i}] = (ulong){pointer};" for i, pointer in enumerate(pointers)
    )  # every work-item writes the same
    body = text[start + 1 : end]
    known = pointers + [
        n for declaration in _POINTER.findall(body) for n in _ASSIGNED.findall(declaration)
    ]
    _refuse_the_rest(text, body, known)
    return (
        _HEAD + text[:end_of_head] + _MORE + text[end_of_head : start + 1] + bases
        + _rewrite(body, known) + text[end:]
    )  # fmt: skip


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at start is closed."""
    pairs, depth = {"(": ")", "[": "]", "{": "}"}, 0
    opening, closing = text[start], pairs[text[start]]
    for place in range(start, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if not depth:
            return place
    raise Unfollowable(f"the bracket {opening} is never closed")


def _rewrite(text: str, known: list[str]) -> str:
    """The text with the place in every name[place] logged, also inside of places."""
    access = re.compile(rf"(?<![\w.])({'|'.join(known)})\s*\[")
    parts, at = [], 0
    while found := access.search(text, at):
        close = _closing(text, found.end() - 1)
        place = _rewrite(text[found.end() : close], known)
        kind = _kind(text[: found.start()], text[close + 1 :])
        # The place is put into the text twice, so it may change nothing; ++ is refused.
        bare = text[found.end() : close]
        if re.search(r"\+\+|--", bare):
            raise Unfollowable(f"{found[0]}{bare}] changes its own place")
        parts += [text[at : found.start()], f"{found[1]}[touch_(log_, counts_, room_, "
                  f"(ulong)({found[1]} + ({bare})), {kind}, {place})]"]  # fmt: skip
        at = close + 1
    return "".join([*parts, text[at:]])


def _kind(before: str, after: str) -> int:
    """Whether name[place] is read (0), written (1), both (2) or an atomic's (3), by its context."""
    if re.search(r"\batom(?:ic)?_\w+\s*\(\s*(?:\([^()]*\)\s*)?&\s*$", before):
        return 3
    if before.rstrip().endswith("&") and not before.rstrip().endswith("&&"):
        raise Unfollowable("the address of an element is taken")
    if re.match(r"\s*(?:[-+*/%&|^]|<<|>>)=|\s*(?:\+\+|--)", after):
        return 2
    if before.rstrip().endswith(("++", "--")):
        return 2
    return 1 if re.match(r"\s*=(?!=)", after) else 0


def _refuse_the_rest(text: str, body: str, known: list[str]) -> None:
    """Raises Unfollowable if a pointer is used other than as name[place] or to make another."""
    rest = _POINTER.sub(";", body)
    used = re.search(rf"(?<![\w.])(?:{'|'.join(known)})\b(?!\s*(?:\[|[-+]=))[^;\n]*", rest)
    if used:
        raise Unfollowable(f"this use of a pointer cannot be followed: {used[0].strip()}")
    for macro, meaning in re.findall(r"#\s*define\s+(\w+)(.*)", text):
        if re.search(rf"\b{macro}\b", body) and re.search(rf"\b(?:{'|'.join(known)})\b", meaning):
            raise Unfollowable(f"the macro {macro} uses a pointer, which cannot be followed")
    cast = re.search(r"\(\s*(?:__)?global\b[^)]*\*\s*\)", body)
    if cast:
        raise Unfollowable(f"a cast of a pointer cannot be followed: {cast[0]}")
