"""The whole road: from two text files to a GGUF file, with checkpoints on the way.

Three stages: pretraining on sentences; tuning on dialogues alone, to see the sentences fade; tuning
on dialogues with the sentences mixed in, to see them stay. The last one is exported.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from . import __version__
from .chat_format import write_modelfile
from .checkpoint import Checkpoint, load_checkpoint, save_checkpoint, training_info
from .data import pretrain_rows, read_dialogues, read_sentences, tokenizer_texts, tune_rows
from .errors import CheckpointError, DataError, TrainingError
from .evaluate import answers, recall
from .files import remove_leftovers, replacing
from .gguf_file import check_sizes, write_gguf
from .model import GPT
from .optimizer import AdamW
from .resources import data_dir
from .settings import STAGES, Settings
from .tokenizer import ByteBPE, WordDictionary
from .train import Batches, Step, check_finite, loss_and_gradient, train_steps

RUNNING = "checkpoint.safetensors"
STAGE_FILES = tuple(f"{stage}.safetensors" for stage in STAGES)
# The settings with which an unfinished run may go on otherwise: where memory ran out.
MAY_CHANGE = ("batch_size",)
WRITTEN = (RUNNING, *STAGE_FILES, "model.gguf", "Modelfile", "metrics.json")


class Stopped(TrainingError):
    """Somebody stopped the run; its checkpoint is written."""


class Listener:
    """What a run tells while it goes on; override what is of interest."""

    def message(self, text: str) -> None:
        """A sentence about what was found or done."""

    def stage(self, name: str, done: int, steps: int) -> None:
        """A stage begins, or goes on after `done` of its steps."""

    def step(self, step: Step) -> None:
        """A step was made."""

    def stop_wanted(self) -> bool:
        """Whether to stop after this step; a checkpoint is written first."""
        return False


def train_to_gguf(
    out: str | os.PathLike,
    settings: Settings,
    engine,
    *,
    pretrain: str | os.PathLike | None = None,
    tune: str | os.PathLike | None = None,
    resume: bool = False,
    restart: bool = False,
    listener: Listener | None = None,
    begin: "Callable[..., Run] | None" = None,
    enter: Callable[[Path], AbstractContextManager[Path]] | None = None,
) -> dict:
    """Trains a model in a folder and exports it; returns the metrics that metrics.json holds.

    pretrain, tune: text files like those in the data folder, which are the default. resume: go on
    with an unfinished run in the folder, if there is one; restart: forget it. Raises DataError for
    texts and folders that cannot be used, CheckpointError for an unfinished run of other settings,
    TrainingError when the loss is not finite, and Stopped when the listener wants to stop.
    begin, enter: what makes the run and holds the folder, if not Run and own_folder (parallel.py).
    """
    sentences = read_sentences(pretrain or data_dir() / "pretrain.txt")
    dialogues = read_dialogues(tune or data_dir() / "tune.jsonl")
    with (enter or own_folder)(Path(out)) as folder:
        texts = sentences, dialogues, listener or Listener()
        run = (begin or Run)(folder, settings, engine, *texts)
        if pretrain is None and tune is None:
            run.data["dataset"] = "llmcl sentences and dialogues"
        return run.train(run.unfinished(resume, restart))


@contextmanager
def own_folder(out: Path) -> Iterator[Path]:
    """The folder, made if need be, for this process alone."""
    try:
        # A link whose target is not there yet leads to a folder made now.
        Path(os.path.realpath(out)).mkdir(parents=True, exist_ok=True)
        lock = FileLock(out / ".lock", timeout=0)
        lock.acquire()
        remove_leftovers(out, WRITTEN)
    except Timeout:
        raise DataError(
            f"another run is writing to {out}; wait for it, or choose another folder."
        ) from None
    except OSError as error:
        raise DataError(
            f"the folder {out} cannot be written ({error.strerror}); choose another folder."
        ) from error
    try:
        yield out
    finally:
        lock.release()


class Run:
    """A training run in a folder: the texts, the tokenizer made of them, the model, the results."""

    gradient = staticmethod(loss_and_gradient)  # of a batch; `parallel.py` has another one

    def __init__(self, out: Path, settings: Settings, engine, sentences, dialogues, listener):
        self.out, self.settings, self.engine, self.listener = out, settings, engine, listener
        self.sentences, self.dialogues = sentences, dialogues
        texts = tokenizer_texts(sentences, dialogues)
        self.tokenizer: ByteBPE | WordDictionary
        if settings.tokenizer == "bpe":
            self.tokenizer = ByteBPE.train(texts, settings.vocab_size, engine)
        else:
            self.tokenizer = WordDictionary.train(texts, settings.vocab_size, spell_unknown=True)
        config = settings.config(self.tokenizer.vocab_size)
        # All that can be wrong with the settings or the texts is found before the first step.
        check_sizes(config, self.tokenizer, settings.dtype)
        self.sentence_rows = pretrain_rows(sentences, self.tokenizer, config.context_length)
        self.dialogue_rows = tune_rows(dialogues, self.tokenizer, config.context_length)
        self.model = GPT(config, engine)
        self.results: dict[str, dict] = {}
        texts_hash = hashlib.sha256(json.dumps(texts).encode("ascii")).hexdigest()
        self.facts = {"settings": settings.to_dict(), "texts": texts_hash[:16]}
        self.data: dict = {"sentences": len(sentences), "dialogues": len(dialogues)}

    def train(self, last: Checkpoint | None) -> dict:
        """Runs every stage that is not done yet, exports, and returns the metrics."""
        self.listener.message(self.environment()["device"])
        for note in self.engine.device.notes if self.engine.device else []:
            self.listener.message(note)
        for stage in STAGES:
            if stage not in self.results:
                self._train_stage(stage, last)
                last = None
                self._finish_stage(stage)
        return self._export()

    # ---- a stage ----

    def _train_stage(self, stage: str, last: Checkpoint | None) -> None:
        schedule, optimizer = self.settings.schedule(stage), AdamW(self.model)
        state = self._begin(stage, last, optimizer)
        self.listener.stage(stage, state["step"], schedule.steps)
        batches = Batches(
            self._rows(stage), self.settings.batch_size, self.tokenizer.end_id, self.settings.seed
        )
        steps = train_steps(
            self.model, optimizer, batches, schedule,
            first=state["step"] + 1, gradient=self.gradient,
        )  # fmt: skip
        began = time.perf_counter() - state["seconds"]
        with self._explained(stage):
            for step in steps:
                state |= {"step": step.step, "seconds": time.perf_counter() - began}
                if step.loss is not None:
                    state["curve"].append([step.step, step.loss, step.norm, step.rate, step.speed])
                self.listener.step(step)
                self._keep(state, optimizer, every=50)
        state["seconds"] = time.perf_counter() - began
        self.results[stage] = {
            "steps": schedule.steps,
            "seconds": state["seconds"],
            "loss": state["curve"][-1][1],
            "curve": state["curve"],
        }

    def _begin(self, stage, last, optimizer) -> dict:
        """Weights, moments and state of the stage's first step, or of the one to go on from."""
        state = {"stage": stage, "step": 0, "curve": [], "seconds": 0.0}
        if last is None:
            self._load_start(stage)
        else:
            self.model.load_weights(last.weights)
            optimizer.load_moments(last.m, last.v, last.state["step"])
            state |= {name: last.state[name] for name in state}
        return state

    def _load_start(self, stage):
        if stage == "pretrain":
            self.model.initialize(self.settings.seed)
        else:
            self.model.load_weights(self._load("pretrain.safetensors").weights)

    def _rows(self, stage):
        if stage == "pretrain":
            return [self.sentence_rows]
        mixed = [self.sentence_rows] if stage == "tune" else []
        return [self.dialogue_rows, *mixed]

    @contextmanager
    def _explained(self, stage):
        try:
            yield
        except Stopped:
            raise
        except TrainingError as error:
            raise TrainingError(
                f"{stage}: {error} The checkpoints in {self.out} are kept."
            ) from error

    def _keep(self, state, optimizer, every):
        stop = self._stop_wanted()
        if stop or state["step"] % every == 0:
            check_finite(self.model, optimizer.status)
            m, v = optimizer.moments()
            self._save(RUNNING, state, m, v)
        if stop:
            raise Stopped(
                f"stopped at step {state['step']} of {state['stage']}; "
                f"the checkpoint is in {self.out}, and --resume goes on from it."
            )

    def _stop_wanted(self):
        return self.listener.stop_wanted()

    def _finish_stage(self, stage):
        result = self.results[stage]
        known = recall(self.model, self.tokenizer, self.sentences)
        result["recall"] = [sum(known), len(known)]
        told = f"{stage}: {sum(known)} of {len(known)} sentences known"
        if stage != "pretrain":
            right = answers(self.model, self.tokenizer, self.dialogues)
            result["answers"] = [sum(right), len(right)]
            told += f", {sum(right)} of {len(right)} questions answered"
        self.listener.message(f"{told}.")
        state = {"stage": stage, "step": result["steps"]}
        self._save(f"{stage}.safetensors", state)
        self._save(RUNNING, state)

    # ---- checkpoints ----

    def _save(self, name, state, m=None, v=None):
        state = self.facts | self.environment() | state
        state |= {"data": self.data, "results": self.results}
        save_checkpoint(
            self.out / name,
            Checkpoint(
                self.model.config, self.model.weights(), self.tokenizer, m or {}, v or {}, state
            ),
        )

    def _load(self, name):
        """A checkpoint of this run, or of the one that it goes on from."""
        try:
            stored = load_checkpoint(self.out / name, STAGES)
        except CheckpointError as error:
            raise CheckpointError(f"{error} Or begin anew with --restart.") from error
        there, now = stored.state.get("settings", {}), self.facts["settings"]
        different = [
            f"{key} {there.get(key)}"
            for key in now
            if there.get(key) != now[key] and key not in MAY_CHANGE
        ]
        if stored.state.get("texts") != self.facts["texts"]:
            different.append("other texts")
        if different:
            raise CheckpointError(
                f"{self.out / name} is of a run with {', '.join(different)}; "
                "use the same settings and texts, another folder, or --restart."
            )
        return stored

    def environment(self) -> dict:
        """What else decides the last bits: the device, its group size, the versions."""
        device = self.engine.device
        return {
            "device": device.describe() if device else "NumPy",
            "local_size": device.local_size if device else 0,
            "versions": {
                "llmcl": __version__, "numpy": np.__version__, "python": platform.python_version()
            },
        }  # fmt: skip

    def unfinished(self, resume: bool, restart: bool) -> Checkpoint | None:
        """The unfinished run in the folder, if it is to go on; its results are taken over."""
        path = self.out / RUNNING
        if restart:
            path.unlink(missing_ok=True)
        if not path.exists():
            return None
        last = self._load(RUNNING)
        state = last.state
        if not resume:
            raise CheckpointError(
                f"{self.out} holds an unfinished run (step {state.get('step')} of "
                f"{state.get('stage')}); go on with --resume, or forget it with --restart."
            )
        changed = [k for k, value in self.environment().items() if state.get(k) != value]
        before = state["settings"].get("batch_size")
        changed += ["batch size"] if before != self.settings.batch_size else []
        if changed:
            self.listener.message(
                f"The {' and '.join(changed)} changed since the checkpoint; "
                "the last digits of the result may differ from an uninterrupted run."
            )
        self.results = state["results"]
        return None if state["stage"] in self.results else last

    # ---- the end ----

    def _export(self):
        trained = self._load("tune.safetensors")
        path, settings = self.out / "model.gguf", self.settings
        info = training_info(trained.state)
        write_gguf(path, trained.config, trained.weights, self.tokenizer, settings.dtype, info)
        write_modelfile(self.out / "Modelfile", path.name, settings.context_length)
        metrics = self._metrics(path.stat().st_size)
        with replacing(self.out / "metrics.json", DataError) as temporary:
            text = json.dumps(metrics, indent=1) + "\n"
            temporary.write_text(text, encoding="utf-8", newline="\n")
        (self.out / RUNNING).unlink(missing_ok=True)
        return metrics

    def _metrics(self, size: int) -> dict:
        results = self.results
        alone = results["tune_without_mixing"]
        curves = {stage: results[stage]["curve"] for stage in STAGES}
        bare = {s: {k: v for k, v in results[s].items() if k != "curve"} for s in STAGES}
        return {
            "device": self.environment()["device"],
            "parameters": self.model.config.parameter_count(),
            "settings": self.settings.to_dict(),
            "pretrain": bare["pretrain"],
            "tune": bare["tune"]
            | {
                "recall_without_mixing": alone["recall"],
                "answers_without_mixing": alone["answers"],
                "seconds_without_mixing": alone["seconds"],
            },
            "export": {"bytes": size, "dtype": self.settings.dtype},
            "curve_columns": ["step", "loss", "gradient_norm", "rate", "tokens_per_second"],
            "curves": curves,
        }
