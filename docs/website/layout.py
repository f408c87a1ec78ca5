"""Lays out what Sphinx makes pages of: the notebooks, the pages of docs/, the front page."""

import shutil
from pathlib import Path

import jinja2
import nbformat

from builder.places import FOLDER, number_of

from .front import facts

DOCS = Path(__file__).resolve().parent.parent
PARTS = {
    "The main line": "From the first kernel to a file that llama.cpp opens, in this order.",
    "Warm-ups": "For who wants them; lesson 00 says which are for you.",
    "Electives": "What the main line can do without.",
    "Capstones": "Work of your own, over several hours.",
    "Appendices": "For looking up.",
}
OTHER_PARTS = {
    "00a": "Warm-ups", "00b": "Warm-ups", "07b": "Warm-ups", "13": "Electives",
    "14": "Electives", "15": "Capstones", "16": "Capstones", "90": "Appendices",
    "91": "Appendices",
}  # fmt: skip


def lay_out(source: Path) -> None:
    """Writes the folder anew: index.md, notebooks/, pictures/, and the folders of docs/."""
    shutil.rmtree(source, ignore_errors=True)
    (source / "notebooks").mkdir(parents=True)
    notebooks = {number_of(path.stem): path for path in sorted(FOLDER.glob("*.ipynb"))}
    lessons = [lay_out_lesson(path, source) for path in notebooks.values()]
    pages = {lay_out_page(path, source) for path in DOCS.glob("teaching/*.md")}
    plans = {page for page in pages if page.removeprefix("teaching/") in notebooks}
    about = facts(notebooks, source / "pictures")
    main_line = [lesson for lesson in lessons if lesson["number"] not in OTHER_PARTS]
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(
        (DOCS / "index.md").read_text(encoding="utf-8")
    )
    text = template.render(
        about,
        names={lesson["number"]: lesson["name"] for lesson in lessons},
        hours=round(sum(lesson["minutes"] or 0 for lesson in lessons) / 60),
        core_hours=round(sum(lesson["core"] for lesson in main_line) / 60),
        guides=sorted(pages - plans, key=lambda page: (page != "teaching/index", page)),
        plans=sorted(plans),
        parts=[
            {"title": part, "words": words, "lessons": in_part(part, lessons)}
            for part, words in PARTS.items()
        ],
    )
    write(source / "index.md", text)


def in_part(part: str, lessons: list[dict]) -> list[dict]:
    """The lessons of a part of the workbook, in the order of reading."""
    return [x for x in lessons if OTHER_PARTS.get(x["number"], "The main line") == part]


def lay_out_lesson(path: Path, source: Path) -> dict:
    """Writes a notebook, its pictures' texts where myst-nb looks for them; what it is about."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        alts = {picture_text(output, path) for output in cell.get("outputs", [])} - {None}
        if len(alts) > 1:
            raise ValueError(f"{path.name}: cell {cell.id} has pictures with different texts.")
        for alt in alts:
            cell.metadata["mystnb"] = {"image": {"alt": alt}}
    write(source / "notebooks" / path.name, nbformat.writes(notebook) + "\n")
    about = notebook.metadata["llmcl"]
    minutes = about.get("minutes") or {}
    paragraphs = notebook.cells[0].source.split("\n\n")
    return {
        "name": path.stem,
        "number": number_of(path.stem),
        "title": about["title"],
        "minutes": minutes.get("full"),
        "core": minutes.get("core", 0),
        "promise": " ".join(paragraphs[1].split()),
    }


def picture_text(output: dict, path: Path) -> str | None:
    """The text of an output's picture, None if it has no picture; ValueError if it lacks a text."""
    if not any(kind.startswith("image/") for kind in output.get("data", {})):
        return None
    alt = output.metadata.get("image/png", {}).get("alt", "").strip()
    if not alt:
        raise ValueError(f"{path.name} has a picture without a text; make it with lab.figure.")
    return alt


def lay_out_page(path: Path, source: Path) -> str:
    """Copies a page of docs/FOLDER, its links to notebooks bent to where they lie; its name."""
    text = path.read_text(encoding="utf-8").replace("](../../notebooks/", "](../notebooks/")
    page = path.relative_to(DOCS)
    write(source / page, text)
    return page.with_suffix("").as_posix()


def write(path: Path, text: str) -> None:
    """Writes a text file, and its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
