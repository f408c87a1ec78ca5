"""A live picture of training, with a Stop button that leaves a usable model."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from ..errors import LlmclError
from ..train import Step
from .display import bundle
from .pictures import DPI, png, show, style

Values = Mapping[str, Callable[[], float]]
WIDTH, HEIGHT = 6.4, 4.8  # inches of 100 pixels
SECONDS_BETWEEN = 0.25
LIVE = "(While training goes on, its picture grows here, beside a Stop button. This is its end:)"


@dataclass
class Watched:
    """What was seen of a run.

    steps: the steps whose loss was read, in order; last: the number of the last step made, 0
    without one; values: for every name, pairs (step, value); stopped: whether somebody stopped it.
    """

    steps: list[Step] = field(default_factory=list)
    last: int = 0
    values: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    stopped: bool = False


async def watch(
    steps: Iterable[Step],
    *,
    line: tuple[str, float] | None = None,
    losses: Values | None = None,
    measures: Values | None = None,
    every: int = 25,
    alt: str = "Four curves over the steps",
) -> Watched:
    """Makes the steps, shows them while they are made, and returns what was seen.

        run = await lab.watch(train_steps(…, log_every=1), line=("bigram", 1.56))

    steps: what train_steps() gives; log_every decides how many points the curves have. line: a name
    and a loss, drawn as a dashed line. losses and measures: functions of no argument, by name, such
    as a loss on other text, or the number of known sentences. They are called before the first
    step, every `every` steps and after the last; losses are drawn beside the loss, measures in a
    panel of their own. alt: what there is to see when the run went to its end.

    The picture is drawn at most four times a second, and less often where drawing takes long. The
    Stop button, and an interrupt (KeyboardInterrupt), end the run after the step that is being
    made, so the model is whole and can be used; a second interrupt ends it at once. `await` returns
    when training is over: the next cell never meets a model that still changes. Where nobody
    watches, the output is the last picture and the same words. An error of a step is raised when
    the picture of the steps before it is shown. Raises LlmclError for an `every` below 1.
    """
    if every < 1:
        raise LlmclError(f"measuring every {every} steps is not possible; choose 1 or more.")
    seen = Watched(values={name: [] for name in [*(losses or {}), *(measures or {})]})
    picture = _Picture(seen, line, list(losses or {}), list(measures or {}))
    live = _Live(picture)
    take, whole = {**(losses or {}), **(measures or {})}, False
    try:
        with _interrupts(live.stop):
            _measure(seen, take)
            for step in steps:
                seen.last = step.step
                if step.loss is not None:
                    seen.steps.append(step)
                if step.step % every == 0:
                    _measure(seen, take)
                live.update()
                await asyncio.sleep(0)  # the notebook looks for a click
                if live.stop.is_set():
                    seen.stopped = True
                    break
            _measure(seen, take)
            whole = not seen.stopped
    finally:
        live.close()
        words = f"The curves up to step {seen.last}, where the run was stopped."
        show(picture.draw(alt if whole else words))
    if seen.stopped:
        print(f"Stopped after step {seen.last}. The model is as that step left it.")
    else:
        print(f"✓ trained to step {seen.last}")
    return seen


def _measure(seen: Watched, take: Values) -> None:
    """Adds what the functions give now, once a step."""
    for name, function in take.items():
        pairs = seen.values[name]
        if not pairs or pairs[-1][0] != seen.last:
            pairs.append((seen.last, float(function())))


@contextmanager
def _interrupts(stop: threading.Event) -> Iterator[None]:
    """The first interrupt sets `stop`; the second one is a KeyboardInterrupt, as usual."""
    if threading.current_thread() is not threading.main_thread():  # no other may handle signals
        yield
        return

    def interrupted(number, frame):
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Picture:
    """Loss above; norm of the gradient, learning rate and measures below."""

    def __init__(self, seen: Watched, line, losses: list[str], measures: list[str]):
        self.seen, self.line, self.losses, self.measures = seen, line, losses, measures

    def draw(self, alt: str) -> Figure:
        """The figure as of now."""
        made = Figure(figsize=(WIDTH, HEIGHT), dpi=DPI)
        made.alt = alt  # type: ignore[attr-defined]  # it travels with its picture
        below = ["norm", "rate", *["measures"] * bool(self.measures)]
        layout: list = [["loss"] * len(below), below]
        panels = made.subplot_mosaic(layout, height_ratios=[3, 2])
        # Fixed margins: a layout found anew would take half of the time of each picture.
        made.subplots_adjust(0.07, 0.1, 0.98, 0.94, wspace=0.4, hspace=0.45)
        for axes in panels.values():
            style(axes)
            axes.set_xlabel("step")
            axes.locator_params("x", integer=True)
        steps = self.seen.steps
        numbers = [step.step for step in steps]
        self._loss(panels["loss"], numbers)
        panels["norm"].plot(numbers, [step.norm for step in steps], ".-", markersize=3)
        panels["norm"].set_title("gradient norm", fontsize="medium")
        panels["norm"].set_ylim(bottom=0)
        panels["rate"].plot(numbers, [step.rate for step in steps], ".-", markersize=3)
        panels["rate"].set_title("learning rate", fontsize="medium")
        panels["rate"].set_ylim(bottom=0)
        if self.measures:
            self._values(panels["measures"], self.measures)
            panels["measures"].set_ylim(bottom=0)
            if len(self.measures) > 1:
                _legend_above(panels["measures"])
            else:
                panels["measures"].set_title(self.measures[0], fontsize="medium")
        return made

    def _loss(self, axes, numbers):
        axes.plot(
            numbers, [step.loss for step in self.seen.steps], ".-", markersize=3, label="loss"
        )
        self._values(axes, self.losses)
        if self.line:
            name, value = self.line
            axes.axhline(value, color="0.3", linestyle="--", label=name)
        axes.set_ylim(bottom=0)
        axes.set_title("loss", fontsize="medium")
        _legend_above(axes)

    def _values(self, axes, names):
        for name in names:
            pairs = self.seen.values[name]
            axes.plot([n for n, _ in pairs], [v for _, v in pairs], "o-", markersize=4, label=name)


def _legend_above(axes) -> None:
    """A legend in the title's line: inside, it would cover the newest point."""
    names = axes.get_legend_handles_labels()[1]
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(names), frameon=False,
        fontsize="small", borderaxespad=0.0, columnspacing=1.0, handlelength=1.5,
    )  # fmt: skip


class _Live:
    """The widget: a Stop button, a line of words, and the picture. It is gone when closed."""

    def __init__(self, picture: _Picture):
        self.picture, self.stop = picture, threading.Event()
        self.next, self.widgets = 0.0, []
        try:
            from ipywidgets import Button, HBox, Image, Label, Layout, VBox
        except ImportError:  # the picture of the end must do; an interrupt still stops the run
            bundle(LIVE)
            return
        button = Button(description="Stop", icon="stop", tooltip="Stop after this step")
        self.words = Label("step 0")
        self.image = Image(
            format="png", layout=Layout(width=f"{WIDTH * DPI:.0f}px", max_width="100%")
        )
        line = HBox([button, self.words])
        self.widgets = [VBox([line, self.image]), line, button, self.words, self.image]
        button.on_click(lambda _: self.stop.set())
        self.image.value = png(picture.draw("live"))  # the first picture takes long
        bundle(LIVE, widget=self.widgets[0])

    def update(self) -> None:
        """Draws anew if it is time."""
        began = time.monotonic()
        if not self.widgets or began < self.next or not self.picture.seen.steps:
            return
        step = self.picture.seen.steps[-1]
        self.words.value = f"step {step.step} · loss {step.loss:.2f}"
        self.image.value = png(self.picture.draw("live"))
        now = time.monotonic()
        # Training comes first: drawing takes at most a third of the time.
        self.next = max(began + SECONDS_BETWEEN, now + 2 * (now - began))

    def close(self) -> None:
        """Takes the widget away; the picture of the end takes its place."""
        for widget in self.widgets:
            widget.close()
