"""The headline of `corebound regressions`."""

from __future__ import annotations

from corebound.cli.commands import regressions
from corebound.workflow.regressions import RegressionsResult
from support.build import a_series


def test_the_headline_separates_thousands() -> None:
    series = (a_series([1.0]),) * 1200
    told = RegressionsResult(
        changes=(),
        failing=(),
        not_analysed=(),
        series=series,
        active=series,
    )

    said = "No new regression, in 1,200 series. All 1,200 series are too short to tell"
    assert regressions.headline(told).startswith(said)
