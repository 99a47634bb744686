"""A scenario's history on its page: the baseline and the best cell, the others folded."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.analysis.change_history import ChangeHistory, change_direction, change_sizes
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import capital, count
from corebound.groups import grouped
from corebound.records.history import Series
from corebound.report.elements import Content
from corebound.report.history.panel import history_panel
from corebound.scenario.compared_axis import compared_axis
from corebound.stats.history.pooled import is_pooled
from corebound.stats.history.regressions import Change

# The latest runs in the table of points; the CSV has all.
_NIGHTS = 10
# So many series of other hosts have a row, those with a change first.
_MOST_ELSEWHERE = 20


def memory_history(result: ScenarioResult, memory: ChangeHistory) -> Content | None:
    """The history of the peak memory of a scenario's cells; None if it has no change."""
    changed = any(memory.all_changes_of(series) for series in listed_series(result, memory))
    return scenario_history(result, memory) if changed else None


def scenario_history(result: ScenarioResult, history: ChangeHistory) -> Content | None:
    """The history of a scenario's cells; None if no cell has two points."""
    all_series = listed_series(result, history)
    if not all_series:
        return None
    unlisted = 0
    if not compared_axis(result.source.document):
        known = history.histories_of(result.scenario.name)
        unlisted = len(known) - len(all_series)
    host = result.run.host.id
    charted = _charted_series(result, [series for series in all_series if series.host == host])
    charted = charted or [all_series[0]]
    charted_ids = {series.id for series in charted}
    others = [series for series in all_series if series.id not in charted_ids]
    others.sort(
        key=lambda series: (
            not is_pooled(series),
            series.host != host,
            series.host,
            -len(history.changes_of(series)),
            series.id,
        )
    )
    return Content(
        lead=f"{capital(_changes_of(charted, others, history))}.",
        panel=history_panel(
            charted, history, title=f"On {charted[0].host_name}", most_nights=_NIGHTS
        ),
        folded=tuple(
            (series, history.label(series), next(reversed(history.changes_of(series)), None))
            for series in others
        ),
        unlisted=f"{count(unlisted, 'series', 'series')} of other hosts without a change"
        if unlisted
        else "",
    )


def listed_series(result: ScenarioResult, history: ChangeHistory) -> tuple[Series, ...]:
    """The series that a scenario's page shows, by id.

    All of the host of the latest result, and of others those that changed, up to a number that a
    reader can look through. Of comparisons of commits only the anchored ones: the others have
    commits of their own each time.
    """
    all_series = history.histories_of(result.scenario.name)
    if compared_axis(result.source.document):
        all_series = tuple(series for series in all_series if series.is_anchored)
    elsewhere = [series for series in all_series if series.host != result.run.host.id]
    if len(elsewhere) <= _MOST_ELSEWHERE:
        return all_series
    elsewhere.sort(key=lambda series: (not is_pooled(series), -len(history.changes_of(series))))
    listed = {series.id for series in elsewhere[:_MOST_ELSEWHERE]}
    return tuple(
        series for series in all_series if series.host == result.run.host.id or series.id in listed
    )


def _charted_series(result: ScenarioResult, all_series: Sequence[Series]) -> list[Series]:
    """The series of the best cell and the baseline; else the first in the order of the file."""
    by_cell = {series.cell: series for series in all_series}
    leader = result.leader
    keys = [leader.cell.cell.key] if leader else []
    if result.baseline is not None:
        keys.append(result.baseline.cell.key)
    charted = [by_cell[key] for key in dict.fromkeys(keys) if key in by_cell]
    return charted or list(all_series[:1])


def _changes_of(charted: Sequence[Series], others: Sequence[Series], history: ChangeHistory) -> str:
    """The new changes in the charted cells, and the number of other cells with new changes."""
    changes = _latest_new_changes(charted, history)
    other_changes = _latest_new_changes(others, history)
    if not changes and not other_changes:
        all_series = (*charted, *others)
        runs = max(len(series.points) for series in all_series)
        state = "no change"
        if all(series.id in history.too_short for series in all_series):
            state = "too little data"
        if any(series.id in history.not_analysed for series in all_series):
            state = "could not be analysed"
        return f"{state} in {count(runs, 'run')}"
    text = " and ".join(map(_changes_text, _by_direction(changes).values()))
    text = text or "no change in the configurations shown"
    if not other_changes:
        return text
    directions = (
        f"{len(group):,} {'is' if len(group) == 1 else 'are'} {direction}"
        for direction, group in _by_direction(other_changes).items()
    )
    return f"{text}; of the other configurations {' and '.join(directions)}"


def _latest_new_changes(all_series: Sequence[Series], history: ChangeHistory) -> list[Change]:
    """The latest new change of each series that has one, as on the overview."""
    new = (
        [change for change in history.changes_of(series) if history.is_news(change)]
        for series in all_series
    )
    return [max(changes, key=lambda change: change.first_bad.at) for changes in new if changes]


def _by_direction(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Changes grouped by the word for their direction, regressions first."""
    return grouped(sorted(changes, key=lambda change: not change.is_regression), change_direction)


def _changes_text(changes: Sequence[Change]) -> str:
    """Changes of one direction: `6.3 to 6.5 % slower since 4e1d9c7a0b`."""
    first = min(changes, key=lambda change: change.first_bad.at)
    return f"{change_sizes(changes).word} since {_since_text(first)}"


def _since_text(change: Change) -> str:
    commit = change.first_bad.commit
    return commit.sha[:10] if commit else change.since[:10]
