"""A text that is replaced by the next one, for what a model writes while it learns."""

import html
from collections.abc import Callable

from .display import bundle
from .pictures import close_lines


def live_text(label: str) -> Callable[[str], None]:
    """A function that shows its text in place of the one before, under the label.

    Where nobody watches, only the label is shown, in brackets: what a model writes differs from
    device to device, and a stored page must not.
    """
    try:
        from ipywidgets import HTML
    except ImportError:  # nothing on a page can be replaced
        bundle(f"({label})")
        return lambda text: None
    page = HTML()
    bundle(f"({label})", widget=page)

    def show(text: str) -> None:
        page.value = close_lines(
            f"<em>{html.escape(label)}</em>"
            f'<div style="white-space: pre-wrap; max-width: 40em">{html.escape(text)}</div>'
        )

    return show
