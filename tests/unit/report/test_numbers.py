"""Every number of a page has its unit and its interval, or the page says why it has none."""

from __future__ import annotations

import html
import re

import pytest

from support.report_sample import (
    COMMITS,
    COMMITS_PAGE,
    a_sample,
    a_serving_sample,
    an_earlier_sample,
    pages_of,
    sample_history,
)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    records = [an_earlier_sample(), a_sample(), a_serving_sample()]
    return pages_of(records, series=sample_history(), compared=[COMMITS])


def words_of(page: str) -> str:
    return " ".join(
        html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\N{NO-BREAK SPACE}", " ").split()
    )


@pytest.mark.parametrize(
    ("page", "why"),
    [
        # Of a single launch.
        (
            "scenario/resnet50-inference.html",
            "Counts and shares are of that one launch, and so have no interval.",
        ),
        (
            "scenario/resnet50-inference.html",
            "Every iteration of one launch, that nearest to the cell's median, with the least",
        ),
        (
            "scenario/resnet50-inference.html",
            "A launch is one observation: its median has no interval of its own.",
        ),
        ("run/r1.html", "What a launch took is one observation, and has no interval."),
        # Of several launches, where the table that bounds them is another.
        (
            "scenario/resnet50-inference.html",
            "Figures are medians over launches, or of the one launch that is named;",
        ),
        # Of others, who gave none.
        ("claims.html", "Published figures stand as their source gave them, without an interval."),
        ("history.html", "A point that another tool gave as a single figure has no interval."),
        (
            "history/io.Read.time_read-b69fd9f5.html",
            "single figures, no interval",
        ),
        (COMMITS_PAGE, "Each commit was measured once"),
        # Without a unit, for it is none.
        ("host/bench-01-0123456789ab.html", "Distance to each node, 10 to itself"),
    ],
)
def test_a_page_says_why_a_number_has_no_interval(
    pages: dict[str, str], page: str, why: str
) -> None:
    assert why in words_of(pages[page])


def test_figures_of_two_runs_stand_with_their_intervals(pages: dict[str, str]) -> None:
    page = pages["compare/r0-r1.html"]
    befores = re.findall(r'<td class="left">([\d.]+ m?s[^<]*) <span.*?</td>', page)
    rows = re.findall(r'<td class="left">[\d.]+ m?s .*?</td>', page)

    assert len(befores) == len(rows) == 15
    # On one line, with the unit that both share once.
    space = "\N{NO-BREAK SPACE}|&nbsp;"
    interval = rf"\[[\d.,]+,(?:{space})[\d.,]+\]"
    both = rf"<small>{interval}(?:{space}).*(?:{space}){interval}(?:{space})m?s</small></td>"
    assert [row for row in rows if not re.search(both, row)] == []


def test_a_spread_has_an_interval(pages: dict[str, str]) -> None:
    spreads = re.findall(
        r"<td>([\d.]+ %)<small>(\[[\d.]+, [\d.]+\] %)</small></td>\s*<td>\d+ ok",
        pages["scenario/resnet50-inference.html"],
    )

    assert len(spreads) == 15


def test_the_flag_of_a_slow_setting_has_its_interval(pages: dict[str, str]) -> None:
    page = words_of(pages["scenario/resnet50-inference.html"])

    assert re.search(r"48× slower: .*? 2.06 s \[1.99, 2.13\] s an iteration", page)


def test_what_was_imported_without_its_command_says_so(pages: dict[str, str]) -> None:
    assert "what was imported names none" in words_of(pages["history.html"])
    for name in ("history/io.Read.time_read-b69fd9f5.html", COMMITS_PAGE):
        assert "What was imported does not tell which command measured it." in words_of(pages[name])
    assert not re.search("corebound reproduce [^<]*io.Read", pages[COMMITS_PAGE])
