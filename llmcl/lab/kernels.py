"""Shows a kernel's text as it stands in kernels/."""

import re
from collections.abc import Sequence

from ..errors import DataError
from ..resources import kernels_dir
from .display import bundle_code

_KERNEL = re.compile(r"__kernel\s+(?:__attribute__\s*\(\([^\n]*\)\)\s*)?void\s+(\w+)")


def show_kernel(file: str, kernel: str, words: Sequence[str] = ()) -> None:
    """Displays one kernel of kernels/FILE.cl, with its comment and the file's line numbers.

    words: only the lines that have one of them, for a kernel that was shown before. Raises
    DataError for a file or a kernel that does not exist.
    """
    shown = numbered(*find_kernel(file, kernel)).split("\n")
    if words:
        pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
        shown = [line for line in shown if pattern.search(line)]
    bundle_code("\n".join(shown), "c")


def find_kernel(file: str, kernel: str) -> tuple[list[str], int]:
    """The kernel's lines, with the comment above it, and the number of the first one."""
    path = kernels_dir() / f"{file}.cl"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in kernels_dir().glob("*.cl")))
        raise DataError(f"there is no kernels/{file}.cl; there are {known}.")
    return kernel_lines(path.read_text(encoding="utf-8"), kernel, f"kernels/{file}.cl")


def kernel_lines(text: str, kernel: str, title: str) -> tuple[list[str], int]:
    """The lines of one kernel in a text, with the comment above it, and the first one's number.

    Raises DataError, which names the text by its title, when there is no such kernel.
    """
    lines = text.splitlines()
    starts = {m[1]: text.count("\n", 0, m.start(1)) for m in _KERNEL.finditer(text)}
    if kernel not in starts:
        raise DataError(f"{title} has no {kernel!r}; it has {', '.join(starts)}.")
    first = last = starts[kernel]
    above = ("//", "/*", "*", "__attribute__", "__kernel")
    while first and lines[first - 1].lstrip().startswith(above):
        first -= 1
    while lines[last].rstrip() != "}":
        last += 1
    return lines[first : last + 1], first + 1


def numbered(lines: list[str], first: int) -> str:
    """The lines with their numbers in front."""
    width = len(str(first + len(lines)))
    return "\n".join(f"{first + i:{width}}  {line}".rstrip() for i, line in enumerate(lines))
