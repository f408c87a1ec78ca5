"""The live monitor: it ends at a whole step, says the same everywhere, and stops when told."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from jupyter_client.manager import start_new_kernel

from llmcl import reference
from llmcl.config import Config
from llmcl.errors import LlmclError, TrainingError
from llmcl.lab import monitor
from llmcl.model import GPT
from llmcl.optimizer import AdamW, Schedule
from llmcl.train import Step, train_steps

ROOT = Path(__file__).resolve().parents[1]


def fake_steps(count, hook=lambda step: None):
    """Steps without a model; hook is called while each is made."""
    for step in range(1, count + 1):
        hook(step)
        yield Step(step, 0.1, 1 / step, 2 / step, 100.0) if step % 2 else Step(step, 0.1)


def watch(steps, **options):
    return asyncio.run(monitor.watch(steps, **options))


@pytest.fixture
def shown(monkeypatch):
    """The widgets and the figures that were displayed."""
    kept = {"widgets": [], "figures": []}
    monkeypatch.setattr(monitor, "bundle", lambda text, widget: kept["widgets"].append(widget))
    monkeypatch.setattr(monitor, "show", kept["figures"].append)
    return kept


def test_a_whole_run(shown, capsys):
    values = iter(range(10))
    measures = {"known": lambda: next(values)}
    seen = watch(fake_steps(7), measures=measures, every=3, alt="What there is to see.")
    assert [step.step for step in seen.steps] == [1, 3, 5, 7]
    assert (seen.last, seen.stopped) == (7, False)
    assert seen.values == {"known": [(0, 0), (3, 1), (6, 2), (7, 3)]}
    assert capsys.readouterr().out == "✓ trained to step 7\n"
    assert [figure.alt for figure in shown["figures"]] == ["What there is to see."]


def test_without_ipywidgets_the_run_and_its_last_picture_remain(monkeypatch, capsys):
    figures = []
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(monitor, "show", figures.append)
    seen = watch(fake_steps(5), alt="What there is to see.")
    assert (seen.last, seen.stopped) == (5, False)
    assert [figure.alt for figure in figures] == ["What there is to see."]
    assert capsys.readouterr().out.endswith("✓ trained to step 5\n")


def test_a_value_is_taken_once_a_step(shown):
    seen = watch(fake_steps(6), losses={"other text": lambda: 1}, every=3)
    assert [step for step, _ in seen.values["other text"]] == [0, 3, 6]


def test_the_picture_shows_what_was_seen(shown):
    losses, measures = {"other text": lambda: 0.5}, {"known": lambda: 3, "asked": lambda: 4}
    watch(fake_steps(5), line=("bigram", 1.5), losses=losses, measures=measures, every=2)
    axes = {a.get_title() or "measures": a for a in shown["figures"][0].axes}
    lines = {line.get_label(): line for a in axes.values() for line in a.lines}
    np.testing.assert_array_equal(lines["loss"].get_xydata(), [(1, 1), (3, 1 / 3), (5, 1 / 5)])
    np.testing.assert_array_equal(lines["other text"].get_xydata()[:, 0], [0, 2, 4, 5])
    assert set(lines["bigram"].get_ydata()) == {1.5} and lines["bigram"].get_linestyle() == "--"
    assert {"other text", "bigram"} <= {line.get_label() for line in axes["loss"].lines}
    assert [line.get_label() for line in axes["measures"].lines] == ["known", "asked"]
    (norm,), (rate,) = axes["gradient norm"].lines, axes["learning rate"].lines
    np.testing.assert_array_equal(norm.get_ydata(), [2, 2 / 3, 2 / 5])
    np.testing.assert_array_equal(rate.get_ydata(), [0.1, 0.1, 0.1])


def test_no_legend_lies_over_the_curves_or_beside_the_picture(shown):
    losses, measures = {"held out": lambda: 6.0}, {"sentences": lambda: 3, "answers": lambda: 4}
    watch(fake_steps(5), line=("bigram", 1.5), losses=losses, measures=measures, every=2)
    (figure,) = shown["figures"]
    figure.draw_without_rendering()
    with_legends = [axes for axes in figure.axes if axes.get_legend()]
    assert len(with_legends) == 2
    for axes in with_legends:
        box = axes.get_legend().get_window_extent()
        assert box.y0 >= axes.bbox.y1 and box.y1 <= figure.bbox.y1 and box.x1 <= figure.bbox.x1
        if axes.get_title():
            assert box.x0 > axes.title.get_window_extent().x1


def test_the_button_stops_after_the_step_that_is_being_made(shown, capsys):
    def hook(step):
        if step == 4:
            shown["widgets"][0].children[0].children[0].click()

    steps = fake_steps(9, hook)
    seen = watch(steps, measures={"known": lambda: 1}, every=3)
    assert (seen.last, seen.stopped) == (4, True)
    assert [step for step, _ in seen.values["known"]] == [0, 3, 4]
    assert capsys.readouterr().out.startswith("Stopped after step 4.")
    assert "up to step 4" in shown["figures"][0].alt
    assert next(steps).step == 5, "what is left of the run can still be made"


def test_an_interrupt_stops_after_the_step_and_a_second_one_at_once(shown):
    def hook(step):
        if step in (3, 12):
            os.kill(os.getpid(), signal.SIGINT)
        if step == 12:
            os.kill(os.getpid(), signal.SIGINT)

    before, steps = signal.getsignal(signal.SIGINT), fake_steps(20, hook)
    assert watch(steps).last == 3
    with pytest.raises(KeyboardInterrupt):
        watch(steps)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_comes_after_the_picture_of_the_steps_before_it(shown):
    def hook(step):
        if step == 5:
            raise TrainingError("not a number")

    with pytest.raises(TrainingError, match="not a number"):
        watch(fake_steps(9, hook))
    assert len(shown["figures"][0].axes[0].lines[0].get_xdata()) == 2
    assert "up to step 4" in shown["figures"][0].alt


def test_a_picture_is_drawn_at_most_four_times_a_second(shown, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(monitor.time, "monotonic", lambda: clock[0])
    drawn = []
    monkeypatch.setattr(monitor, "png", lambda figure: drawn.append(clock[0]) or b"")

    def hook(step):
        clock[0] += 0.02

    watch(fake_steps(200, hook))  # four seconds
    gaps = np.diff(drawn[1:])  # the first one is drawn before the run
    assert len(drawn) >= 14 and gaps.min() >= monitor.SECONDS_BETWEEN - 1e-9


def test_a_slow_picture_leaves_two_thirds_of_the_time_to_training(shown, monkeypatch):
    clock, drawing = [0.0], [0.0]
    monkeypatch.setattr(monitor.time, "monotonic", lambda: clock[0])

    def slow(figure):
        clock[0] += 0.5
        drawing[0] += 0.5
        return b""

    monkeypatch.setattr(monitor, "png", slow)

    def hook(step):
        clock[0] += 0.02

    watch(fake_steps(1000, hook))
    assert drawing[0] > 5 and drawing[0] / clock[0] < 0.36


def test_every_below_one_is_refused(shown):
    with pytest.raises(LlmclError, match="every 0 steps"):
        watch(fake_steps(2), every=0)


def small_run():
    """A model, and the steps of its training on one batch."""
    config = Config(vocab_size=257, context_length=256, d_model=8, n_heads=2, n_layers=1, d_ff=16)
    model = GPT(config, reference.Engine())
    model.initialize(seed=1)
    ids = np.array([[1, 2, 3, 4], [4, 3, 2, 1]], np.int32)
    batches = lambda step: (ids, np.roll(ids, -1, axis=1))  # noqa: E731
    return model, train_steps(model, AdamW(model), batches, Schedule(0.01, 9), log_every=1)


def test_a_stopped_model_is_the_one_of_that_many_steps(shown):
    """The step during which somebody stops is made whole."""
    model, steps = small_run()

    def stopping():
        for step in steps:
            if step.step == 4:
                os.kill(os.getpid(), signal.SIGINT)
            yield step

    assert watch(stopping()).last == 4
    other, others = small_run()
    for _ in range(4):
        next(others)
    for name, weights in model.weights().items():
        np.testing.assert_array_equal(weights, other.weights()[name])


SLOW = """
import time
from llmcl.lab import watch
from llmcl.train import Step

def slow():
    for step in range(1, 3000):
        time.sleep(0.01)
        yield Step(step, 0.1, 1 / step, 1.0, 1.0)

seen = await watch(slow())
print("the next line")
"""


def test_a_click_in_a_notebook_reaches_the_cell_that_trains():
    """What a browser sends for a click, to a kernel that is at work on the cell."""
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT))
    try:
        sent, button, told = client.execute(SLOW), None, ""
        limit = time.monotonic() + 60
        while time.monotonic() < limit:
            message = client.get_iopub_msg(timeout=30)
            content = message["content"]
            if message["msg_type"] == "comm_open":
                state = content["data"]["state"]
                button = content["comm_id"] if state.get("description") == "Stop" else button
            elif message["msg_type"] == "comm_msg" and button:  # a picture: training is under way
                click = {"method": "custom", "content": {"event": "click"}}
                data = {"comm_id": button, "data": click}
                client.shell_channel.send(client.session.msg("comm_msg", data))
                button = None
            elif message["msg_type"] == "stream":
                told += content["text"]
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                if message["parent_header"].get("msg_id") == sent:
                    break
        assert "Stopped after step" in told and "the next line" in told
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
