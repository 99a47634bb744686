"""Charts, tables and controls of single pages: zooming, sorting, colours, downloads."""

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.pages import (
    BENCHMARK_PAGE,
    COLOURS,
    DESK,
    HEIGHT,
    HISTORY,
    PHONE,
    SCENARIO,
    Scheme,
    Windows,
    violations,
)
from corebound.analysis.change_history import has_history
from corebound.analysis.history_csv import history_csv
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.urls import series_anchor
from support import needs
from support.build import a_series
from support.report_sample import NOW, sample_history

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
GROUND = "getComputedStyle(document.body).backgroundColor"


def test_the_keyboard_reaches_the_result_first(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO)

    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.textContent") == "Skip to the result"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_switch_changes_the_colours_and_print_is_light(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO)
    light = page.evaluate(GROUND)

    page.get_by_text("Dark", exact=True).click()

    assert page.evaluate(GROUND) != light
    page.emulate_media(media="print")
    assert page.evaluate(GROUND) == light


def test_a_page_with_its_style_and_script_is_small(sites: Path) -> None:
    styles = (sites / "assets/site.css").read_bytes()
    scenario = (sites / SCENARIO).read_bytes()

    scripts = (sites / "assets/site.js").read_bytes()
    loaded = re.findall(rb'(?:src|href)="[^"]*assets/([^"]*)"', scenario)

    assert loaded == [b"site.css", b"site.js"]
    assert len(gzip.compress(styles)) <= 10_240
    assert len(gzip.compress(scenario + styles + scripts)) <= (16 + 10 + 14) * 1_024


def test_a_history_zooms_by_keyboard_and_loads_the_zoom_on_demand(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / HISTORY)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    assert "uplot" not in page.content()

    page.get_by_role("button", name="Zoom On bench-01").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".zoomed canvas")
    page.get_by_role("button", name="Closer").press("Enter")
    page.locator(".zoomed [tabindex]").press("ArrowLeft")
    expect(page.locator(".reading")).to_contain_text("commit")

    assert "2026-03-14" in page.locator(".reading").inner_text()
    assert sorted(Path(url).name for url in asked) == [
        "points.js",
        "resnet50-inference.history.js",
        "uplot-1.6.32.css",
        "uplot-1.6.32.js",
    ]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.get_by_role("button", name="Zoom On bench-01").press("Enter")
    assert page.locator(".zoomed").count() == 0
    assert page.locator("#history > figure .frame").is_visible()


def rows(text: str) -> list[dict[str, str | float]]:
    """The lines of CSV; numbers are as long as each language writes them."""
    numbers = {"figure", "low", "high"}
    return [
        {name: float(cell) if name in numbers and cell else cell for name, cell in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


@pytest.mark.parametrize("button", ["CSV of every point", "CSV of"])
def test_the_csv_of_a_page_and_of_a_chart_are_what_the_terminal_writes(
    windows: Windows, sites: Path, button: str
) -> None:
    page = windows.open(sites / BENCHMARK_PAGE)
    all_series = [
        series
        for series in sorted(sample_history(), key=lambda series: series.id)
        if series.scenario == "io.Read.time_read" and has_history(series)
    ]
    if button == "CSV of":
        anchor = page.locator("figure[data-series]").first.get_attribute("data-series")
        all_series = [series for series in all_series if series_anchor(series) == anchor]

    with page.expect_download() as saved:
        page.get_by_role("button", name=re.compile(f"^{button}")).first.click()

    assert saved.value.suggested_filename.endswith(".csv")
    assert all_series
    written = rows(history_csv(all_series))
    for row, expected in zip(rows(saved.value.path().read_text()), written, strict=True):
        for name, cell in expected.items():
            assert row[name] == (pytest.approx(cell, rel=1e-9) if isinstance(cell, float) else cell)


def test_a_zoom_draws_points_between_gaps_and_explains_the_gaps(
    windows: Windows, tmp_path: Path
) -> None:
    # Every other night is lost, and there is no room for a dot each.
    course = [None if night % 2 else 1e6 for night in range(600)]
    site.write(
        SiteInputs(
            records=[], now=NOW, series=[a_series(course, project="p", title="lost nights")]
        ),
        tmp_path,
    )
    (file,) = tmp_path.glob("history/*.html")
    page = windows.open(file)

    page.locator("button.zoom").click()
    page.wait_for_selector(".zoomed canvas")
    slider = page.get_by_role("slider")
    slider.press("End")
    expect(page.locator(".reading")).to_contain_text("no value, failed: no reason")
    slider.press("ArrowLeft")
    expect(page.locator(".reading")).to_contain_text("1 ms")

    coloured = page.evaluate(
        """() => {
            const canvas = document.querySelector('.zoomed canvas');
            const { width, height } = canvas;
            const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
            const blue = new Set();
            for (let at = 0; at < data.length; at += 4)
                if (data[at + 3] && data[at + 2] > data[at] + 60) blue.add((at / 4) % width);
            return blue.size / width;
        }"""
    )
    assert coloured > 0.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_zoomed_history_has_no_axe_violation(
    windows: Windows, sites: Path, scheme: Scheme
) -> None:
    page = windows.open(sites / HISTORY, scheme=scheme)
    page.get_by_role("button", name="Zoom On bench-01").click()
    page.wait_for_selector(".zoomed canvas")

    # Around it nothing has other colours than before.
    assert page.locator("#history .zoomed").count() == 1
    assert violations(page, *COLOURS, within="#history") == ""
    assert violations(page, but="color-contrast") == ""


def test_a_table_sorts_by_keyboard_both_ways_and_back(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO)
    head = page.locator(".forest th", has_text="CPU time")
    column = """[...document.querySelectorAll('.forest tbody > tr:first-child')]
        .map(row => row.cells[4]?.innerText ?? 'none')"""
    before = page.evaluate(column)

    def figures() -> list[float]:
        told = [text.split() for text in page.evaluate(column) if text != "none"]
        return [float(number) * {"ms": 1, "s": 1000}[unit] for number, unit in told]

    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert figures() == sorted(figures(), reverse=True)
    assert page.evaluate(column)[-1] == "none"
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert figures() == sorted(figures())
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") is None
    assert page.evaluate(column) == before


@pytest.mark.parametrize(
    ("name", "widths", "within"),
    [
        ("past/history.html", [PHONE], ":has(> .stack)"),
        ("past/index.html", [PHONE], ":has(> .stack)"),
        (BENCHMARK_PAGE, [PHONE, DESK], "figure .scroll"),
    ],
)
def test_changes_are_fully_visible(
    windows: Windows, sites: Path, name: str, widths: list[int], within: str
) -> None:
    page = windows.open(sites / name)
    hidden = """selector => [...document.querySelectorAll(selector)]
        .filter(node => node.scrollWidth > node.clientWidth).length"""

    for width in widths:
        page.set_viewport_size({"width": width, "height": HEIGHT})
        assert page.locator(within).count() > 0
        assert page.evaluate(hidden, within) == 0


def test_a_table_of_series_in_a_long_unit_fits_a_desk(windows: Windows, tmp_path: Path) -> None:
    course = [8.24 * (1.4 if night >= 40 else 1) + night % 7 / 100 for night in range(60)]
    title = "core.runner.track_overhead_heavyout_online_process"
    several = [
        a_series(course, project="p", title=title, scenario=title, unit="particles / second"),
        a_series(course, project="p", title="time", scenario="time"),
    ]
    site.write(SiteInputs(records=[], now=NOW, series=several), tmp_path)
    page = windows.open(tmp_path / "history.html")

    frame = page.locator(".scroll:has(> .series)")
    over = "node => node.scrollWidth - node.clientWidth"
    assert frame.evaluate(over) <= 0
    # On one line it would not.
    page.add_style_tag(content=".data .told { white-space: nowrap; }")
    assert frame.evaluate(over) > 0


def test_a_name_with_soft_breaks_is_read_copied_and_found_as_one_word(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / BENCHMARK_PAGE)
    tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    heard = [node["name"]["value"] for node in tree["nodes"] if node["role"]["value"] == "heading"]
    name = "io.Read.time_read"

    assert page.locator("h1 wbr").count() == 3
    assert heard[0].startswith(f"{name} of sunpy")
    copied = "node => { getSelection().selectAllChildren(node); return String(getSelection()); }"
    assert page.locator("h1 b").evaluate(copied) == name
    assert page.evaluate(f"getSelection().removeAllRanges() ?? window.find('{name}')")


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
