"""A sheet of questions for each learner: `python -m llmcl.lab.variants sheet 4711`.

`… key 4711` prints the answers, `… grade 4711 FILE` the points of a sheet that was filled in.
"""

import argparse
import sys
from pathlib import Path

from ...errors import LlmclError
from ...terminal import prepare_streams
from .questions import LESSONS, items
from .sheet import key, marks, read_answers, sheet, table


def main(arguments: list[str] | None = None) -> int:
    """Prints a sheet, its key, or the points of one; returns the exit status."""
    prepare_streams()
    options = _parser().parse_args(arguments)
    questions = items(options.number, options.word, options.lessons)
    if options.command == "sheet":
        print(sheet(options.number, questions), end="")
    elif options.command == "key":
        print(key(options.number, questions))
    else:
        result = marks(questions, read_answers(_read(options.file)))
        print(table(options.number, result))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m llmcl.lab.variants", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("sheet", "the questions of a number, as Markdown"),
        ("key", "the answers of a number"),
        ("grade", "the points of a sheet that was filled in"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("number", help="the learner's number, or any other text")
        if name == "grade":
            command.add_argument("file", type=Path, help="the sheet with its answers")
        command.add_argument(
            "--word", default="", help="a secret of the teacher, the same for sheet, key and grade"
        )
        command.add_argument(
            "--lessons", nargs="+", default=[], metavar="N", help=f"only these of {LESSONS}"
        )
    return parser


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise LlmclError(f"the sheet {path} cannot be read: {reason}; name another file.") from None


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LlmclError as error:
        print(f"variants: {error}", file=sys.stderr)
        sys.exit(2)
