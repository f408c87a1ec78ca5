"""Writes slides from the built notebooks, into build/slides: some ten a lesson.

    python notebooks/slides.py [04a ...]     these lessons, or all

Which cells become slides, their tag `slide` in notebooks/src says; the votes come from
docs/teaching. A notebook that is out of date is refused: build it first.
"""

import sys

from builder.places import ROOT, BuildError, all_names, number_of
from builder.slides import write

FOLDER = ROOT / "build" / "slides"


def main(numbers: list[str]) -> int:
    """The exit status: 0, or 1 when a lesson has no slides or cannot have any."""
    lessons = {number_of(name): name for name in all_names() if name < "9"}
    status = 0
    for number in numbers or lessons:
        try:
            if number not in lessons:
                raise BuildError(f"there is no such lesson; there are {', '.join(lessons)}.")
            print(f"{number}: {write(lessons[number], FOLDER).relative_to(ROOT).as_posix()}")
        except BuildError as error:
            print(f"{number}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
