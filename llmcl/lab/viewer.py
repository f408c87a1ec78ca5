"""Who reads what: the elements that each work-item touches, as run_items recorded them."""

from collections import defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from ..errors import LlmclError
from .cells import MOST, readable
from .items import Run
from .pictures import COLORS, explore
from .races import shown

# How often an array was read and written, and how many of its elements were touched at all.
Touches = namedtuple("Touches", "reads writes elements")

_WIDTH = 640  # pixels of a picture
_LINE = 32  # elements of a one-dimensional array, before it goes on in the next line
_CELL_SIZES = (34, 30, 26, 23, 20, 17, 14, 12)  # pixels; the first that fits is taken
_HEIGHT = 460  # pixels that a picture should not exceed
_LEFT, _TOP, _GAP = 26, 38, 14  # pixels around a grid: for its indexes, its title, the next one
_MARKS = {"read": ("R", "blue"), "write": ("W", "orange"), "both": ("RW", "purple"),
          "atomic": ("A", "green")}  # fmt: skip
_NUMBERED = 99  # accesses, up to which their order is shown
_ROOMY = 20  # pixels of a cell, from which the order of accesses has room
_SMALLEST = 7  # pixels of the smallest letters in a cell; longer labels stand beside it
_VERBS = {"read": "read", "write": "write", "atomic": "add to"}


# ---- in numbers ----


def touch_counts(run: Run) -> dict[str, Touches]:
    """For each array: reads, writes, and distinct elements; an atomic counts as both."""
    counts = {}
    for name in run.shapes:
        mine = [access for access in run.accesses if access.array == name]
        reads = sum(access.kind != "write" for access in mine)
        writes = sum(access.kind != "read" for access in mine)
        counts[name] = Touches(reads, writes, len({access.place for access in mine}))
    return counts


def gaps(run: Run, array: str, kind: str = "read") -> int | None:
    """How far apart neighbours in dimension 0 touch an array at the same moment, in elements.

    0 is the same element, 1 is side by side; None where the distance is not always the same, or
    where no two neighbours touch it. The same moment is the k-th access of that kind by each.
    Raises LlmclError for an array or a kind that the run does not have.
    """
    _known(run, [array])
    if kind not in _VERBS:
        raise LlmclError(f"{kind!r} is no kind of access; take one of {', '.join(_VERBS)}.")
    places = defaultdict(list)
    for access in run.accesses:
        if access.array == array and access.kind == kind:
            places[access.item].append(access.place)
    found = set()
    for item, mine in places.items():
        following = places.get((item[0] + 1, *item[1:]), [])
        found |= {b - a for a, b in zip(mine, following, strict=False)}
    return found.pop() if len(found) == 1 else None


def _known(run, arrays) -> list[str]:
    for name in arrays:
        if name not in run.shapes:
            raise LlmclError(f"the run has no array {name!r}; it has {', '.join(run.shapes)}.")
    return list(arrays)


# ---- in pictures ----


def view_items(run: Run, arrays=None, by: str = "item", start=None) -> None:
    """Displays a run's arrays as grids of cells, with a slider over its work-items or its steps.

    by="item": what one work-item touches: R read, W written, RW both, A atomic; small numbers give
    the order of the first touch of each cell. start is a work-item. by="step": the k-th access to
    each array by neighbours in dimension 0 (a group's first line of work-items, or all of them
    where a group is a single one); a cell holds the ids of who touches it. start is k, from 1.
    arrays names those that are drawn: all without it. Raises LlmclError for unknown arrays or a
    start that does not exist, and for more than 40 cells a side.
    """
    names = _known(run, run.shapes if arrays is None else arrays)
    # What is gone through, the sentence on one of it, and its picture.
    shown_run: Any
    words: Callable
    draw: Callable
    pairs: list[tuple]
    panels, height = _layout(run, names)
    if by == "item":
        values, shown_run, words, draw = _items(run), run, _item_words, _draw_item
        start = (start,) if isinstance(start, (int, np.integer)) else start
        pairs = [(shown(item), item) for item in values]
    elif by == "step":
        line = _neighbours(run)
        steps = _steps(run, names, line)
        pairs = [(f"{k} of {len(steps)}", k) for k in range(1, len(steps) + 1)]
        shown_run, words, draw = steps, _step_words, _draw_step
    else:
        raise LlmclError(f"by={by!r} is neither 'item' nor 'step'.")
    explore(
        lambda axes, value: draw(axes, shown_run, panels, value),
        pairs,
        lambda value: words(shown_run, panels, value),
        "work-item" if by == "item" else "step",
        start,
        width=_WIDTH / 100,
        height=height / 100,
    )


# Where an array is drawn: its name and title, rows and columns, the number that stands at row 1,
# how many elements it really has, the pixels of its upper left corner, and of a cell's side.
_Panel = namedtuple("_Panel", "name title rows cols stride count x y cell")


def _layout(run, names) -> tuple[list[_Panel], int]:
    """The panels side by side, in as many lines as they need, and the height of it all."""
    shapes = {name: _grid_shape(name, run.shapes[name]) for name in names}
    for cell in _CELL_SIZES:
        panels, x, y, line = [], _LEFT, _TOP, 0
        for name, (rows, cols) in shapes.items():
            shape = run.shapes[name]
            title = f"{name} ({' x '.join(map(str, shape))})"
            wide = max(cols * cell, 8 * len(title))
            if panels and x + wide > _WIDTH - 8:
                x, y, line = _LEFT, y + line + _TOP + 6, 0
            stride = cols if len(shape) == 1 else 1
            count = int(np.prod(shape))
            panels.append(_Panel(name, title, rows, cols, stride, count, x, y, cell))
            x, line = x + wide + _LEFT + _GAP, max(line, rows * cell)
        height = y + line + 30
        widest = max(cols for _, cols in shapes.values()) * cell + _LEFT + 8
        if height <= _HEIGHT and widest <= _WIDTH:
            break
    return panels, height


def _grid_shape(name, shape) -> tuple[int, int]:
    """Rows and columns of the grid for an array: a long line is wrapped."""
    count = int(np.prod(shape))
    if len(shape) > 1:
        rows, cols = count // max(1, shape[-1]), shape[-1]
    else:
        rows, cols = -(-count // _LINE), min(count, _LINE)
    if not count or max(rows, cols) > MOST:
        raise LlmclError(
            f"{name} has the shape {shape}, which makes {rows} x {cols} cells; a picture has 1 to "
            f"{MOST} a side, so run it with other sizes."
        )
    return rows, cols


def _items(run) -> list[tuple[int, ...]]:
    """All work-items; the id in dimension 0 changes first."""
    return [place[::-1] for place in np.ndindex(run.size[::-1])]


# ---- one work-item ----


def _touched(run, item, name) -> dict[int, tuple]:
    """For every element that a work-item touches: when it did first, and how ("both" for both)."""
    touched: dict[int, tuple] = {}
    for number, access in enumerate(run.of(item), start=1):
        if access.array == name:
            when, kind = touched.get(access.place, (number, access.kind))
            touched[access.place] = when, kind if kind == access.kind else "both"
    return touched


def _item_words(run, panels, item) -> str:
    """The sentence on one work-item, and what a strict device says of it."""
    phrases = []
    for verb, kinds in (("reads", ("read", "both")), ("writes", ("write", "both")),
                        ("adds to", ("atomic",))):  # fmt: skip
        counts = []
        for panel in panels:
            count = sum(kind in kinds for _, kind in _touched(run, item, panel.name).values())
            noun = "" if counts else " elements" if count > 1 else " element"
            counts += [f"{count}{noun} of {panel.name}"] if count else []
        phrases += [f"{verb} {_listed(counts)}"] if counts else []
    me = f"work-item {shown(item)} "
    did = me + (", and ".join(phrases) or "touches nothing")
    faults = [found for found in run.findings if found.startswith(me)]
    return " ".join(f"W{sentence[1:]}." for sentence in [did, *faults])


def _listed(parts) -> str:
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)


def _draw_item(axes, run, panels, item) -> None:
    few = len(run.of(item)) <= _NUMBERED
    used = set()
    _prepare(axes)
    for panel in panels:
        labels = {}
        for place, (when, kind) in _touched(run, item, panel.name).items():
            mark, color = _MARKS[kind]
            used.add(kind)
            labels[place] = mark, color, str(when) if few and panel.cell >= _ROOMY else ""
        _draw_panel(axes, panel, labels)
    meanings = {"read": "R read", "write": "W written", "both": "RW read and written",
                "atomic": "A added to in one piece"}  # fmt: skip
    legend = [meaning for kind, meaning in meanings.items() if kind in used]
    if few and used and panels[0].cell >= _ROOMY:
        legend.append("small number: order of the first touch")
    _draw_legend(axes, legend)


# ---- one step of neighbours ----


def _neighbours(run) -> list[tuple[int, ...]]:
    """Work-items side by side in dimension 0: of the first group, or all where it is a single."""
    count = run.local[0] if any(n > 1 for n in run.local) else run.size[0]
    return [(i, *[0] * (len(run.size) - 1)) for i in range(count)]


def _steps(run, names, line) -> list[dict]:
    """For every step: array -> the access of each neighbour who has that many."""
    queues = defaultdict(lambda: defaultdict(list))
    wanted = set(line)
    for access in run.accesses:
        if access.item in wanted and access.array in names:
            queues[access.array][access.item].append(access)
    last = max((len(q) for items in queues.values() for q in items.values()), default=1)
    return [
        {name: [queues[name][i][k] for i in line if len(queues[name][i]) > k] for name in names}
        for k in range(last)
    ]


def _step_words(steps, panels, step) -> str:
    """The sentence on how far apart neighbours are at a step (from 1)."""
    phrases = []
    for panel in panels:
        touched = steps[step - 1][panel.name]
        if touched:
            kinds = {access.kind for access in touched}
            verb = _VERBS[touched[0].kind] if len(kinds) == 1 else "touch"
            phrases.append(_distance(panel, verb, touched))
    if not phrases:
        return f"At step {step}, neighbouring work-items touch nothing."
    return f"At step {step}, neighbouring work-items {', and '.join(phrases)}."


def _distance(panel, verb, touched) -> str:
    places = [access.place for access in touched]
    found = {b - a for a, b in zip(places, places[1:], strict=False)}
    if not found:
        return f"{verb} {panel.name}, but there is only one of them"
    if found == {0}:
        return f"{verb} the same element of {panel.name}"
    elements = f"{verb} elements of {panel.name}"
    if len(found) > 1:
        return f"{elements} at uneven distances"
    gap = found.pop()
    note = " (side by side)" if abs(gap) == 1 else ""
    if abs(gap) == panel.cols > 1 and panel.rows > 1:
        note = " (each in a row of its own)"
    return f"{elements} that lie {gap} apart{note}"


def _draw_step(axes, steps, panels, step) -> None:
    used = set()
    _prepare(axes)
    for panel in panels:
        users = defaultdict(list)
        for access in steps[step - 1][panel.name]:
            users[access.place].append(access)
        labels = {}
        for place, accesses in users.items():
            kinds = {access.kind for access in accesses}
            kind = kinds.pop() if len(kinds) == 1 else "both"
            used.add(kind)
            ids = sorted(access.item[0] for access in accesses)
            labels[place] = _ranges(ids), _MARKS[kind][1], ""
        _draw_panel(axes, panel, labels)
    meanings = {"read": "blue: read", "write": "orange: written", "both": "purple: both",
                "atomic": "green: added to in one piece"}  # fmt: skip
    legend = [meaning for kind, meaning in meanings.items() if kind in used]
    _draw_legend(axes, [*legend, "in a cell: the ids in dimension 0 of who touches it"])


def _ranges(ids) -> str:
    """Ids as short text: 3, or 0-6, or 0.. for those that are not in one piece."""
    whole = ids == list(range(ids[0], ids[-1] + 1))
    return str(ids[0]) if len(ids) == 1 else f"{ids[0]}-{ids[-1]}" if whole else f"{ids[0]}.."


# ---- drawing ----


def _prepare(axes) -> None:
    """Makes the axes a sheet of pixels, the origin in the upper left corner."""
    axes.set_position([0, 0, 1, 1])
    axes.set_in_layout(False)
    axes.set_axis_off()
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(axes.figure.get_figheight() * 100, 0)


def _draw_panel(axes, panel, labels) -> None:
    """One array: its title, its cells, its indexes, and the labels of the cells touched."""

    boxes, fills = [], []
    for place in range(panel.count):
        row, col = divmod(place, panel.cols)
        corner = panel.x + col * panel.cell, panel.y + row * panel.cell
        boxes.append(Rectangle(corner, panel.cell, panel.cell))
        fills.append(COLORS[labels[place][1]] if place in labels else "#F4F4F4")
        if place in labels:
            _label(axes, panel, corner, *labels[place])
    axes.add_collection(
        PatchCollection(boxes, facecolors=fills, edgecolors="#999999", linewidths=0.6)
    )
    axes.text(panel.x, panel.y - 18, panel.title, fontsize=9, weight="bold", parse_math=False)
    for col in range(0, panel.cols, 1 if panel.cell >= 17 else 5):
        middle = panel.x + (col + 0.5) * panel.cell
        axes.text(middle, panel.y - 4, str(col), fontsize=6.5, ha="center", color="#555555")
    for row in range(panel.rows if panel.rows > 1 else 0):
        middle = panel.y + (row + 0.5) * panel.cell
        axes.text(panel.x - 4, middle, str(row * panel.stride), fontsize=6.5, ha="right",
                  va="center", color="#555555")  # fmt: skip


def _label(axes, panel, corner, mark, color, small) -> None:
    """A cell's mark, with a small number below it or without; beside the cell if it is too long."""
    side = panel.cell
    x, y = corner[0] + side / 2, corner[1] + (0.33 if small else 0.5) * side
    style: dict = {"ha": "center", "va": "center", "color": readable(COLORS[color])}
    size = min(0.62 * side, 1.3 * side / len(mark), 12)
    if size < _SMALLEST:
        x, size = corner[0] + side + 4, _SMALLEST + 2
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        style = {"ha": "left", "va": "center", "color": "black", "bbox": box}
    axes.text(x, y, mark, fontsize=0.72 * (0.85 * size if small else size), **style)
    if small:
        low = corner[1] + 0.77 * side
        axes.text(x, low, small, fontsize=0.72 * min(0.42 * side, 10), **style)


def _draw_legend(axes, parts) -> None:
    bottom = axes.figure.get_figheight() * 100 - 10
    axes.text(_LEFT, bottom, "   ".join(parts), fontsize=7.5, color="#333333")
