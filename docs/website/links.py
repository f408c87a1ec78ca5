"""Every link and every file that the pages of a folder name: there, or at least well-formed."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself: none of it may come from another host.
FETCHED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
HOST = re.compile(r"^[a-z0-9-]+(\.[a-z0-9-]+)+$")


class Page(HTMLParser):
    """The names of a page: `ids` that links can reach, and `links` as (tag, address)."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        """Keeps what the tag names."""
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        address = values.get("href" if tag == "a" else FETCHED.get(tag, ""))
        if address:
            self.links.append((tag, address))


def wrong_links(site: Path) -> list[str]:
    """A sentence for each link of a built site that leads nowhere."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.relative_to(site).parts
    }
    return [
        f"{path.relative_to(site)}: {address} {reason}."
        for path, page in pages.items()
        for tag, address in page.links
        for reason in [what_is_wrong(path, tag, address, pages)]
        if reason
    ]


def what_is_wrong(path: Path, tag: str, address: str, pages: dict[Path, Page]) -> str | None:
    """Why a link of the page at path is wrong, or None."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        if tag != "a":
            return "is fetched from another host" if parts.scheme != "data" else None
        well_formed = parts.scheme == "https" and HOST.match(parts.netloc)
        return None if well_formed else "is no well-formed https address"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "leads to no file"
    fragment = unquote(parts.fragment)
    if fragment and target in pages and fragment not in pages[target].ids:
        return "leads to no place on its page"
    return None
