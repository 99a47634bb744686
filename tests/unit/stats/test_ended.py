"""Which series no night will add to: what was retired, and what only rests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from corebound.records.history import HistoryPoints, Series
from corebound.stats.history.series import ended
from support.build import a_point, a_series


def on(host: str, days: Iterable[int], **changes: Any) -> Series:
    points = HistoryPoints.of(a_point(day=day) for day in days)
    return a_series([], host=host, host_name=host, points=points, **{"project": "p", **changes})


def hosts_of(*suite: Series) -> set[str]:
    found = ended(suite)
    return {one.host for one in suite if one.id in found}


def test_a_series_has_ended_where_its_host_has_thirty_moments_since() -> None:
    old = on("a", range(10), cell="old")

    assert ended([old, on("a", range(39))]) == frozenset()
    assert ended([old, on("a", range(41))]) == {old.id}


def test_a_machine_that_is_quiet_for_longer_than_ever_has_ended_where_others_go_on() -> None:
    assert hosts_of(on("old", range(20)), on("new", range(60))) == {"old"}
    assert hosts_of(on("old", range(20)), on("new", range(45))) == set()


def test_a_machine_that_measures_now_and_then_goes_on() -> None:
    monthly = range(0, 120, 30)

    assert hosts_of(on("monthly", monthly), on("nightly", range(140))) == set()
    assert hosts_of(on("monthly", monthly), on("nightly", range(160))) == {"monthly"}


def test_machines_of_other_projects_say_nothing() -> None:
    assert hosts_of(on("old", range(20)), on("new", range(60), project="q")) == set()


@pytest.mark.parametrize("moment", ["tonight", "2026-13-45"])
def test_what_is_no_date_ends_nothing(moment: str) -> None:
    points = HistoryPoints.of(a_point(at=moment) for _ in range(2))
    odd = a_series([], host="odd", host_name="odd", points=points, project="p")

    assert ended([odd, on("new", range(60))]) == frozenset()
