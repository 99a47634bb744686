"""The pages under test, and browser tabs that load each page as seldom as possible."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from support.report_sample import COMMITS_PAGE

SCENARIO = "scenario/resnet50-inference.html"
HISTORY = "past/scenario/resnet50-inference.html"
BENCHMARK_PAGE = "past/history/io.Read.time_read-b69fd9f5.html"
COMMITS_SIDES = "commits/scenario/a-scenario.commits.html"
PAGES = (
    "index.html",
    SCENARIO,
    "claims.html",
    "empty/index.html",
    "past/index.html",
    "past/operators.html",
    HISTORY,
    "past/history.html",
    BENCHMARK_PAGE,
    "past/scenario/torchserve.html",
    "past/run/r1.html",
    "past/run/served.html",
    "past/host/bench-01-0123456789ab.html",
    "past/hosts.html",
    "past/compare.html",
    "past/compare/r0-r1.html",
    f"past/{COMMITS_PAGE}",
    "fleet/hosts.html",
    "fleet/history.html",
    "commits/index.html",
    COMMITS_SIDES,
)
PHONE, DESK, HEIGHT = 390, 1280, 900
_LOOK_MS = 20.0
# Twice, because some folds are filled when they are opened.
UNFOLD = """(async () => {
    for (const _ of [1, 2]) {
        document.querySelectorAll('details').forEach(node => node.open = true);
        await new Promise(filled => setTimeout(filled));
    }
})()"""

Scheme = Literal["light", "dark"]


class Windows:
    """A window with scripts and one without, which a file's tests use one after another.

    A new window for each test would take 0.4 s of CPU, six times as long as loading a page.
    """

    def __init__(self, chromium: Browser) -> None:
        """Open nothing yet."""
        self._chromium = chromium
        self._pages: dict[bool, Page] = {}

    def open(
        self, file: Path, *, width: int = DESK, scheme: Scheme = "light", scripts: bool = True
    ) -> Page:
        """A page as on a first visit, in place of the one that the last test had opened."""
        if scripts not in self._pages:
            self._pages[scripts] = self._chromium.new_context(
                java_script_enabled=scripts
            ).new_page()
        page = self._pages[scripts]
        if page.url.startswith("file:"):
            page.evaluate("localStorage.clear()")
        # From another address the browser restores neither a place nor what was filled in.
        page.goto("about:blank")
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.emulate_media(media="null", color_scheme=scheme, reduced_motion="null")
        page.goto(file.as_uri())
        return page


class Tab:
    """A tab of one width: tests look at the page in it, which is loaded as seldom as possible.

    Attributes:
        page: The page.
        said: What it has put on the console since it was loaded, errors included.
        asked: The addresses it has asked for since, its own the first.
        is_changed: Whether it has to be loaded, because a test has done something to it.
    """

    def __init__(self, chromium: Browser, width: int) -> None:
        """Open a window so many pixels wide, and load nothing yet."""
        self._address, self._width = "", width
        self.said: list[str] = []
        self.asked: list[str] = []
        self.is_changed = True
        self.page = chromium.new_context().new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def turn_to(self, address: str) -> None:
        """Load this address when the page is next asked for, unless it is there already."""
        if address != self._address:
            self._address, self.is_changed = address, True

    def as_loaded(self) -> Page:
        """The page as it is before anybody touches it."""
        if self.is_changed:
            self._load()
        return self.page

    def _load(self) -> None:
        self.page.set_viewport_size({"width": self._width, "height": HEIGHT})
        self.page.emulate_media(media="null", color_scheme="light")
        self.said.clear()
        self.asked.clear()
        self.page.goto(self._address)
        self.is_changed = False


class Tabs:
    """Tabs of the page under test, a width each, opened when first asked for.

    Attributes:
        file: The page under test.
    """

    def __init__(self, chromium: Browser) -> None:
        """Open nothing yet."""
        self.file = Path()
        self._chromium = chromium
        self._tabs: dict[int, Tab] = {}

    def __getitem__(self, width: int) -> Tab:
        if width not in self._tabs:
            self._tabs[width] = Tab(self._chromium, width)
        tab = self._tabs[width]
        tab.turn_to(self.file.as_uri())
        return tab


def wait_until(page: Page, expression: str, *, limit_ms: float = 10_000) -> None:
    """Wait until a JavaScript expression is true.

    `Page.wait_for_function` evaluates a text again in the page, which the pages' Content Security
    Policy forbids, unless the first look succeeds.
    """
    waited_ms = 0.0
    while not page.evaluate(f"Boolean({expression})"):
        assert waited_ms < limit_ms, f"never true: {expression}"
        page.wait_for_timeout(_LOOK_MS)
        waited_ms += _LOOK_MS


def violations(page: Page, *rules: str, within: str | None = None, but: str | None = None) -> str:
    """What axe finds fault with, as text that is empty where it is nothing.

    Args:
        page: What is looked at.
        rules: The only ones to hold it against; without any, all that axe does by itself.
        within: A selector of the part that is looked at; without it, the whole page.
        but: A rule to leave out.
    """
    options: dict[str, object] = {
        "preload": False,
        # All that is well is as long as the page, and nobody reads it.
        "resultTypes": ["violations"],
    }
    if rules:
        options["runOnly"] = list(rules)
    if but:
        options["rules"] = {but: {"enabled": False}}
    found = Axe().run(page, context=within, options=options)
    return str(found.generate_report()) if found.violations_count else ""
