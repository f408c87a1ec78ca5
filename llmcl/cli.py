"""The command `llmcl`: doctor, check, train, export, chat, verify."""

import argparse
import json
import os
import signal
import sys
from dataclasses import fields
from pathlib import Path

from . import __version__
from .errors import LlmclError

# The command ends with this status when something that was asked for is not possible.
BAD_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit status. Errors of ours become one line on stderr."""
    options = build_parser().parse_args(arguments)
    try:
        return options.run(options)
    except LlmclError as error:
        print(f"llmcl: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("llmcl: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def build_parser() -> argparse.ArgumentParser:
    """The command line, with a help text for each command."""
    parser = argparse.ArgumentParser(
        prog="llmcl",
        description="Build a small language model on OpenCL, from text to a GGUF file.",
        epilog="Start with `llmcl doctor`, then `llmcl train --out build`, "
        "then `llmcl chat build/model.gguf`.",
    )
    parser.add_argument("--version", action="version", version=f"llmcl {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_doctor(commands)
    _add_check(commands)
    _add_train(commands)
    _add_export(commands)
    _add_chat(commands)
    _add_verify(commands)
    return parser


def _add(commands, name, run, text, description=None):
    command = commands.add_parser(name, help=text, description=description or text)
    command.set_defaults(run=run)
    return command


def _add_device(command):
    command.add_argument(
        "--device",
        metavar="D",
        help="the device: its number or words of its name in `llmcl doctor`, or numpy "
        "(default: $LLMCL_DEVICE, or the best one found)",
    )


# ---- doctor ----


def _add_doctor(commands):
    text = "show the OpenCL devices of this machine, try each, and say which one is used"
    command = _add(commands, "doctor", doctor, text)
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def doctor(options) -> int:
    """Prints the report on devices; status 1 when none works."""
    from .device import doctor_report, format_doctor

    report = doctor_report()
    print(json.dumps(report, indent=1) if options.json else format_doctor(report))
    return 0 if report["chosen"] is not None else 1


# ---- check ----


def _add_check(commands):
    text = "compare every kernel with NumPy on the chosen device"
    command = _add(
        commands,
        "check",
        check,
        text,
        f"{text.capitalize()}: for each result the largest error measured by what rounding allows "
        "there, that bound, and the time of one run. Exit status 1 if one is out of bounds.",
    )
    _add_device(command)
    command.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")


def check(options) -> int:
    """Prints a line for each result; status 1 when one is wrong."""
    from .check import check_all
    from .engine import get_engine

    engine = get_engine(options.device)
    print(f"{engine.device.describe() if engine.device else 'NumPy'}, against NumPy in float64")
    print(f"{'operation':<24}{'error':>10}{'bound':>10}{'ms':>8}")
    wrong = 0
    for case, comparisons, seconds in check_all(engine, options.seed):
        for found in comparisons:
            wrong += not found.ok
            end = "" if found.ok else f"  WRONG {found}"
            print(
                f"{case.name:<24}{found.error:>10.1e}{found.bound:>10.1e}{seconds * 1e3:>8.2f}{end}"
            )
    print("every kernel agrees with NumPy" if not wrong else f"{wrong} results are out of bounds")
    return 1 if wrong else 0


# ---- train ----


def _add_train(commands):
    text = "train a model from text and export it as GGUF"
    command = _add(
        commands,
        "train",
        train,
        text,
        f"{text.capitalize()}. DIR gets model.gguf, Modelfile, metrics.json and a checkpoint of "
        "each stage. Ctrl-C writes a checkpoint; --resume goes on from it, to the same bytes.",
    )
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="where to write")
    command.add_argument(
        "--pretrain", type=Path, metavar="FILE", help="sentences, one a line (default: ours)"
    )
    command.add_argument(
        "--tune",
        type=Path,
        metavar="FILE",
        help='dialogues, one {"user": …, "assistant": …} a line (default: ours)',
    )
    again = command.add_mutually_exclusive_group()
    again.add_argument(
        "--resume", action="store_true", help="go on with an unfinished run in DIR, if there is one"
    )
    again.add_argument("--restart", action="store_true", help="forget an unfinished run in DIR")
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    _add_device(command)
    from .settings import Settings

    numbers = command.add_argument_group("settings (see llmcl/settings.py)")
    for field in fields(Settings):
        option = "--" + field.name.replace("_", "-")
        numbers.add_argument(
            option, type=field.type, default=field.default, metavar=field.type.__name__.upper(),
            help=f"default {field.default}",
        )  # fmt: skip


def train(options) -> int:
    """Runs the whole road; Ctrl-C stops it after the step that is on its way."""
    from .engine import get_engine
    from .pipeline import Stopped, train_to_gguf
    from .progress import Progress
    from .settings import Settings

    settings = Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
    listener = Progress(quiet=options.quiet)
    engine = get_engine(options.device)
    listener.message(engine.device.describe() if engine.device else "NumPy, without OpenCL")
    for note in engine.device.notes if engine.device else []:
        listener.message(note)
    before = signal.signal(signal.SIGINT, listener.ask_to_stop)
    try:
        metrics = train_to_gguf(
            options.out, settings, engine, pretrain=options.pretrain, tune=options.tune,
            resume=options.resume, restart=options.restart, listener=listener,
        )  # fmt: skip
    except Stopped as stopped:
        print(f"llmcl: {stopped}", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, before)
        listener.close()
    export = metrics["export"]
    listener.message(
        f"{options.out / 'model.gguf'}: {export['bytes']:,} bytes, {export['dtype']}. "
        f"Talk to it: llmcl chat {options.out / 'model.gguf'}"
    )
    return 0


# ---- export, chat, verify ----


def _add_export(commands):
    text = "write a checkpoint as a GGUF file"
    command = _add(commands, "export", export, text)
    command.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="a .safetensors file")
    command.add_argument("-o", "--output", required=True, type=Path, metavar="FILE", help="the GGUF")
    command.add_argument(
        "--dtype", default="Q8_0", metavar="TYPE", help="F32, F16 or Q8_0 (default Q8_0)"
    )


def export(options) -> int:
    """Writes the GGUF file and says how large it is."""
    from .checkpoint import load_checkpoint
    from .gguf_file import write_gguf

    stored = load_checkpoint(options.checkpoint)
    write_gguf(options.output, stored.config, stored.weights, stored.tokenizer, options.dtype)
    print(f"{options.output}: {options.output.stat().st_size:,} bytes, {options.dtype}")
    return 0


def _add_chat(commands):
    text = "talk to a model"
    command = _add(
        commands,
        "chat",
        chat,
        text,
        "Talk to a model: one question a line, an empty line or Ctrl-D ends. Each question is "
        "answered by itself; the model has never seen two turns.",
    )
    command.add_argument("file", type=Path, metavar="FILE", help="a .gguf or .safetensors file")
    _add_device(command)
    command.add_argument(
        "--temperature", type=float, default=0.0, metavar="T",
        help="0 takes the likeliest token, 1 draws by the model's own shares (default 0)",
    )  # fmt: skip
    command.add_argument("--top-k", type=int, default=0, metavar="K", help="draw from the K best")
    command.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="draw from the best with share P"
    )
    command.add_argument("--seed", type=int, default=0, help="of the drawing (default 0)")


def chat(options) -> int:
    """Reads questions from the keyboard or a pipe and writes the answers as they come."""
    from .engine import get_engine
    from .errors import DataError
    from .generate import Sampling, reply
    from .load import load_model

    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    model, tokenizer = load_model(options.file, get_engine(options.device))
    alive = sys.stdin.isatty()
    while True:
        try:
            question = input("User: " if alive else "")
        except EOFError:
            return 0
        if not question.strip():
            return 0
        try:
            print("Assistant: " if alive else "", end="", flush=True)
            for piece in reply(model, tokenizer, question, sampling=sampling):
                print(piece, end="", flush=True)
            print()
        except DataError as error:
            print(f"\nllmcl: {error}", file=sys.stderr)
            if not alive:
                return BAD_INPUT


def _add_verify(commands):
    text = "open a GGUF file in real llama.cpp and compare it with our own model"
    command = _add(
        commands,
        "verify",
        verify_file,
        text,
        f"{text.capitalize()}: token ids, greedy text, the chat endpoint and log-probabilities. "
        "Exit status 1 if anything differs.",
    )
    command.add_argument("file", type=Path, metavar="FILE", help="a .gguf file")
    command.add_argument("--pretrain", type=Path, metavar="FILE", help="the sentences it learned")
    command.add_argument("--tune", type=Path, metavar="FILE", help="the dialogues it learned")


def verify_file(options) -> int:
    """Prints the report; status 1 when llama.cpp differs."""
    from .data import read_dialogues, read_sentences
    from .verify import verify

    report = verify(
        options.file,
        read_sentences(options.pretrain) if options.pretrain else None,
        read_dialogues(options.tune) if options.tune else None,
    )
    print(report)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
