"""Finding one's way: navigation, search, copying, permalinks, comparing, keeping the place."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.pages import HISTORY, PHONE, SCENARIO, Windows, violations, wait_until
from corebound.report import site
from corebound.report.inputs import SiteInputs
from support import needs
from support.build import a_series
from support.report_sample import NOW

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
PAST = "past/index.html"


@pytest.mark.parametrize("scripts", [True, False])
def test_the_navigation_works_on_a_phone_by_keyboard(
    windows: Windows, sites: Path, scripts: bool
) -> None:
    page = windows.open(sites / HISTORY, width=PHONE, scripts=scripts)
    bar = page.get_by_role("navigation", name="Site")

    for link in bar.get_by_role("link").all():
        box = link.bounding_box()
        assert box is not None
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE
    bar.get_by_role("link", name="Compare").press("Enter")

    page.wait_for_url("**/past/compare.html")
    expect(page.locator(".nav [aria-current=page]")).to_have_text("Compare")


def test_the_number_of_new_regressions_is_read_out(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / PAST)

    expect(
        page.get_by_role("link", name=re.compile(r"History, [1-9] series with new regressions"))
    ).to_be_visible()


def search(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search scenarios, benchmarks, commits and hosts")


def test_a_slash_focuses_the_search_which_leads_to_a_benchmark(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / HISTORY)

    page.keyboard.press("/")
    expect(search(page)).to_be_focused()
    page.keyboard.type("TIME_read")
    options = page.get_by_role("option")
    expect(options).to_have_text(["io.Read.time_readbenchmark, sunpy"])
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    active = search(page).get_attribute("aria-activedescendant")
    assert active == options.first.get_attribute("id")
    page.keyboard.press("Enter")

    page.wait_for_url("**/past/history/io.Read.time_read-*.html")


def test_the_search_ranks_names_that_begin_with_the_words_first(
    windows: Windows, tmp_path: Path
) -> None:
    names = ["plot.time_io", "io.time_read", "stats.io.time_write", "time_audio", "mean"]
    series = [a_series([1.0, 2.0], project="p", scenario=name, title=name) for name in names]
    page = windows.open(site.write(SiteInputs(records=[], now=NOW, series=series), tmp_path))

    search(page).fill("io")
    expect(page.get_by_role("option").first).to_contain_text("io.time_read")
    found = [
        text.partition("benchmark")[0] for text in page.get_by_role("option").all_inner_texts()
    ]
    assert [text.strip() for text in found] == [
        "io.time_read",
        "plot.time_io",
        "stats.io.time_write",
        "time_audio",
    ]
    search(page).fill("p mean")
    expect(page.get_by_role("option")).to_have_count(1)
    search(page).fill("nothing like it")
    expect(page.get_by_role("option")).to_have_text(["Nothing found"])


def test_escape_closes_the_search_and_then_clears_it(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / PAST)
    search(page).fill("bench")
    results = page.get_by_role("listbox", name="Search results")
    expect(results).to_be_visible()
    assert (
        violations(page, "aria-required-children", "aria-valid-attr-value", "color-contrast") == ""
    )

    page.keyboard.press("Escape")
    expect(results).to_be_hidden()
    expect(search(page)).to_have_value("bench")
    page.keyboard.press("Escape")
    expect(search(page)).to_have_value("")


def test_the_index_is_loaded_when_the_search_is_first_focused(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / PAST)
    assert page.evaluate("corebound.index") is None

    search(page).focus()

    wait_until(page, "corebound.index?.length > 3")


COPY = "() => { navigator.clipboard.writeText = async (text) => { window.copied = text } }"
REFUSE = "() => { navigator.clipboard.writeText = () => Promise.reject() }"
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', {value: undefined})"
SELECTED = "getSelection().toString().trim()"


def test_the_line_to_paste_is_copied(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "index.html")
    line = page.locator(".set code").inner_text()
    page.evaluate(COPY)
    button = page.locator(".set .copy")
    expect(button).to_have_accessible_name(f"Copy {line}")

    button.click()

    expect(button).to_have_text("Copied")
    assert page.evaluate("copied") == line


def test_a_command_in_a_row_is_copied_alone(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / PAST)
    page.evaluate(COPY)
    fold = page.locator("#scenarios details").first
    fold.locator("summary").click()

    fold.get_by_role("button", name=re.compile("^Copy command, data for ")).click()

    assert page.evaluate("copied") == fold.locator("code").evaluate("node => node.firstChild.data")


@pytest.mark.parametrize("closed", [REFUSE, NO_CLIPBOARD])
def test_without_a_clipboard_the_line_is_selected(
    windows: Windows, sites: Path, closed: str
) -> None:
    page = windows.open(sites / "index.html")
    page.evaluate(closed)

    page.locator(".set .copy").click()

    expect(page.locator(".set .copy")).to_have_text("Press Ctrl+C")
    assert page.evaluate(SELECTED) == page.locator(".set code").inner_text()


def test_a_click_selects_the_whole_line_without_a_script(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "index.html", scripts=False)
    line = page.locator(".set code")

    line.click()

    assert page.evaluate(SELECTED) == line.inner_text()
    assert page.locator(".copy").count() == 0


def test_every_section_has_a_visible_permalink(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO, width=PHONE)
    sections = page.locator("section[id]:has(> h2)")

    links = page.get_by_role("link", name=re.compile("^Permalink to "))
    assert links.count() == sections.count() > 3
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
    links.last.click()
    assert page.evaluate("location.hash") == f"#{sections.last.get_attribute('id')}"


def test_two_runs_are_chosen_and_lead_to_their_comparison(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "past/compare.html")

    page.get_by_label("Before").select_option("r1")
    page.get_by_label("After").select_option("r0")
    page.get_by_role("link", name="Compare r1 and r0").click()

    page.wait_for_url("**/past/compare/r0-r1.html")
    page.go_back()
    expect(page.get_by_label("Before")).to_have_value("r1")


def test_a_pair_without_a_page_has_the_command(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "past/compare.html")
    after = page.get_by_label("After").locator("optgroup[label='Project sunpy'] option")

    page.get_by_label("After").select_option(after.first.get_attribute("value"))
    expect(page.get_by_role("status")).to_contain_text("not comparable")
    page.get_by_label("After").select_option("r0")
    page.get_by_label("Before").select_option("r0")
    expect(page.get_by_role("status")).to_contain_text("Choose two different ones")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_link_leads_to_a_change_in_a_fold(windows: Windows, sites: Path, scripts: bool) -> None:
    file = sites / "past/history.html"
    folded = file.read_text(encoding="utf-8").partition("<noscript>")[2]
    found = re.search(r' id="(change-\w+)"', folded)
    assert found is not None

    page = windows.open(file, scripts=scripts)
    page.goto(f"{file.as_uri()}#{found[1]}")

    expect(page.locator(f"#{found[1]}")).to_be_in_viewport()


def test_a_fold_is_filled_when_it_is_opened_and_after_a_refresh(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / "past/history.html")
    fold = page.locator(".commit > details").first
    assert page.locator("details noscript").count() > 0
    assert fold.locator("tr").count() == 0

    fold.locator("> summary").click()

    expect(fold.locator("tbody tr").first).to_be_visible()
    page.reload()
    expect(fold.locator("tbody tr").first).to_be_visible()


def test_a_refresh_keeps_what_is_open_and_the_place(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / SCENARIO)
    page.emulate_media(reduced_motion="reduce")
    fold = page.locator("#launches details, #cells details").first
    fold.locator("> summary").click()
    row = page.locator("#reproduce h2")
    row.evaluate("node => scrollTo(0, scrollY + node.getBoundingClientRect().top - 100)")
    before = row.bounding_box()

    page.reload()

    expect(fold).to_have_attribute("open", "")
    wait_until(page, "scrollY > 500")
    after = row.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) <= 2


def test_filters_are_in_the_address_and_survive_a_refresh(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "past/run/r1.html")
    rows = page.locator("#launches tbody tr:visible")
    everything = page.locator("#launches tbody tr").count()

    chip = page.get_by_role("group", name="Filter by Status").get_by_role("button").first
    number = int(chip.inner_text().split()[-1])
    chip.click()
    assert rows.count() == number < everything
    page.reload()
    expect(chip).to_have_attribute("aria-pressed", "true")
    assert rows.count() == number
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "false")
    expect(page).not_to_have_url(re.compile("#"))

    only = page.get_by_role("searchbox", name="Filter, All launches")
    only.fill("physical cores")
    # Playwright hears of a new address a little later.
    expect(page).to_have_url(re.compile(r"filter\.launches=physical\+cores"))
    number = rows.count()
    page.reload()
    expect(only).to_have_value("physical cores")
    assert 0 < rows.count() == number < everything
