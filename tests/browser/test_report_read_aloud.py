"""The site as a screen reader gets it: the browser's accessibility tree of every kind of page."""

from __future__ import annotations

import itertools
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

import needs
from corebound.report import site
from report_sample import (
    COMMITS,
    COMMITS_PAGE,
    NOW,
    a_past,
    a_preflight,
    a_sample,
    a_serving_sample,
    an_earlier_sample,
    sample_calibrations,
    sample_imports,
)

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
PAGES = (
    "index.html",
    "claims.html",
    "operators.html",
    "scenario/resnet50-inference.html",
    "empty/index.html",
    "past/index.html",
    "past/history.html",
    "past/history/io.Read.time_read-b69fd9f5.html",
    "past/scenario/resnet50-inference.html",
    "past/scenario/torchserve.html",
    "past/run/r1.html",
    "past/host/bench-01-0123456789ab.html",
    "past/compare/r0-r1.html",
    f"past/{COMMITS_PAGE}",
)
PHONE, DESK = 390, 1280
# Read as nothing, or by a name that says something else: `black up-pointing triangle`.
GLYPHS = re.compile("[▲▼△▽✓✗→←↑↓≈•█~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A part of a page as it is read out, with the parts in it."""

    role: str
    name: str
    level: int | None
    url: str | None
    parts: tuple[Heard, ...]

    def all(self, *roles: str) -> Iterator[Heard]:
        """This part and all in it that have one of these roles; every one without any."""
        if not roles or self.role in roles:
            yield self
        for part in self.parts:
            yield from part.all(*roles)

    def within(
        self, role: str, contexts: tuple[str, ...], context: str = ""
    ) -> Iterator[tuple[str, Heard]]:
        """Each part of a role, with what the innermost of these contexts about it says."""
        if self.role == role:
            yield context, self
        inner = self.text if self.role in contexts else context
        for part in self.parts:
            yield from part.within(role, contexts, inner)

    @property
    def text(self) -> str:
        """All that is said of it."""
        said = [one.name for one in self.all("StaticText", "image") if one.name.strip()]
        return re.sub(r"\s+", " ", " ".join(said)).strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write([a_sample()], folder, now=NOW, profiles=sample_imports())
    site.write([], folder / "empty", now=NOW)
    run, launches = a_sample()
    records = [
        (replace(run, preflight=a_preflight()), launches),
        an_earlier_sample(),
        a_serving_sample(),
    ]
    site.write(
        records,
        folder / "past",
        now=NOW,
        series=a_past(),
        calibrations=sample_calibrations(),
        compared=[COMMITS],
    )
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def opened(chromium: Browser, made: Path) -> Iterator[dict[tuple[str, int], Page]]:
    """Every page at both widths, with all that is folded opened."""
    pages = {}
    for width in (PHONE, DESK):
        context = chromium.new_context(viewport={"width": width, "height": 900})
        for name in PAGES:
            page = context.new_page()
            page.goto((made / name).as_uri())
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            pages[name, width] = page
    yield pages
    for context in {page.context for page in pages.values()}:
        context.close()


def heard(page: Page) -> Heard:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return _heard(nodes[0], {node["nodeId"]: node for node in nodes})


def _heard(node: dict[str, Any], nodes: dict[str, dict[str, Any]]) -> Heard:
    told = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
    parts = (nodes[one] for one in node.get("childIds", []) if one in nodes)
    role = node.get("role", {}).get("value", "")
    return Heard(
        role="" if node["ignored"] else role,
        name="" if node["ignored"] else node.get("name", {}).get("value", ""),
        level=told.get("level"),
        url=told.get("url"),
        parts=() if role == "StaticText" else tuple(_heard(part, nodes) for part in parts),
    )


@pytest.fixture(params=PAGES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[PHONE, DESK])
def page(request: pytest.FixtureRequest, opened: dict[tuple[str, int], Page], name: str) -> Page:
    return opened[name, request.param]


@pytest.fixture(scope="module")
def trees() -> dict[Page, Heard]:
    """What was read of each page, for a tree takes the browser a while."""
    return {}


@pytest.fixture
def read(page: Page, trees: dict[Page, Heard]) -> Heard:
    if page not in trees:
        trees[page] = heard(page)
    return trees[page]


def test_every_chart_is_one_image_whose_name_tells_what_it_shows(page: Page, read: Heard) -> None:
    drawn = page.locator("svg:not([aria-hidden]), .machine, .piles").count()
    images = [*read.all("image")]

    assert len(images) == drawn
    assert [image.name for image in images if len(image.name.split()) < 2] == []
    # Nothing that it is made of is read out beside it.
    within = [one for image in images for part in image.parts for one in part.all()]
    assert [one.name for one in within if one.name] == []


def test_no_label_of_an_axis_is_read_beside_its_chart(page: Page) -> None:
    loose = page.evaluate(
        """() => [...document.querySelectorAll('.frame > *, .frame > .plot > *')]
            .filter(one => !one.matches('.plot, svg[role=img], [aria-hidden=true]'))
            .map(one => one.outerHTML)"""
    )

    assert loose == []


def test_every_table_has_a_caption_of_its_own(read: Heard) -> None:
    tables = [*read.all("table")]
    captions = [table.name for table in tables]

    assert all(" " in caption or caption.isalpha() for caption in captions), captions
    assert [caption for caption, times in Counter(captions).items() if times > 1] == []
    assert all(any(table.all("caption")) for table in tables)


def test_every_column_and_every_row_of_a_table_has_a_header(read: Heard) -> None:
    for table in read.all("table"):
        columns = [one.name.strip() for one in table.all("columnheader")]
        rows = [row for row in table.all("row") if not any(row.all("columnheader"))]

        assert columns, table.name
        assert all(columns), (table.name, columns)
        assert rows
        assert [row.text for row in rows if not any(one.name for one in row.all("rowheader"))] == []


def test_no_status_is_told_by_a_symbol_alone(read: Heard) -> None:
    for part in read.all(
        "cell", "gridcell", "listitem", "rowheader", "button", "link", "definition"
    ):
        said = part.text or part.name
        assert not said or re.search(r"\w", said), (part.role, said)


def test_no_glyph_is_read_that_has_another_name_than_its_meaning(read: Heard) -> None:
    said = [one.name for one in read.all("StaticText", "image")]

    assert [text for text in said if GLYPHS.search(text)] == []


def test_no_dash_or_slash_is_read_for_a_word(read: Heard) -> None:
    said = {one.name.strip() for one in read.all("StaticText")}

    assert said & {"–", "-", "/", "?", "!"} == set()


def test_headings_descend_without_a_gap_from_the_only_one_of_the_page(read: Heard) -> None:
    levels = [one.level or 0 for one in read.all("heading")]
    names = [one.name for one in read.all("heading")]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(names), names


def test_every_heading_is_read_where_one_reads_on(page: Page) -> None:
    # Screen readers leave a heading out of the text that is also the label of something.
    labelling = page.evaluate(
        """() => [...document.querySelectorAll('[aria-labelledby]')]
            .flatMap(one => one.getAttribute('aria-labelledby').split(' '))
            .filter(id => document.getElementById(id).matches('h1, h2, h3, figcaption *'))"""
    )

    assert labelling == []


def test_a_link_tells_where_it_leads_by_its_name_and_the_row_it_is_in(read: Heard) -> None:
    places: dict[tuple[str, str], set[str | None]] = {}
    for whole, link in read.within("link", ("row", "listitem", "paragraph")):
        places.setdefault((link.name, whole), set()).add(link.url)

    assert {name: urls for name, urls in places.items() if len(urls) > 1} == {}
    names = {name.casefold() for name, _ in places}
    assert not names & {"more", "here", "its page", "its host", "link", "csv", "json"}


def test_what_is_folded_tells_what_it_holds_in_its_table_figure_or_list(read: Heard) -> None:
    found = read.within("DisclosureTriangle", ("table", "figure", "list"))
    names = Counter((re.sub(r"\s+", " ", one.name), whole) for whole, one in found)

    assert [name for (name, _), times in names.items() if times > 1] == []


def test_landmarks_are_few_and_told_apart(read: Heard) -> None:
    roles = Counter(one.role for one in read.all())
    named = [one.name for one in read.all("navigation", "region", "complementary")]

    assert (roles["banner"], roles["main"], roles["contentinfo"]) == (1, 1, 1)
    assert all(named)
    assert len(named) == len(set(named)) <= 2


def test_a_page_says_its_language_and_a_title_of_its_own(
    opened: dict[tuple[str, int], Page],
) -> None:
    titles = [opened[name, DESK].title() for name in PAGES if not name.startswith("past/")]

    assert {page.locator("html").get_attribute("lang") for page in opened.values()} == {"en"}
    assert len({*titles}) == len(titles) - 1, "the empty site's overview is called as the other"


def test_whatever_is_pressed_is_large_enough_or_far_enough_from_the_next(page: Page) -> None:
    found = Axe().run(page, options={"runOnly": ["target-size"], "preload": False})

    assert found.violations_count == 0, found.generate_report()


def test_a_table_is_a_stop_of_the_keyboard_only_where_it_scrolls(page: Page) -> None:
    wrong = page.evaluate(
        """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(
            [...document.querySelectorAll('.scroll')]
                .filter(one => (one.scrollWidth > one.clientWidth) !== (one.tabIndex === 0))
                .map(one => one.textContent.slice(0, 60))))))"""
    )

    assert wrong == []


def test_a_zoomed_chart_says_each_point_as_the_arrow_keys_reach_it_and_holds_nobody(
    chromium: Browser, made: Path
) -> None:
    page = _alone(chromium, made / "past/scenario/resnet50-inference.html")
    page.get_by_role("button", name="Zoom On bench-01").press("Enter")
    slider = page.get_by_role("slider", name="Points, On bench-01")
    slider.focus()

    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "1")
    first = slider.get_attribute("aria-valuetext")
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuenow", "2")

    assert first is not None
    assert re.match(r"\d{4}-\d\d-\d\d; .* ms", first)
    assert slider.get_attribute("aria-valuetext") != first
    slider.press("Tab")
    assert page.evaluate("document.activeElement.closest('.zoomed')") is None
    page.context.close()


def _alone(chromium: Browser, file: Path) -> Page:
    page = chromium.new_context().new_page()
    page.goto(file.as_uri())
    return page
