"""What gave figures and gives none any more is told wherever its figures were."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.wording import Text
from corebound.records.history import HistoryPoints, Series
from corebound.report.pages import history, whats_new
from corebound.report.pages.benchmark import benchmark_hero
from support.build import a_series
from support.report_sample import NOW

FAILED = "it failed"
ZERO = "0 x: only a figure above 0 can be compared"


def series(scenario: str, *ends: str, nights: int = 40, **changes: Any) -> Series:
    """A steady one, whose last points have no figure for these reasons."""
    noise = random.Random(scenario)
    values = [1e6 * noise.gauss(1, 0.005) for _ in range(nights)]
    series = a_series(values, scenario=scenario, title=scenario, project="p")
    points = list(series.points)
    for at, why in zip(range(nights - len(ends), nights), ends, strict=True):
        points[at] = replace(points[at], value=None, missing=why)
    return replace(series, points=HistoryPoints.of(points), **changes)


def words(text: Text) -> str:
    return "".join(piece.text for piece in text)


def tonight(history: ChangeHistory) -> whats_new.WhatsNew:
    news = whats_new.whats_new(history, ())
    assert news is not None
    return news


def test_the_headline_says_how_many_give_no_figure_any_more() -> None:
    history = build_change_history([series("a", *[FAILED] * 3), series("b", FAILED), series("c")])

    news = tonight(history)

    assert words(news.verdict) == "2 cells give no figure."
    assert words(news.support).startswith("Nothing got slower, nothing faster. ")
    assert [(row.title, row.says) for row in news.failing] == [
        ("b", f"since {day(history, 'b', 1)}: it failed"),
        ("a", f"since {day(history, 'a', 3)}: it failed"),
    ]
    assert news.doubts == ()


def day(history: ChangeHistory, scenario: str, points: int) -> str:
    series = next(series for series in history.series if series.scenario == scenario)
    return series.points.moments[-points].at[:10]


def test_what_got_slower_is_told_before_it() -> None:
    noise = random.Random(1)
    values = [1e6 * (1.5 if at >= 30 else 1) * noise.gauss(1, 0.005) for at in range(40)]
    slower = a_series(values, scenario="slow", title="slow", project="p")

    news = tonight(build_change_history([slower, series("b", FAILED)]))

    assert words(news.verdict) == "1 cell got slower, 1 gives no figure."


def test_what_has_failed_for_long_is_no_headline_and_stays_on_the_page_of_the_history() -> None:
    known = build_change_history([series("a", *[FAILED] * 31, nights=60), series("c", nights=60)])

    news, page = tonight(known), history.history_page(known, now=NOW)

    assert words(news.verdict) == "Nothing got slower, nothing faster."
    assert "1 cell has given none for longer" in words(news.support)
    assert news.failing == ()
    assert [row.title for row in page.failing] == ["a"]
    assert "1 cell gives no figure any more." in words(page.hero.support)


def test_cells_of_one_scenario_day_and_reason_are_one_row() -> None:
    cells = [series("a", FAILED, cell=f"n={n}") for n in range(3)]
    skipped = series("a", "it was skipped or came to NaN", cell="n=4")

    news = tonight(build_change_history([*cells, skipped]))

    assert [(row.cells, row.says.partition(": ")[2]) for row in news.failing] == [
        (3, FAILED),
        (1, "it was skipped or came to NaN"),
    ]


def test_rows_beyond_a_first_page_are_counted_by_what_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(whats_new, "_MOST_ROWS", 4)

    news = tonight(build_change_history([series(f"s{n}", FAILED) for n in range(10)]))

    assert len(news.failing) == 4
    assert news.more.endswith(": 6 without a figure.")


@pytest.mark.parametrize("why", [FAILED, ZERO])
def test_a_latest_figure_that_points_came_after_says_so(why: str) -> None:
    # A value of 0 is none that can be compared, and has not failed; it is not the old one either.
    known = build_change_history([series("a", why, why), series("b")])

    page = history.history_page(known, now=NOW)

    (group,) = page.groups
    assert [row.lacking for row in group.rows] == [f"none since {day(known, 'a', 2)}", ""]


def test_a_benchmarks_page_says_which_cells_and_why() -> None:
    cells = [series("a", FAILED, cell="n=1"), series("a", cell="n=2")]
    history = build_change_history(cells)

    hero = benchmark_hero("p", history.series, (), history)

    assert words(hero.verdict) == "1 of 2 cells gives no figure any more."
    assert f"No figure any more: 1 cell since {day(history, 'a', 1)}: it failed." in words(
        hero.support
    )


def test_what_ended_while_others_went_on_has_not_failed() -> None:
    gone = series("gone", FAILED, nights=10)
    history = build_change_history([gone, series("c", nights=60)])

    assert history.failing == {}
