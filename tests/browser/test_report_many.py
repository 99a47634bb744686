"""The overview of many scenarios: rows out of sight wait, and are there all the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import needs
from build import a_launch, a_run, a_scenario
from corebound.planning.expand import expand
from corebound.report import site
from corebound.report.inputs import Inputs
from report_sample import NOW

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
# Accessibility as a screen reader turns it on.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--force-renderer-accessibility"]
SCENARIOS = 120
LAST = f"Scenario number {SCENARIOS - 1:03}"
LAID_OUT = """() => [...document.querySelectorAll('#scenarios tbody tr a:first-child')]
    .filter(one => one.checkVisibility({contentVisibilityAuto: true})).length"""


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
    return site.write(Inputs(records=[(run, launches)], now=NOW), tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(params=[390, 1280])
def page(request: pytest.FixtureRequest, chromium: Browser, overview: Path) -> Iterator[Page]:
    context = chromium.new_context(
        viewport={"width": request.param, "height": 900}, reduced_motion="reduce"
    )
    opened = context.new_page()
    opened.goto(overview.as_uri())
    yield opened
    context.close()


def test_rows_far_off_are_not_laid_out(page: Page) -> None:
    rows = page.locator("#scenarios tbody tr").count()

    assert rows == SCENARIOS
    assert 0 < page.evaluate(LAID_OUT) < rows


def test_rows_far_off_are_printed(page: Page) -> None:
    page.emulate_media(media="print")
    # As paper has no edge that one scrolls to.
    page.set_viewport_size({"width": 718, "height": 1000})

    assert page.evaluate(LAID_OUT) == SCENARIOS


def test_a_row_far_off_is_found_in_the_page(page: Page) -> None:
    assert page.evaluate("text => window.find(text)", LAST)

    page.wait_for_function("scrollY > 1000")
    assert page.get_by_role("link", name=LAST, exact=True).is_visible()


def test_the_keyboard_reaches_a_row_far_off_and_opens_its_command(page: Page) -> None:
    fold = page.locator("#scenarios tbody tr").last.locator("summary")
    fold.focus()
    fold.press("Enter")

    assert page.locator("#scenarios tbody tr").last.locator("code").is_visible()


def test_rows_far_off_are_read_aloud(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    said = [node.get("name", {}).get("value") for node in nodes if not node["ignored"]]

    assert LAST in said
    assert sum(name == f"command, data for {LAST}" for name in said) == 1
