"""Changes each kernel, and the Python of a training step, in ways people get wrong; run by hand.

    python tests/mutants.py [FILE …] [--list] [--json REPORT]      `make mutants` runs them all

A mutant is one small change to one line. The suite must reject it: first the tests of the changed
file, then, where those pass, the strict device. What passes everything is a survivor: it is either
listed in EQUIVALENT with the reason why it changes nothing, or a test is missing.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300

# What is changed in a line of a kernel: the name of the mistake, the pattern, what takes its place.
KERNEL_RULES = (
    ("guard off by one", r"(?<=if \()(\w+) >= (\w+)", r"\1 > \2"),
    ("barrier removed", r"barrier\(CLK_LOCAL_MEM_FENCE\);", ";"),
    ("index swapped", r"\[(\w+) \* (\w+) \+ (\w+)\]", r"[\3 * \2 + \1]"),
    ("= for +=", r"\+= ", "= "),
    ("+ for -", r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    ("bound off by one", r"(?<=; )(\w+) < (\w+)(?=;)", r"\1 < \2 - 1"),
    ("mask by one", r"(?<=\w) <= (?=\w)", " < "),
    ("smaller for larger", r"\bfmax\(", "fmin("),
    ("a sum that begins at 1", r"(float\d* \w+) = 0\.0f", r"\1 = 1.0f"),
)
PYTHON_RULES = (
    ("+ for -", r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    ("a transpose forgotten", r"transpose_([ab])=True", r"transpose_\1=False"),
    ("= for +=", r"\+= ", "= "),
    ("the other side", r"\bdy\b(?=\)$)", "dx"),
    ("not added", r"add=True", "add=False"),
)
# The Python of a step, and the tests that look at it.
STEP = {
    "llmcl/layers.py": ["tests/model/test_layers.py", "tests/model/test_model.py"],
    "llmcl/model.py": ["tests/model/test_model.py"],
    "llmcl/optimizer.py": ["tests/model/test_optimizer.py"],
    "llmcl/train.py": ["tests/test_train.py"],
    "llmcl/ops/linear.py": ["tests/ops/test_linear.py", "tests/ops/test_matmul.py"],
    "llmcl/ops/adamw.py": ["tests/ops/test_adamw.py"],
    "llmcl/ops/fused_attention.py": ["tests/ops/test_fused_attention.py"],
}
ALWAYS = ["tests/ops/test_every_kernel.py"]
STRICT = ["tests/ops/test_strict_device.py"]
# Mutants that change no result, and why.
EQUIVALENT: dict[str, str] = {}


@dataclass(frozen=True)
class Mutant:
    """One change: `rule` at the n-th place where its pattern stands in a line of a file."""

    file: str
    line: int
    rule: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """What EQUIVALENT and the report call it; without the number, which edits move."""
        return f"{self.file}: {self.rule}: {self.before} -> {self.after}"


def mutants(file: str) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines; comments are left alone."""
    rules = KERNEL_RULES if file.endswith(".cl") else PYTHON_RULES
    comment = "//" if file.endswith(".cl") else "#"
    for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1):
        code = line.split(comment)[0]
        if '"' in code or "#" in code or "__kernel" in code:
            continue
        for rule, pattern, put in rules:
            for found in re.finditer(pattern, code):
                new = code[: found.start()] + found.expand(put) + code[found.end() :]
                if new.strip() != code.strip():
                    yield Mutant(file, number, rule, code.strip(), new.strip())


def tests_of(file: str) -> list[str]:
    """The tests that must reject a mutant of a file."""
    if file in STEP:
        return STEP[file]
    name = Path(file).stem.removesuffix("_gpu")
    own = ROOT / "tests/ops" / f"test_{name}.py"
    return [*([str(own.relative_to(ROOT))] if own.exists() else []), *ALWAYS]


class Copy:
    """A copy of the project in which one file at a time is changed."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("llmcl", "kernels", "data", "tests"):
            unwanted = shutil.ignore_patterns("__pycache__", "shipped")
            shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def rejected_by(self, mutant: Mutant) -> str:
        """The first test that rejects the mutant, or ""."""
        path = self.folder / mutant.file
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            stages = (tests_of(mutant.file), STRICT)
            return next(filter(None, (self._first_failure(tests) for tests in stages)), "")
        finally:
            path.write_text(text, encoding="utf-8")

    def _first_failure(self, tests: list[str]) -> str:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, encoding="utf-8",
                timeout=SECONDS, env=os.environ | {"PYTHONPATH": str(self.folder)},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "it does not end"
        if done.returncode == 0:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return failed[1] if failed else f"pytest ends with {done.returncode}"


def main() -> int:
    """Runs the mutants, prints the survivors and the score; 1 if one survives unexplained."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="kernels/… or llmcl/…; all of them if none")
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    parser.add_argument("--json", type=Path, help="write what became of each mutant here")
    options = parser.parse_args()
    kernels = sorted(f"kernels/{path.name}" for path in (ROOT / "kernels").glob("*.cl"))
    every = [m for file in options.files or [*kernels, *STEP] for m in mutants(file)]
    if options.list:
        print("\n".join(mutant.name for mutant in every), len(every), sep="\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copy, report = Copy(Path(folder)), []
        for mutant in every:
            by = "" if mutant.name in EQUIVALENT else copy.rejected_by(mutant)
            report.append(asdict(mutant) | {"rejected_by": by})
            if not by:
                why = EQUIVALENT.get(mutant.name, "SURVIVES")
                print(f"line {mutant.line} of {mutant.name}\n    {why}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    rejected = sum(bool(entry["rejected_by"]) for entry in report)
    explained = sum(mutant.name in EQUIVALENT for mutant in every)
    print(f"{rejected} of {len(every)} mutants rejected, {explained} change nothing")
    return 0 if rejected + explained == len(every) else 1


if __name__ == "__main__":
    sys.exit(main())
