"""A change is said to be of the hosts that show it; those that do not are named."""

import math
from datetime import date, timedelta

import numpy as np
import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.host_evidence import HostEvidence, evidence_lines, host_evidence
from corebound.analysis.triage import triage
from corebound.records.history import HistoryPoints, Series
from corebound.stats.history.pooled import pooled_series
from support.build import a_series
from support.known import known

NIGHTS = 40


def a_host(number: int, step: float, *, noise: float = 0.005) -> Series:
    rng = np.random.default_rng(number)
    logs = rng.normal(0, noise, NIGHTS) + rng.normal(5, 0.3)
    logs[NIGHTS // 2 :] += math.log(step)
    return a_series([*np.exp(logs)], host=f"h{number:02}", host_name=f"host-{number}")


def evidence_of(*hosts: Series) -> HostEvidence:
    suite = sorted((*hosts, *pooled_series(hosts, {})), key=lambda series: series.id)
    entries = triage(build_change_history(suite).assessed.values())
    ((evidence,),) = host_evidence(entries, suite).values()
    return evidence


def names(evidence: HostEvidence, shows: str) -> list[str]:
    return [shift.name for shift in evidence.shifts if shift.shows == shows]


def test_a_change_on_all_hosts_is_as_large_as_on_all_together() -> None:
    evidence = evidence_of(*(a_host(number, 1.05) for number in range(6)))

    assert len(names(evidence, "yes")) == 6
    assert math.exp(known(evidence.estimate).log) == pytest.approx(1.05, abs=0.003)
    together = known(known(evidence.estimate).interval)
    narrowest = min(bounds[1] - bounds[0] for bounds in (each.bounds for each in evidence.shifts))
    assert math.log(together.high / together.low) < narrowest


def test_hosts_without_the_change_are_named() -> None:
    evidence = evidence_of(*(a_host(number, 1.1 if number < 5 else 1.0) for number in range(7)))

    assert names(evidence, "no") == ["host-5", "host-6"]
    (first, second) = evidence_lines((evidence,))
    assert "over 5 hosts" in first
    assert "host-5 (" in second
    assert "host-6 (" in second


def test_hosts_of_one_name_are_judged_each_by_itself() -> None:
    hosts = [a_host(number, 1.1 if number < 5 else 1.0) for number in range(7)]

    evidence = evidence_of(*(replace(host, host_name="vm") for host in hosts))

    assert [shift.shows for shift in evidence.shifts].count("no") == 2
    assert math.exp(known(evidence.estimate).log) == pytest.approx(1.1, abs=0.01)
    assert math.exp(known(evidence.others).log) == pytest.approx(1.0, abs=0.01)


def test_a_change_on_one_host_is_of_that_host() -> None:
    evidence = evidence_of(*(a_host(number, 1.1 if number == 2 else 1.0) for number in range(5)))

    assert names(evidence, "yes") == ["host-2"]
    assert names(evidence, "no") == ["host-0", "host-1", "host-3", "host-4"]
    assert next(iter(evidence_lines((evidence,)))).startswith("only on host-2 (")


def test_a_host_that_is_too_noisy_to_tell_is_not_said_to_lack_the_change() -> None:
    noisy = a_host(9, 1.1, noise=0.3)

    evidence = evidence_of(*(a_host(number, 1.1) for number in range(5)), noisy)

    assert names(evidence, "no") == []


def test_a_host_with_a_wrong_clock_is_compared_by_commit() -> None:
    skewed = a_host(5, 1.1)
    points = HistoryPoints.of(
        replace(point, at=f"{date.fromisoformat(point.at[:10]) + timedelta(days=11)}T02:00:00Z")
        for point in skewed.points
    )

    evidence = evidence_of(
        *(a_host(number, 1.1) for number in range(5)), replace(skewed, points=points)
    )

    shift = next(each for each in evidence.shifts if each.name == "host-5")
    assert math.exp(shift.log) == pytest.approx(1.1, abs=0.01)


def test_a_single_host_is_no_evidence_of_several() -> None:
    suite = [a_host(1, 1.1)]
    entries = triage(build_change_history(suite).assessed.values())

    assert len(entries) == 1
    assert host_evidence(entries, suite) == {}


def test_a_change_that_several_hosts_show_is_news_once() -> None:
    hosts = [a_host(number, 1.1) for number in range(5)]
    history = build_change_history([*hosts, *pooled_series(hosts, {})])

    assert len(history.changes) == 6
    assert [change.series.host_name for change in history.news] == ["5 hosts"]


def test_a_host_that_shows_the_change_late_belongs_to_the_commit_of_all() -> None:
    late = a_host(7, 1.1, noise=0.04)
    hosts = [*(a_host(number, 1.1) for number in range(6)), late]
    suite = sorted((*hosts, *pooled_series(hosts, {})), key=lambda series: series.id)
    changes = build_change_history(suite)
    (own,) = [change for change in changes.changes if change.series is late]
    (together,) = [change for change in changes.changes if change.series.host_name == "7 hosts"]

    (entry,) = triage(changes.assessed.values())

    assert own.first_bad != together.first_bad
    assert entry.first_bad == together.first_bad
