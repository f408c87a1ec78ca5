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


def figure(alt: str, width: float = 6.4, height: float = 3.2):
    """A figure and its axes, drawn in COLORS; alt says in words what there is to see.

    width and height are in inches of 100 pixels. Raises LlmclError without a text.
    """
    if not alt.strip():
        raise LlmclError("a picture needs a text for those who cannot see it; pass it as alt.")
    made = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    made.alt = alt
    axes = made.subplots()
    axes.set_prop_cycle(color=list(COLORS.values()))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    return made, axes


def show(made: Figure) -> None:
    """Displays a figure of figure(), with its text below."""
    bundle(made.alt, png(made), width=int(made.get_figwidth() * DPI))
    caption(made.alt)


def png(made: Figure) -> bytes:
    """The figure as PNG: the same bytes for the same drawing."""
    data = io.BytesIO()
    made.savefig(data, format="png", metadata={"Software": None})
    return data.getvalue()


def explore(
    draw: Callable, values: Sequence, alt: Callable, name: str = "step", start=None
) -> None:
    """Displays draw(axes, value) with a slider over values, which mouse and arrow keys move.

    alt(value) says in words what there is to see at a value. Where nobody is there to move the
    slider, the picture at start (the first value without one) is shown.
    """
    frames = {}

    def frame(value):
        if value not in frames:
            made, axes = figure(alt(value))
            draw(axes, value)
            frames[value] = png(made), made.alt, int(made.get_figwidth() * DPI)
        return frames[value]

    first = values[0] if start is None else start
    data, text, width = frame(first)
    bundle(text, data, widget=_slider(frame, values, first, name), width=width)


def _slider(frame: Callable, values: Sequence, first, name: str):
    """The slider with its picture and the picture's text below."""
    from ipywidgets import HTML, SelectionSlider, VBox

    slider = SelectionSlider(options=list(values), value=first, description=name)
    view = HTML()

    def update(value):
        data, text, width = frame(value)
        alt, source = html.escape(text), base64.b64encode(data).decode("ascii")
        view.value = (
            f'<img alt="{alt}" width="{width}" src="data:image/png;base64,{source}">'
            f"<div><em>{alt}</em></div>"
        )

    slider.observe(lambda change: update(change["new"]), "value")
    update(first)
    return VBox([slider, view])
