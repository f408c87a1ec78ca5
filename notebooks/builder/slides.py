"""Some ten slides of a lesson: its cells with the tag `slide`, and the votes of its teacher's page.

A slide is one cell. What is too long for it is cut to the cell's first paragraphs, with the list or
the table that follows them. Code is shown with its stored output, in letters that let both fit. The
page is HTML around reveal.js, which lies in a folder beside it, so it needs no net.
"""

import html
import re
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import jinja2
import nbformat
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from builder import teaching
from builder.places import BuildError, number_of
from builder.store import stored

TAG = "slide"
HERE = Path(__file__).resolve().parent
WORDS = 80  # more than these do not fit on a slide
CAPTION = 42  # words below a picture
LEAD = 45  # words of the sentence above a cell of code
SIZES = (26, 24, 22, 20, 18, 16, 15, 14, 13, 12, 11)  # pixels of letters in code
READABLE = 17  # pixels of letters, from the last row
WIDTH, HEIGHT, HALF = 1180, 550, 490  # pixels for code on a slide of 1280 x 720
WIDE, HIGH = 0.602, 1.35  # of a letter in code, by its size
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# Folded blocks, and all that comes behind an exercise or the questions at the end.
NOT_SHOWN = re.compile(
    r"<details>.*?</details>|^(?:\*\*(?:Exercise|q\d)|(?:Five|Three) questions).*",
    re.DOTALL | re.MULTILINE,
)
FOLLOWS = ("| ", "- ", "1. ", "> ")  # how a list, a table or a quotation begins
DRAWS = re.compile(r"\blab\.(?:figure|explore|watch)\(")  # in a cell of which the picture is shown
FENCE = re.compile(r"^```(\w+)\n(.*)\n```$", re.DOTALL)


@dataclass(frozen=True)
class Slide:
    """One slide: where its cell stands in the lesson, and what is shown, as HTML."""

    place: float
    title: str
    body: str


# ---- the slides of a lesson ----


def slides_of(notebook: nbformat.NotebookNode, votes: tuple[teaching.Vote, ...]) -> list[Slide]:
    """The slides in the order of the lesson; a vote stands before or after what its page names."""
    cells, title, lead, found = notebook.cells, "", "", []
    for place, cell in enumerate(cells):
        is_prose, shown = cell.cell_type == "markdown", TAG in cell.metadata.get("tags", [])
        before = title
        if is_prose:
            title = (HEADING.findall(cell.source) or [title])[-1]
            lead = "" if shown else lead_of(cell.source)
        if shown:
            made = prose_slide(cell, before) if is_prose else code_slide(cell, title, lead)
            found.append(Slide(place, *made))
    return sorted(found + [vote_slide(cells, vote) for vote in votes], key=lambda s: s.place)


def prose_slide(cell: nbformat.NotebookNode, title: str) -> tuple[str, str]:
    """The title and the body of a cell of prose; the title is that of its part, or its own."""
    source = NOT_SHOWN.sub("", cell.source).strip()
    if cell.id.endswith("-promise"):
        return HEADING.findall(source)[0], promise(source)
    if own := HEADING.match(source):
        title, source = own[1], source[own.end() :]
    source = HEADING.split(source)[0]  # what stands below a later heading is another part
    text = "\n\n".join(first_of([b for b in source.strip().split("\n\n") if b.strip()]))
    return title, f'<div class="prose size-{size_of(text)}">{render(text)}</div>'


def first_of(blocks: list[str]) -> list[str]:
    """As many blocks from the first on as fit; a list or a table behind the first always does."""
    kept = blocks[:1]
    for block in blocks[1:]:
        whole = len(kept) == 1 and block.startswith(FOLLOWS)
        if not whole and count([*kept, block]) > WORDS:
            break
        kept.append(block)
    return kept


def promise(source: str) -> str:
    """What a lesson promises, and what its readers can do afterwards."""
    blocks = source.split("\n\n")
    can = re.search(r"\| \*\*After this you can\*\* \| (.+) \|", source)[1].split("; ")
    text = blocks[1] + "\n\nAfter this you can\n\n" + "\n".join(f"- {item}" for item in can)
    return f'<div class="prose size-1">{render(text)}</div>'


def code_slide(cell: nbformat.NotebookNode, title: str, lead: str) -> tuple[str, str]:
    """The title and the body of a cell of code with its stored output.

    Code that draws is left out: it is about drawing, and the picture is what there is to see.
    """
    pictures, texts, rich = outputs_of(cell)
    drawn = bool(pictures) and bool(DRAWS.search(cell.source))
    shown = [("python", cell.source)] * (not drawn) + texts
    columns = bool(pictures) and not drawn
    size = fitting([text for _, text in shown], HALF if columns else WIDTH, bool(lead) + len(rich))
    left = "".join(code(kind, text, size) for kind, text in shown)
    right = "".join([*pictures, *rich])
    halves = f'<div class="columns"><div>{left}</div><div>{right}</div></div>'
    body = halves if columns else right + left if drawn else left + right
    return title, (f'<div class="lead">{render(lead)}</div>' if lead else "") + body


def vote_slide(cells: list[nbformat.NotebookNode], vote: teaching.Vote) -> Slide:
    """A vote: the question and its options, and on the next step the right one and why."""
    heads = [
        i for i, c in enumerate(cells) if c.cell_type == "markdown" and HEADING.search(c.source)
    ]
    here = next((i for i in heads if vote.heading in HEADING.findall(cells[i].source)), None)
    if here is None:
        raise BuildError(f"the lesson has no heading {vote.heading!r}, which a vote names.")
    after = next((i for i in heads if i > here), len(cells))
    options = [
        f'<li class="{"fragment custom right" if letter == vote.right else ""}" '
        f'data-fragment-index="0"><b>{letter}</b> {inline(text)}</li>'
        for letter, text in vote.options.items()
    ]
    body = (
        f'<div class="prose vote"><p>{inline(vote.question)}</p><ul>{"".join(options)}</ul>'
        f'<p class="fragment" data-fragment-index="0"><b>{vote.right}.</b> '
        f"{inline(vote.because)}</p></div>"
    )
    return Slide((here if vote.when == "before" else after) - 0.5, "Vote", body)


# ---- what fits ----


def count(blocks: list[str]) -> int:
    """The words of some blocks of Markdown."""
    return len(re.findall(r"[^\W_][\w'’-]*", " ".join(blocks)))


def size_of(text: str) -> int:
    """1 for few words or lines, 2 for more, 3 for many."""
    lines = sum(max(b.count("\n") + 1, count([b]) / 12) for b in text.split("\n\n"))
    return 1 if lines <= 6 else 2 if lines <= 9 else 3


def lead_of(source: str) -> str:
    """The paragraph that leads to the cell of code below it, if it is short; else nothing."""
    blocks = [
        b for b in NOT_SHOWN.sub("", source).strip().split("\n\n") if b and not HEADING.match(b)
    ]
    last = blocks[-1] if blocks else ""
    return "" if last.startswith(FOLLOWS) or count([last]) > LEAD else last


def fitting(texts: list[str], width: int, less: int) -> int:
    """The largest size of letters with which the texts fit into the width and the height.

    Lines are broken only where they would be hard to read otherwise.
    """
    room = HEIGHT - 70 * less - 24 * len(texts)
    lines = [line for text in texts for line in text.splitlines()]
    for broken, sizes in ((False, [s for s in SIZES if s >= READABLE]), (True, SIZES)):
        for size in sizes:
            letters = int(width / (WIDE * size))
            rows = [-(-max(len(line), 1) // letters) for line in lines]
            if sum(rows) * HIGH * size <= room and (broken or max(rows, default=1) == 1):
                return size
    return SIZES[-1]


def outputs_of(cell: nbformat.NotebookNode) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Pictures, texts with their kinds, and other HTML of a cell's stored output.

    A picture's words stand below it. Left out is what only says that an exercise is empty.
    """
    pictures, texts, rich = [], [], []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/png" in data:
            alt = html.escape(output.metadata["image/png"]["alt"])
            words = f'<figcaption aria-hidden="true">{alt}</figcaption>' * (count([alt]) <= CAPTION)
            source = f"data:image/png;base64,{data['image/png'].strip()}"
            pictures.append(f'<figure><img alt="{alt}" src="{source}">{words}</figure>')
        elif "text/html" in data:
            many = " many" * (data["text/html"].count("<table") > 2)
            rich.append(f'<div class="rich{many}">{data["text/html"]}</div>')
        elif fence := FENCE.match(data.get("text/markdown", "")):
            texts.append((fence[1], fence[2]))
        elif lines := [x for x in output.get("text", "").splitlines() if not x.startswith("○")]:
            texts.append(("text", "\n".join(lines)))
    return pictures, texts, rich


# ---- HTML ----


def code(kind: str, text: str, size: int) -> str:
    """Code or output in colors."""
    made = highlight(text, get_lexer_by_name(kind), HtmlFormatter(nowrap=True))
    return f'<pre class="code {kind}" style="font-size:{size}px">{made}</pre>'


def formula(text: str, options: dict) -> str:
    """A formula as MathML, which browsers draw without a script."""
    from latex2mathml.converter import convert

    return convert(text, display="block" if options["display_mode"] else "inline")


def markdown() -> MarkdownIt:
    """The converter from Markdown to HTML, with tables and formulas."""
    made = MarkdownIt("commonmark").enable("table")
    return made.use(dollarmath_plugin, renderer=formula, allow_digits=False)


def without_links(text: str) -> str:
    """Markdown with the words of its links in their place: a slide leads nowhere."""
    return re.sub(r"(?<!!)\[([^\]]+)\]\([^)\s]*\)", r"\1", text)


def render(text: str) -> str:
    """Markdown as HTML."""
    return markdown().render(without_links(text))


def inline(text: str) -> str:
    """A line of Markdown as HTML."""
    return markdown().renderInline(without_links(text))


def page(name: str) -> str:
    """The slides of a lesson such as "04a_one_head" as a page of HTML.

    Raises BuildError if the notebook is out of date, or has no page for teachers.
    """
    notebook, number = stored(name), number_of(name)
    made = slides_of(notebook, teaching.read(number).votes)
    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
        (HERE / "slides.html").read_text(encoding="utf-8")
    )
    return template.render(
        number=number,
        title=notebook.metadata["llmcl"]["title"],
        slides=[(inline(slide.title), Markup(slide.body)) for slide in made],
        colors=Markup(HtmlFormatter(style="friendly").get_style_defs(".code")),
        inline=Markup,
    )


def write(name: str, folder: Path) -> Path:
    """Writes FOLDER/NN.html, and reveal.js beside it; returns the page's path."""
    found = find_spec("sphinx_revealjs")
    if found is None:
        raise BuildError("reveal.js is not here; pip install -e '.[slides]' brings it.")
    reveal = Path(found.origin).parent / "_static" / "revealjs"
    (folder / "reveal").mkdir(parents=True, exist_ok=True)
    for file in ("LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js"):
        shutil.copyfile(reveal / file, folder / "reveal" / Path(file).name)
    shutil.copyfile(HERE / "slides.css", folder / "slides.css")
    path = folder / f"{number_of(name)}.html"
    path.write_text(page(name), encoding="utf-8", newline="\n")
    return path
