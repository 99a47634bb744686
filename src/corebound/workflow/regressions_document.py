"""The result of `corebound regressions` as plain data, with links to the pages of the site."""

from __future__ import annotations

from typing import Any

from corebound.analysis.commands import triage_commands
from corebound.analysis.serialize import (
    change_document,
    entry_document,
    ratio_interval_pair,
    series_document,
)
from corebound.analysis.triage import CommitEntry
from corebound.records.history import Series
from corebound.report.urls import HISTORY_PAGE, entry_anchor, series_url
from corebound.stats.history.alerts import AssessedChange
from corebound.stats.history.latest import latest_difference
from corebound.stats.history.regressions import arrays_of
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
        "latest": [_latest_document(series, site) for series in result.too_short],
        "commits": [
            entry_document(
                entry,
                link=entry_link(entry, site),
                evidence=result.evidence.get(entry.id, ()),
                commands={
                    name.lower(): command.at(result.records_folder)
                    for name, command in triage_commands(entry, result.built).named
                },
            )
            for entry in result.entries
        ],
        "changes": [_change_document(change, result, site) for change in result.changes],
        "failing": [
            {
                **_series_document(failed.series, site),
                "since": failed.since.at,
                "points": failed.points,
                "reason": failed.since.missing,
            }
            for failed in result.failing
        ],
        "not_analysed": [
            {**_series_document(failed.series, site), "reason": failed.reason}
            for failed in result.not_analysed
        ],
    }


def _latest_document(series: Series, site: str) -> dict[str, Any]:
    """The latest value of a series that is too short to detect a change."""
    difference = latest_difference(arrays_of(series))
    return {
        **_series_document(series, site),
        "values_before": 0 if difference is None else difference.before,
        "ratio": None if difference is None else difference.ratio,
        "interval": None if difference is None else ratio_interval_pair(difference.interval),
    }


def _series_document(series: Series, site: str) -> dict[str, Any]:
    return series_document(series, series_link(series, site))


def _change_document(
    assessed: AssessedChange, result: RegressionsResult, site: str
) -> dict[str, Any]:
    context = result.context_of(assessed)
    return change_document(
        assessed,
        link=series_link(assessed.change.series, site),
        noise=context.noise,
        compare=context.compare,
    )
