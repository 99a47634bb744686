"""The site in a browser, as a reader meets it: from a file, on a phone, without JavaScript."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from ctypes.util import find_library
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from corebound.report import site
from report_sample import NOW, a_past, a_preflight, a_sample, an_earlier_sample, sample_imports

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
    ),
    pytest.mark.skipif(
        find_library("atomic") is None,
        reason="Chromium's driver needs libatomic: apt-get install libatomic1",
    ),
]
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGES = (
    "index.html",
    "scenario/resnet50-inference.html",
    "operators.html",
    "empty/index.html",
    "past/index.html",
    "past/scenario/resnet50-inference.html",
    "past/history.html",
    "past/history/io.Read.time_read-b69fd9f5.html",
    "past/run/r1.html",
    "past/host/bench-01-0123456789ab.html",
    "past/compare/r0-r1.html",
)
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write([a_sample()], folder, now=NOW, profiles=sample_imports())
    site.write([], folder / "empty", now=NOW)
    run, launches = a_sample()
    records = [(replace(run, preflight=a_preflight()), launches), an_earlier_sample()]
    site.write(records, folder / "past", now=NOW, series=a_past())
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


def opened(
    chromium: Browser,
    file: Path,
    *,
    width: int = 1280,
    scheme: Scheme = "light",
    scripts: bool = False,
    bypass: bool = False,
) -> Page:
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
        # Scripts are off as a reader may have them; the checks that are
        # scripts themselves turn them on.
        java_script_enabled=scripts,
        bypass_csp=bypass,
    )
    page = context.new_page()
    page.goto(file.as_uri())
    return page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_nothing_on_the_console_and_asks_for_files_only(
    chromium: Browser, made: Path, name: str
) -> None:
    page = chromium.new_context().new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))

    page.goto((made / name).as_uri())

    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_never_scrolls_sideways(
    chromium: Browser, made: Path, name: str, width: int
) -> None:
    page = opened(chromium, made / name, width=width, scripts=True)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_no_fault_that_axe_knows(
    chromium: Browser, made: Path, name: str, scheme: Scheme
) -> None:
    page = opened(chromium, made / name, scheme=scheme, scripts=True, bypass=True)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")

    found = Axe().run(page, options={"preload": False})

    assert found.violations_count == 0, found.generate_report()
    page.context.close()


def test_a_page_is_whole_without_javascript(chromium: Browser, made: Path) -> None:
    page = opened(chromium, made / PAGES[1])

    assert "faster" in page.locator(".verdict").inner_text()
    assert page.locator(".forest tbody tr").count() == 15
    assert page.locator(".strip svg").count() == 3
    assert page.locator("script").count() == 0
    page.context.close()


def test_a_history_is_whole_without_javascript(chromium: Browser, made: Path) -> None:
    page = opened(chromium, made / "past/scenario/resnet50-inference.html")

    assert "slower since 4e1d9c7a0b" in page.locator("#history h2").inner_text()
    assert page.locator("#history > figure svg[role=img]").count() == 1
    assert page.locator("#history > figure .marks span").count() == 2
    assert page.locator("#history > .scroll .changes tbody tr").count() == 1
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(chromium: Browser, made: Path, name: str) -> None:
    page = opened(chromium, made / name, scripts=True)
    links = page.eval_on_selector_all(
        "a[href], link[href]", "all => all.map(one => one.getAttribute('href'))"
    )
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")

    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids
        elif not link.startswith("data:"):
            address, _, place = link.partition("#")
            there = (made / name).parent / address
            assert there.is_file(), link
            assert not place or f'id="{place}"' in there.read_text(), link
    assert len(ids) == len(set(ids))
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1280])
def test_no_text_is_smaller_than_11_px(
    chromium: Browser, made: Path, name: str, width: int
) -> None:
    page = opened(chromium, made / name, width=width, scripts=True)
    smallest = page.evaluate(
        """() => Math.min(...[...document.querySelectorAll('body *')]
            .filter(one => one.innerText && one.getClientRects().length)
            .map(one => parseFloat(getComputedStyle(one).fontSize)))"""
    )

    assert smallest >= 11
    page.context.close()


def test_the_keyboard_reaches_the_result_first(chromium: Browser, made: Path) -> None:
    page = opened(chromium, made / PAGES[1], scripts=True)

    page.keyboard.press("Tab")

    assert page.evaluate("document.activeElement.textContent") == "Skip to the result"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.context.close()


def test_the_switch_changes_the_colours_and_print_is_always_light(
    chromium: Browser, made: Path
) -> None:
    page = opened(chromium, made / PAGES[1], scripts=True)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)

    page.get_by_text("Dark", exact=True).click()

    assert page.evaluate(ground) != light
    page.emulate_media(media="print")
    assert page.evaluate(ground) == light
    page.context.close()


def test_a_page_stays_light(made: Path) -> None:
    styles = (made / "assets/site.css").read_bytes()
    scenario = (made / PAGES[1]).read_bytes()

    assert len(styles) < 20_000
    assert len(gzip.compress(scenario + styles)) < 120_000
