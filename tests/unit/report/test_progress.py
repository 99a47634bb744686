"""Who waits for a large report is told how far it is."""

from __future__ import annotations

from support.build import a_series
from support.report_sample import a_sample, an_earlier_sample, pages_of


def test_series_and_pages_are_counted_up_to_the_last() -> None:
    told: list[tuple[str, int, int]] = []
    all_series = [a_series([1e6] * 9, project="p", scenario=name) for name in ("one", "two")]

    pages_of(
        [an_earlier_sample(), a_sample()],
        series=all_series,
        progress=lambda *so_far: told.append(so_far),
    )

    assert told == [
        (what, done, 2)
        for what in ("looking for steps in series", "pages of benchmarks", "pages of runs")
        for done in (1, 2)
    ]
