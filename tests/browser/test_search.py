"""Search and lazy layout of pages with hundreds of rows."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, sync_playwright

from browser.pages import DESK, HEIGHT, PHONE, Windows, wait_until
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.scenario.matrix import expand
from support import needs
from support.build import a_launch, a_run, a_scenario, a_series
from support.report_sample import NOW

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
# Accessibility as a screen reader turns it on.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--force-renderer-accessibility"]
# More than a hundred, from where on rows out of sight are not laid out.
SCENARIOS = 110
LAST = f"Scenario number {SCENARIOS - 1:03}"
TWO_MODULES = [f"{module}.time_{which}" for module in ("core", "plot") for which in range(40)]
LAID_OUT = """() => [...document.querySelectorAll('#scenarios tbody th a')]
    .filter(node => node.checkVisibility({contentVisibilityAuto: true})).length"""


@pytest.fixture(scope="module")
def overview(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenarios = tuple(
        a_scenario(name=f"s-{number:03}", title=f"Scenario number {number:03}")
        for number in range(SCENARIOS)
    )
    launches = tuple(
        replace(a_launch(cell=cell, position=position), id=f"{scenario.name}-{position}")
        for scenario in scenarios
        for position, cell in enumerate(expand(scenario, "a.yaml"))
    )
    run = a_run(scenarios=scenarios)
    return site.write(
        SiteInputs(records=[(run, launches)], now=NOW), tmp_path_factory.mktemp("site")
    )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(windows: Windows, overview: Path) -> Page:
    page = windows.open(overview)
    page.emulate_media(reduced_motion="reduce")
    return page


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_distant_rows_are_not_laid_out(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    rows = page.locator("#scenarios tbody tr").count()

    assert rows == SCENARIOS
    assert 0 < page.evaluate(LAID_OUT) < rows


def test_distant_rows_are_printed(page: Page) -> None:
    page.emulate_media(media="print")
    # As paper has no edge that one scrolls to.
    page.set_viewport_size({"width": 718, "height": 1000})

    assert page.evaluate(LAID_OUT) == SCENARIOS


def test_a_distant_row_is_found_by_the_browsers_search(page: Page) -> None:
    assert page.evaluate("text => window.find(text)", LAST)

    wait_until(page, "scrollY > 1000")
    assert page.get_by_role("link", name=LAST, exact=True).is_visible()


def test_the_keyboard_reaches_a_distant_row_and_opens_its_command(page: Page) -> None:
    fold = page.locator("#scenarios tbody tr").last.locator("summary")
    fold.focus()
    fold.press("Enter")

    assert page.locator("#scenarios tbody tr").last.locator("details code").is_visible()


def test_distant_rows_are_in_the_accessibility_tree(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    said = [node.get("name", {}).get("value") for node in nodes if not node["ignored"]]

    assert LAST in said
    assert sum(name == f"command, data for {LAST}" for name in said) == 1


def test_a_search_keeps_the_rows_that_have_every_word(page: Page) -> None:
    only = page.get_by_role("searchbox", name="Filter, Scenarios")
    only.fill("scenario 07")
    rows = page.locator("#scenarios tbody tr:visible")

    # Numbers 070 to 079, 007 and 107.
    assert rows.count() == 12
    assert (
        page.get_by_role("status").inner_text()
        == f"12\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}{SCENARIOS}\N{NO-BREAK SPACE}listed"
    )
    page.get_by_role("button", name="Scenario", exact=True).click()
    assert "107" in rows.first.inner_text()
    # A command is on every row, and is none of what a row says.
    only.fill("corebound run")
    assert rows.count() == 0
    only.fill("")
    assert rows.count() == SCENARIOS
    assert page.get_by_role("status").inner_text() == ""


def a_history(folder: Path, names: Sequence[str]) -> Path:
    """The history's page of imported benchmarks that each stay as they are."""
    course = [1.0 + night % 3 / 1000 for night in range(20)]
    series = [a_series(course, project="p", title=name, scenario=name) for name in names]
    site.write(SiteInputs(records=[], now=NOW, series=series), folder)
    return folder / "history.html"


@pytest.fixture(scope="module")
def two_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = [*TWO_MODULES, "lone.time_7", "plot.time_Scénario"]
    return a_history(tmp_path_factory.mktemp("history"), names)


def test_a_search_opens_matches_and_restores_them_afterwards(
    windows: Windows, two_modules: Path
) -> None:
    page = windows.open(two_modules)
    folds, rows = page.locator("#series > details"), page.locator("#series tbody tr:visible")
    only = page.get_by_role("searchbox", name="Filter, All series")

    assert (folds.count(), rows.count()) == (3, 0)
    only.fill("plot TIME_7")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["plot.time_7"]
    assert page.locator("#series > details:visible").count() == 1
    # A list of one is searched as any other.
    only.fill("lone")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["lone.time_7"]
    assert (
        page.get_by_role("status").inner_text()
        == "1\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}82\N{NO-BREAK SPACE}listed"
    )
    only.fill("")
    assert (page.locator("#series > details:visible").count(), rows.count()) == (3, 0)
    # What the reader opened stays open.
    folds.first.locator("> summary").click()
    only.fill("lone")
    only.fill("")
    assert rows.count() == 40


def test_the_search_is_above_everything_it_searches(windows: Windows, tmp_path: Path) -> None:
    page = windows.open(a_history(tmp_path, [f"time_{which}" for which in range(35)]))
    only, heading = page.get_by_role("searchbox"), page.locator("#series h3")

    above, below = only.bounding_box(), heading.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]
    only.fill("nothing like it")
    assert not heading.is_visible()


def test_a_search_matches_headings_of_rows_and_ignores_accents(
    windows: Windows, two_modules: Path
) -> None:
    page = windows.open(two_modules)
    only, rows = page.get_by_role("searchbox"), page.locator("#series tbody tr:visible")

    only.fill("scenario")
    assert rows.count() == 1
    # The machine is told above the list, once.
    only.fill("host plot time_11")
    assert rows.count() == 1


def test_going_back_restores_the_search(page: Page) -> None:
    page.get_by_role("searchbox").fill("number 001")
    page.locator("#scenarios tbody tr:visible a").first.click()
    page.go_back()

    words = page.get_by_role("searchbox").input_value()
    shown = page.locator("#scenarios tbody tr:visible")
    page.wait_for_timeout(200)
    assert shown.count() == (1 if words else SCENARIOS)


def test_a_link_to_a_row_works_during_a_search(page: Page) -> None:
    page.locator("#scenarios tbody tr").last.evaluate("row => (row.id = 'far')")
    page.get_by_role("searchbox").fill("number 001")
    page.evaluate("location.hash = 'far'")

    wait_until(page, "document.querySelector('#far').checkVisibility()")
    assert page.get_by_role("searchbox").input_value() == ""


def test_a_short_list_has_no_search(windows: Windows, tmp_path: Path) -> None:
    page = windows.open(a_history(tmp_path, TWO_MODULES[:9]))

    assert page.get_by_role("searchbox").count() == 0
