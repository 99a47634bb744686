"""Every page on one visit: its requests, layout, colours, print, keyboard and screen reader."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from playwright.sync_api import Browser, Page

from browser.pages import BENCHMARK_PAGE, COLOURS, DESK, PAGES, PHONE, Visit, Windows, violations
from support import needs
from support.report_sample import COMMITS_PAGE

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
# Folders of pages that are all of one kind.
OF_MANY = {"scenario", "run", "host", "compare", "history"}
GROUND = "getComputedStyle(document.body).backgroundColor"
SCROLLED_PX = "document.documentElement.scrollWidth"


def kind(page: str) -> str:
    """What sort of page a path is of."""
    place = Path(page)
    return place.parent.name if place.parent.name in OF_MANY else place.name


def test_every_kind_of_page_is_tested(sites: Path) -> None:
    there = {kind(page.relative_to(sites).as_posix()) for page in sites.rglob("*.html")}

    assert there == {kind(name) for name in PAGES}


def test_a_page_logs_nothing_and_loads_only_files(visit: Visit) -> None:
    assert visit.folded().url in visit.requests
    assert visit.console == []
    assert [url for url in visit.requests if not url.startswith(("file:", "data:"))] == []


# What reaches beyond the window's sides and is in no frame that scrolls by itself.
BEYOND = """() => [...document.querySelectorAll('body *')].filter(node => {
    const { left, right, width } = node.getBoundingClientRect();
    if (!width || (left > -1 && right < innerWidth + 1)) return false;
    if (!node.checkVisibility() || node.closest('.hidden, .skip')) return false;
    for (let up = node.parentElement; up !== document.body; up = up.parentElement)
        if (getComputedStyle(up).overflowX !== 'visible') return false;
    return true;
}).map(node => `${node.tagName} ${node.textContent.trim().slice(0, 40)}`)"""
SMALLEST_PX = """() => Math.min(...[...document.querySelectorAll('body *')]
    .filter(node => node.innerText && node.getClientRects().length)
    .map(node => parseFloat(getComputedStyle(node).fontSize)))"""


def test_no_text_is_smaller_than_11_px(visit: Visit) -> None:
    assert min(visit.folded(width).evaluate(SMALLEST_PX) for width in (PHONE, DESK)) >= 11


# WCAG 2.2: reflow (1.4.10) asks for a window of 320 pixels, 1.4.4 for text of twice the size.
@pytest.mark.parametrize("is_folded", [True, False])
def test_content_fits_a_narrow_window_and_large_text(visit: Visit, is_folded: bool) -> None:
    show = visit.folded if is_folded else visit.unfolded
    for width, text_percent in ((320, 100), (PHONE, 100), (PHONE, 200), (DESK, 100), (DESK, 200)):
        page = show(width, text_percent=text_percent)

        assert page.evaluate(BEYOND) == []
        assert page.evaluate(SCROLLED_PX) <= width


def test_a_page_prints_light_complete_and_without_controls(visit: Visit) -> None:
    # A4 between its margins: nothing is cut off at the right.
    page = visit.folded(695, scheme="dark")

    page.emulate_media(media="print")

    assert page.evaluate(GROUND) == "rgb(253, 253, 251)"
    assert not page.locator(".theme").is_visible()
    rights = """() => [...document.querySelectorAll('main table, main pre, main figure')]
        .map(node => node.getBoundingClientRect().right)"""
    assert max(page.evaluate(rights), default=0) <= 700
    assert page.locator(".zoom:visible, .moves:visible").count() == 0


# Of rows that are alike, and of what stands in them, the first three.
THIN = """() => {
    for (const parts of ['table > tbody', 'tbody > tr', 'li', 'article'])
        document.querySelectorAll(`:is(${parts}):nth-of-type(n + 4)`).forEach(one => one.remove());
}"""
STOPS = """() => [...document.querySelectorAll(
    'a[href], button, summary, [tabindex="0"], input, select')]
    .filter(node => node.checkVisibility() && (node.type !== 'radio' || node.checked)
        && !node.closest('[inert]')).length"""
# Each stop as it was focused: whether it is seen to be.
LISTEN = """() => {
    window.stops = [];
    document.addEventListener('focusin', ({ target }) => {
        const shown = target.type === 'radio' ? target.nextElementSibling : target;
        const { outlineStyle, outlineWidth } = getComputedStyle(shown);
        stops.push({ target, outline: `${outlineStyle} ${outlineWidth}` });
    });
}"""


def test_the_keyboard_reaches_and_leaves_every_control(
    chromium: Browser, sites: Path, name: str
) -> None:
    # In a shared window Chromium remembers which of its own controls had the focus last.
    page = chromium.new_page()
    page.goto((sites / name).as_uri())
    page.evaluate(THIN)
    # A radio's group is one stop, what is folded away is none until it is opened.
    wanted = page.evaluate(STOPS)
    page.evaluate(LISTEN)

    for _ in range(wanted):
        page.keyboard.press("Tab")
    reached = page.evaluate("new Set(stops.map(({ target }) => target)).size")
    page.keyboard.press("Tab")

    assert reached == wanted
    assert set(page.evaluate("stops.map(({ outline }) => outline)")) == {"solid 2px"}
    assert page.evaluate("document.activeElement === document.body")
    page.close()


def test_a_page_has_no_axe_violation(visit: Visit) -> None:
    assert violations(visit.unfolded()) == ""


# Rows with the same elements of the same classes have the same colours: one of each is enough.
WITHOUT_REPEATS = """() => {
    const seen = new Set();
    for (const row of document.querySelectorAll('tbody > tr, li')) {
        const parts = [row, ...row.querySelectorAll('*')];
        const kind = parts.map(node => `${node.tagName} ${node.getAttribute('class')}`).join();
        if (seen.has(kind)) row.remove();
        else seen.add(kind);
    }
}"""


def test_no_colours_are_too_close_in_the_dark(visit: Visit) -> None:
    # Nothing lies elsewhere in the dark, as the test of both schemes says.
    page = visit.unfolded(scheme="dark")
    page.evaluate(WITHOUT_REPEATS)

    assert violations(page, *COLOURS) == ""
    visit.folded()


def test_controls_are_large_enough_or_far_enough_apart(visit: Visit) -> None:
    for width in (PHONE, DESK):
        assert violations(visit.unfolded(width), "target-size") == ""


PLACES = """() => [...document.querySelectorAll('*')].map(node => {
    const { x, y, width, height } = node.getBoundingClientRect();
    return [node.tagName, x, y, width, height].join(' ');
})"""


def test_dark_mode_changes_colours_only(visit: Visit) -> None:
    light = visit.unfolded()
    ground, _ = light.evaluate(GROUND), light.evaluate(f"window.places = ({PLACES})(); null")

    dark = visit.unfolded(scheme="dark")

    assert dark.evaluate(GROUND) != ground
    assert dark.evaluate(f"({PLACES})().filter((place, at) => place !== places[at])") == []


WITHOUT_ADDED = """nodes => nodes.map(node => {
    const plain = node.cloneNode(true);
    for (const added of plain.querySelectorAll('.copy, .anchor')) added.remove();
    return plain.textContent.replace(/\\s+/g, ' ');
})"""


def test_a_page_has_the_same_text_without_javascript(
    windows: Windows, sites: Path, name: str, visit: Visit
) -> None:
    plain = windows.open(sites / name, scripts=False)
    told = "h1, h2, .verdict, .support, td, th, dd, li"

    # Some folds are filled when they are opened; what scripts add is for pressing.
    texts = [page.locator(told).evaluate_all(WITHOUT_ADDED) for page in (plain, visit.unfolded())]

    assert plain.locator(".verdict").inner_text().strip()
    assert texts[0] == texts[1]


CUT = """() => {
    const commands = [...document.querySelectorAll('details > code')];
    const cut = commands.filter(node => {
        node.scrollIntoView({ block: 'center', inline: 'nearest' });
        const frame = (node.closest('.scroll') || document.body).getBoundingClientRect();
        const { left, right } = node.getBoundingClientRect();
        return left < frame.left - 1 || right > frame.right + 1
            || node.scrollWidth > node.clientWidth + 1;
    });
    return [commands.length, cut.map(node => node.textContent)];
}"""
# What was imported without its command has none.
WITHOUT_COMMANDS = {
    *("empty/index.html", "past/hosts.html", "past/compare.html", "fleet/hosts.html"),
    *(BENCHMARK_PAGE, f"past/{COMMITS_PAGE}"),
}


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_an_unfolded_command_is_fully_visible(visit: Visit, name: str, width: int) -> None:
    commands, cut = visit.unfolded(width).evaluate(CUT)

    assert commands or name in WITHOUT_COMMANDS
    assert cut == []


def test_a_table_is_focusable_only_where_it_scrolls(visit: Visit) -> None:
    for width in (PHONE, DESK):
        wrong = visit.unfolded(width).evaluate(
            """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
                done([...document.querySelectorAll('.scroll')]
                    .filter(node => (node.scrollWidth > node.clientWidth) !== (node.tabIndex === 0))
                    .map(node => node.textContent.slice(0, 60))))))"""
        )

        assert wrong == []


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


@pytest.fixture(scope="module")
def read(visit: Visit) -> AccessibleNode:
    """What is read of a page in a wide window, once, for a tree takes the browser a while."""
    return heard(visit.unfolded())


@pytest.fixture(scope="module")
def both(visit: Visit, read: AccessibleNode) -> tuple[AccessibleNode, AccessibleNode]:
    """What is read in a wide window, and where tables are stacked."""
    return read, heard(visit.unfolded(PHONE))


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


def test_every_chart_is_one_image_with_a_descriptive_name(
    visit: Visit, read: AccessibleNode
) -> None:
    # A group has links in it, which have names of their own.
    drawn = (
        visit.unfolded().locator("svg:not([aria-hidden], [role=group]), .machine, .piles").count()
    )
    images = [*read.all("image")]

    assert len(images) == drawn
    assert [image.name for image in images if len(image.name.split()) < 2] == []
    # Nothing that it is made of is read out beside it.
    within = [node for image in images for part in image.parts for node in part.all()]
    assert [node.name for node in within if node.name] == []


def test_axis_labels_are_hidden_from_screen_readers(visit: Visit) -> None:
    loose = visit.unfolded().evaluate(
        """() => [...document.querySelectorAll('.frame > *, .frame > .plot > *')]
            .filter(node => !node.matches(
                '.plot, svg:is([role=img], [role=group]), [aria-hidden=true]'))
            .map(node => node.outerHTML)"""
    )

    assert loose == []


def test_every_table_has_a_unique_caption(both: tuple[AccessibleNode, ...]) -> None:
    for tables in ([*read.all("table")] for read in both):
        captions = [table.name for table in tables]

        assert all(" " in caption or caption.isalpha() for caption in captions), captions
        assert [caption for caption, times in Counter(captions).items() if times > 1] == []
        assert all(any(table.all("caption")) for table in tables)


def test_every_column_and_row_of_a_table_has_a_header(both: tuple[AccessibleNode, ...]) -> None:
    for table in (table for read in both for table in read.all("table")):
        columns = [node.name.strip() for node in table.all("columnheader")]
        rows = [row for row in table.all("row") if not any(row.all("columnheader"))]
        headers = [[node.name for node in row.all("rowheader")] for row in rows]

        assert columns, table.name
        assert all(columns), (table.name, columns)
        assert rows
        assert all(map(any, headers)), (table.name, headers)


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


def test_every_heading_is_read_in_reading_order(visit: Visit) -> None:
    # Screen readers leave a heading out of the text that is also the label of something.
    labelling = visit.unfolded().evaluate(
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
