"""Pages as a screen reader and a keyboard user meet them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from playwright.sync_api import Page, expect

from browser.pages import DESK, HISTORY, PAGES, PHONE, UNFOLD, Tabs, Windows, violations
from support import needs

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
# Read as nothing, or by a name that says something else: `black up-pointing triangle`.
GLYPHS = re.compile("[▲▼△▽✓✗→←↑↓≈•█~]")


class AccessibleNode(Struct, frozen=True, kw_only=True):
    """A part of a page as it is read out, with the parts in it."""

    role: str
    name: str
    level: int | None
    url: str | None
    parts: tuple[AccessibleNode, ...]

    def all(self, *roles: str) -> Iterator[AccessibleNode]:
        """This part and all in it that have one of these roles; every one without any."""
        if not roles or self.role in roles:
            yield self
        for part in self.parts:
            yield from part.all(*roles)

    def within(
        self, role: str, contexts: tuple[str, ...], context: str = ""
    ) -> Iterator[tuple[str, AccessibleNode]]:
        """Each part of a role, with what the innermost of these contexts about it says.

        Of what is in a navigation that is the navigation's name.
        """
        if self.role == role:
            yield context, self
        inner = self.text if self.role in contexts else context
        if self.role == "navigation":
            inner, contexts = self.name, ()
        for part in self.parts:
            yield from part.within(role, contexts, inner)

    @property
    def text(self) -> str:
        """All that is said of it."""
        texts = [node.name for node in self.all("StaticText", "image") if node.name.strip()]
        return re.sub(r"\s+", " ", " ".join(texts)).strip()


@pytest.fixture(scope="module", params=[PHONE, DESK])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def page(tabs: Tabs, width: int) -> Page:
    """A page at either width, with all that is folded opened."""
    page = tabs[width].as_loaded()
    page.evaluate(UNFOLD)
    return page


@pytest.fixture(scope="module")
def read(page: Page) -> AccessibleNode:
    """What is read of it, once, for a tree takes the browser a while."""
    return heard(page)


def heard(page: Page) -> AccessibleNode:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return _to_node(nodes[0], {node["nodeId"]: node for node in nodes})


def _to_node(node: dict[str, Any], nodes: dict[str, dict[str, Any]]) -> AccessibleNode:
    properties = {item["name"]: item["value"].get("value") for item in node.get("properties", [])}
    parts = (nodes[child] for child in node.get("childIds", []) if child in nodes)
    role = node.get("role", {}).get("value", "")
    return AccessibleNode(
        role="" if node["ignored"] else role,
        name="" if node["ignored"] else node.get("name", {}).get("value", ""),
        level=properties.get("level"),
        url=properties.get("url"),
        parts=() if role == "StaticText" else tuple(_to_node(part, nodes) for part in parts),
    )


def test_every_chart_is_one_image_with_a_descriptive_name(page: Page, read: AccessibleNode) -> None:
    # A group has links in it, which have names of their own.
    drawn = page.locator("svg:not([aria-hidden], [role=group]), .machine, .piles").count()
    images = [*read.all("image")]

    assert len(images) == drawn
    assert [image.name for image in images if len(image.name.split()) < 2] == []
    # Nothing that it is made of is read out beside it.
    within = [node for image in images for part in image.parts for node in part.all()]
    assert [node.name for node in within if node.name] == []


def test_axis_labels_are_hidden_from_screen_readers(page: Page) -> None:
    loose = page.evaluate(
        """() => [...document.querySelectorAll('.frame > *, .frame > .plot > *')]
            .filter(node => !node.matches(
                '.plot, svg:is([role=img], [role=group]), [aria-hidden=true]'))
            .map(node => node.outerHTML)"""
    )

    assert loose == []


def test_every_table_has_a_unique_caption(read: AccessibleNode) -> None:
    tables = [*read.all("table")]
    captions = [table.name for table in tables]

    assert all(" " in caption or caption.isalpha() for caption in captions), captions
    assert [caption for caption, times in Counter(captions).items() if times > 1] == []
    assert all(any(table.all("caption")) for table in tables)


def test_every_column_and_row_of_a_table_has_a_header(read: AccessibleNode) -> None:
    for table in read.all("table"):
        columns = [node.name.strip() for node in table.all("columnheader")]
        rows = [row for row in table.all("row") if not any(row.all("columnheader"))]

        assert columns, table.name
        assert all(columns), (table.name, columns)
        assert rows
        assert [
            row.text for row in rows if not any(node.name for node in row.all("rowheader"))
        ] == []


def test_no_status_is_a_symbol_alone(read: AccessibleNode) -> None:
    for part in read.all(
        "cell", "gridcell", "listitem", "rowheader", "button", "link", "definition"
    ):
        texts = part.text or part.name
        assert not texts or re.search(r"\w", texts), (part.role, texts)


def test_no_glyph_is_read_under_a_misleading_name(read: AccessibleNode) -> None:
    texts = [node.name for node in read.all("StaticText", "image")]

    assert [text for text in texts if GLYPHS.search(text)] == []


def test_no_dash_or_slash_stands_for_a_word(read: AccessibleNode) -> None:
    texts = {node.name.strip() for node in read.all("StaticText")}

    assert texts & {"–", "-", "/", "?", "!"} == set()


def test_headings_descend_without_a_gap_from_a_single_h1(read: AccessibleNode) -> None:
    levels = [node.level or 0 for node in read.all("heading")]
    names = [node.name for node in read.all("heading")]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(names), names


def test_every_heading_is_read_in_reading_order(page: Page) -> None:
    # Screen readers leave a heading out of the text that is also the label of something.
    labelling = page.evaluate(
        """() => [...document.querySelectorAll('[aria-labelledby]')]
            .flatMap(node => node.getAttribute('aria-labelledby').split(' '))
            .filter(id => document.getElementById(id).matches('h1, h2, h3, figcaption *'))"""
    )

    assert labelling == []


def test_a_link_is_unique_by_its_name_and_row(read: AccessibleNode) -> None:
    places: dict[tuple[str, str], set[str | None]] = {}
    for container, link in read.within("link", ("row", "listitem", "paragraph")):
        places.setdefault((link.name, container), set()).add(link.url)

    assert {name: urls for name, urls in places.items() if len(urls) > 1} == {}
    names = {name.casefold() for name, _ in places}
    assert not names & {"more", "here", "its page", "its host", "link", "csv", "json"}


def test_a_folded_element_names_its_content(read: AccessibleNode) -> None:
    folded = read.within("DisclosureTriangle", ("table", "figure", "list"))
    names = Counter((re.sub(r"\s+", " ", node.name), container) for container, node in folded)

    assert [name for (name, _), times in names.items() if times > 1] == []


def test_landmarks_are_few_and_have_unique_names(read: AccessibleNode) -> None:
    roles = Counter(node.role for node in read.all())
    named = [node.name for node in read.all("navigation", "region", "complementary")]

    assert (roles["banner"], roles["main"], roles["contentinfo"]) == (1, 1, 1)
    assert all(named)
    assert len(named) == len(set(named)) <= 2


def test_a_page_declares_its_language(page: Page) -> None:
    assert page.locator("html").get_attribute("lang") == "en"


def test_a_page_has_a_unique_title(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / PAGES[0], scripts=False)
    titles = {}
    for name in PAGES:
        page.goto((sites / name).as_uri())
        titles[name] = page.title()

    # Each site has an overview, and two have a page of the same scenario.
    past = [title for name, title in titles.items() if name.startswith("past/")]
    first = [titles[name] for name in PAGES if not name.startswith(("past/", "empty/", "commits/"))]
    assert len({*past}) == len(past)
    assert len({*first}) == len(first)


def test_controls_are_large_enough_or_far_enough_apart(page: Page) -> None:
    assert violations(page, "target-size") == ""


def test_a_table_is_focusable_only_where_it_scrolls(page: Page) -> None:
    wrong = page.evaluate(
        """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(
            [...document.querySelectorAll('.scroll')]
                .filter(node => (node.scrollWidth > node.clientWidth) !== (node.tabIndex === 0))
                .map(node => node.textContent.slice(0, 60))))))"""
    )

    assert wrong == []


def test_a_zoomed_chart_announces_points_by_arrow_keys_and_does_not_trap_the_focus(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / HISTORY)
    page.get_by_role("button", name="Zoom On bench-01").press("Enter")
    slider = page.get_by_role("slider", name="Points, On bench-01")
    slider.focus()

    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "1")
    # The number is 1 before the key, too; the text says when the key has arrived.
    point = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC; .* ms")
    expect(slider).to_have_attribute("aria-valuetext", point)
    first = slider.get_attribute("aria-valuetext")
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuenow", "2")

    assert slider.get_attribute("aria-valuetext") != first
    slider.press("Tab")
    assert page.evaluate("document.activeElement.closest('.zoomed')") is None
