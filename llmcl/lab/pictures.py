"""Pictures with a text twin, and pictures that a slider moves."""

import base64
import html
import io
from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from ..errors import LlmclError
from .display import bundle, caption

# Okabe and Ito's colors, which color-blind readers can tell apart (black and yellow left out).
COLORS = {
    "blue": "#0072B2", "orange": "#E69F00", "green": "#009E73",
    "red": "#D55E00", "purple": "#CC79A7", "sky": "#56B4E9",
}  # fmt: skip
DPI = 100


def figure(alt: str, width: float = 6.4, height: float = 3.2, columns: int = 1):
    """A figure and its axes, drawn in COLORS; alt says in words what there is to see.

    width and height are in inches of 100 pixels. With more than one column, the second value is a
    list of that many axes, side by side. Raises LlmclError without a text.
    """
    if not alt.strip():
        raise LlmclError("a picture needs a text for those who cannot see it; pass it as alt.")
    if columns < 1:
        raise LlmclError(f"a picture has at least 1 column; {columns} is none.")
    made = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    made.alt = alt  # type: ignore[attr-defined]  # it travels with its picture
    side_by_side = list(made.subplots(1, columns, squeeze=False)[0])
    for axes in side_by_side:
        style(axes)
    return made, side_by_side[0] if columns == 1 else side_by_side


def style(axes) -> None:
    """Gives axes the look of figure()."""
    axes.set_prop_cycle(color=list(COLORS.values()))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


def show(made: Figure) -> None:
    """Displays a figure of figure(), with its text below."""
    alt = made.alt  # type: ignore[attr-defined]
    bundle(alt, png(made), width=int(made.get_figwidth() * DPI))
    caption(alt)


def png(made: Figure) -> bytes:
    """The figure as PNG: the same bytes for the same drawing."""
    data = io.BytesIO()
    made.savefig(data, format="png", metadata={"Software": None})
    return data.getvalue()


def explore(
    draw: Callable,
    values: Sequence,
    alt: Callable,
    name: str = "step",
    start=None,
    *,
    columns: int = 1,
    width: float = 6.4,
    height: float = 3.2,
) -> None:
    """Displays draw(axes, value) with a slider over values, which mouse and arrow keys move.

    A value may come as (label, value); the slider then shows the label, which is a text. alt(value)
    says in words what there is to see at a value. Where nobody is there to move the slider, the
    picture at start (the first value without one) is shown. columns, width and height are those of
    figure(). Raises LlmclError for no values, or for a start that is none of them.
    """
    labels, plain = split_labels(values)
    first = find_start(plain, start)
    frames = {}

    def frame(number):
        if number not in frames:
            made, axes = figure(alt(plain[number]), width, height, columns)
            draw(axes, plain[number])
            frames[number] = png(made), made.alt, int(made.get_figwidth() * DPI)
        return frames[number]

    data, text, wide = frame(first)
    options = [(label, number) for number, label in enumerate(labels)]
    bundle(text, data, widget=_slider(frame, options, first, name), width=wide)


def split_labels(values: Sequence) -> tuple[list[str], list]:
    """The labels and the values of a slider; a value without a label is its own."""
    pairs = [
        v if isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) else (str(v), v)
        for v in values
    ]
    if not pairs:
        raise LlmclError("a slider needs at least one value; the list is empty.")
    return [label for label, _ in pairs], [value for _, value in pairs]


def find_start(values: list, start) -> int:
    """The place of start among the values, 0 where start is None; LlmclError if it is not there."""
    if start is None:
        return 0
    places = [i for i, value in enumerate(values) if value is start or _same(value, start)]
    if not places:
        raise LlmclError(
            f"the slider has no {start!r} to start at; it goes from {values[0]!r} to "
            f"{values[-1]!r}."
        )
    return places[0]


def _same(value, start) -> bool:
    """Whether two values are equal; an array is only equal to itself."""
    equal = value == start
    return isinstance(equal, bool) and equal or getattr(equal, "shape", None) == () and bool(equal)


def _slider(frame: Callable, values: Sequence, first, name: str):
    """The slider with its picture and the picture's text below."""

    def page(value):
        data, text, width = frame(value)
        alt, source = html.escape(text), base64.b64encode(data).decode("ascii")
        return (
            f'<img alt="{alt}" width="{width}" style="max-width: 100%" '
            f'src="data:image/png;base64,{source}">'
            f"<div><em>{alt}</em></div>"
        )

    return page_slider(page, values, first, name)


def page_slider(page: Callable, values: Sequence, first, name: str):
    """A slider over values, or (label, value) pairs, with page(value), a piece of HTML, below.

    None where ipywidgets is not installed.
    """
    try:
        from ipywidgets import HTML, HBox, Label, Layout, SelectionSlider, VBox
    except ImportError:  # the picture at the start must do
        return None
    # The slider's own readout cuts off what is longer than a number, so the label stands behind it.
    slider = SelectionSlider(
        options=list(values), description=name, readout=False,
        style={"description_width": "initial"}, layout=Layout(width="420px", max_width="100%"),
    )  # fmt: skip
    slider.value = first  # given above, it would leave the first value without its label
    chosen = Label(slider.label, layout=Layout(margin="2px 2px 2px 12px"))  # clear of the handle
    view = HTML(close_lines(page(first)))

    def update(change):
        chosen.value = slider.label
        view.value = close_lines(page(change["new"]))

    slider.observe(update, "value")
    line = HBox([slider, chosen], layout=Layout(flex_flow="row wrap", align_items="center"))
    return VBox([line, view])


def close_lines(text: str) -> str:
    """HTML with the line height of prose; a widget would set its lines a button's height apart."""
    return f'<div style="line-height: 1.5">{text}</div>'
