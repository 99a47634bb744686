"""What did one commit do? The benchmarks that changed in it stand together."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.records.history import Series
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.report.pages.changes import CommitEvent, commit_events
from corebound.report.pages.history import history_page
from support.build import a_series
from support.report_sample import NOW


def stepped(scenario: str, ratio: float, *, at: int = 45, **changes: Any) -> Series:
    noise = random.Random(scenario)
    values = [1e6 * (ratio if day >= at else 1.0) * noise.gauss(1, 0.005) for day in range(60)]
    return replace(a_series(values, scenario=scenario, title=scenario, project="p"), **changes)


def events_of(*series: Series) -> tuple[CommitEvent, ...]:
    return commit_events(build_change_history(series))


def test_benchmarks_that_changed_in_one_commit_are_one_event_what_got_worse_first() -> None:
    (event,) = events_of(
        stepped("better", 0.8), stepped("worse", 1.1), stepped("worst", 1.5), stepped("still", 1.0)
    )

    assert [title for title, _, _ in event.named] == ["worst", "worse", "better"]
    assert event.says == "2 worse, 1 better"
    assert (event.since, event.subject) == ("2026-02-15 02:00 UTC", "change 45")
    assert re.fullmatch(r"commit-0{10}", event.place)


def test_the_cells_of_one_benchmark_alone_are_no_event_and_beside_others_one_line() -> None:
    cells = [stepped("one", ratio, cell=f"c={ratio}") for ratio in (1.1, 1.3)]

    assert events_of(*cells) == ()
    (event,) = events_of(*cells, stepped("other", 1.2))
    assert [(title, size.word[-6:]) for title, _, size in event.named] == [
        ("one", "slower"),
        ("other", "slower"),
    ]
    assert event.says == "2 worse"


def test_the_machines_of_a_project_share_its_commits_and_hosts_of_ones_own_do_not() -> None:
    def on_two_machines(project: str | None) -> tuple[CommitEvent, ...]:
        return events_of(
            stepped("a", 1.2, project=project),
            stepped("b", 1.2, host="other", host_name="other", project=project),
        )

    assert len(on_two_machines("p")) == 1
    assert on_two_machines(None) == ()


def test_what_changed_in_different_commits_stays_apart_the_latest_first() -> None:
    all_series = [stepped(f"{name}{at}", 1.2, at=at) for at in (30, 45) for name in "ab"]

    late, early = events_of(*all_series)

    assert (late.subject, early.subject) == ("change 45", "change 30")
    # Their commits begin alike, and fragments are unique all the same.
    assert late.place != early.place


def test_nights_without_a_commit_are_none() -> None:
    all_series = [stepped(name, 1.2) for name in "ab"]
    without = [
        replace(
            series,
            points=type(series.points).of(replace(point, commit=None) for point in series.points),
        )
        for series in all_series
    ]

    assert events_of(*without) == ()


def test_of_many_the_largest_are_named() -> None:
    (event,) = events_of(*(stepped(f"b{number:02}", 1.1 + number / 50) for number in range(15)))

    assert len(event.named) == 12
    assert event.named[0][0] == "b14"
    assert event.more == "and 3 more"


def test_a_change_leads_to_what_else_its_commit_did(tmp_path: Path) -> None:
    history = build_change_history(
        [stepped("a<b>", 1.2), stepped("c", 0.8), stepped("alone", 1.3, at=20)]
    )
    page = history_page(history, now=NOW)

    beside = {row.head.title: row.beside for row in (*page.regressions, *page.improvements)}
    assert beside["alone"] is None
    assert beside["a<b>"] == beside["c"] == ("with 1 other benchmark", page.commits[0].place)

    site.write(SiteInputs(records=[], now=NOW, series=history.series), tmp_path)
    text = (tmp_path / "history.html").read_text("utf-8")
    assert text.count(f'href="#{page.commits[0].place}"') == 2
    assert text.count(f'id="{page.commits[0].place}"') == 1
    assert "a<b>" not in text
