"""A page of the site as a PDF to hand out: `make handout LESSON=01a` (ANSWERS=1 with solutions).

    python docs/handout.py 01a [--answers] [--out FILE]

It is printed by Chromium from build/site, with the page's own print style: no menus, no cell cut
in two, folded hints and solutions left out unless they are asked for.
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from browser.chromium import NAMES, OPTIONS, VARIABLE, find_chromium  # noqa: E402

SITE = ROOT / "build" / "site"
STYLE = (
    "font: 8px sans-serif; font-variant-ligatures: none; width: 100%; padding: 0 15mm; "
    "display: flex; justify-content: space-between"
)
FOOTER = f"""<div style="{STYLE}"><span class="title"></span><span>
<span class="pageNumber"></span> / <span class="totalPages"></span></span></div>"""


def page_of(lesson: str) -> Path:
    """The built page of a lesson's number; LookupError if there is none."""
    found = sorted((SITE / "notebooks").glob(f"{lesson}_*.html"))
    if len(found) != 1:
        known = ", ".join(p.name.split("_")[0] for p in sorted((SITE / "notebooks").glob("*.html")))
        raise LookupError(f"there is no lesson {lesson!r}; choose one of {known}.")
    return found[0]


def print_page(page: Path, out: Path, answers: bool = False) -> None:
    """Writes a page as a PDF of A4; LookupError if there is no Chromium."""
    chromium = find_chromium()
    if not chromium:
        raise LookupError(
            f"no Chromium is here under the names {', '.join(NAMES)}; install one, or name it in "
            f"{VARIABLE}."
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        opened = browser.new_page()
        opened.goto(page.as_uri())
        if answers:
            opened.evaluate(
                "document.querySelectorAll('article details').forEach(d => d.open = true)"
            )
        opened.pdf(
            path=out, prefer_css_page_size=True, print_background=True, tagged=True, outline=True,
            display_header_footer=True, header_template="<span></span>", footer_template=FOOTER,
        )  # fmt: skip
        browser.close()


def main(arguments: list[str] | None = None) -> int:
    """The exit status: 0, or 2 when there is no such lesson or no Chromium."""
    parser = argparse.ArgumentParser(description="Print a lesson's page as a PDF.")
    parser.add_argument("lesson", help="a lesson's number, such as 01a")
    parser.add_argument("--answers", action="store_true", help="with hints and solutions unfolded")
    parser.add_argument("--out", type=Path, help="the file (build/handout/LESSON.pdf)")
    options = parser.parse_args(arguments)
    kind = "-answers" if options.answers else ""
    out = options.out or ROOT / "build" / "handout" / f"{options.lesson}{kind}.pdf"
    try:
        print_page(page_of(options.lesson), out, options.answers)
    except LookupError as error:
        print(f"handout: {error.args[0]}", file=sys.stderr)
        return 2
    print(f"The handout is {out.relative_to(ROOT) if out.is_relative_to(ROOT) else out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
