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
    "past/compare/r0-r1.html",
    f"past/{COMMITS_PAGE}",
)
PHONE, DESK, HEIGHT = 390, 1280, 900
UNFOLD = "document.querySelectorAll('details').forEach(node => node.open = true)"

Scheme = Literal["light", "dark"]


def open_page(
    chromium: Browser,
    file: Path,
    *,
    width: int = DESK,
    scheme: Scheme = "light",
    scripts: bool = True,
) -> Page:
    """A page in a context of its own, which whoever opened it closes."""
    context = chromium.new_context(
        viewport={"width": width, "height": HEIGHT},
        color_scheme=scheme,
        java_script_enabled=scripts,
    )
    page = context.new_page()
    page.goto(file.as_uri())
    return page


class Tab:
    """A page that several tests look at; where one has changed it, it is loaded anew.

    Attributes:
        page: The page.
        said: What it has put on the console since it was loaded, errors included.
        asked: The addresses it has asked for since, its own the first.
        is_changed: Whether a test has done something to it since.
    """

    def __init__(self, chromium: Browser, file: Path, width: int) -> None:
        """Load a file in a window so many pixels wide."""
        self._address, self._width = file.as_uri(), width
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = chromium.new_context().new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self._load()

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
    """The tabs of one page, a width each, opened when first asked for."""

    def __init__(self, chromium: Browser, file: Path) -> None:
        """Open nothing yet."""
        self._chromium, self._file = chromium, file
        self._tabs: dict[int, Tab] = {}

    def __getitem__(self, width: int) -> Tab:
        if width not in self._tabs:
            self._tabs[width] = Tab(self._chromium, self._file, width)
        return self._tabs[width]

    def close(self) -> None:
        """Close them all."""
        for tab in self._tabs.values():
            tab.page.context.close()


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
