"""The page of an imported benchmark: what was measured, and on what."""

from __future__ import annotations

import random

import pytest

from corebound.analysis.change_history import build_change_history
from corebound.records.history import HistoryPoints
from corebound.report.pages.benchmark import BenchmarkPage, benchmark_page
from corebound.report.scenario.provenance import Fact
from support.build import a_point, a_series
from support.report_sample import NOW


def a_page(*described: tuple[str, int, tuple[tuple[str, str], ...]]) -> BenchmarkPage:
    """A page of series: each its machine, its last day, and how the machine was that day."""
    all_series = tuple(
        a_series(
            [],
            project="p",
            host=host,
            host_name=host,
            cell=f"n={number}",
            points=HistoryPoints.of(
                (a_point(day=0), a_point(day=last, environment_key=circumstances)),
            ),
        )
        for number, (host, last, circumstances) in enumerate(described)
    )
    return benchmark_page("p", all_series, build_change_history(all_series), now=NOW)


def test_each_machine_is_told_as_the_latest_of_all_results_describe_it() -> None:
    page = a_page(
        ("box", 2, (("cpu", "old"),)),
        ("box", 5, (("cpu", "Xeon"), ("ram", "7GB"), ("version", ""))),
        ("arm", 1, ()),
    )

    assert page.machines == (
        Fact(term="arm", value="last measured 2026-01-02 02:00 UTC"),
        Fact(term="box", value="cpu Xeon, ram 7GB, last measured 2026-01-06 02:00 UTC"),
    )


def test_of_what_only_commits_have_dates_nothing_says_when_it_was_measured() -> None:
    series = a_series([], project="p", points=HistoryPoints.of([a_point(run=None)]))

    page = benchmark_page("p", (series,), build_change_history([series]), now=NOW)

    assert page.machines[0].value.endswith(", newest commit of 2026-01-01 02:00 UTC")


def test_without_a_source_the_page_has_none() -> None:
    assert a_page(("box", 1, ())).code is None


@pytest.mark.parametrize(
    ("at", "nights", "text"),
    [
        (45, 60, "49.8 % slower since 2026-02-15."),
        (45, 120, "1 older regression is still open."),
        (200, 120, "Nothing new."),
        (200, 6, "Too early to tell what changed."),
    ],
)
def test_the_verdict_is_what_is_new_else_open_else_whether_anything_could_be_seen(
    at: int, nights: int, text: str
) -> None:
    noise = random.Random(1)
    values = [1e6 * (1.5 if day >= at else 1.0) * noise.gauss(1, 0.005) for day in range(nights)]
    all_series = (a_series(values, project="p"),)

    page = benchmark_page("p", all_series, build_change_history(all_series), now=NOW)

    assert "".join(piece.text for piece in page.hero.verdict) == text
