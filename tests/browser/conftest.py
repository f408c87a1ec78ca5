"""One JupyterLab and one Chromium for all lessons; a failure leaves a picture and the console."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error

from browser.chromium import chromium
from browser.lesson_page import OPEN, SHOTS, LessonPage
from lab_server import asked, lab_command, lab_server
from notebook_builder import FOLDER

SIZE = {"width": 1280, "height": 900}  # a small laptop's
# Every cell is drawn, also those far below; and nobody is asked about news.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab, and the folder of its notebooks."""

    port: int
    token: str
    folder: Path

    def open(self, lesson: LessonPage) -> None:
        """Opens the notebook of a tab."""
        lesson.open(f"http://127.0.0.1:{self.port}", self.token)

    @contextmanager
    def tab(self, browser: Browser, name: str) -> Iterator[LessonPage]:
        """A tab for a notebook, which is not open yet; its kernel is ended with the tab."""
        context = browser.new_context(viewport=SIZE)
        try:
            yield LessonPage(context.new_page(), name)
        finally:
            context.close()
            _, _, body = asked(self.port, "GET", "/api/sessions", self.token)
            for session in json.loads(body):
                asked(self.port, "DELETE", f"/api/sessions/{session['id']}", self.token)


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab with copies of all notebooks."""
    shutil.rmtree(SHOTS, ignore_errors=True)
    place, here = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("lab")
    (here / "notebooks").mkdir()
    for path in FOLDER.glob("*.ipynb"):
        shutil.copy(path, here / "notebooks")
    for name, values in SETTINGS.items():
        path = place / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    words, port = lab_command("--LabApp.expose_app_in_browser=True")
    more = {
        "LLMCL_LAB": str(here / "build"),
        "JUPYTERLAB_SETTINGS_DIR": str(place / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(place / "workspaces"),
    }
    with lab_server(words, here, place, **more) as token:
        yield Lab(port, token, here / "notebooks")


@pytest.fixture(scope="session")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def lesson(request, lab, browser, pytestconfig):
    """The lesson that the parameter names, open and run to its end; its kernel is ended after."""
    name, stop = request.param
    with lab.tab(browser, name) as page:
        pytestconfig.stash[OPEN] = page
        lab.open(page)
        page.run_all()
        if stop:
            page.stop_training(stop)
        page.wait_for_the_end()
        yield page


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    opened = item.config.stash.get(OPEN, None)
    if report.failed and opened and not opened.page.is_closed():
        kind = f"failed_{call.when}_{item.originalname}"
        with suppress(Error):  # of a window that has crashed there is no picture
            opened.shot(kind)
        SHOTS.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(opened.console)
        (SHOTS / f"{opened.name}_{kind}.txt").write_text(lines, encoding="utf-8")
        report.sections.append(("errors in the browser's console", lines))
    return report
