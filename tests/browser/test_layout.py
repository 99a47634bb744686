"""Layout of charts, commands and tables at every window and text size, zoomed and in print."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page

from browser.pages import (
    DESK,
    HEIGHT,
    HISTORY,
    PHONE,
    TEXT_SIZE,
    UNFOLD,
    Scheme,
    Windows,
    wait_until,
)
from corebound.records.history import HistoryPoints, Series
from corebound.report import site
from corebound.report.inputs import SiteInputs
from support import needs
from support.build import a_point, a_series
from support.report_sample import NOW

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]


@pytest.fixture
def past(windows: Windows, sites: Path) -> Page:
    """A scenario with all there can be on its page, as wide as a desk's screen."""
    return windows.open(sites / HISTORY)


def boxes(page: Page, selector: str) -> list[dict[str, float]]:
    """Where elements lie that are seen, in their order."""
    found: list[dict[str, Any]] = page.evaluate(
        """selector => [...document.querySelectorAll(selector)]
            .filter(node => node.checkVisibility())
            .map(node => node.getBoundingClientRect().toJSON())""",
        selector,
    )
    return found


def test_intervals_are_distinguishable_at_any_window_and_text_size(past: Page) -> None:
    sizes = ((PHONE, 100), (PHONE, 150), (700, 100), (860, 100), (DESK, 150), (DESK, 200))
    for width, text_percent in sizes:
        past.set_viewport_size({"width": width, "height": HEIGHT})
        past.evaluate(TEXT_SIZE, text_percent)

        plots = boxes(past, ".forest td.plot svg")
        labels = boxes(past, ".forest .axis span span")

        # 18 letters of text, of which an axis has a label of four or five each.
        assert min(plot["width"] for plot in plots) >= 12 * 16 * text_percent / 100
        assert len(labels) >= 2
        for first, second in itertools.pairwise(labels):
            assert first["right"] < second["left"]
        assert past.evaluate("document.documentElement.scrollWidth") <= width


def test_the_bars_beside_the_headline_are_on_one_scale(windows: Windows, sites: Path) -> None:
    for width in (PHONE, DESK):
        page = windows.open(sites / "index.html", width=width)

        rooms, bars = boxes(page, ".duel .bar"), boxes(page, ".duel .bar i")

        assert len(rooms) == len(bars) == 2
        assert {round(bar["left"]) for bar in bars} == {round(rooms[0]["left"])}
        assert max(bar["width"] for bar in bars) <= rooms[0]["width"]
        assert min(bar["width"] for bar in bars) > 0


def test_an_opened_command_covers_the_sticky_column_on_a_phone(past: Page) -> None:
    past.set_viewport_size({"width": PHONE, "height": HEIGHT})
    past.evaluate(UNFOLD)
    past.evaluate("document.querySelectorAll('.scroll').forEach(node => node.scrollLeft = 9999)")

    for place in ("history-others", "history-points"):
        at_its_left = past.evaluate(
            """selector => [...document.querySelectorAll(selector)].map(node => {
                node.scrollIntoView({ behavior: 'instant', block: 'center', inline: 'nearest' });
                const { left, top } = node.getBoundingClientRect();
                return document.elementFromPoint(Math.max(left, 20) + 4, top + 8) === node;
            })""",
            f"#{place} td > details > code",
        )

        assert at_its_left
        assert all(at_its_left)


# Text of the row that lies under its opened command, for each of them.
UNDER = """() => [...document.querySelectorAll('td > details[open] > code')].map(code => {
    const box = code.getBoundingClientRect();
    const texts = document.createTreeWalker(code.closest('tr'), NodeFilter.SHOW_TEXT);
    const under = [];
    while (texts.nextNode()) {
        const text = texts.currentNode;
        if (!text.data.trim() || code.contains(text) || text.parentElement.closest('.hidden'))
            continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        for (const { left, right, top, bottom } of range.getClientRects())
            if (left < box.right - 1 && right > box.left + 1
                && top < box.bottom - 1 && bottom > box.top + 1) under.push(text.data);
    }
    return under.join(' ');
})"""


@pytest.mark.parametrize("name", ["index.html", "history.html", "run/served.html"])
def test_an_opened_command_hides_nothing_of_its_row(
    windows: Windows, sites: Path, name: str
) -> None:
    page = windows.open(sites / "past" / name)
    page.evaluate(UNFOLD)

    for width in (PHONE, 700, DESK):
        page.set_viewport_size({"width": width, "height": HEIGHT})
        hidden = page.evaluate(UNDER)

        assert hidden
        assert set(hidden) == {""}


def test_opening_details_does_not_change_the_height_of_the_chart_above(past: Page) -> None:
    body = ".forest tbody:nth-of-type(2)"
    drawing = f"{body} td.plot svg"
    (before,) = boxes(past, drawing)
    assert boxes(past, f"{body} .detail dl") == []

    past.locator(f"{body} summary").click()

    (after,) = boxes(past, drawing)
    assert after["height"] == before["height"]
    (details,) = boxes(past, f"{body} .detail dl")
    assert details["top"] >= after["bottom"]
    (label,) = boxes(past, f"{body} tr:first-child th .ink")
    # The dot, 15 of 40 from the drawing's top, is beside the label still.
    dot = after["top"] + after["height"] * 15 / 40
    assert label["top"] <= dot <= label["bottom"]


# What is written on a canvas and stroked on it: texts, each with how high up it is, and (width,
# dashes) of lines.
LISTEN = """() => {
    window.texts = [];
    window.heights = [];
    window.lines = [];
    const drawn = CanvasRenderingContext2D.prototype;
    const { fillText, stroke } = drawn;
    drawn.fillText = function (text, x, y) {
        texts.push(text);
        heights.push([text, this.getTransform().transformPoint(new DOMPoint(x, y)).y]);
        return fillText.call(this, text, x, y);
    };
    drawn.stroke = function (...rest) {
        lines.push(`${this.lineWidth} ${this.getLineDash()}`);
        return stroke.call(this, ...rest);
    };
}"""


def zoomed(page: Page) -> None:
    """Open the first chart's zoom, and listen to what it draws."""
    page.evaluate(LISTEN)
    page.locator("button.zoom").first.click()
    page.wait_for_selector(".zoomed canvas")
    wait_until(page, "texts.length")


def of_series(windows: Windows, folder: Path, series: Series, width: int) -> Page:
    """The page of an imported benchmark that has one series."""
    site.write(SiteInputs(records=[], now=NOW, series=[series]), folder)
    (file,) = folder.glob("history/*.html")
    return windows.open(file, width=width)


def test_a_zoom_draws_what_the_static_chart_draws(past: Page) -> None:
    zoomed(past)

    # Levels of both series, each with its dashes; the border, the change, the nights that are lost.
    drawn = set(past.evaluate("lines"))
    assert {"2.5 ", "2.5 7,3", "1.5 4,3", "1 2,3", "2 "} <= drawn
    labels = past.locator(".zoomed .marks span")
    assert labels.all_inner_texts() == ["A", "1"]
    (plot,) = boxes(past, ".zoomed .u-over")
    assert all(box["bottom"] <= plot["top"] for box in boxes(past, ".zoomed .marks span"))
    # The letter stands over the first point after the border, and no line leads there.
    (letter, _) = boxes(past, ".zoomed .marks span")
    border = (letter["left"] + letter["right"]) / 2
    coloured = past.evaluate(
        """([from, to, top, height]) => {
            const canvas = document.querySelector('.zoomed canvas');
            const { left, top: above } = canvas.getBoundingClientRect();
            const area = [from - left, top - above, to - from, height].map(Math.round);
            const { data } = canvas.getContext('2d').getImageData(...area);
            let count = 0;
            for (let at = 0; at < data.length; at += 4)
                count += data[at + 3] > 0 && Math.abs(data[at] - data[at + 2]) > 40;
            return count;
        }""",
        [border - 11, border - 4, plot["top"], plot["height"]],
    )
    assert coloured == 0


def number(text: str) -> float:
    """A figure as an axis has it."""
    return float(text.replace(",", ""))


@pytest.mark.parametrize(
    "figures",
    [
        [40e6 + night % 5 * 1e6 for night in range(60)],
        # From 1 ms to 90 ms: the still chart's axis is logarithmic.
        [1e6 * (1 + night % 3 / 50) * (90 if night >= 30 else 1) for night in range(60)],
        # 1e-12 of the greatest is 0 in what zooming loads.
        [1e-3 if night % 7 == 3 else 1e9 for night in range(60)],
    ],
)
def test_a_zoom_starts_with_the_static_charts_scale(
    windows: Windows, tmp_path: Path, figures: list[float]
) -> None:
    page = of_series(windows, tmp_path, a_series(figures, project="p"), width=DESK)
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    labels = page.locator("figure[data-series] .levels span").first.locator("..").locator("span")
    still = [
        (node.inner_text(), float(re.findall(r"[\d.]+", node.get_attribute("style") or "")[0]))
        for node in labels.all()
    ]

    zoomed(page)

    drawn = """() => {
        const { top, height } = document.querySelector('.zoomed .u-over').getBoundingClientRect();
        const above = document.querySelector('.zoomed canvas').getBoundingClientRect().top;
        const found = heights.filter(([text]) => /^[\\d.,]+(e-\\d+)?$/.test(text));
        const share = (y) => (y / devicePixelRatio - (top - above)) / height;
        return found.map(([text, y]) => [text, share(y) * 100]);
    }"""
    whole = {number(text): at for text, at in page.evaluate(drawn)}
    assert len(still) >= 3
    assert whole == {number(text): pytest.approx(at, abs=1) for text, at in still}

    page.evaluate("heights = []")
    page.get_by_role("button", name="Closer").click()
    wait_until(page, "heights.length")
    assert len(dict(page.evaluate(drawn))) >= 2
    assert said == []


def test_a_zoom_into_a_day_shows_hours(windows: Windows, tmp_path: Path) -> None:
    hours = HistoryPoints.of(
        replace(a_point(1e6 + hour), at=f"2026-01-{3 + hour // 24:02}T{hour % 24:02}:00:00+00:00")
        for hour in range(36)
    )
    page = of_series(
        windows, tmp_path, replace(a_series([], project="p"), points=hours), width=DESK
    )

    zoomed(page)

    told = [text for text in page.evaluate("texts") if re.search(r"\d:\d\d|-", text)]
    assert told[:4] == ["00:00", "2026-01-03", "03:00", "06:00"]
    assert [text for text in told if "-" in text][:2] == ["2026-01-03", "2026-01-04"]
    assert told[told.index("2026-01-04") - 1] == "00:00"


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_numbers_of_close_changes_do_not_overlap_in_a_zoom(
    windows: Windows, tmp_path: Path, width: int
) -> None:
    levels = [1e6] * 250 + [2e6] * 12 + [3e6] * 12 + [1e6] * 250
    course = [figure * (1 + 0.01 * (night % 3)) for night, figure in enumerate(levels)]
    page = of_series(windows, tmp_path, a_series(course, project="p"), width=width)

    zoomed(page)

    places = boxes(page, ".zoomed .marks span")
    assert page.locator(".zoomed .marks span").all_inner_texts() == ["1", "2", "3"]
    for first, second in itertools.combinations(places, 2):
        assert (
            first["right"] <= second["left"]
            or first["bottom"] <= second["top"]
            or second["bottom"] <= first["top"]
        )
    (moves,) = boxes(page, ".moves")
    assert min(place["top"] for place in places) >= moves["bottom"]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("claims.html", "#claims > .scroll > table"),
        ("index.html", "#scenarios table"),
        ("past/compare/r0-r1.html", "#findings > .scroll > table"),
    ],
)
def test_on_a_phone_charts_in_rows_have_their_scale_above_and_margins(
    windows: Windows, sites: Path, name: str, table: str
) -> None:
    page = windows.open(sites / name, width=PHONE)
    labels = boxes(page, f"{table} .axis span span")
    (scale, *_) = boxes(page, f"{table} .axis")
    drawings = boxes(page, f"{table} td.plot svg")

    assert len(labels) >= 2
    for first, second in itertools.pairwise(labels):
        assert first["right"] < second["left"]
    assert labels[0]["top"] < drawings[0]["top"]
    assert {(drawing["left"], drawing["right"]) for drawing in drawings} == {
        (scale["left"], scale["right"])
    }
    # The frame hides what is beyond it, and dots at the edge are up to 11 pixels wide.
    (frame, *_) = boxes(page, table)
    assert drawings[0]["left"] - frame["left"] >= 5.5
    assert frame["right"] - drawings[0]["right"] >= 5.5


def test_a_table_behind_a_strip_is_fully_visible_in_its_panel(past: Page) -> None:
    past.evaluate(UNFOLD)

    cut = past.evaluate(
        """() => [...document.querySelectorAll('#cpus figure .scroll')]
            .map(node => node.scrollWidth - node.clientWidth)"""
    )

    assert cut == [0, 0]


def test_on_a_phone_stacked_bars_do_not_cover_their_label(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "past/operators.html", width=PHONE)

    labels, rooms = boxes(page, ".pile > :first-child"), boxes(page, ".pile .room")

    assert labels
    for label, room in zip(labels, rooms, strict=True):
        assert room["top"] - label["bottom"] >= 3


def test_in_print_headings_stay_with_their_content_and_charts_fit(past: Page) -> None:
    past.emulate_media(media="print")
    past.set_viewport_size({"width": 695, "height": 1000})

    style = """([selector, name]) => [...document.querySelectorAll(selector)]
        .filter(node => node.checkVisibility())
        .map(node => getComputedStyle(node)[name])"""

    # What is folded away is not printed, and so neither is what opens it or stands above it.
    folds = past.locator("summary:visible").all_inner_texts()
    assert [text for text in folds if text.startswith("command")] == []
    assert past.locator("th:visible", has_text="Reproduce").count() == 0
    assert set(past.evaluate(style, ["h2, h3, .lead", "breakAfter"])) == {"avoid"}
    assert set(past.evaluate(style, ["tbody:first-of-type > tr:first-child", "breakBefore"])) == {
        "avoid"
    }
    sizes = [
        {float(size.removesuffix("px")) for size in past.evaluate(style, [selector, "fontSize"])}
        for selector in ("#operators tbody td", "#operators tbody small")
    ]
    assert sizes[1]
    assert max(sizes[1]) <= min(sizes[0])
    # A dot is to text of 11 pixels what it is on a screen to text of 16.
    assert past.evaluate(style, [".forest .est", "strokeWidth"])[0] == "7.5px"


def test_in_print_opened_details_stay_open(past: Page) -> None:
    past.locator(".forest summary").first.click()

    past.emulate_media(media="print")

    assert past.locator(".forest .detail:visible").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_equivalence_band_is_visible(past: Page, scheme: Scheme) -> None:
    past.emulate_media(color_scheme=scheme)

    band, paper = (
        luminance(past.evaluate(colour))
        for colour in (
            "getComputedStyle(document.querySelector('.forest .noise')).fill",
            "getComputedStyle(document.body).backgroundColor",
        )
    )

    # Twice as far from the paper as the wash behind commands, which is 1.1.
    assert (max(band, paper) + 0.05) / (min(band, paper) + 0.05) >= 1.2


def luminance(colour: str) -> float:
    """How bright `rgb(r, g, b)` is, in [0, 1]: WCAG 2.2, relative luminance."""
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
