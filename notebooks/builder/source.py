"""From a source to a notebook that has not run: cells, ids, stubs, solutions, metadata."""

import hashlib
import re

import jupytext
import nbformat

from builder import glossary, places
from builder.places import BuildError, number_of

SOLUTION = re.compile(
    r"^(?P<indent>[ ]*)(?P<mark>###|//) BEGIN SOLUTION\n"
    r"(?P<body>.*?)"
    r"(?:^[ ]*(?:###|//) INSTEAD\n(?P<given>.*?))?"
    r"^[ ]*(?:###|//) END SOLUTION\n?",
    re.MULTILINE | re.DOTALL,
)
# The wrong lines of an exercise that is to be mended; the next line ends the solution.
GIVEN = re.compile(
    r"^[ ]*(?:###|//) INSTEAD\n.*?(?=^[ ]*(?:###|//) END SOLUTION)", re.MULTILINE | re.DOTALL
)
STUBS = {"###": "raise NotImplementedError()\n", "//": "#error not written yet\n"}
FOLDED = re.compile(r"-code-\d+-solution$")  # the id of the block that fold() fills


def digest(text: str) -> str:
    """A short sum of a text, to see whether it has changed."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def read_source(name: str) -> tuple[nbformat.NotebookNode, str]:
    """The source as a notebook that has not run, and the digest of its text."""
    path = places.FOLDER / "src" / f"{name}.py"
    if not path.is_file():
        raise BuildError(f"{name}: there is no notebooks/src/{name}.py.")
    text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
    notebook = jupytext.reads(text, fmt="py:percent")
    if not {"title", "needs", "introduces", "minutes"} <= set(notebook.metadata.get("llmcl", {})):
        raise BuildError(f"{name}: the header needs title, needs, introduces and minutes.")
    return notebook, digest(text)


def prose(name: str) -> dict[str, tuple[str, str]]:
    """Each prose block of a source: its id -> (digest of the English, the English).

    New words are not links here: a translator sees the words, and `link_words` links them again.
    """
    cells = plain(name).cells
    return {c.id: (digest(c.source), c.source) for c in cells if c.cell_type == "markdown"}


def solutions(name: str) -> dict[str, list[str]]:
    """The text between the markers of every exercise's cell: its id -> the solutions in it."""
    source, _ = read_source(name)
    code = [cell.source for cell in source.cells if cell.cell_type == "code"]
    found = {}
    for place, text in enumerate(code, start=1):
        bodies = [match["body"] for match in SOLUTION.finditer(text)]
        if bodies:
            found[f"{number_of(name)}-code-{place}"] = bodies
    return found


def stub_and_solution(source: str) -> tuple[str, str]:
    """The cell as a learner gets it, and the cell as solved ("" if there is nothing to solve)."""
    stub = SOLUTION.sub(
        lambda m: m["indent"] + STUBS[m["mark"]] if m["given"] is None else m["given"], source
    ).rstrip("\n")
    solved = SOLUTION.sub(lambda m: m["body"], source).rstrip("\n")
    if "BEGIN SOLUTION" in stub or "END SOLUTION" in stub:
        raise BuildError(f"a solution's markers do not match in:\n{source}")
    return stub, solved if solved != stub else ""


def assemble(name: str, solved: bool = False) -> nbformat.NotebookNode:
    """The notebook that has not run yet: stubs or solutions, ids, fixed metadata.

    A solved one keeps the markers around each solution and has no folded blocks. The new words of
    `promise` become links to their entries in the glossary.
    """
    notebook = plain(name, solved)
    for cell in notebook.cells:
        if cell.id == f"{number_of(name)}-promise":
            cell.source = glossary.link_words(cell.source)
    return seal(notebook)


def plain(name: str, solved: bool = False) -> nbformat.NotebookNode:
    """The notebook of a source as it stands there, without links, and not sealed."""
    source, source_digest = read_source(name)
    number = number_of(name)
    cells, blocks, codes = [], set(), 0
    for cell in source.cells:
        if cell.cell_type == "markdown":
            block = cell.metadata.get("id")
            if not block or block in blocks:
                first = cell.source.splitlines()[0]
                raise BuildError(f"{name}: the prose cell {first!r} needs an id of its own.")
            blocks.add(block)
            made = cell.metadata.get("made") == "glossary"
            for part, text in glossary.blocks() if made else [(block, cell.source)]:
                made_cell = new_cell("markdown", f"{number}-{part}", text)
                made_cell.metadata |= {k: v for k, v in cell.metadata.items() if k == "tags"}
                cells.append(made_cell)
            continue
        codes += 1
        stub, solution = stub_and_solution(cell.source)
        shown = GIVEN.sub("", cell.source).rstrip("\n") if solved else stub
        code = new_cell("code", f"{number}-code-{codes}", shown)
        tags = cell.metadata.get("tags", [])
        if tags:
            code.metadata["tags"] = tags + ["nbval-ignore-output"] * ("varies" in tags)
        cells.append(code)
        if solution and not solved:
            cells.append(new_cell("markdown", f"{number}-code-{codes}-solution", fold(solution)))
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
        "llmcl": dict(source.metadata["llmcl"]) | {"source": source_digest},
    }
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def new_cell(kind: str, cell_id: str, source: str) -> nbformat.NotebookNode:
    """A cell with an id of ours."""
    make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
    return make(source, id=cell_id)


def fold(solution: str) -> str:
    """The solution as a folded block of Markdown."""
    return f"<details><summary>Solution</summary>\n\n```python\n{solution}\n```\n\n</details>"


def seal(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same notebook with the sum of its cells in its metadata."""
    notebook.metadata["llmcl"]["cells"] = digest_of_cells(notebook.cells)
    return notebook


def digest_of_cells(cells: list[nbformat.NotebookNode]) -> str:
    """A sum of the cells' ids and text, to see whether somebody has written in them."""
    return digest("\n".join(f"{cell.id}\n{cell.source}" for cell in cells))
