"""Kernels that look right and are not, and who finds it."""

import difflib

from ..check import compare
from . import lessons, strict
from .display import bundle_code
from .kernels import kernel_lines, numbered

SPARE = 64 * 1024  # bytes behind every tensor, so that a write past its end hurts nobody


def run_broken(number: str) -> None:
    """Prints the change, what the check says to each try, and what the strict device finds.

    The kernel runs on Oclgrind, in a process of its own, with a buffer for each tensor. Raises
    LlmclError for a number that does not exist.
    """
    broken = lessons.find(number, lessons.Broken)
    show_change(broken)
    verdict = strict.need(strict.run_texts(number, [broken.text], tries=True)[0])
    # What lies past the end differs from run to run, so its digits are not printed.
    past = any(finding.kind == "invalid read" for finding in verdict.findings)
    for (label, _), said in zip(broken.tries, verdict.cases, strict=True):
        said = "other numbers than expected" if said and past else said
        words = f"✗ {said}" if said else "✓ sees nothing wrong"
        words = "luck; it depends on what lies past the end" if broken.luck else words
        print(f"the check, {label}: {words}")
    for finding in verdict.findings[:3]:
        print(f"Oclgrind: ✗ {finding}")
    if not verdict.strict:
        print("Oclgrind has no wheel for this system; the shuffled Python run shows the same")
    elif not verdict.findings:
        print("Oclgrind: ✓ sees nothing wrong")


def show_broken(number: str) -> None:
    """Displays a broken kernel, with the line numbers of its text."""
    broken = lessons.find(number, lessons.Broken)
    lines, first = kernel_lines(broken.text, broken.task.name, "the broken text")
    bundle_code(numbered(lines, first), "c")


def show_change(broken: lessons.Broken) -> None:
    """Prints the lines that differ between the right kernel and the broken one, numbered."""
    right, wrong = broken.task.text.splitlines(), broken.text.splitlines()
    matcher = difflib.SequenceMatcher(None, right, wrong, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind != "equal":
            for name, lines, first, last in (("right", right, i, j), ("broken", wrong, k, m)):
                for number in range(first, last):
                    print(f"{name:>6} {number + 1:4d}  {lines[number].strip()}")
                if first == last:
                    print(f"{name:>6}       (no such line)")


def device_answer(number: str, engine) -> None:
    """Prints what the broken kernel gives on the engine's own device: it differs between devices.

    Every tensor has room behind it, so a write past its end does no harm here.
    """
    broken = lessons.find(number, lessons.Broken)
    if getattr(engine, "device", None) is None:
        print("NumPy computes here, and no OpenCL device; so nothing was launched")
        return
    from ..ops import Engine

    class Roomy(Engine):
        def _buffer(self, count_bytes):
            return super()._buffer(count_bytes + SPARE)

    roomy = Roomy(engine.device)
    kernel = roomy.program.compile(broken.text, "the broken kernel")[broken.task.name]
    for label, case in broken.tries:
        outcome = compare(broken.task.launch(roomy, kernel, *case), *broken.task.want(*case))
        words = "the same numbers as NumPy" if outcome.ok else "other numbers than NumPy"
        print(f"{engine.name}, {label}: {words}")
