"""Boxes with something in them: a matrix as a grid, shares as shades, a text as its pieces."""

import html
import zlib
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from ..errors import LlmclError
from .pictures import COLORS, DPI, find_start, page_slider, split_labels

MOST = 40  # cells a side that still can be read
_POINTS = 72 / DPI  # of a pixel
_SMALLEST = 5  # points of the smallest letters; below it, cells are left without words
_TINTS = ("#CFE8F7", "#FCE5B8", "#C9EDE0", "#F8D9C4", "#F2DCE8")
_LINE_BYTES = 24  # of a text's pieces, before the next line begins


# ---- a matrix ----


def cells(axes, values, labels=None, colors=None, title: str = "", highlight=None) -> None:
    """Draws a matrix as a grid of cells: row 0 on top, the indexes at the edges.

    values is (rows, cols), or a line of numbers for a single row. labels, of the same shape, is
    what stands in the cells instead of the numbers. colors, of the same shape, names each cell's
    color (a key of COLORS, any color of matplotlib, or "" for white). highlight is a list of
    (row, col) that get a thick border. Raises LlmclError for other shapes, for colors and cells
    that do not exist, and for more than 40 cells a side.
    """
    values = _matrix(values)
    words = _like(values, labels, "labels") if labels is not None else _numbers(values)
    names = _like(values, colors, "colors") if colors is not None else np.full(values.shape, "")
    shades = np.array([[_shade(c) for c in row] for row in names])
    _grid(axes, shades, words, title)
    for row, col in highlight or []:
        if not (0 <= row < values.shape[0] and 0 <= col < values.shape[1]):
            raise LlmclError(f"there is no cell {row, col} to highlight in {values.shape}.")
        axes.add_patch(_frame((col - 0.5, row - 0.5), 1, 1, "black", 3))
    _ticks(axes, values.shape)


def heat(axes, values, xlabels, ylabels, title: str = "") -> None:
    """Draws shares as shades from white (0) to blue, with a token for each column and row.

    values is (rows, cols), xlabels has cols tokens and ylabels rows, as text or bytes. A space is
    shown as ␣, and what is not ASCII as its bytes. Up to 12 a side, the numbers stand in the cells
    if they have room. With negative values, the shades go from orange over white to purple. Raises
    LlmclError for labels that do not fit.
    """
    values = _matrix(values)
    for which, tokens, count in (
        ("xlabels", xlabels, values.shape[1]),
        ("ylabels", ylabels, values.shape[0]),
    ):
        if len(tokens) != count:
            raise LlmclError(f"{which} has {len(tokens)} tokens; the matrix {values.shape} needs "
                             f"{count}.")  # fmt: skip
    largest = float(np.nanmax(np.abs(values))) or 1.0
    low = -largest if np.nanmin(values) < 0 else 0.0
    shade = colormaps["PuOr" if low else "Blues"]
    # Blues' last third is too dark to tell apart; the scale ends before it.
    scaled = (values - low) / (largest - low)
    shades = shade(scaled if low else 0.75 * scaled)[..., :3]
    columns, rows = [[shown_token(t) for t in tokens] for tokens in (xlabels, ylabels)]
    turn = 90 if max(map(len, columns)) > 4 or len(columns) > 12 else 0
    words = np.full(values.shape, "", dtype=object)
    if max(values.shape) <= 12:
        # What is masked must be told from what is only small.
        words = np.where(values == 0, "0", _numbers(values))
    beside = 8 * max(map(len, rows)), 8 * max(map(len, columns)) if turn else 20
    _grid(axes, shades, words, title, beside)
    axes.set_xticks(range(len(columns)), columns, rotation=turn, fontsize=8, parse_math=False)
    axes.set_yticks(range(len(rows)), rows, fontsize=8, parse_math=False)


def shown_token(token: str | bytes) -> str:
    """A token as plain letters: a space as ␣, and what is not ASCII as its bytes, <EA B0 80>."""
    raw = token if isinstance(token, bytes) else str(token).encode("utf-8")
    parts, strange = [], []
    for byte in [*raw, None]:
        plain = byte is not None and 32 <= byte < 127
        if strange and (byte is None or plain):
            parts.append("<" + bytes(strange).hex(" ").upper() + ">")
            strange = []
        if plain:
            parts.append("␣" if byte == 32 else chr(byte))
        elif byte is not None:
            strange.append(byte)
    return "".join(parts)


def _matrix(values) -> np.ndarray:
    values = np.asarray(values)
    values = values[None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise LlmclError(f"the shape {values.shape} is no matrix; pass (rows, cols).")
    if max(values.shape) > MOST:
        raise LlmclError(
            f"{values.shape} has more than {MOST} cells a side, which nobody can read; "
            "use smaller sizes."
        )
    return values


def _like(values, given, name) -> np.ndarray:
    given = np.asarray(given, dtype=object)
    given = given[None] if given.ndim == 1 else given
    if given.shape != values.shape:
        raise LlmclError(f"{name} has the shape {given.shape}; the matrix has {values.shape}.")
    return given


def _shade(name) -> tuple[float, float, float]:
    try:
        return to_rgb(COLORS.get(name, name or "white"))
    except ValueError:
        known = ", ".join(COLORS)
        raise LlmclError(f"no color is called {name!r}; take one of {known}.") from None


def _numbers(values) -> np.ndarray:
    """Each number as text: whole ones as they are, others with two places."""
    whole = values.dtype.kind in "iub"
    texts = [[str(v) if whole else f"{v:z.2f}" for v in row] for row in values.tolist()]
    return np.array(texts, dtype=object)


def readable(shade) -> str:
    """The color of letters on a shade (red, green, blue in 0..1): white on dark, black on light."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(shade)
    )
    # WCAG's relative luminance; at 0.179 both have the same contrast.
    return "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.179 else "black"


def _grid(axes, shades, words, title, beside=(20, 20)) -> None:
    """Fills the cells, draws the lines between them and writes the words.

    beside: the pixels that the labels left and below take.
    """
    rows, cols = words.shape
    axes.grid(False)
    axes.imshow(shades, aspect="equal", interpolation="nearest")
    axes.set_xticks(np.arange(cols + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#999999", linewidth=0.6)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=10, parse_math=False)
    axes.add_patch(_frame((-0.5, -0.5), cols, rows, "#999999", 0.6))
    longest = max(len(str(w)) for w in words.flat)
    size = _letter_size(axes, rows, cols, longest, beside)
    if not longest or size < _SMALLEST:
        return
    for (row, col), word in np.ndenumerate(words):
        axes.text(
            col, row, str(word), ha="center", va="center", fontsize=size,
            color=readable(shades[row, col]), parse_math=False,
        )  # fmt: skip


def _letter_size(axes, rows, cols, longest, beside) -> float:
    """The size in points at which the longest word fits into a cell."""
    place = axes.get_subplotspec().get_gridspec()
    width, height = axes.figure.get_size_inches() * DPI
    side = min(
        (width / place.ncols - beside[0] - 12) / cols,
        (height / place.nrows - beside[1] - 24) / rows,
    )
    return _POINTS * min(14, 0.5 * side, 1.35 * side / max(1, longest))


def _ticks(axes, shape) -> None:
    """The indexes at the edges; every fifth where there are many."""
    rows, cols = shape
    axes.xaxis.tick_top()
    axes.set_xticks(range(0, cols, 5 if cols > 20 else 1))
    axes.set_yticks(range(0, rows, 5 if rows > 20 else 1))
    axes.tick_params(labelsize=8, labelcolor="#555555")


def _frame(corner, width, height, color, thick) -> Rectangle:
    return Rectangle(
        corner, width, height, fill=False, edgecolor=color, linewidth=thick, clip_on=False, zorder=3
    )


# ---- a text ----


def show_pieces(pieces: Sequence[str | bytes], caption: str) -> None:
    """Displays a text's pieces as boxes with their bytes below, and the caption under them.

    It is HTML, so that every script is drawn (Korean beside English); a terminal gets the pieces
    with bars between them, and their bytes. Bytes that are no whole character are shown as �.
    Raises LlmclError without pieces or without a caption.
    """
    pieces = _checked(pieces, caption)
    _display(pieces_text(pieces, caption), pieces_html(pieces, caption))


def explore_pieces(
    steps: Sequence, captions: Sequence[str], name: str = "step", start: int | None = None
) -> None:
    """Displays the pieces of one step with a slider over all of them: a text that fuses.

    steps is a list of lists of pieces, or of (label, list) pairs; captions has a text for each.
    What was not there at the step before has a thick border. start is the number of the step that
    is shown where nobody moves the slider: 0 without one. Raises LlmclError if captions do not fit.
    """
    pairs = [s if isinstance(s, tuple) else (str(i), s) for i, s in enumerate(steps)]
    labels, lists = split_labels(pairs)
    if len(captions) != len(lists):
        raise LlmclError(f"{len(captions)} captions for {len(lists)} steps; each step needs one.")
    lists = [_checked(pieces, text) for pieces, text in zip(lists, captions, strict=True)]
    first = find_start(list(range(len(lists))), start)

    def page(number):
        before = lists[number - 1] if number else lists[number]
        return pieces_html(lists[number], captions[number], set(lists[number]) - set(before))

    slider = page_slider(page, list(zip(labels, range(len(lists)), strict=True)), first, name)
    _display(pieces_text(lists[first], captions[first]), page(first), slider)


def pieces_html(pieces: Sequence[bytes], caption: str, new: frozenset | set = frozenset()) -> str:
    """The boxes as HTML: tables, so that a page that removes styles still shows them in columns."""
    tables = []
    for line in _lines(pieces):
        top = "".join(_box(piece, piece in new) for piece in line)
        low = "".join(
            f'<td style="text-align:center;font:11px monospace;padding:1px 4px">'
            f"{piece.hex(' ').upper()}</td>"
            for piece in line
        )
        tables.append(
            '<table style="border-collapse:separate;border-spacing:2px;margin:2px 0">'
            f"<tr>{top}</tr><tr>{low}</tr></table>"
        )
    return "".join(tables) + f"<div><em>{html.escape(caption)}</em></div>"


def pieces_text(pieces: Sequence[bytes], caption: str) -> str:
    """The same in plain text: the pieces, their bytes, the caption."""
    lines = []
    for line in _lines(pieces):
        lines.append("|".join(_letters(piece) for piece in line))
        lines.append("|".join(piece.hex(" ").upper() for piece in line))
    return "\n".join([*lines, caption])


def _checked(pieces, caption) -> list[bytes]:
    if not pieces or not str(caption).strip():
        raise LlmclError("a row of boxes needs at least one piece, and a caption that says what "
                         "there is to see.")  # fmt: skip
    return [p if isinstance(p, bytes) else p.encode("utf-8") for p in pieces]


def _lines(pieces: Sequence[bytes]) -> list[list[bytes]]:
    """The pieces in lines that fit a page's width; a new line also follows a newline."""
    lines, used = [[]], 0
    for piece in pieces:
        ended = lines[-1] and lines[-1][-1].endswith(b"\n")
        if lines[-1] and (ended or used + len(piece) > _LINE_BYTES):
            lines.append([])
            used = 0
        lines[-1].append(piece)
        used += len(piece)
    return lines


def _letters(piece: bytes) -> str:
    """The piece as people read it; a space must be seen, too."""
    text = piece.decode("utf-8", errors="replace").replace(" ", "␣")
    return text.replace("\n", "\\n").replace("\t", "\\t")


def _box(piece: bytes, new: bool) -> str:
    # The same piece has the same color wherever it stands.
    tint = _TINTS[zlib.crc32(piece) % len(_TINTS)]
    border = "3px solid #000" if new else "1px solid #777"
    return (
        f'<td style="text-align:center;font:15px sans-serif;padding:3px 5px;color:#000;'
        f'background:{tint};border:{border}">{html.escape(_letters(piece))}</td>'
    )


def _display(text: str, page: str, widget=None) -> None:
    try:
        from IPython.display import display
    except ImportError:
        print(text)
        return
    data = {"text/plain": text, "text/html": page}
    if widget is not None:
        shown = widget._repr_mimebundle_()
        shown = shown[0] if isinstance(shown, tuple) else shown
        data |= {kind: part for kind, part in shown.items() if kind not in data}
    display(data, raw=True)
