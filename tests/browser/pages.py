"""The pages under test, and windows that load each page as seldom as possible."""

from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from support.report_sample import COMMITS_PAGE

SCENARIO = "scenario/resnet50-inference.html"
HISTORY = "past/scenario/resnet50-inference.html"
BENCHMARK_PAGE = "past/history/io.Read.time_read-b69fd9f5.html"
COMMITS_SIDES = "commits/scenario/a-scenario.commits.html"
# One of each kind, and of those that have more parts in one site than in another, both.
PAGES = (
    "index.html",
    "claims.html",
    "empty/index.html",
    "past/index.html",
    "past/operators.html",
    HISTORY,
    "past/history.html",
    BENCHMARK_PAGE,
    "past/scenario/torchserve.html",
    "past/run/r1.html",
    "past/host/bench-01-0123456789ab.html",
    "past/hosts.html",
    "past/compare.html",
    "past/compare/r0-r1.html",
    f"past/{COMMITS_PAGE}",
    "fleet/hosts.html",
    "fleet/history.html",
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

# As set in a browser's settings, or on the root of a page by a reader.
TEXT_SIZE = """percent => {
    document.documentElement.style.fontSize = percent === 100 ? '' : `${percent}%`;
}"""

COLOURS = ("color-contrast", "link-in-text-block")
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


class Visit:
    """A visit that tests of one page share, since to load a page for each of them takes minutes.

    Attributes:
        page: The page.
        console: What it has written on the console, errors included.
        requests: The addresses that it has requested, its own first.
    """

    def __init__(self, chromium: Browser) -> None:
        """Open a window, and load nothing yet."""
        self.console: list[str] = []
        self.requests: list[str] = []
        self.page = chromium.new_context().new_page()
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self._file, self._is_unfolded = Path(), False

    def load(self, file: Path) -> None:
        """Load a page as on a first visit."""
        self.console.clear()
        self.requests.clear()
        self._file, self._is_unfolded = file, False
        self._show(DESK, 100, "light")
        self.page.goto(file.as_uri())

    def folded(
        self, width: int = DESK, *, text_percent: int = 100, scheme: Scheme = "light"
    ) -> Page:
        """The page as it was loaded, in a window so many pixels wide."""
        if self._is_unfolded:
            self.load(self._file)
        return self._show(width, text_percent, scheme)

    def unfolded(
        self, width: int = DESK, *, text_percent: int = 100, scheme: Scheme = "light"
    ) -> Page:
        """The page with everything that can be opened open."""
        if not self._is_unfolded:
            self._show(DESK, 100, "light").evaluate(UNFOLD)
            self._is_unfolded = True
        return self._show(width, text_percent, scheme)

    def _show(self, width: int, text_percent: int, scheme: Scheme) -> Page:
        self.page.set_viewport_size({"width": width, "height": HEIGHT})
        self.page.emulate_media(media="null", color_scheme=scheme)
        self.page.evaluate(TEXT_SIZE, text_percent)
        return self.page


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
