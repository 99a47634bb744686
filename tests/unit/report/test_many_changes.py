"""Of more changes than a page has rows for, what is shown stands for all that happened."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.records.history import Series
from corebound.report.elements import occurrence_numbers
from corebound.report.pages import changes, feed, history, whats_new
from support.build import a_series
from support.report_sample import NOW


def stepped(scenario: str, ratio: float, *, at: int = 45, **changes: Any) -> Series:
    noise = random.Random(f"{scenario} {changes}")
    values = [1e6 * (ratio if day >= at else 1.0) * noise.gauss(1, 0.005) for day in range(60)]
    return replace(a_series(values, scenario=scenario, title=scenario, project="p"), **changes)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whats_new, "_MOST_ROWS", 4)
    monkeypatch.setattr(whats_new, "_LEAST_BETTER", 1)
    monkeypatch.setattr(history, "_MOST_GROUPS", 2)
    monkeypatch.setattr(feed, "_MOST_ENTRIES", 3)
    monkeypatch.setattr(changes, "_MOST_LISTED", 2)


def titles(history: ChangeHistory) -> list[str]:
    tonight = whats_new.whats_new(history, ())
    assert tonight is not None
    return [group.head.title for group in tonight.changed]


def test_turns_count_how_often_something_came_before() -> None:
    assert occurrence_numbers("abaab") == [1, 1, 2, 3, 2]


@pytest.mark.usefixtures("few_rows")
def test_the_overview_has_rows_of_every_event_and_of_what_got_better() -> None:
    # One event of many benchmarks, later than another of one, and improvements beside both.
    many = [stepped(f"large{number}", 1.5, at=50) for number in range(6)]
    series, better = stepped("other", 1.14, at=45), [stepped(f"b{n}", 0.8) for n in range(3)]
    history = build_change_history([*many, series, *better])

    names = titles(history)

    assert len(names) == 4
    assert "other" in names
    assert sum(title.startswith("large") for title in names) == 2
    assert sum(title.startswith("b") for title in names) == 1
    assert names[-1].startswith("b")


@pytest.mark.usefixtures("few_rows")
def test_what_few_improvements_leave_the_regressions_have_and_the_other_way_round() -> None:
    worse = [stepped(f"w{number}", 1.2) for number in range(6)]
    better = [stepped(f"b{number}", 0.8) for number in range(6)]

    assert (
        len(titles(build_change_history(worse))) == len(titles(build_change_history(better))) == 4
    )
    assert [title[0] for title in titles(build_change_history([worse[0], *better]))] == [
        "w",
        "b",
        "b",
        "b",
    ]


@pytest.mark.usefixtures("few_rows")
def test_the_history_groups_all_before_it_leaves_any_out() -> None:
    cells = [stepped("cells", 1.5, cell=f"c={number}") for number in range(5)]
    known = build_change_history(
        [*cells, stepped("two", 1.3), *(stepped("left", 1.1, cell=c) for c in "ab")]
    )

    page = history.history_page(known, now=NOW)

    assert [(group.head.title, group.cells) for group in page.regressions] == [
        ("cells", "5 cells"),
        ("two", ""),
    ]
    assert page.hidden == "2 smaller changes more in the CSV."
    first = page.regressions[0]
    assert (len(first.rows), first.more) == (2, "and 3 more")
    assert page.regressions[1].more == ""


@pytest.mark.usefixtures("few_rows")
def test_the_feed_has_what_got_worse_where_not_all_fits_and_cells_together() -> None:
    better = [stepped(f"b{number}", 0.8, at=50) for number in range(5)]
    cells = [stepped("cells", ratio, cell=f"c={ratio}") for ratio in (1.1, 1.3)]

    made = feed.feed(build_change_history([*better, *cells, stepped("alone", 1.2)]), now=NOW)

    parts = [entry.title for entry in made.entries]
    assert len(parts) == 3
    assert sum(title.startswith("▲") for title in parts) == 1
    assert sum(title.endswith("slower: cells, 2 cells") for title in parts) == 1


def test_an_entry_of_several_cells_keeps_its_id_whichever_of_them_is_the_largest() -> None:
    def entry(first: float, second: float) -> str:
        history = build_change_history(
            [stepped("s", first, cell="c=1"), stepped("s", second, cell="c=2")]
        )
        (entry,) = feed.feed(history, now=NOW).entries
        return entry.id

    assert entry(1.1, 1.3) == entry(1.3, 1.1)


@pytest.mark.parametrize(
    ("unit", "text"), [("ns", "1 cell got slower."), ("bytes", "2 cells got worse.")]
)
def test_the_headline_calls_nothing_slower_that_is_no_time(unit: str, text: str) -> None:
    all_series = [stepped("time", 1.5), stepped("other", 1.5, unit=unit)][: 1 + (unit != "ns")]

    tonight = whats_new.whats_new(build_change_history(all_series), ())

    assert tonight is not None
    assert "".join(piece.text for piece in tonight.verdict) == text
