"""Series of several hosts together show what is too small for any of them."""

import math
from datetime import date, timedelta

import numpy as np
import pytest
from msgspec.structs import replace

from corebound.records.history import HistoryPoints, Series
from corebound.stats.history.pooled import ALL_HOSTS, is_pooled, pooled_series
from corebound.stats.history.regressions import analyse
from support.build import a_point, a_series

NIGHTS = 40


def hosts(
    number: int,
    *,
    step: float = 1.0,
    noise: float = 0.02,
    changed: int | None = None,
    seed: int = 1,
) -> list[Series]:
    """Hosts with levels of their own, of which the first `changed` slow down in the middle."""
    rng = np.random.default_rng(seed)
    fleet = []
    for host in range(number):
        logs = rng.normal(0, noise, NIGHTS) + rng.normal(5, 0.3)
        if changed is None or host < changed:
            logs[NIGHTS // 2 :] += math.log(step)
        fleet.append(a_series([*np.exp(logs)], host=f"h{host:02}", host_name=f"host-{host}"))
    return fleet


def test_a_change_that_no_host_shows_is_clear_in_all_of_them() -> None:
    fleet = hosts(10, step=1.03, noise=0.03, seed=3)

    pooled = pooled_series(fleet, {})
    changes = [change for change in analyse([*fleet, *pooled]).changes if change.clear]

    assert [is_pooled(change.series) for change in changes] == [True]
    (change,) = changes
    assert change.change_point.ratio == pytest.approx(1.03, abs=0.01)
    assert abs(change.change_point.at - NIGHTS // 2) <= 1


def test_a_change_of_one_host_is_none_of_all() -> None:
    fleet = hosts(10, step=1.5, noise=0.01, changed=1)

    pooled = pooled_series(fleet, {})

    assert [
        change.series.host for change in analyse([*fleet, *pooled]).changes if change.clear
    ] == ["h00"]


def test_classes_are_pooled_by_themselves_and_together() -> None:
    classes = {f"h{host:02}": "a" if host < 4 else "b" for host in range(8)}

    pooled = pooled_series(hosts(8), classes)

    assert [series.host_name for series in pooled] == [
        "all 8 hosts", "4 hosts of a", "4 hosts of b",
    ]  # fmt: skip
    assert pooled[0].host == ALL_HOSTS


def test_two_hosts_are_not_pooled() -> None:
    assert pooled_series(hosts(2), {}) == ()


def test_points_without_a_commit_are_not_pooled() -> None:
    fleet = [
        replace(
            series, points=HistoryPoints.of(replace(point, commit=None) for point in series.points)
        )
        for series in hosts(4)
    ]

    assert pooled_series(fleet, {}) == ()


def test_a_host_with_a_wrong_clock_does_not_reorder_the_commits() -> None:
    fleet = hosts(5)
    skewed = [
        replace(point, at=f"{date.fromisoformat(point.at[:10]) - timedelta(days=9)}T02:00:00Z")
        for point in fleet[0].points
    ]

    (pooled,) = pooled_series([replace(fleet[0], points=HistoryPoints.of(skewed)), *fleet[1:]], {})

    assert [point.commit for point in pooled.points] == [point.commit for point in fleet[1].points]
    assert [point.at for point in pooled.points] == [point.at for point in fleet[1].points]


def test_an_update_of_all_hosts_begins_a_segment() -> None:
    # The kernel update coincides with the step, so no commit can be blamed.
    fleet = [
        replace(
            series,
            points=HistoryPoints.of(
                replace(point, environment_key=(("kernel", "7.0"),)) if at >= NIGHTS // 2 else point
                for at, point in enumerate(series.points)
            ),
        )
        for series in hosts(6, step=1.2)
    ]

    (pooled,) = pooled_series(fleet, {})

    assert pooled.points.environment_changes == (NIGHTS // 2,)
    assert not [change for change in analyse([pooled]).changes if change.clear]


def test_an_update_of_one_host_does_not() -> None:
    fleet = hosts(6)
    updated = [
        replace(
            a_point(point.value and point.value * 1.4, day=at), environment_key=(("kernel", "7.0"),)
        )
        if at >= NIGHTS // 2
        else point
        for at, point in enumerate(fleet[0].points)
    ]

    (pooled,) = pooled_series([replace(fleet[0], points=HistoryPoints.of(updated)), *fleet[1:]], {})

    assert pooled.points.environment_changes == ()
    assert not analyse([pooled]).changes
