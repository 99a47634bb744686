"""The first page in a browser: the line to paste, and the questions a visitor enters by."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.pages import DESK, PHONE, Windows
from support import needs

pytestmark = [pytest.mark.browser, needs.chromium, needs.libatomic]
SELECTED = "getSelection().toString().trim()"
CLIPBOARD = """Object.defineProperty(navigator, 'clipboard', {value: {
    writeText: async text => { window.copied = text; }}})"""
NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', {value: undefined})"


def test_a_click_selects_the_whole_line_without_a_script(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "index.html", scripts=False)
    line = page.locator(".set code")

    line.click()

    assert page.evaluate(SELECTED) == line.inner_text()
    assert page.locator(".copy").count() == 0


def test_the_button_copies_the_line(windows: Windows, sites: Path) -> None:
    page = windows.open(sites / "index.html")
    line = page.locator(".set code").inner_text()
    page.evaluate(CLIPBOARD)
    button = page.locator(".set .copy")
    expect(button).to_have_accessible_name(f"Copy {line}")

    button.click()

    expect(button).to_have_text("Copied")
    assert page.evaluate("copied") == line


def test_where_the_clipboard_is_closed_the_button_selects_the_line(
    windows: Windows, sites: Path
) -> None:
    page = windows.open(sites / "index.html")
    page.evaluate(NO_CLIPBOARD)

    page.locator(".set .copy").click()

    expect(page.locator(".set .copy")).to_have_text("Press Ctrl+C")
    assert page.evaluate(SELECTED) == page.locator(".set code").inner_text()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_bars_beside_the_headline_are_on_one_scale(
    windows: Windows, sites: Path, width: int
) -> None:
    page = windows.open(sites / "index.html", width=width)

    rooms, bars = (
        [box for place in page.locator(part).all() if (box := place.bounding_box())]
        for part in (".duel .bar", ".duel .bar i")
    )

    assert len(rooms) == len(bars) == 2
    assert {round(bar["x"]) for bar in bars} == {round(rooms[0]["x"])}
    assert max(bar["width"] for bar in bars) <= rooms[0]["width"]
    assert min(bar["width"] for bar in bars) > 0
