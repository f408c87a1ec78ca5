"""The system's own Chromium: where it is, and how it is started without a screen."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "LLMCL_CHROMIUM"
# A container has neither the rights for Chromium's sandbox nor a large /dev/shm.
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


def find_chromium() -> str | None:
    """The path of the Chromium that LLMCL_CHROMIUM names, or else of the first one on PATH."""
    chosen = os.environ.get(VARIABLE)
    return next(filter(None, map(shutil.which, [chosen] if chosen else NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running Chromium. A missing one fails the test: a skipped one would look like a pass."""
    path = find_chromium()
    if path is None:
        pytest.fail(
            f"no Chromium is here under the names {', '.join(NAMES)}; install one, or name it in "
            f"{VARIABLE}.",
            pytrace=False,
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()
