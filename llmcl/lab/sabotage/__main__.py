"""The teacher's side: `python -m llmcl.lab.sabotage key 4711` and `… grade 4711 FOLDER`."""

import argparse
import inspect
import sys
from pathlib import Path

from ...errors import LlmclError
from .faults import faults_of
from .grade import marks, table


def main() -> int:
    """Prints the faults of a number with a test that finds each, or the points of a folder."""
    parser = argparse.ArgumentParser(prog="python -m llmcl.lab.sabotage", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    key = commands.add_parser("key", help="the five faults of a number")
    key.add_argument("number")
    grade = commands.add_parser("grade", help="the points of a student's folder")
    grade.add_argument("number")
    grade.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "key":
        print("\n\n".join(map(_told, faults_of(options.number))))
        return 0
    if not (options.folder / "sabotaged").is_dir():
        raise LlmclError(
            f"{options.folder} holds no folder `sabotaged`; name the student's folder."
        )
    print(table(marks(options.number, options.folder), open_book=True))
    return 0


def _told(fault) -> str:
    lines = [f"{fault.group}: {fault.file}, {fault.function}", f"  {fault.why}"]
    for file, right, wrong in fault.changes:
        lines += [f"  {file}", f"    right: {right}", f"    wrong: {wrong}"]
    return "\n".join([*lines, "  a test that finds it:", inspect.getsource(fault.probe)])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LlmclError as error:
        print(f"sabotage: {error}", file=sys.stderr)
        sys.exit(2)
