"""The site in a browser, as a reader meets it: from a file, on a phone, without JavaScript."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

import needs
from corebound.report import site
from report_sample import (
    COMMITS,
    COMMITS_PAGE,
    NOW,
    a_past,
    a_sample,
    sample_calibrations,
    sample_imports,
    sample_records,
)

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    needs.chromium,
    needs.libatomic,
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
    "claims.html",
    "empty/index.html",
    "past/index.html",
    "past/scenario/resnet50-inference.html",
    "past/history.html",
    "past/history/io.Read.time_read-b69fd9f5.html",
    "past/scenario/torchserve.html",
    "past/run/r1.html",
    "past/run/served.html",
    "past/host/bench-01-0123456789ab.html",
    "past/compare/r0-r1.html",
    f"past/{COMMITS_PAGE}",
)
# Folders of pages that are all of one kind.
OF_MANY = {"scenario", "run", "host", "compare", "history"}
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write([a_sample()], folder, now=NOW, profiles=sample_imports())
    site.write([], folder / "empty", now=NOW)
    site.write(
        sample_records(),
        folder / "past",
        now=NOW,
        series=a_past(),
        calibrations=sample_calibrations(),
        compared=[COMMITS],
    )
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


def kind(page: str) -> str:
    """What sort of page a path is of."""
    place = Path(page)
    return place.parent.name if place.parent.name in OF_MANY else place.name


def test_every_kind_of_page_there_is_is_looked_at(made: Path) -> None:
    there = {kind(page.relative_to(made).as_posix()) for page in made.rglob("*.html")}

    assert there == {kind(name) for name in PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_the_same_without_javascript(chromium: Browser, made: Path, name: str) -> None:
    said = []
    for scripts in (False, True):
        page = opened(chromium, made / name, scripts=scripts)
        assert page.locator(".verdict").inner_text().strip()
        # What scripts add is for pressing: to sort a table, and to zoom.
        said.append(
            [
                re.sub(r"\s+", " ", text)
                for text in page.locator(
                    "h1, h2, .verdict, .support, td, th, dd, li"
                ).all_inner_texts()
            ]
        )
        page.context.close()
    assert said[0] == said[1]


def test_a_page_is_whole_without_javascript(chromium: Browser, made: Path) -> None:
    page = opened(chromium, made / PAGES[1])

    assert "faster" in page.locator(".verdict").inner_text()
    assert page.locator(".forest tbody tr").count() == 15
    assert page.locator(".strip svg").count() == 3
    assert page.locator("button").count() == 0
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


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_alone_reaches_all_there_is_to_press_and_leaves_again(
    chromium: Browser, made: Path, name: str
) -> None:
    page = opened(chromium, made / name, scripts=True)
    # A radio's group is one stop, what is folded away is none until it is opened.
    wanted = page.evaluate(
        """() => [...document.querySelectorAll('a[href], button, summary, [tabindex="0"], input')]
            .filter(one => one.checkVisibility() && (one.type !== 'radio' || one.checked)
                && !one.closest('[inert]')).length"""
    )

    reached: set[int] = set()
    for _ in range(wanted + 1):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
                const one = document.activeElement;
                if (one === document.body) return null;
                const shown = one.type === 'radio' ? one.nextElementSibling : one;
                const style = getComputedStyle(shown);
                const all = [...document.querySelectorAll('*')];
                return [all.indexOf(one), style.outlineStyle, parseFloat(style.outlineWidth)];
            }"""
        )
        if found is None:
            break
        place, outline, width = found
        assert (outline, width) == ("solid", 2), place
        reached.add(place)

    assert len(reached) == wanted
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

    scripts = (made / "assets/site.js").read_bytes()
    loaded = re.findall(rb'(?:src|href)="[^"]*assets/([^"]*)"', scenario)

    assert loaded == [b"site.css", b"site.js"]
    assert len(styles) < 25_000
    assert len(gzip.compress(scenario + styles + scripts)) < 120_000


def test_a_history_zooms_by_keyboard_and_loads_for_it_only_then(
    chromium: Browser, made: Path
) -> None:
    page = opened(chromium, made / "past/scenario/resnet50-inference.html", scripts=True)
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
        "resnet50-inference.history.js",
        "uplot-1.6.32.css",
        "uplot-1.6.32.js",
    ]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.get_by_role("button", name="Zoom On bench-01").press("Enter")
    assert page.locator(".zoomed").count() == 0
    assert page.locator("#history > figure .frame").is_visible()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_zoomed_history_has_no_fault_that_axe_knows(
    chromium: Browser, made: Path, scheme: Scheme
) -> None:
    file = made / "past/scenario/resnet50-inference.html"
    page = opened(chromium, file, scheme=scheme, scripts=True, bypass=True)
    page.get_by_role("button", name="Zoom On bench-01").click()
    page.wait_for_selector(".zoomed canvas")

    found = Axe().run(page, options={"preload": False})

    assert found.violations_count == 0, found.generate_report()
    page.context.close()


def test_a_table_sorts_by_keyboard_both_ways_and_back(chromium: Browser, made: Path) -> None:
    page = opened(chromium, made / PAGES[1], scripts=True)
    head = page.locator("#cells th", has_text="p99")
    column = "[...document.querySelectorAll('#cells tbody td:nth-child(4)')].map(c => c.innerText)"
    before = page.evaluate(column)

    def figures() -> list[float]:
        told = [text.split()[0].replace(",", "") for text in page.evaluate(column)]
        return [float(text) for text in told if text != "none"]

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
    page.context.close()


@pytest.mark.parametrize("name", ["history.html", "index.html"])
def test_a_change_shows_all_it_says_on_a_phone(chromium: Browser, made: Path, name: str) -> None:
    page = opened(chromium, made / "past" / name, width=390, scripts=True)

    hidden = page.evaluate(
        """() => [...document.querySelectorAll('.stack')]
            .filter(one => one.parentNode.scrollWidth > one.parentNode.clientWidth).length"""
    )

    assert hidden == 0
    page.context.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_changes_under_a_small_chart_are_seen_whole(
    chromium: Browser, made: Path, width: int
) -> None:
    file = made / "past/history/io.Read.time_read-b69fd9f5.html"
    page = opened(chromium, file, width=width, scripts=True)

    hidden = page.evaluate(
        """() => [...document.querySelectorAll('figure .scroll')]
            .filter(one => one.scrollWidth > one.clientWidth).length"""
    )

    assert hidden == 0
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_light_whole_and_without_what_is_to_be_pressed(
    chromium: Browser, made: Path, name: str
) -> None:
    page = opened(chromium, made / name, scheme="dark", scripts=True)

    page.emulate_media(media="print")

    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(253, 253, 251)"
    assert not page.locator(".theme").is_visible()
    # A4 between its margins: nothing is cut off at the right.
    page.set_viewport_size({"width": 695, "height": 1000})
    assert (
        page.evaluate(
            """() => Math.max(...[...document.querySelectorAll('main table, main pre, main figure')]
            .map(one => one.getBoundingClientRect().right), 0)"""
        )
        <= 700
    )
    assert page.locator(".zoom:visible, .moves:visible").count() == 0
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1280])
def test_an_unfolded_command_is_seen_whole(
    chromium: Browser, made: Path, name: str, width: int
) -> None:
    page = opened(chromium, made / name, width=width, scripts=True)

    seen, cut = page.evaluate(
        """() => {
            document.querySelectorAll('details').forEach(one => one.open = true);
            const commands = [...document.querySelectorAll('details > code')];
            const cut = commands.filter(one => {
                one.scrollIntoView({ block: 'center', inline: 'nearest' });
                const frame = (one.closest('.scroll') || document.body).getBoundingClientRect();
                const { left, right } = one.getBoundingClientRect();
                return left < frame.left - 1 || right > frame.right + 1
                    || one.scrollWidth > one.clientWidth + 1;
            });
            return [commands.length, cut.map(one => one.textContent)];
        }"""
    )

    assert seen or name in {"empty/index.html", "past/history/io.Read.time_read-b69fd9f5.html"}
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()
