"""Every page in a browser: narrow, enlarged, read aloud, without a net."""

from pathlib import Path

import axe_playwright_python
import pytest

from site_pages import SITE, pages

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
PHONE = {"width": 360, "height": 740}
# What a window of 1280 pixels is at 200 % zoom.
ENLARGED = {"width": 640, "height": 400}
LAPTOP = {"width": 1200, "height": 800}
# What makes the page scroll sideways: wider than the window, and in nothing that scrolls by itself.
TOO_WIDE = """() => {
    const scrolls = e => e && e !== document.body
        && (getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement));
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    return ['the page scrolls', ...[...document.querySelectorAll('body *')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement))
        .map(e => e.outerHTML.slice(0, 120)).slice(0, 3)];
}"""


def findings(page):
    """The serious and critical findings of axe, a line each.

    No preload: axe would fetch what a style sheet imports, from the page's folder, where it is not.
    """
    page.evaluate(AXE)
    result = page.evaluate("() => axe.run({resultTypes: ['violations'], preload: false})")
    return [
        f"{found['impact']} {found['id']}: {node['html'][:160]}"
        for found in result["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]


def resize(page, size):
    """Another window; the theme lets the keyboard reach what now scrolls a moment later."""
    page.set_viewport_size(size)
    page.wait_for_function(
        """() => [...document.querySelectorAll('article :is(pre, .output, [class*=scrollable])')]
            .every(e => e.tabIndex >= 0 || e.scrollWidth <= e.clientWidth)"""
    )


@pytest.mark.parametrize("name", pages())
def test_a_page_fits_is_accessible_and_asks_no_other_host(watched, address, name):
    page, wrong = watched
    page.goto(address + name)
    # Pictures far below load when they are looked at; here all at once.
    page.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    page.wait_for_function("() => [...document.images].every(i => i.complete)")
    broken = "() => [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
    assert page.evaluate(broken) == []
    for size in LAPTOP, ENLARGED, PHONE:
        resize(page, size)
        assert page.evaluate(TOO_WIDE) == [], size
    assert findings(page) == []
    assert wrong == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "search.html", "notebooks/02_tokens.html"])
def test_what_only_a_wide_window_shows_is_accessible(watched, address, name, theme):
    """The menus at both sides are the same on every page."""
    page, wrong = watched
    page.goto(address + name)
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    resize(page, LAPTOP)
    assert findings(page) == []
    assert wrong == []


def test_what_is_too_wide_would_be_seen(watched, address):
    page, _ = watched
    page.set_viewport_size(PHONE)
    page.goto(address, wait_until="networkidle")
    page.evaluate("document.querySelector('article').innerHTML += '<div style=width:900px>x</div>'")
    assert page.evaluate(TOO_WIDE)


def test_what_axe_finds_would_be_seen(watched, address):
    page, _ = watched
    page.goto(address, wait_until="networkidle")
    page.evaluate("document.querySelector('article').innerHTML += '<img src=_static/x.png>'")
    assert any("image-alt" in line for line in findings(page))


def test_search_finds_a_word_and_leads_to_it(watched, address):
    page, wrong = watched
    page.goto(address + "search.html?q=softmax", wait_until="networkidle")
    found = page.locator("#search-results li a")
    found.first.wait_for()
    assert found.count() > 5
    assert "One head" in " ".join(found.all_inner_texts())
    found.first.click()
    page.wait_for_url("**/notebooks/**")
    assert "softmax" in page.locator("article").inner_text()
    assert wrong == []


def test_search_can_be_opened_by_keyboard_from_a_lesson(watched, address):
    page, _ = watched
    page.goto(address + "notebooks/04a_one_head.html", wait_until="networkidle")
    page.keyboard.press("Control+k")
    page.keyboard.type("layer norm")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=layer*")
    page.locator("#search-results li a").first.wait_for()


def test_search_works_without_a_server(watched):
    page, _ = watched
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=softmax")
    page.locator("#search-results li a").first.wait_for()


def test_a_hint_unfolds_and_a_word_leads_to_the_glossary(watched, address):
    page, _ = watched
    page.goto(address + "notebooks/04a_one_head.html", wait_until="networkidle")
    hint = page.locator("article details").first
    hidden = hint.locator("p").first
    assert not hidden.is_visible()
    hint.locator("summary").click()
    assert hidden.is_visible()
    page.get_by_role("link", name="causal mask").first.click()
    page.wait_for_url("**/90_glossary.html#causal-mask")
    assert page.locator("#causal-mask").bounding_box()["y"] < LAPTOP["height"]


def test_a_formula_is_drawn_without_a_script(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "notebooks/00b_shapes.html")
    drawn = page.locator("article math[display=block]").first.bounding_box()
    assert drawn["width"] > 60 and drawn["height"] > 20
    context.close()
