"""The result of `corebound regressions` as plain data, with links to the pages of the site."""

from __future__ import annotations

import math
from typing import Any

from corebound.analysis.change_history import size_with_interval
from corebound.analysis.commands import triage_commands
from corebound.analysis.host_evidence import HostEvidence
from corebound.analysis.triage import (
    CommitEntry,
    Impact,
    change_factor,
    impact_extent,
    impact_size,
)
from corebound.records.history import HistoryPoint, Series
from corebound.report.urls import HISTORY_PAGE, entry_anchor, series_url
from corebound.scenario.cell import axes_of_key
from corebound.stats.between_hosts import ClassEstimate
from corebound.stats.history.alerts import AssessedChange
from corebound.stats.history.latest import latest_difference
from corebound.stats.history.regressions import Change, arrays_of
from corebound.stats.intervals import ratio_interval_pair
from corebound.workflow.regressions import RegressionsResult


def entry_link(entry: CommitEntry, site: str) -> str:
    """The address of a commit on the history page."""
    return f"{site_page(site)}#{entry_anchor(entry)}"


def site_page(site: str) -> str:
    """The address of the history page."""
    return f"{site.rstrip('/')}/{HISTORY_PAGE}"


def series_link(series: Series, site: str) -> str:
    """The address of a series' page."""
    return f"{site.rstrip('/')}/{series_url(series)}"


def regressions_document(result: RegressionsResult, site: str) -> dict[str, Any]:
    """The commits, changes and failing series as plain data.

    Args:
        result: The changes.
        site: The site's folder or URL, as a prefix for links.
    """
    return {
        "alarms": len(result.alarms),
        "secondary_alarms": len(result.secondary_alarms),
        "series": len(result.series),
        "too_short": len(result.too_short),
        "latest": [_latest(series, site) for series in result.too_short],
        "commits": [_entry(entry, result, site) for entry in result.entries],
        "changes": [_change(change, result, site) for change in result.changes],
        "failing": [
            {
                **_series(failed.series, site),
                "since": failed.since.at,
                "points": failed.points,
                "reason": failed.since.missing,
            }
            for failed in result.failing
        ],
        "not_analysed": [
            {**_series(failed.series, site), "reason": failed.reason}
            for failed in result.not_analysed
        ],
    }


def _series(series: Series, site: str) -> dict[str, Any]:
    """A series' identity, with the address of its page."""
    return {
        "series": series.id,
        "project": series.project,
        "host": series.host,
        "scenario": series.scenario,
        "cell": series.cell,
        "axes": axes_of_key(series.cell),
        "title": series.title,
        "importance": series.importance,
        "link": series_link(series, site),
        "reproduce": series.reproduce,
    }


def _latest(series: Series, site: str) -> dict[str, Any]:
    """The latest value of a series that is too short to detect a change."""
    difference = latest_difference(arrays_of(series))
    return {
        **_series(series, site),
        "values_before": 0 if difference is None else difference.before,
        "ratio": None if difference is None else difference.ratio,
        "interval": None if difference is None else ratio_interval_pair(difference.interval),
    }


def _change(assessed: AssessedChange, result: RegressionsResult, site: str) -> dict[str, Any]:
    """A change or an early warning, with the decision about it."""
    change, context = assessed.change, result.context_of(assessed)
    step = change.change_point
    return {
        "id": assessed.id,
        "alarm": assessed.alarm,
        "regression": change.is_regression,
        "state": "back" if assessed.is_back else assessed.state,
        "because": None if assessed.decision is None else assessed.decision.because,
        "step": step.status,
        "ended": assessed.has_ended,
        "suspicion": not step.votes,
        "clear": change.clear,
        "size": size_with_interval(change),
        "unit": change.series.unit,
        "more_is_better": change.series.more_is_better,
        "ratio": step.ratio,
        "interval": ratio_interval_pair(step.interval),
        "last_good": _point(change.last_good),
        "first_bad": _point(change.first_bad),
        "recovery": _recovery(change),
        "confirmation": assessed.confirmation,
        "noise": context.noise or None,
        "compare": context.compare,
        **_series(change.series, site),
    }


def _entry(entry: CommitEntry, result: RegressionsResult, site: str) -> dict[str, Any]:
    """The changes that may come from one commit, by their ids."""
    return {
        "id": entry.id,
        "project": entry.project,
        "hosts": entry.hosts,
        "status": entry.status,
        "regression": entry.is_regression,
        "importance": "secondary" if entry.is_secondary else "primary",
        "summary": f"{impact_extent(entry.leading)}: {impact_size(entry.leading)}",
        "last_good": _point(entry.last_good),
        "first_bad": _point(entry.first_bad),
        "regressions": _impact(entry.regressions),
        "improvements": _impact(entry.improvements),
        "changes": [change.id for change in entry.changes],
        "evidence_of_hosts": [_evidence(each) for each in result.evidence.get(entry.id, ())],
        "commands": {
            name.lower(): command.at(result.records_folder)
            for name, command in triage_commands(entry, result.built).named
        },
        "link": entry_link(entry, site),
    }


def _evidence(evidence: HostEvidence) -> dict[str, Any]:
    """Ratios are of the value after the change to that before, with 95 % intervals."""
    return {
        "scenario": evidence.scenario,
        "cell": evidence.cell,
        "together": _ratio_of_hosts(evidence.estimate),
        "others_together": _ratio_of_hosts(evidence.others),
        "too_few_values": evidence.too_few,
        "hosts": [
            {
                "host": shift.name,
                "ratio": math.exp(shift.log),
                "interval": [math.exp(bound) for bound in shift.bounds],
                "shows": shift.shows,
            }
            for shift in evidence.shifts
        ],
    }


def _ratio_of_hosts(estimate: ClassEstimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {
        "hosts": estimate.hosts,
        "ratio": math.exp(estimate.log),
        "interval": ratio_interval_pair(estimate.interval),
    }


def _impact(impact: Impact) -> dict[str, Any] | None:
    """The sizes of an impact as ratios of at least 1; None if nothing changed."""
    if not impact.benchmarks:
        return None
    return {
        "benchmarks": len(impact.counted),
        "series": impact.series,
        "secondary_benchmarks": sum(each.is_secondary for each in impact.benchmarks),
        "geometric_mean": impact.geometric_mean,
        "largest": change_factor(impact.counted[0].largest),
    }


def _point(point: HistoryPoint) -> dict[str, str | None]:
    commit = point.commit
    sha, subject = (None, None) if commit is None else (commit.sha, commit.subject)
    return {"at": point.at, "commit": sha, "subject": subject}


def _recovery(change: Change) -> dict[str, Any] | None:
    recovery, between = change.change_point.recovery, change.recovered_between
    if recovery is None or between is None:
        return None
    good, bad = between
    return {
        "last_good": _point(good),
        "first_bad": _point(bad),
        "steps": recovery.steps,
        "left": recovery.left,
        "whole": recovery.whole,
        "clear": change.back_is_clear,
    }
