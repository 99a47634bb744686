"""On every page: behind every chart a table, in every row the command that reproduces it."""

from __future__ import annotations

import pytest

from support.markup import Element, by_id, parse_html
from support.paths import GOLDEN

PAGES = sorted(page.name for page in GOLDEN.glob("*.html"))
# What another tool measured, corebound has no command for: its rows say so, its pages are all
# of it.
MEASURED_ELSEWHERE = {"benchmark.html", "commits.html"}
# How many rows and charts a page has at least, so that none passes for having lost them.
LEAST = {
    "benchmark.html": (0, 4),
    "claims.html": (2, 0),
    "commits.html": (6, 2),
    "compare.html": (100, 3),
    "history.html": (9, 5),
    "host.html": (4, 1),
    "operators.html": (34, 2),
    "overview-with-history.html": (5, 1),
    "overview.html": (2, 0),
    "run.html": (97, 0),
    "scenario-history.html": (40, 8),
    "scenario.html": (200, 9),
    "serving.html": (40, 7),
}


def page(name: str) -> Element:
    text = (GOLDEN / name).read_text("utf-8")
    # That one is a part of a page, cut before its end.
    return parse_html(f"{text}</section>" if name == "scenario-history.html" else text)


def rows(root: Element) -> list[Element]:
    """The rows of all tables, but for heads and what groups others."""
    return [
        row
        for body in root.all("tbody")
        for row in body.all("tr")
        if not any(element.attributes.get("scope") == "rowgroup" for element in row.all("th"))
    ]


def commands(element: Element | None) -> list[str]:
    names = [] if element is None else [element.text for element in element.all("code")]
    return [text for text in names if text.startswith(("corebound ", "asv "))]


def row_commands(root: Element, row: Element) -> list[str]:
    """Those in the row, or that its table names as every row's."""
    table = row.within("table")
    assert table is not None
    named = table.attributes.get("aria-details")
    return commands(row) or (commands(by_id(root, named)) if named else [])


def has_none_recorded(row: Element) -> bool:
    return any(
        element.tag in {"small", "span"} and element.text == "no command recorded"
        for element in row.all()
    )


def charts(root: Element) -> list[Element]:
    """Drawings that are not part of a row's own figures: those are told beside them."""
    elements = [element for element in root.all("svg") if not element.classes & {"swatch", "spark"}]
    elements = [element for element in elements if element.within("tr") is None]
    elements += [element for element in root.all("ul") if "machine" in element.classes]
    elements += [element for element in root.all("figure") if "piles" in element.classes]
    courses = [
        element
        for element in root.all("td")
        if "line" in element.classes and any(element.all("svg"))
    ]
    return [*elements, *courses]


def table_behind(root: Element, chart: Element) -> Element | None:
    """The table that a chart names, or that stands in its figure; of a course its row."""
    if chart.tag == "td":
        return chart.within("table")
    element = chart if chart.tag == "figure" else chart.within("figure")
    if element is None:
        return None
    if "piles" in element.classes and element.parent is not None:
        return next(element.parent.all("table"), None)
    named = element.attributes.get("aria-details")
    there = by_id(root, named) if named else None
    if there is not None:
        return there if there.tag == "table" else None
    return next(element.all("table"), None)


def test_no_page_is_left_out() -> None:
    assert sorted(LEAST) == PAGES


@pytest.mark.parametrize("name", [name for name in PAGES if name not in MEASURED_ELSEWHERE])
def test_every_row_has_the_command_that_reproduces_it(name: str) -> None:
    root = page(name)
    elements = rows(root)

    assert len(elements) >= LEAST[name][0]
    without = [
        row.text.strip()[:80]
        for row in elements
        if not row_commands(root, row) and not has_none_recorded(row)
    ]
    assert without == []


@pytest.mark.parametrize("name", PAGES)
def test_every_chart_has_a_table_behind_it(name: str) -> None:
    root = page(name)
    elements = charts(root)

    assert len(elements) >= LEAST[name][1]
    for chart in elements:
        table = table_behind(root, chart)
        assert table is not None, chart.attributes
        assert any(rows(table)), chart.attributes


@pytest.mark.parametrize("name", ["history.html", "overview-with-history.html"])
def test_beside_every_course_stand_its_latest_figure_with_its_interval_and_its_span(
    name: str,
) -> None:
    root = page(name)
    courses = [
        element
        for element in root.all("td")
        if "line" in element.classes and any(element.all("svg"))
    ]

    assert courses
    for element in courses:
        row = element.within("tr")
        assert row is not None
        assert " to " in row.text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("name", PAGES)
def test_the_figures_of_every_page_can_be_downloaded_there_or_one_link_further(name: str) -> None:
    links = [element.attributes["href"].partition("#")[0] for element in page(name).all("a")]
    data = [link for link in links if link.endswith((".csv", ".json", ".csv.gz", ".jsonl.gz"))]

    # A run's page has its records where they lie beside the site, which these do not.
    assert data or name == "run.html" or any("run/" in link for link in links)


@pytest.mark.parametrize("name", PAGES)
def test_what_is_named_as_a_detail_is_there(name: str) -> None:
    root = page(name)
    named = [
        element.attributes["aria-details"]
        for element in root.all()
        if "aria-details" in element.attributes
    ]

    assert [name for name in named if by_id(root, name) is None] == []


def test_lists_of_what_did_not_count_have_commands_too() -> None:
    root = page("overview-with-history.html")
    failed = by_id(root, "failed")
    assert failed is not None

    items = list(failed.all("li"))

    assert items
    assert all(commands(item) for item in items)


def a_table(row: str, *, details: str = "", beside: str = "") -> Element:
    named = f' aria-details="{details}"' if details else ""
    return parse_html(f"<table{named}><tbody><tr>{row}</tr></tbody></table>{beside}")


@pytest.mark.parametrize(
    "root",
    [
        a_table("<td>1.0</td>"),
        a_table("<td><code>0123abcd</code></td>"),
        a_table("<td>1.0</td>", details="x"),
        a_table("<td>1.0</td>", details="x", beside='<p id="x"><code>make</code></p>'),
    ],
)
def test_a_row_without_a_command_is_seen_to_have_none(root: Element) -> None:
    (row,) = rows(root)

    assert row_commands(root, row) == []
    assert not has_none_recorded(row)


@pytest.mark.parametrize(
    "text",
    [
        "<figure><svg></svg></figure>",
        "<figure aria-details=x><svg></svg></figure><p id=x></p>",
        "<svg></svg><table></table>",
    ],
)
def test_a_chart_without_a_table_is_seen_to_have_none(text: str) -> None:
    root = parse_html(text)
    (chart,) = charts(root)

    assert table_behind(root, chart) is None
