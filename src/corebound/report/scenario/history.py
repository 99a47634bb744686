"""A scenario's history on its page: the baseline and the best cell, the others folded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory, sizes_word, way_word
from corebound.analysis.commands import CommandLine, series_command
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import (
    Label,
    ValueWithBounds,
    count,
    figures_span,
    full_name,
    latest_of,
)
from corebound.records.history import Series
from corebound.report.history.panel import HistoryPanel, history_panel
from corebound.stats.history.regressions import Change

# The number of points in all folded charts of a page together, and the least number per chart. A
# page with a hundred cells and a thousand nightly runs stays small.
_FOLDED_POINTS = 4_000
_MIN_POINTS = 40


class OtherRow(Struct, frozen=True, kw_only=True):
    """A folded chart as a table row; `command` measures its cell again, if known."""

    label: Label
    where: str
    runs: str
    span: str
    latest: ValueWithBounds
    command: CommandLine | None


class ScenarioHistory(Struct, frozen=True, kw_only=True):
    """The section: one chart first, then the rest.

    Attributes:
        title, lead: The heading and introduction.
        panel: The chart of the baseline and the best cell.
        folded: A chart for each other cell, and for other hosts; `others` has each as a row.
        data: Address of all points as CSV; `zoom` as a script.
    """

    title: str
    lead: str
    panel: HistoryPanel
    folded: tuple[HistoryPanel, ...]
    others: tuple[OtherRow, ...]
    data: str
    zoom: str


def scenario_history(study: ScenarioResult, known: ChangeHistory) -> ScenarioHistory | None:
    """The history of a scenario's cells; None if no cell has two points."""
    series = known.grown(project=None, scenario=study.scenario.name)
    if not series:
        return None
    host = study.run.host.id
    here = [one for one in series if one.host == host]
    first = _charted_series(study, here) or [series[0]]
    shown = {one.id for one in first}
    rest = [one for one in series if one.id not in shown]
    rest.sort(key=lambda one: (one.host != host, one.host, -len(known.of(one)), one.id))
    most = max(_FOLDED_POINTS // max(len(rest), 1), _MIN_POINTS)
    return ScenarioHistory(
        title=_history_title(first, rest, known),
        lead=_history_lead(first, known),
        panel=history_panel(first, known, title=f"On {first[0].host_name}"),
        folded=tuple(
            history_panel(
                (one,),
                known,
                title=_series_name(one, known, host),
                most_points=most,
                most_nights=0,
            )
            for one in rest
        ),
        others=tuple(
            OtherRow(
                label=known.label(one),
                where="" if one.host == host else f"on {one.host_name}",
                runs=count(len(one.points), "run"),
                span=figures_span(one),
                latest=latest_of(one),
                command=series_command((one,)),
            )
            for one in rest
        ),
        data=f"../data/{study.scenario.name}.history.csv",
        zoom=f"../data/{study.scenario.name}.history.js",
    )


def _charted_series(study: ScenarioResult, series: list[Series]) -> list[Series]:
    """The series of the best cell and the baseline; else the first in the order of the file."""
    by_cell = {one.cell: one for one in series}
    best = study.leader
    wanted = [best.cell.cell.key] if best else []
    if study.baseline is not None:
        wanted.append(study.baseline.cell.key)
    found = [by_cell[key] for key in dict.fromkeys(wanted) if key in by_cell]
    return found or series[:1]


def _series_name(series: Series, known: ChangeHistory, host: str) -> str:
    cell = known.cells.get((series.scenario, series.cell))
    name = full_name(cell) if cell is not None else series.cell
    return name if series.host == host else f"{name}, on {series.host_name}"


def _history_title(shown: Sequence[Series], rest: Sequence[Series], known: ChangeHistory) -> str:
    """The new changes in the charted cells, and the number of other cells with new changes."""
    news = [change for one in shown if (change := _latest_new_change(one, known)) is not None]
    others = [change for one in rest if (change := _latest_new_change(one, known)) is not None]
    if not news and not others:
        every = (*shown, *rest)
        nights = max(len(one.points) for one in every)
        short = all(one.id in known.too_short for one in every)
        said = "too short to tell" if short else "nothing new"
        if any(one.id in known.not_analysed for one in every):
            said = "could not be analysed"
        return f"History: {said} in {count(nights, 'run')}"
    said = (
        " and ".join(map(_changes_text, _by_direction(news).values()))
        or "nothing new in the cells drawn"
    )
    if not others:
        return f"History: {said}"
    each = (
        f"{len(group):,} {'is' if len(group) == 1 else 'are'} {way}"
        for way, group in _by_direction(others).items()
    )
    return f"History: {said}; of the other cells {' and '.join(each)}"


def _latest_new_change(series: Series, known: ChangeHistory) -> Change | None:
    """The latest new change of a series, as on the overview; None if there is none."""
    found = [change for change in known.of(series) if known.is_news(change)]
    return max(found, key=lambda change: change.first_bad.at, default=None)


def _by_direction(found: Sequence[Change]) -> dict[str, list[Change]]:
    """Changes grouped by the word for their direction, regressions first."""
    ways: dict[str, list[Change]] = {}
    for change in sorted(found, key=lambda one: not one.is_regression):
        ways.setdefault(way_word(change), []).append(change)
    return ways


def _changes_text(found: Sequence[Change]) -> str:
    """Changes of one direction: `6.3 to 6.5 % slower since 4e1d9c7a0b`."""
    first = min(found, key=lambda change: change.first_bad.at)
    return f"{sizes_word(found).word} since {_since_text(first)}"


def _since_text(change: Change) -> str:
    commit = change.first_bad.commit
    return commit.sha[:10] if commit else change.since[:10]


def _history_lead(shown: list[Series], known: ChangeHistory) -> str:
    parts = [
        "Dots: one run each, with its 95 % interval.",
        "Thick line: the level between changes.",
    ]
    if any(known.of(one) for one in shown):
        parts.append("Numbered marks are the changes below; shaded, where each can have begun.")
    parts.append("Letters mark another kernel, environment, CPUs or scenario: no commit's doing.")
    if any(math.isnan(figure) for one in shown for figure in one.points.values):
        parts.append("A tick at the foot is a run without a figure.")
    return " ".join(parts)
