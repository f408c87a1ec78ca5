"""The text that is replaced while a model learns."""

from ipywidgets import HTML

from llmcl.lab import live_text as module


def test_the_text_takes_the_place_of_the_one_before(monkeypatch):
    shown = []
    monkeypatch.setattr(module, "bundle", lambda text, widget=None: shown.append((text, widget)))
    show = module.live_text("Stories")
    ((text, page),) = shown
    assert text == "(Stories)" and isinstance(page, HTML) and page.value == ""
    show("first <b>&</b>\nline")
    assert "first &lt;b&gt;&amp;&lt;/b&gt;\nline" in page.value and "pre-wrap" in page.value
    show("second")
    assert "second" in page.value and "first" not in page.value
    assert len(shown) == 1
