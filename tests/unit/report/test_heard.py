"""What pages and drawings say to who does not see them, in the HTML itself."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import html5lib
import pytest

from corebound.report.charts.alt_text import (
    describe_interval,
    describe_series,
    describe_spread,
    img_attributes,
)
from corebound.report.charts.axis import linear_axis
from corebound.report.charts.history import sparkline_svg
from corebound.report.charts.intervals import IntervalPlot, interval_svg, spark_svg
from corebound.report.charts.strips import dots_svg
from corebound.report.charts.topology import Box, describe_topology, topology_html
from support.report_sample import (
    pages_of,
    sample_history,
    sample_imports,
    sample_records,
)

AXIS = linear_axis(0.5, 2.0)


@pytest.fixture(scope="module")
def pages() -> dict[str, ElementTree.Element]:
    made = pages_of(
        sample_records(),
        profiles=sample_imports(),
        series=sample_history(),
    )
    return {
        name: html5lib.parse(text, namespaceHTMLElements=False)
        for name, text in made.items()
        if name.endswith(".html")
    }


def hidden(page: ElementTree.Element) -> set[ElementTree.Element]:
    """All that is not read: what is hidden, what is in it, and what an image is made of."""
    outer = [one for one in page.iter() if one.get("aria-hidden") == "true"]
    drawn = [part for one in page.iter() if one.get("role") == "img" for part in one]
    return {part for one in (*outer, *drawn) for part in one.iter()}


def words(one: ElementTree.Element) -> str:
    return re.sub(r"\s+", " ", "".join(one.itertext())).strip()


def test_every_drawing_is_an_image_with_a_name_or_not_read_at_all(
    pages: dict[str, ElementTree.Element],
) -> None:
    value = 0
    for name, page in pages.items():
        unread = hidden(page)
        for svg in page.iter("{http://www.w3.org/2000/svg}svg"):
            if svg in unread:
                continue
            value += 1
            assert svg.get("role") == "img", name
            assert " " in svg.get("aria-label", ""), name
    assert value > 50


def test_every_table_has_a_caption_and_every_row_of_it_a_header(
    pages: dict[str, ElementTree.Element],
) -> None:
    for name, page in pages.items():
        captions = []
        for table in page.iter("table"):
            captions.append(words(table[0]) if table[0].tag == "caption" else "")
            assert all(one.get("scope") in {"col", "row", "rowgroup"} for one in table.iter("th"))
            rows = [row for body in table.findall("tbody") for row in body.findall("tr")]
            assert rows, (name, captions[-1])
            assert all(row.find("th") is not None for row in rows), (name, captions[-1])
        assert all(captions), name
        assert len({*captions}) == len(captions), (name, captions)


def test_headings_descend_without_a_gap(pages: dict[str, ElementTree.Element]) -> None:
    for name, page in pages.items():
        levels = [int(one.tag[1]) for one in page.iter() if one.tag in {"h1", "h2", "h3", "h4"}]
        assert levels[0] == 1, name
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), name


def test_where_there_is_no_figure_a_word_is_read_and_no_dash(
    pages: dict[str, ElementTree.Element],
) -> None:
    parts = []
    for page in pages.values():
        unread = hidden(page)
        parts += [words(cell) for cell in page.iter("td") if cell not in unread]

    assert "none" in parts
    assert [text for text in parts if text and not re.search(r"\w", text)] == []


def test_an_interval_is_told_by_the_side_of_1_it_lies_on() -> None:
    def drawn(low: float | None, high: float | None, dots: tuple[float, ...] = ()) -> IntervalPlot:
        return IntervalPlot(mode="m-node", estimate=1.0, low=low, high=high, dots=dots, margin=0.02)

    assert 'aria-label="interval above 1"' in spark_svg(drawn(1.1, 1.3), AXIS)
    assert 'aria-label="interval below 1"' in spark_svg(drawn(0.7, 0.9), AXIS)
    assert 'aria-label="interval on both sides of 1"' in spark_svg(drawn(1.0, 1.2), AXIS)
    assert 'aria-label="no interval"' in spark_svg(drawn(None, None), AXIS)
    assert '"interval above 1; 1 pair, 1.20×"' in interval_svg(drawn(1.1, 1.3, (1.2,)), AXIS)
    assert describe_interval(0.5, math.inf) == "interval on both sides of 1"


def test_launches_are_told_by_how_far_they_lie_apart() -> None:
    assert "5.0 % below to 2.40× what they come to" in dots_svg((0.95, 2.4), 1, AXIS, "m-node")
    assert describe_spread((1.0, 1.0), 1) == "all equal to what they come to"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1.0, 1.06), "2 figures, the last 6.0 % above the first"),
        ((1.0, 3.0, 0.4), "3 figures, the last 40.0 % of the first"),
        ((1.0, 2.5), "2 figures, the last 2.50× the first"),
        ((1.0, math.nan, 1.0), "2 figures, the last equal to the first"),
        ((math.nan, 1.0), "1 figure"),
    ],
)
def test_a_course_is_told_by_its_last_figure_beside_its_first(
    values: tuple[float, ...], text: str
) -> None:
    assert describe_series(values) == text
    assert f'aria-label="{text}"' in sparkline_svg(values, "m-node")


def test_a_machine_is_one_image_that_tells_what_it_holds_and_what_of_it_is_used() -> None:
    def cpu(number: int, *, off: str = "", taken: bool = False) -> Box:
        return Box(kind="cpu", name=str(number), off=off, parts=(), taken=taken)

    cores = tuple(
        Box(kind="core", name="", off="", parts=parts)
        for parts in (
            (cpu(0, taken=True), cpu(1, taken=True)),
            (cpu(2, off="not allowed"), cpu(3, off="not allowed")),
        )
    )
    boxes = (Box(kind="package", name="socket 0", off="", parts=cores),)

    text = "1 socket, 2 cores, 4 CPUs; used: CPUs 0-1; not allowed: CPUs 2-3"
    assert describe_topology(boxes) == text
    assert topology_html(boxes).startswith(
        f'<div role="img" aria-label="{text}"><ul class="machine" aria-hidden="true">'
    )


def test_a_name_cannot_break_out_of_its_attribute() -> None:
    assert img_attributes('"><script>') == ' role="img" aria-label="&quot;&gt;&lt;script&gt;"'
