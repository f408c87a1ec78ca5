"""Builds the notebooks: notebooks/src/NAME.py becomes notebooks/NAME.ipynb, executed.

    python notebooks/build.py [NAME ...]                 build these, or all
    python notebooks/build.py --check [NAME ...]         run nothing, say what is out of date
    python notebooks/build.py --solutions [NAME ...]     run the solutions, store nothing
    python notebooks/build.py --class [FOLDER] [NAME …]  without answers, and the answers apart
                                                         (--nbgrader: as its source too)
    python notebooks/build.py --language ko [NAME ...]   in another language, into build/ko
    python notebooks/build.py --template ko [NAME ...]   write or update notebooks/i18n/ko/NN.po

A source is jupytext's percent format. Its header holds the lesson's metadata under
`jupyter: llmcl:`. Every prose cell has an id (`# %% [markdown] id="idea"`), which becomes the
notebook's cell id, so a translation can be laid over block by block (builder/translate.py). Code
and outputs are the same in every language.

The lines between `### BEGIN SOLUTION` and `### END SOLUTION` (`//` in a kernel's text) become a
stub, and follow the cell as a folded block. What stands behind a line `### INSTEAD` between them is
the stub, for an exercise that gives a wrong line to mend. A cell tagged `varies` prints what
differs from device to device: nobody compares it, and a note is stored in place of its output.

The new words in the table of `promise` become links to their entries in 90_glossary, whose entries
come from llmcl/lab/glossary (builder/glossary.py). A word without one stops the build.

Two builds on one machine give the same bytes.
"""

import argparse
import sys
from pathlib import Path

from nbclient.exceptions import CellExecutionError

from builder.classroom import answers_left, unfold, without_answers, write_class
from builder.execute import VARIES, run_solutions, too_slow
from builder.grading import for_nbgrader, write_course
from builder.places import ROOT, BuildError, all_names
from builder.source import assemble, digest, prose, solutions, stub_and_solution
from builder.store import build, out_of_date, write
from builder.translate import po_path, translate, write_template

__all__ = [
    "VARIES",
    "BuildError",
    "all_names",
    "answers_left",
    "assemble",
    "build",
    "digest",
    "for_nbgrader",
    "main",
    "out_of_date",
    "po_path",
    "prose",
    "run_solutions",
    "solutions",
    "stub_and_solution",
    "too_slow",
    "translate",
    "unfold",
    "without_answers",
    "write_class",
    "write_template",
]


def one_lesson(name: str, options: argparse.Namespace) -> bool:
    """Does what was asked for with one lesson, and prints it; False if it is out of date."""
    if options.check:
        reason = out_of_date(name)
        if reason:
            print(f"{name}: {reason}; run `make notebooks`")
        return not reason
    if options.solutions:
        report_time(f"{name}: every solution passes", run_solutions(name))
    elif options.class_folder:
        write_class(name, options.class_folder, options.execute, options.force)
        if options.nbgrader:
            write_course(name, options.class_folder, options.force)
        print(f"{name}: written for a class into {shown(options.class_folder)}")
    elif options.template:
        print(f"{name}: {shown(write_template(options.template, name))} is up to date")
    elif options.language:
        notebook, report = translate(options.language, name)
        path = ROOT / "build" / options.language / f"{name}.ipynb"
        write(notebook, path, options.force)
        print(f"{name}: {shown(path)}", *report, sep="\n    ")
    else:
        report_time(f"{name}: built", build(name, options.force))
    return True


def report_time(line: str, seconds: dict[str, float]) -> None:
    """Prints the line with the time that the cells took, and what takes too long."""
    slowest = max(seconds, key=seconds.get, default="")
    if slowest:
        line += f" in {sum(seconds.values()):.0f} s, {slowest} took {seconds[slowest]:.1f} s"
    print(line, *too_slow(seconds), sep="\n    ")


def shown(path: Path) -> str:
    """The path from the checkout's root on, or the whole one."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, or 1 when something is out of date or cannot be built."""
    parser = argparse.ArgumentParser(description="Build the notebooks from notebooks/src.")
    parser.add_argument("names", nargs="*", help="such as 00_start_here; all without one")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="run nothing, say what is out of date")
    what.add_argument("--solutions", action="store_true", help="run the solutions, store nothing")
    what.add_argument(
        "--class",
        dest="class_folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        const=ROOT / "build" / "class",
        help="write FOLDER/learner without answers and FOLDER/teacher with them (build/class)",
    )
    what.add_argument("--language", metavar="LANG", help="write a translation into build/LANG")
    what.add_argument("--template", metavar="LANG", help="write or update i18n/LANG/NN.po")
    parser.add_argument("--nbgrader", action="store_true", help="with --class: a course as well")
    parser.add_argument("--execute", action="store_true", help="with --class: run the teacher's")
    parser.add_argument("--force", action="store_true", help="write over a reader's own work too")
    options = parser.parse_args(arguments)
    if options.class_folder and options.class_folder.stem in all_names():
        parser.error(f"write the folder too: --class build/class {options.class_folder}")
    status = 0
    for name in [Path(n).stem for n in options.names] or all_names():
        try:
            status |= not one_lesson(name, options)
        except (BuildError, CellExecutionError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
