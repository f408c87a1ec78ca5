"""A notebook that is open in JupyterLab: what a reader does there, and what there is to see.

Nothing waits for a fixed time: every step waits for the state that it leads to.
"""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Error, Locator, Page

SHOTS = Path(__file__).resolve().parents[2] / "build" / "browser"
SECONDS = 1000  # of playwright's milliseconds
STEP, RUN = 60 * SECONDS, 300 * SECONDS  # the longest that one action and a whole notebook take

# The open notebook; nothing before JupyterLab has made it.
PANEL = "const panel = window.jupyterapp?.shell?.currentWidget;"
READY = f"""name => {{ {PANEL}
    const kernel = panel?.sessionContext?.session?.kernel;
    return panel?.context?.path?.endsWith(name) && panel.context.isReady
        && document.querySelector('.jp-Notebook .jp-Cell') && kernel?.status === 'idle'; }}"""
RUN_ALL = """async () => { const commands = window.jupyterapp.commands;
    await commands.execute('notebook:clear-all-cell-outputs');
    window.llmclRan = false;
    commands.execute('notebook:run-all-cells').finally(() => { window.llmclRan = true; }); }"""
IS_IDLE = f"() => {{ {PANEL} return panel.sessionContext.session.kernel.status === 'idle'; }}"
RAN = f"() => window.llmclRan && ({IS_IDLE})()"
CELLS = f"""() => {{ {PANEL}
    return panel.content.widgets.filter(cell => cell.model.type === 'code').map(cell => ({{
        id: cell.model.id, source: cell.model.sharedModel.getSource(),
        count: cell.model.executionCount, text: cell.outputArea.node.innerText,
        outputs: cell.model.outputs.toJSON(),
    }})); }}"""
VALUE = f"""async text => {{ {PANEL}
    const asked = {{code: '', silent: true, user_expressions: {{asked: text}}}};
    const reply = await panel.sessionContext.session.kernel.requestExecute(asked).done;
    return reply.content.user_expressions.asked.data['text/plain']; }}"""
# What stands in the place of each widget; other outputs have a type, and may quote such words.
WIDGETS = """() => [...document.querySelectorAll(
    '.jp-Notebook .jp-OutputArea-output:not([data-mime-type])')].map(e => e.innerText)"""
# What a slider's picture is: the image's bytes, or the page where it is drawn in HTML.
PICTURE = """box => { const view = box.querySelector('.widget-html-content');
    const image = view.querySelector('img');
    return image ? image.complete && image.naturalWidth > 0 && image.src : view.innerHTML; }"""
CHANGED = f"""([box, label, picture]) => {{ const now = ({PICTURE})(box);
    return now && now !== picture && ({{LABEL}})(box) !== label; }}"""
LABEL = "box => box.querySelector('.widget-hbox > .widget-label:last-child').textContent"
CHANGED = CHANGED.replace("{LABEL}", LABEL)
LIVE = r"""() => {
    const image = document.querySelector('.jp-Notebook img.widget-image');
    const labels = [...document.querySelectorAll('.jp-Notebook .widget-label')];
    const words = labels.map(label => label.textContent).find(text => /^step \d+/.test(text));
    return image && words && image.complete && image.naturalWidth > 0
        ? {step: Number(words.split(' ')[1]), source: image.src} : null; }"""


class LessonPage:
    """One notebook in one tab; stopped_at: the step that was shown when Stop was pressed."""

    def __init__(self, page: Page, name: str):
        self.page, self.name = page, name
        self.stopped_at: int | None = None
        self.console: list[str] = []  # errors only
        page.set_default_timeout(STEP)
        page.on("console", lambda m: self._note(m.text, m.location) if m.type == "error" else None)
        page.on("pageerror", lambda error: self._note(f"uncaught: {error}", {}))

    def open(self, address: str, token: str) -> None:
        """Opens the notebook, and waits until its kernel is idle."""
        self.page.goto(f"{address}/lab/tree/notebooks/{self.name}.ipynb?reset&token={token}")
        self.page.wait_for_function(READY, arg=f"{self.name}.ipynb")

    def _note(self, text: str, location: dict) -> None:
        self.console.append(f"{text} ({location.get('url', '')})")

    # ---- running ----

    def run_all(self) -> None:
        """Starts every cell, from the first one."""
        self.page.evaluate(RUN_ALL)

    def wait_for_the_end(self) -> None:
        """Waits until the last cell has run, or one has failed."""
        self.page.wait_for_function(RAN, timeout=RUN)

    def cells(self) -> list[dict]:
        """The code cells: id, source, count, outputs as stored, and the text that is seen."""
        return self.page.evaluate(CELLS)

    def cell(self, source: str) -> Locator:
        """The first code cell with a piece of source."""
        number = next(i for i, cell in enumerate(self.cells()) if source in cell["source"])
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def shows(self, cell: Locator, text: str) -> None:
        """Waits until a text is in a cell's output, and the kernel is done."""
        cell.locator(".jp-OutputArea-output", has_text=text).first.wait_for(timeout=RUN)
        self.page.wait_for_function(IS_IDLE, timeout=RUN)

    def to_the_top(self) -> None:
        """Scrolls to the first line, as a reader does who begins."""
        self.page.locator(".jp-Notebook .jp-Cell").first.scroll_into_view_if_needed()

    # ---- typing ----

    def type_over(self, cell: Locator, old: str, new: str) -> None:
        """Replaces lines of a cell by what is typed, and runs the cell by Shift+Enter."""
        first, *others = old.split("\n")
        cell.locator(".cm-line", has_text=first).first.click()
        for key in ("Home", *["Shift+ArrowDown"] * len(others), "Shift+End"):
            self.page.keyboard.press(key)
        self.page.keyboard.type(new)
        self.page.keyboard.press("Shift+Enter")

    def run(self, cell: Locator) -> None:
        """Clicks into a cell and runs it by Shift+Enter."""
        cell.locator(".cm-line").first.click()
        self.page.keyboard.press("Shift+Enter")

    def value(self, expression: str) -> str:
        """What an expression is in the kernel, as text."""
        return self.page.evaluate(VALUE, expression)

    # ---- widgets ----

    def broken_widgets(self, patience: int) -> list[str]:
        """What stands where a widget should be, and has not come in so many milliseconds."""
        broken = f"() => ({WIDGETS})().filter(text => /^(Loading|Error)/.test(text))"
        try:
            self.page.wait_for_function(f"() => !({broken})().length", timeout=patience)
        except Error:
            pass
        return self.page.evaluate(broken)

    def sliders(self) -> list[Locator]:
        """Each slider with its picture, in the order of the page."""
        boxes = self.page.locator(".jp-Notebook .widget-vbox:has(> .widget-hbox .widget-slider)")
        return boxes.all()

    def changed(self, box: Locator, act, patience: int = STEP) -> None:
        """Does something to a slider, and waits until its label and its picture are others.

        An AssertionError says which of the two stays the same for so many milliseconds.
        """
        before = [box.evaluate(LABEL), box.evaluate(PICTURE)]
        act()
        try:
            arg = [box.element_handle(), *before]
            self.page.wait_for_function(CHANGED, arg=arg, timeout=patience)
        except Error:
            same = "label" if box.evaluate(LABEL) == before[0] else "picture"
            raise AssertionError(f"{self.name}: the {same} stays the same at {before[0]}") from None

    def drag(self, box: Locator) -> str:
        """Drags the handle by the mouse to the end that is farther away; the key back from it."""
        handle, line = box.locator(".noUi-handle"), box.locator(".noUi-base")
        handle.scroll_into_view_if_needed()
        at, track = handle.bounding_box(), line.bounding_box()
        x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
        to_left = x > track["x"] + track["width"] / 2
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(track["x"] - 20 if to_left else track["x"] + track["width"] + 20, y)
        mouse.up()
        return "ArrowRight" if to_left else "ArrowLeft"

    def places(self, box: Locator) -> int:
        """How many values a slider has."""
        handle = box.locator(".noUi-handle")
        return round(float(handle.get_attribute("aria-valuemax"))) + 1

    def stop_training(self, step: int) -> None:
        """Presses Stop when the live picture has grown to a step, and notes which one it is."""
        page = self.page
        grown = f"([least, source]) => {{ const now = ({LIVE})();"
        grown += " return now && now.step >= least && now.source !== source && now; }"

        def wait(least: int, source: str) -> dict:
            return page.wait_for_function(grown, arg=[least, source], timeout=RUN).json_value()

        first = wait(step // 2, "")
        self.shot("live", page.locator(".jp-Notebook .jp-CodeCell:has(img.widget-image)"))
        now = wait(step, first["source"])
        page.locator(".jp-Notebook button.jupyter-button", has_text="Stop").click()
        self.stopped_at = now["step"]

    # ---- pictures ----

    def pictures(self) -> list[Locator]:
        """Each output with a picture or a table that no slider moves, in the order of the page."""
        output = ".jp-Notebook .jp-OutputArea-output"
        still = ":not(:has(.jupyter-widgets))"
        return self.page.locator(f"{output}:has(img){still}, {output}:has(table){still}").all()

    def shot(self, what: str, of: Locator | None = None) -> None:
        """Stores what is seen, or one element, as build/browser/<lesson>_<what>.png."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{re.sub(r'[^0-9a-zA-Z]+.*', '', self.name)}_{what}.png"
        if of is None:
            self.page.screenshot(path=path)
        else:
            of.screenshot(path=path)


OPEN = pytest.StashKey[LessonPage]()  # the lesson that a failing test looks at
