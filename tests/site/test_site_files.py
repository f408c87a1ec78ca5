"""What the files of the built site say, without a browser."""

import re
from html.parser import HTMLParser

import pytest

from site_pages import ROOT, SITE, pages
from website import links

NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


class Images(HTMLParser):
    """The attributes of each picture of a page."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.found.append(dict(attributes))


def text_of(page):
    return (SITE / page).read_text(encoding="utf-8")


def test_every_notebook_has_a_page():
    assert [p.stem for p in sorted((SITE / "notebooks").glob("*.html"))] == NOTEBOOKS


def test_every_page_of_the_teachers_is_there():
    written = {p.stem for p in (ROOT / "docs" / "teaching").glob("*.md")}
    assert {p.stem for p in (SITE / "teaching").glob("*.html")} == written


def test_the_menu_has_the_parts_and_the_main_line_in_its_order():
    menu = text_of("index.html").split('class="bd-links', 1)[1].split("</nav>")[0]
    parts = re.findall(r'caption-text">([^<]+)<', menu)
    assert parts[:5] == ["The main line", "Warm-ups", "Electives", "Capstones", "Appendices"]
    numbers = re.findall(r'href="notebooks/(\d\d[a-z]?)_', menu)
    others = ["00a", "00b", "07b", *sorted(n for n in numbers if n >= "13")]
    main_line = [name.split("_")[0] for name in NOTEBOOKS if name.split("_")[0] not in others]
    assert numbers == main_line + others


@pytest.mark.parametrize("page", pages())
def test_a_picture_says_what_is_found_in_it(page):
    for image in Images(text_of(page)).found:
        words = image.get("alt", "").split()
        assert len(words) >= 8, image
        assert not re.search(r"\.(png|svg|jpe?g)$|^_images", " ".join(words)), image


def test_the_site_has_the_pictures_of_the_notebooks():
    shown = sum(len(Images(text_of(f"notebooks/{name}.html")).found) for name in NOTEBOOKS)
    stored = sum(
        path.read_text(encoding="utf-8").count('"image/png": "')
        for path in (ROOT / "notebooks").glob("*.ipynb")
    )
    assert shown == stored > 70


def test_no_link_leads_nowhere():
    assert links.wrong_links(SITE) == []


@pytest.mark.parametrize(
    "line, reason",
    [
        ('<a href="gone.html">x</a>', "leads to no file"),
        ('<a href="#gone">x</a>', "leads to no place"),
        ('<a href="other.html#gone">x</a>', "leads to no place"),
        ('<a href="http//x">x</a>', "leads to no file"),
        ('<a href="http://x.org">x</a>', "no well-formed"),
        ('<a href="https://x y">x</a>', "no well-formed"),
        ('<script src="https://x.org/y.js"></script>', "another host"),
        ('<img src="//x.org/y.png">', "another host"),
    ],
)
def test_a_wrong_link_is_found(tmp_path, line, reason):
    (tmp_path / "other.html").write_text('<p id="here">', encoding="utf-8")
    good = '<a href="other.html#here">x</a><a href="https://x.org/y">x</a>'
    (tmp_path / "index.html").write_text(good, encoding="utf-8")
    assert links.wrong_links(tmp_path) == []
    (tmp_path / "index.html").write_text(good + line, encoding="utf-8")
    (found,) = links.wrong_links(tmp_path)
    assert reason in found


def test_the_front_page_names_the_size_of_the_shipped_file():
    size = (ROOT / "llmcl" / "lab" / "shipped" / "10.gguf").stat().st_size
    assert f"{size:,} bytes" in " ".join(text_of("index.html").split())
