"""Runs a Python function once for every work-item, as a device would, and records what it touches.

The function is the twin of a kernel: it asks get_global_id(0) who it is, reads and writes flat
arrays, and `yield` is its barrier. Groups, and the work-items inside a group, run in a shuffled
order, so what depends on luck changes with the seed.
"""

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..errors import LlmclError
from .races import find_races, shown

# One element that a work-item touched: the id of the work-item (a tuple), the name of the array,
# the flat place in it, "read", "write" or "atomic", and how many barriers it had passed before.
Access = namedtuple("Access", "item array place kind phase")

SHOWN = 3  # findings that a report prints in full

_current = None  # the work-item that is running


def get_global_id(dimension: int) -> int:
    """The number of the running work-item among all, in a dimension (0, 1, 2)."""
    return _me().global_id[dimension] if dimension < len(_me().global_id) else 0


def get_local_id(dimension: int) -> int:
    """The number of the running work-item inside its group."""
    return _me().local_id[dimension] if dimension < len(_me().local_id) else 0


def get_group_id(dimension: int) -> int:
    """The number of the running work-item's group."""
    return _me().group_id[dimension] if dimension < len(_me().group_id) else 0


def get_local_size(dimension: int) -> int:
    """How many work-items a group has."""
    return _me().run.local[dimension] if dimension < len(_me().run.local) else 1


def get_global_size(dimension: int) -> int:
    """How many work-items there are in all."""
    return _me().run.size[dimension] if dimension < len(_me().run.size) else 1


def get_num_groups(dimension: int) -> int:
    """How many groups there are."""
    return get_global_size(dimension) // get_local_size(dimension)


def _me():
    if _current is None:
        raise LlmclError("no work-item is running; call get_global_id inside of lab.run_items.")
    return _current


@dataclass
class _Item:
    """A work-item: its ids, and how many barriers it has passed."""

    run: "Run"
    global_id: tuple[int, ...]
    local_id: tuple[int, ...]
    group_id: tuple[int, ...]
    phase: int = 0


@dataclass
class Run:
    """What happened when a function ran for every work-item.

    size and local: how many work-items there are, and in a group. accesses: every element touched,
    in the order in which it happened. shapes: of every array by name, locals: which of them are
    local memory. findings: what a strict device would complain about, in words; empty for a clean
    run.
    """

    size: tuple[int, ...]
    local: tuple[int, ...]
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    locals: set[str] = field(default_factory=set)

    def of(self, item: int | tuple[int, ...]) -> list[Access]:
        """What one work-item touched, in order."""
        wanted = item if isinstance(item, tuple) else (item,)
        return [access for access in self.accesses if access.item == wanted]

    def report(self) -> None:
        """Prints what a strict device would say: at most three findings, and how many more."""
        more = len(self.findings) - SHOWN
        for finding in self.findings[:SHOWN] or ["✓ nothing to complain about"]:
            print(finding)
        if more > 0:
            print(f"… and {more} more")

    def find(self, text: str) -> None:
        """Notes a finding, once."""
        if text not in self.findings:
            self.findings.append(text)


class local:
    """An argument of run_items: `count` floats of local memory, which each group gets anew.

    What lies in it before somebody writes is luck on a device; here it is 0.
    """

    def __init__(self, count: int):
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise LlmclError(f"local({count!r}) is no memory; give a whole number above 0.")
        self.count = int(count)


class _Memory:
    """The numbers of one array in a line, and which of them nobody has written yet."""

    def __init__(self, name, values, run, unwritten=False):
        self.name, self.run = name, run
        self.flat = values.reshape(-1)
        self.unwritten = np.full(self.flat.size, unwritten)


class Pointer:
    """What a work-item gets for an array: like a pointer in C, counted from where it starts.

    Reading past the end gives NaN, or 0 for whole numbers, and writing there does nothing; both are
    findings. A negative place does not count from the end.
    """

    def __init__(self, memory: _Memory, start: int = 0):
        self._memory, self._start = memory, start

    def __add__(self, steps: int) -> "Pointer":
        """The pointer that many elements further on."""
        return Pointer(self._memory, self._start + int(steps))

    def __getitem__(self, place: int):
        memory, at = self._memory, self._at(place)
        if not self._touch(at, "read"):
            return memory.flat.dtype.type(0 if memory.flat.dtype.kind in "iu" else np.nan)
        return memory.flat[at]

    def __setitem__(self, place: int, value) -> None:
        at = self._at(place)
        if self._touch(at, "write"):
            self._memory.flat[at] = value
            self._memory.unwritten[at] = False

    def _at(self, place) -> int:
        if not isinstance(place, (int, np.integer)):
            raise LlmclError(
                f"{self._memory.name}[{place!r}]: a kernel sees one long line of numbers, so the "
                "place must be one whole number, such as row * n + col."
            )
        return self._start + int(place)

    def _touch(self, at, kind) -> bool:
        me, memory = _me(), self._memory
        if 0 <= at < memory.flat.size:
            memory.run.accesses.append(Access(me.global_id, memory.name, at, kind, me.phase))
            if kind != "write" and memory.unwritten[at]:
                memory.run.find(
                    f"work-item {shown(me.global_id)} reads {memory.name}[{at}], "
                    "which nobody has written"
                )
            return True
        verb = {"read": "reads", "write": "writes", "atomic": "adds to"}[kind]
        memory.run.find(
            f"work-item {shown(me.global_id)} {verb} {memory.name}[{at}]; "
            f"{memory.name} has {memory.flat.size} elements"
        )
        return False


def atomic_inc(pointer: Pointer, place: int):
    """What pointer[place] was before 1 was added to it, in one piece: nobody comes in between."""
    at, flat = pointer._at(place), pointer._memory.flat
    if not pointer._touch(at, "atomic"):
        return flat.dtype.type(0)
    before = flat[at]
    flat[at] += 1
    return before


def run_items(
    item: Callable,
    size: int | tuple[int, ...],
    *args,
    group: int | tuple[int, ...] = 1,
    seed: int = 0,
) -> Run:
    """A Run of item(*args) for every work-item, in an order shuffled by seed.

    size is how many work-items there are, group how many form a work-group; the size is rounded up
    to whole groups, as a launch does. Arrays among args are changed in place; the function sees
    them as one long line, like a kernel. lab.local(n) gives each group n floats of its own. In a
    function with `yield`, every yield is a barrier of the group.
    """
    group = _sizes(group)
    size = _sizes(size)
    group = group * len(size) if len(group) == 1 and group[0] == 1 else group
    if len(size) != len(group):
        raise LlmclError(f"the size {size} and the group {group} must have the same length.")
    size = tuple(-(-s // g) * g for s, g in zip(size, group, strict=True))
    run = Run(size, group)
    names = list(inspect.signature(item).parameters)
    if len(names) != len(args):
        raise LlmclError(f"{item.__name__} takes {', '.join(names)}; {len(args)} were given.")
    bound = {name: _bind(name, arg, run) for name, arg in zip(names, args, strict=True)}
    rng = np.random.default_rng(seed)
    counts = tuple(s // g for s, g in zip(size, group, strict=True))
    groups = list(np.ndindex(counts[::-1]))
    for number in rng.permutation(len(groups)):
        _run_group(item, bound, run, groups[number][::-1], rng)
    find_races(run)
    return run


def _sizes(size) -> tuple[int, ...]:
    sizes = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    whole = all(isinstance(s, (int, np.integer)) and s > 0 for s in sizes)
    if not whole or not 1 <= len(sizes) <= 3:
        raise LlmclError(f"{size!r} is no number of work-items; give one to three whole numbers "
                         "above 0.")  # fmt: skip
    return tuple(int(s) for s in sizes)


def _bind(name, arg, run):
    """The argument as the work-items see it: arrays as pointers, the rest as it is."""
    if isinstance(arg, local):
        run.shapes[name] = (arg.count,)
        run.locals.add(name)
    if not isinstance(arg, np.ndarray):
        return arg
    if not arg.flags.c_contiguous:
        raise LlmclError(f"{name} does not lie row after row; pass np.ascontiguousarray({name}).")
    run.shapes[name] = arg.shape
    return Pointer(_Memory(name, arg, run))


def _own(name, arg, run):
    """The argument for one group: local memory is new in each."""
    if not isinstance(arg, local):
        return arg
    return Pointer(_Memory(name, np.zeros(arg.count, np.float32), run, unwritten=True))


def _run_group(item, bound, run, group_id, rng) -> None:
    """All work-items of one group, each up to its next barrier, until all are done."""
    args = [_own(name, arg, run) for name, arg in bound.items()]
    waiting = []
    for place in np.ndindex(run.local[::-1]):
        local_id = place[::-1]
        ids = tuple(g * n + i for g, n, i in zip(group_id, run.local, local_id, strict=True))
        waiting.append((_Item(run, ids, local_id, group_id), None))
    while waiting:
        arrived, gone = [], []
        for number in rng.permutation(len(waiting)):
            me, body = waiting[number]
            body = _go_on(me, body, item, args)
            (gone if body is None else arrived).append((me, body))
        if arrived and gone:
            run.find(
                f"work-item {shown(min(me.global_id for me, _ in arrived))} waits at a barrier "
                f"that work-item {shown(min(me.global_id for me, _ in gone))} never reaches"
            )
        lines = {}
        for me, body in sorted(arrived, key=lambda pair: pair[0].global_id):
            lines.setdefault(_waits_in(body), me.global_id)
        if len(lines) > 1:
            (a, first), (b, second) = sorted(lines.items())[:2]
            run.find(
                f"work-item {shown(first)} waits at the barrier in line {a}, and work-item "
                f"{shown(second)} at another, in line {b}"
            )
        waiting = arrived


def _waits_in(body) -> int:
    """The line of the `yield` at which a work-item waits, which may be in a function it called."""
    while getattr(body, "gi_yieldfrom", None) is not None:
        body = body.gi_yieldfrom
    return body.gi_frame.f_lineno


def _go_on(me, body: Iterator | None, item, args) -> Iterator | None:
    """Runs a work-item up to its next barrier; None when it is done."""
    global _current
    _current = me
    try:
        if body is None:
            body = item(*args)
            if not inspect.isgenerator(body):
                return None
        next(body)
        me.phase += 1
        return body
    except StopIteration:
        return None
    finally:
        _current = None
