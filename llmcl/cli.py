"""The command `llmcl`: doctor, check, train, export, chat, verify, bench."""

import argparse
import json
import signal
import sys
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path

from . import __version__
from .errors import DataError, LlmclError
from .terminal import discard_output, prepare_streams

# The command ends with this status when something that was asked for is not possible.
BAD_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns its exit status. Errors of ours become one line on stderr."""
    prepare_streams()
    try:
        try:
            options = build_parser().parse_args(arguments)
            return options.run(options)
        finally:
            sys.stdout.flush()  # here, where a reader that went away can still be handled
    except KeyboardInterrupt:
        print("llmcl: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        discard_output()
        return 141
    except LlmclError as error:
        print(f"llmcl: {error}", file=sys.stderr)
    except MemoryError as error:
        print(f"llmcl: {error}; choose a smaller model, batch or context.", file=sys.stderr)
    except OSError as error:  # such as a full disk behind the standard output
        print(f"llmcl: the system refuses: {error}.", file=sys.stderr)
        discard_output()
    return BAD_INPUT


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, and where to read on."""

    def error(self, message):
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see `{self.prog} --help`.\n")


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 0 or more")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """The command line, with a help text for each command."""
    parser = _Parser(
        prog="llmcl",
        description="Build a small language model on OpenCL, from text to a GGUF file, which "
        "llama.cpp, LM Studio and Ollama open.",
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
    _add_bench(commands)
    return parser


def _add(commands, name, run, text, more=""):
    description = f"{text[0].upper()}{text[1:]}. {more}".strip()
    command = commands.add_parser(name, help=text, description=description)
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
    how = command.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print the report as JSON")
    how.add_argument(
        "--class",
        dest="for_class",
        action="store_true",
        help="check every kernel and print one line for the teacher, without folders or names of "
        "people; exit status 0 if the lessons will run",
    )


def doctor(options) -> int:
    """Prints the report on devices; status 1 when none works."""
    if options.for_class:
        from .class_line import FIRST, class_line, class_values

        values = class_values()
        print(class_line(values))
        return 0 if values[FIRST] == "ok" else 1
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
        "For each result: the largest error measured by what rounding allows there, that bound, "
        "and the time of one run. Exit status 1 if one is out of bounds.",
    )
    _add_device(command)
    command.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of the random inputs (default 0)"
    )


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
        "DIR gets model.gguf, a Modelfile for Ollama, metrics.json and a checkpoint of each stage. "
        "Ctrl-C writes a checkpoint; --resume goes on from it, to the same bytes.",
    )
    command.add_argument("--out", required=True, type=Path, metavar="DIR", help="where to write")
    command.add_argument(
        "--pretrain", type=Path, metavar="FILE", help="sentences, one a line (default: 25 of ours)"
    )
    command.add_argument(
        "--tune",
        type=Path,
        metavar="FILE",
        help='dialogues, one {"user": "...", "assistant": "..."} a line (default: 13 of ours)',
    )
    again = command.add_mutually_exclusive_group()
    again.add_argument(
        "--resume", action="store_true", help="go on with an unfinished run in DIR, if there is one"
    )
    again.add_argument("--restart", action="store_true", help="forget an unfinished run in DIR")
    command.add_argument("--quiet", action="store_true", help="show no progress bar")
    _add_device(command)
    from .settings import Settings

    numbers = command.add_argument_group("settings of the model and its training")
    for known in fields(Settings):
        numbers.add_argument(
            "--" + known.name.replace("_", "-"),
            type=_seed if known.name == "seed" else known.type,
            default=known.default,
            metavar={int: "N", float: "RATE", str: "NAME"}[known.type],
            help=f"{known.metadata['help']} (default {known.default})",
        )


def train(options) -> int:
    """Runs the whole road; Ctrl-C stops it after the step that is on its way.

    Several processes of an MPI launcher train one model; the first of them speaks for all.
    """
    from . import parallel, pipeline
    from .engine import get_engine
    from .progress import Progress
    from .settings import Settings

    train_to_gguf, lead, listener = pipeline.train_to_gguf, True, Progress(quiet=options.quiet)
    team = parallel.join()
    if team:
        train_to_gguf, lead = partial(parallel.train_to_gguf, team), team.lead
        listener = listener if lead else parallel.Silent(quiet=True)
    before = signal.signal(signal.SIGINT, listener.ask_to_stop)
    try:
        with team.whole(options.out) if team else nullcontext():
            chosen = {known.name: getattr(options, known.name) for known in fields(Settings)}
            settings = Settings(**chosen)
            engine = team.engine(options.device) if team else get_engine(options.device)
            metrics = train_to_gguf(
                options.out, settings, engine, pretrain=options.pretrain, tune=options.tune,
                resume=options.resume, restart=options.restart, listener=listener,
            )  # fmt: skip
    except pipeline.Stopped as stopped:
        if lead:
            print(f"llmcl: {stopped}", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, before)
        listener.close()
    if lead:
        export = metrics["export"]
        listener.message(
            f"{options.out / 'model.gguf'}: {export['bytes']:,} bytes, {export['dtype']}. "
            f"Talk to it: llmcl chat {options.out / 'model.gguf'}"
        )
    return 0


# ---- export, chat, verify ----


def _add_export(commands):
    text = "write a checkpoint as a GGUF file"
    command = _add(
        commands,
        "export",
        export,
        text,
        "It holds the tokenizer and the chat template as well; llama.cpp, LM Studio and Ollama "
        "open it.",
    )
    command.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="a .safetensors file of `llmcl train`"
    )
    command.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FILE", help="the GGUF file to write"
    )
    command.add_argument(
        "--dtype", default="Q8_0", metavar="TYPE",
        help="type of the matrices: F32 (4 bytes a number), F16 (2) or Q8_0 (1; the default)",
    )  # fmt: skip


def export(options) -> int:
    """Writes the GGUF file and says how large it is."""
    from .checkpoint import load_checkpoint, training_info
    from .gguf_file import write_gguf

    stored = load_checkpoint(options.checkpoint)
    if options.output.exists() and options.output.samefile(options.checkpoint):
        raise DataError(f"{options.output} is the checkpoint itself; give another name.")
    info = training_info(stored.state)
    write_gguf(options.output, stored.config, stored.weights, stored.tokenizer, options.dtype, info)
    print(f"{options.output}: {options.output.stat().st_size:,} bytes, {options.dtype}")
    return 0


def _add_chat(commands):
    text = "talk to a model"
    command = _add(
        commands,
        "chat",
        chat,
        text,
        "One question a line; an empty line or Ctrl-D ends. Each question is answered by itself: "
        "the model has never seen two turns. Questions may also come from a file or a pipe.",
    )
    command.add_argument("file", type=Path, metavar="FILE", help="a .gguf or .safetensors file")
    _add_device(command)
    command.add_argument(
        "--temperature", type=float, default=0.0, metavar="T",
        help="0 takes the likeliest token, 1 draws by the model's own shares (default 0)",
    )  # fmt: skip
    command.add_argument(
        "--top-k", type=int, default=0, metavar="K", help="draw from K tokens only (default: all)"
    )
    command.add_argument(
        "--top-p", type=float, default=1.0, metavar="P",
        help="draw from the likeliest that together have the share P (default 1)",
    )  # fmt: skip
    command.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of the drawing (default 0)"
    )


def chat(options) -> int:
    """Reads questions from the keyboard or a pipe and writes the answers as they come."""
    from .engine import get_engine
    from .generate import Sampling
    from .load import load_model
    from .talk import talk

    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    talk(*load_model(options.file, get_engine(options.device)), sampling)
    return 0


def _add_verify(commands):
    text = "open a GGUF file in real llama.cpp and compare it with our own model"
    command = _add(
        commands,
        "verify",
        verify_file,
        text,
        "It compares token ids, greedy text, the chat endpoint and log-probabilities, for our own "
        "sentences and dialogues unless others are given. Exit status 1 if anything differs.",
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


def _add_bench(commands):
    text = "measure how fast the device is, side by side with NumPy, PyTorch and llama.cpp"
    command = _add(
        commands,
        "bench",
        bench,
        text,
        "Contestants take turns and medians are compared; a ratio above 1 "
        "means that ours is faster. PyTorch and llama.cpp take part where they are installed.",
    )
    _add_device(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    command.add_argument(
        "--model", type=Path, metavar="GGUF", help="for generation (default: a random model)"
    )
    command.add_argument(
        "--scaling", action="store_true", help="also measure the cost against context and width"
    )


def bench(options) -> int:
    """Prints the table of ratios and the device's limits."""
    from . import bench as benchmark
    from .engine import get_engine
    from .errors import DataError, DeviceError
    from .files import replacing

    if options.model and not options.model.is_file():
        raise DataError(f"{options.model} is no file; give a .gguf file.")
    if options.json and not options.json.parent.is_dir():
        raise DataError(f"{options.json.parent} is no folder; make it first.")
    engine = get_engine(options.device)
    if engine.device is None:
        raise DeviceError("bench measures OpenCL devices; choose one that `llmcl doctor` lists.")
    report = benchmark.run(engine, options.model, options.scaling)
    if options.json:
        with replacing(options.json, DataError) as temporary:
            temporary.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
