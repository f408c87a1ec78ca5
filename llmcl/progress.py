"""A run's progress in a terminal: one bar for each stage, and the sentences between."""

import sys
from contextlib import suppress

from tqdm import tqdm

from .pipeline import Listener
from .train import Step


class Progress(Listener):
    """Shows a run on stderr. After ask_to_stop() the run stops behind the step on its way."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet or not sys.stderr.isatty()
        self._bar: tqdm | None = None
        self._stop = False

    def ask_to_stop(self, *_signal) -> None:
        """The handler of Ctrl-C; a second one ends the process at once."""
        if self._stop:
            raise KeyboardInterrupt
        self._stop = True
        with suppress(RuntimeError):  # the signal may come in the middle of other output
            self.message("Stopping after this step; Ctrl-C once more stops at once.")

    def stop_wanted(self) -> bool:
        return self._stop

    def message(self, text: str) -> None:
        tqdm.write(text, file=sys.stderr)

    def stage(self, name: str, done: int, steps: int) -> None:
        self.close()
        self._bar = tqdm(
            total=steps, initial=done, desc=name, unit="step", disable=self.quiet, file=sys.stderr
        )

    def step(self, step: Step) -> None:
        bar = self._bar
        assert bar  # stage() comes first
        if step.loss is not None:
            bar.set_postfix(loss=f"{step.loss:.3f}", refresh=False)
        bar.update(1)
        if bar.n >= bar.total:
            self.close()

    def close(self) -> None:
        """Takes the bar off the screen's last line."""
        if self._bar:
            self._bar.close()
        self._bar = None
