"""A lesson on paper."""

import pytest
from pypdf import PdfReader

import handout
from site_pages import pages

# What A4 leaves between the margins of the print style, in the pixels of CSS (1/96 inch).
PAPER = {"width": round((210 - 30) / 25.4 * 96), "height": round((297 - 34) / 25.4 * 96)}
LESSONS = [name for name in pages() if name.startswith("notebooks/") and "/9" not in name]


@pytest.mark.parametrize("answers", [False, True])
def test_a_lesson_becomes_a_pdf(tmp_path, answers):
    out = tmp_path / "01a.pdf"
    options = ["--answers"] if answers else []
    assert handout.main(["01a", "--out", str(out), *options]) == 0
    read = [page.extract_text() for page in PdfReader(out).pages]
    assert read[0].startswith("01a · A first kernel") and 5 < len(read) < 60
    assert ("Solution" in "".join(read)) == answers
    assert all(len(text.split()) > 20 for text in read[:-1]), "a page is almost empty"


def test_a_lesson_that_is_not_there_is_named(capsys):
    assert handout.main(["77"]) == 2
    assert "no lesson '77'; choose one of 00, 00a" in capsys.readouterr().err


@pytest.mark.parametrize("name", LESSONS)
def test_no_cell_is_cut_in_two(watched, address, name):
    """Asked to avoid a break, Chromium cuts only what is higher than a page."""
    page, _ = watched
    page.set_viewport_size(PAPER)
    page.goto(address + name, wait_until="networkidle")
    page.emulate_media(media="print")
    cells = page.evaluate(
        """() => [...document.querySelectorAll('article .cell_input, article .cell_output > *')]
            .map(e => [getComputedStyle(e).breakInside, e.getBoundingClientRect().height,
                       e.innerText.slice(0, 60)])"""
    )
    assert len(cells) > 10
    cut = [cell for cell in cells if cell[0] != "avoid" or cell[1] > PAPER["height"]]
    assert cut == []
