"""The built site behind a plain file server, and a Chromium to look at it."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from browser.chromium import chromium
from site_pages import SITE


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    """The address of the site, with a slash at its end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


@pytest.fixture(scope="session")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def watched(browser):
    """A page at a laptop's size, and what went wrong on it as a list of lines."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    page, wrong = context.new_page(), []
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda r: wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
    page.on("request", lambda request: wrong.append(request.url) if outside(request.url) else None)
    yield page, wrong
    context.close()


def outside(url: str) -> bool:
    """Whether a request leaves the page's own host."""
    return not url.startswith(("http://127.0.0.1:", "file:", "data:", "blob:"))
