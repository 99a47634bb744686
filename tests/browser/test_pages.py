"""Every page in a browser: from a file, on a phone, by keyboard, without JavaScript, in print."""

from __future__ import annotations

import csv
import gzip
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.pages import (
    BENCHMARK_PAGE,
    DESK,
    HEIGHT,
    HISTORY,
    PAGES,
    PHONE,
    SCENARIO,
    UNFOLD,
    Scheme,
    Tabs,
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
from support.report_sample import COMMITS_PAGE, NOW, sample_history

pytestmark = [
    pytest.mark.browser,
    needs.chromium,
    needs.libatomic,
]
# Folders of pages that are all of one kind.
OF_MANY = {"scenario", "run", "host", "compare", "history"}
WITHOUT_ADDED = """nodes => nodes.map(node => {
    const plain = node.cloneNode(true);
    for (const added of plain.querySelectorAll('.copy, .anchor')) added.remove();
    return plain.textContent;
})"""
GROUND = "getComputedStyle(document.body).backgroundColor"
at_both_widths = pytest.mark.parametrize("width", [PHONE, DESK])


def test_a_page_logs_nothing_and_loads_only_files(
    tabs: Tabs, loaded_page: Page, width: int
) -> None:
    tab = tabs[width]

    assert loaded_page.url in tab.asked
    assert tab.said == []
    assert [url for url in tab.asked if not url.startswith(("file:", "data:"))] == []


@at_both_widths
def test_a_page_never_scrolls_sideways(loaded_page: Page, width: int) -> None:
    assert loaded_page.evaluate("document.documentElement.scrollWidth") <= width


# What reaches beyond the window's sides and is in no frame that scrolls by itself.
BEYOND = """() => [...document.querySelectorAll('body *')].filter(node => {
    const { left, right, width } = node.getBoundingClientRect();
    if (!width || (left > -1 && right < innerWidth + 1)) return false;
    if (!node.checkVisibility() || node.closest('.hidden, .skip')) return false;
    for (let up = node.parentElement; up !== document.body; up = up.parentElement)
        if (getComputedStyle(up).overflowX !== 'visible') return false;
    return true;
}).map(node => `${node.tagName} ${node.textContent.trim().slice(0, 40)}`)"""


# WCAG 2.2: reflow (1.4.10) asks for a window of 320 pixels, 1.4.4 for text of twice the size.
@pytest.mark.parametrize(("window", "text_percent"), [(320, 100), (PHONE, 200), (DESK, 200)])
def test_content_fits_a_narrow_window_and_large_text(
    fresh_page: Page, window: int, text_percent: int
) -> None:
    fresh_page.set_viewport_size({"width": window, "height": HEIGHT})
    fresh_page.add_style_tag(content=f"html {{ font-size: {text_percent}%; }}")
    folded = fresh_page.evaluate(BEYOND)

    fresh_page.evaluate(UNFOLD)

    assert (folded, fresh_page.evaluate(BEYOND)) == ([], [])
    assert fresh_page.evaluate("document.documentElement.scrollWidth") <= window


COLOURS = ("color-contrast", "link-in-text-block")
# All that axe knows by itself; in the dark, where nothing lies elsewhere, what it sees of colours.
RULES: dict[Scheme, tuple[str, ...]] = {"light": (), "dark": COLOURS}


@pytest.mark.parametrize("scheme", RULES)
def test_a_page_has_no_axe_violation(fresh_page: Page, scheme: Scheme) -> None:
    fresh_page.emulate_media(color_scheme=scheme)
    fresh_page.evaluate(UNFOLD)

    assert violations(fresh_page, *RULES[scheme]) == ""


def test_dark_mode_changes_colours_only(fresh_page: Page) -> None:
    laid_out = """() => [...document.querySelectorAll('*')].map(node => {
        const { x, y, width, height } = node.getBoundingClientRect();
        return [node.tagName, x, y, width, height].join(' ');
    })"""
    fresh_page.evaluate(UNFOLD)
    ground, places = fresh_page.evaluate(GROUND), fresh_page.evaluate(laid_out)

    fresh_page.emulate_media(color_scheme="dark")

    assert fresh_page.evaluate(GROUND) != ground
    assert fresh_page.evaluate(laid_out) == places


def kind(page: str) -> str:
    """What sort of page a path is of."""
    place = Path(page)
    return place.parent.name if place.parent.name in OF_MANY else place.name


def test_every_kind_of_page_is_tested(sites: Path) -> None:
    there = {kind(page.relative_to(sites).as_posix()) for page in sites.rglob("*.html")}

    assert there == {kind(name) for name in PAGES}


def test_a_page_has_the_same_text_without_javascript(
    windows: Windows, sites: Path, name: str, fresh_page: Page
) -> None:
    plain = windows.open(sites / name, scripts=False)
    # Some folds are filled when they are opened.
    fresh_page.evaluate(UNFOLD)
    said = []
    for page in (plain, fresh_page):
        assert page.locator(".verdict").inner_text().strip()
        # What scripts add is for pressing: to sort a table, and to zoom.
        said.append(
            [
                re.sub(r"\s+", " ", text)
                for text in page.locator("h1, h2, .verdict, .support, td, th, dd, li").evaluate_all(
                    WITHOUT_ADDED
                )
            ]
        )

    assert said[0] == said[1]


def test_a_page_is_complete_without_javascript(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO, scripts=False)

    assert "faster" in page.locator(".verdict").inner_text()
    # Fifteen with a result, and one row of those that were skipped.
    assert page.locator(".forest tbody").count() == 16
    assert page.locator(".heat td").count() == 18
    assert page.locator(".strip svg").count() == 2
    assert page.locator("button").count() == 0


def test_a_cell_of_the_heat_map_leads_to_its_row(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO, scripts=False)

    page.locator(".heat .best a").click()

    row = page.locator(".forest tr:target")
    assert row.get_attribute("class") == "best"
    expect(row).to_be_in_viewport()


def test_a_history_is_complete_without_javascript(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / HISTORY, scripts=False)

    assert "slower since 4e1d9c7a0b" in page.locator("#history .lead").inner_text()
    assert page.locator("#history > figure svg[role=img]").count() == 1
    assert page.locator("#history > figure .marks span").count() == 2
    assert page.locator("#history > .scroll .changes tbody tr").count() == 1


def test_every_link_has_a_target(sites: Path, name: str, loaded_page: Page) -> None:
    links = loaded_page.eval_on_selector_all(
        "a[href], link[href]", "all => all.map(node => node.getAttribute('href'))"
    )
    ids = loaded_page.eval_on_selector_all("[id]", "all => all.map(node => node.id)")

    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        elif not link.startswith("data:"):
            address, _, place = link.partition("#")
            there = (sites / name).parent / address
            assert there.is_file(), link
            assert not place or f'id="{place}"' in there.read_text(), link
    assert len(ids) == len(set(ids))


@at_both_widths
def test_no_text_is_smaller_than_11_px(loaded_page: Page) -> None:
    smallest = loaded_page.evaluate(
        """() => Math.min(...[...document.querySelectorAll('body *')]
            .filter(node => node.innerText && node.getClientRects().length)
            .map(node => parseFloat(getComputedStyle(node).fontSize)))"""
    )

    assert smallest >= 11


def test_the_keyboard_reaches_the_result_first(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO)

    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.textContent") == "Skip to the result"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


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
    # A radio's group is one stop, what is folded away is none until it is opened.
    wanted = page.evaluate(
        """() => [...document.querySelectorAll(
            'a[href], button, summary, [tabindex="0"], input, select')]
            .filter(node => node.checkVisibility() && (node.type !== 'radio' || node.checked)
                && !node.closest('[inert]')).length"""
    )
    page.evaluate(LISTEN)

    for _ in range(wanted):
        page.keyboard.press("Tab")
    reached = page.evaluate("new Set(stops.map(({ target }) => target)).size")
    page.keyboard.press("Tab")

    assert reached == wanted
    assert set(page.evaluate("stops.map(({ outline }) => outline)")) == {"solid 2px"}
    assert page.evaluate("document.activeElement === document.body")
    page.close()


def test_the_switch_changes_the_colours_and_print_is_light(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO)
    light = page.evaluate(GROUND)

    page.get_by_text("Dark", exact=True).click()

    assert page.evaluate(GROUND) != light
    page.emulate_media(media="print")
    assert page.evaluate(GROUND) == light


def test_a_page_remembers_the_light_theme(sites: Path) -> None:
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


@pytest.mark.parametrize("scheme", RULES)
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


@pytest.mark.parametrize("name", ["history.html", "index.html"])
def test_a_change_is_fully_visible_on_a_phone(windows: Windows, sites: Path, name: str) -> None:
    page = windows.open(sites / "past" / name, width=390)

    hidden = page.evaluate(
        """() => [...document.querySelectorAll('.stack')]
            .filter(node => node.parentNode.scrollWidth > node.parentNode.clientWidth).length"""
    )

    assert hidden == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_changes_under_a_small_chart_are_fully_visible(
    windows: Windows, sites: Path, width: int
) -> None:
    page = windows.open(sites / BENCHMARK_PAGE, width=width)

    hidden = page.evaluate(
        """() => [...document.querySelectorAll('figure .scroll')]
            .filter(node => node.scrollWidth > node.clientWidth).length"""
    )

    assert hidden == 0


def test_a_page_prints_light_complete_and_without_controls(fresh_page: Page) -> None:
    fresh_page.emulate_media(color_scheme="dark")

    fresh_page.emulate_media(media="print")

    assert fresh_page.evaluate(GROUND) == "rgb(253, 253, 251)"
    assert not fresh_page.locator(".theme").is_visible()
    # A4 between its margins: nothing is cut off at the right.
    fresh_page.set_viewport_size({"width": 695, "height": 1000})
    assert (
        fresh_page.evaluate(
            """() => Math.max(...[...document.querySelectorAll('main table, main pre, main figure')]
            .map(node => node.getBoundingClientRect().right), 0)"""
        )
        <= 700
    )
    assert fresh_page.locator(".zoom:visible, .moves:visible").count() == 0


@at_both_widths
def test_an_unfolded_command_is_fully_visible(fresh_page: Page, name: str, width: int) -> None:
    fresh_page.evaluate(UNFOLD)

    loaded_page, cut = fresh_page.evaluate(
        """() => {
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
    )

    # What was imported without its command has none.
    assert loaded_page or name in {
        *("empty/index.html", "past/hosts.html", "past/compare.html", "fleet/hosts.html"),
        *(BENCHMARK_PAGE, f"past/{COMMITS_PAGE}"),
    }
    assert cut == []
    assert fresh_page.evaluate("document.documentElement.scrollWidth") <= width


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
