"""No code comes out of a file: no pickle, no eval, no loader that builds objects."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path
    for folder in ("llmcl", "notebooks")
    for path in (ROOT / folder).rglob("*.py")
    if ".ipynb_checkpoints" not in path.parts
)
MODULES = "pickle cPickle _pickle cloudpickle dill joblib shelve marshal jsonpickle".split()
# Calls that build objects, or run what they are given.
CALLS = {
    "eval", "exec", "compile", "__import__", "yaml.load", "yaml.unsafe_load", "yaml.full_load",
    "np.load", "numpy.load", "torch.load", "pd.read_pickle", "read_pickle",
}  # fmt: skip


def name_of(node) -> str:
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "…"


def faults(tree):
    """(line, what) of everything in a module that could run what a file says."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        for name in names:
            if name.split(".")[0] in MODULES:
                yield node.lineno, f"import {name}"
        if isinstance(node, ast.Call) and name_of(node.func) in CALLS:
            yield node.lineno, name_of(node.func)
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not isinstance(node.value, ast.Constant) or node.value.value is not False:
                yield node.value.lineno, "allow_pickle"


def parsed(path: Path):
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_runs_what_a_file_says(path):
    assert not list(faults(parsed(path)))


def test_the_search_finds_what_it_looks_for():
    text = (
        "import pickle\nfrom joblib import load\nimport re\nnp.load(f, allow_pickle=True)\n"
        "exec(x)\nyaml.load(x)\nnp.savez(f, allow_pickle=False)\nyaml.safe_load(x)\nre.compile(x)\n"
    )
    assert [line for line, _ in sorted(faults(ast.parse(text)))] == [1, 2, 4, 4, 5, 6]
    assert len(FILES) > 100
