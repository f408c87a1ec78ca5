"""Where a fault stands, and whether a student's note names that place."""

import ast
import re
from pathlib import Path

from ...resources import kernels_dir
from .copies import PACKAGE
from .faults import Fault

_C_FUNCTION = re.compile(r"^(?:__kernel\s+)?\w+\s+(\w+)\s*\(", re.MULTILINE)


def places(fault: Fault) -> set[tuple[str, str]]:
    """Pairs (file's name, function) that hold the fault; a kernel with versions has several."""
    found = set()
    for file, right, _ in fault.changes:
        text = sound_text(file)
        inside = _python_functions(text) if file.endswith(".py") else _c_functions(text)
        for match in re.finditer(re.escape(right), text):
            line = text.count("\n", 0, match.end() - 1) + 1
            found |= {(Path(file).name, name) for name, a, b in inside if a <= line <= b}
    return found


def sound_text(file: str) -> str:
    """A file of the sound package; kernels lie in a folder of their own."""
    root = PACKAGE if file.endswith(".py") else kernels_dir().parent
    return (root / file).read_text(encoding="utf-8")


def _python_functions(text: str) -> list[tuple[str, int, int]]:
    """(name, first line, last line) of each function, with the class that it belongs to."""
    found = []

    def walk(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                found.append((prefix + child.name, child.lineno, child.end_lineno))
            elif isinstance(child, ast.ClassDef):
                walk(child, f"{prefix}{child.name}.")

    walk(ast.parse(text), "")
    return found


def _c_functions(text: str) -> list[tuple[str, int, int]]:
    """(name, first line, last line) of each function; one ends where the next begins."""
    starts = [(m[1], text.count("\n", 0, m.start()) + 1) for m in _C_FUNCTION.finditer(text)]
    ends = [line - 1 for _, line in starts[1:]] + [text.count("\n") + 1]
    return [(name, start, end) for (name, start), end in zip(starts, ends, strict=True)]


def why_not_named(fault: Fault, finding: dict[str, str]) -> str:
    """An empty text if a finding names a place of the fault, else why not, without giving it away.

    A function counts with its class or without, as long as one function of the file has the name;
    a version of a kernel (_wide, _group) counts for the kernel, a class for its __init__.
    """
    file = finding.get("file", "").replace("\\", "/").rsplit("/", 1)[-1]
    said = finding.get("function", "").split("(")[0].strip()
    if not file or not said:
        return "there is no note of it with a file and a function"
    if "." not in file:
        return f"write the file with its ending, as in data.py or gelu.cl, not {file!r}"
    right = {function for name, function in places(fault) if name == file}
    if not right:
        return f"it stands in another file than {file}"
    plain = said.removesuffix("_wide").removesuffix("_group")
    for function in right:
        whole = {function, function.removesuffix(".__init__")}
        if {said, plain} & whole or any(said.endswith(f".{name}") for name in whole):
            return ""
    if "." not in said and said in {function.split(".")[-1] for function in right}:
        change = next(path for path, _, _ in fault.changes if Path(path).name == file)
        same = [n for n, _, _ in _python_functions(sound_text(change)) if n.split(".")[-1] == said]
        if len(same) == 1:
            return ""
        return f"{file} has {len(same)} functions {said}; say whose, as in Block.forward"
    return f"{file} is right, and the wrong line stands in another function than {said}"
