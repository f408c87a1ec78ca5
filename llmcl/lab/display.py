"""One bundle for every reader: text, a picture, and a live widget where someone can move it."""


def bundle(text: str, png: bytes | None = None, widget=None, width: int | None = None) -> None:
    """Displays text, a PNG and a widget as one output; each front end shows the best it can.

    The text is the picture's alternative text, and what a plain terminal prints.
    """
    try:
        from IPython.display import display
    except ImportError:
        print(text)
        return
    data: dict[str, object] = {"text/plain": text}
    metadata: dict[str, object] = {}
    if png is not None:
        data["image/png"] = png
        metadata["image/png"] = {"alt": text} | ({"width": width} if width else {})
    if widget is not None:
        data |= {k: v for k, v in _view(widget).items() if k != "text/plain"}
    display(data, metadata=metadata, raw=True)


def _view(widget) -> dict:
    """The widget's own bundle."""
    shown = widget._repr_mimebundle_()
    return shown[0] if isinstance(shown, tuple) else shown


def bundle_code(text: str, language: str) -> None:
    """Displays program text: colored where Markdown is, plain elsewhere."""
    try:
        from IPython.display import display
    except ImportError:
        print(text)
        return
    display({"text/plain": text, "text/markdown": f"```{language}\n{text}\n```"}, raw=True)


def bundle_page(text: str, page: str) -> None:
    """Displays HTML; the text is what a plain terminal prints."""
    try:
        from IPython.display import display
    except ImportError:
        print(text)
        return
    display({"text/plain": text, "text/html": page}, raw=True)


def caption(text: str) -> None:
    """Displays a line below a picture, for those who cannot see it and those who can."""
    try:
        from IPython.display import display
    except ImportError:
        return
    display({"text/plain": text, "text/markdown": f"*{text}*"}, raw=True)
