"""What `corebound regressions` tells, as data."""

from __future__ import annotations

from typing import Any

from corebound.cli.regressions_words import Told, link_of, size
from corebound.model.points import Point
from corebound.model.series import Series
from corebound.stats.regressions import Change
from corebound.stats.regressions_judged import Judged


def document(told: Told) -> dict[str, Any]:
    """For scripts."""
    return {
        "alarms": len(told.alarms),
        "series": len(told.series),
        "too_short": told.too_short,
        "changes": [_change(one, told) for one in told.judged],
        "failing": [
            {
                **_series(one.series, told.site),
                "since": one.since.at,
                "points": one.points,
                "reason": one.since.missing,
            }
            for one in told.failing
        ],
        "not_analysed": [
            {**_series(one.series, told.site), "reason": one.reason} for one in told.not_analysed
        ],
    }


def _series(series: Series, site: str) -> dict[str, Any]:
    return {
        "series": series.id,
        "project": series.project,
        "host": series.host,
        "scenario": series.scenario,
        "cell": series.cell,
        "title": series.title,
        "link": link_of(series, site),
        "reproduce": series.reproduce,
    }


def _change(one: Judged, told: Told) -> dict[str, Any]:
    change, near = one.change, told.beside_of(one)
    step, good, bad = change.step, change.last_good, change.first_bad
    return {
        "id": one.id,
        "alarm": one.alarm,
        "regression": change.is_regression,
        "state": "back" if one.is_back else one.state,
        "because": None if one.decision is None else one.decision.because,
        "step": step.status,
        "ended": one.has_ended,
        "suspicion": not step.votes,
        "clear": change.clear,
        "size": size(change),
        "unit": change.series.unit,
        "more_is_better": change.series.more_is_better,
        "ratio": step.ratio,
        "interval": None if step.interval is None else (step.interval.low, step.interval.high),
        "last_good": _night(good),
        "first_bad": _night(bad),
        "recovery": _recovery(change),
        "confirmation": one.confirmation,
        "noise": near.noise or None,
        "compare": near.compare,
        **_series(change.series, told.site),
    }


def _recovery(change: Change) -> dict[str, Any] | None:
    recovery, between = change.step.recovery, change.back_between
    if recovery is None or between is None:
        return None
    good, bad = between
    return {
        "last_good": _night(good),
        "first_bad": _night(bad),
        "steps": recovery.steps,
        "left": recovery.left,
        "whole": recovery.whole,
        "clear": change.back_is_clear,
    }


def _night(point: Point) -> dict[str, str | None]:
    commit = point.commit
    sha, subject = (None, None) if commit is None else (commit.sha, commit.subject)
    return {"at": point.at, "commit": sha, "subject": subject}
