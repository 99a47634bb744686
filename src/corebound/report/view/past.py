"""A scenario over time, in a line of the first page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corebound.model.series import Series
from corebound.report.view.chronicle import Chronicle, is_news, size_word
from corebound.report.view.page import VerdictWord
from corebound.report.view.study import Study
from corebound.report.view.triage import last_change


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A scenario over time: a cell's figures for the spark, how it stands, what changed last."""

    mode: str
    figures: tuple[float | None, ...]
    status: VerdictWord
    change: VerdictWord | None
    since: str


def past_of(study: Study, chosen: str, known: Chronicle) -> Past | None:
    """The history of the best cell on this host, or of whichever cell has one."""
    series = [
        one
        for one in known.grown(project=None, scenario=study.scenario.name)
        if one.host == study.run.host.id
    ]
    if not series:
        return None
    shown = next((one for one in series if one.cell == chosen), series[0])
    last = last_change(series, known)
    return Past(
        mode=known.label(shown).mode,
        figures=tuple(point.figure for point in shown.points),
        status=_standing(study, series, known),
        change=size_word(last) if last else None,
        since=last.series.points[last.step.at].at[:10] if last else "",
    )


def _standing(study: Study, series: Sequence[Series], known: Chronicle) -> VerdictWord:
    """How a scenario stands tonight, in a word: the worst of what is new in it."""
    news = [
        change
        for one in series
        for change in known.of(one)
        if is_news(change, known.status(change))
    ]
    if any(change.is_regression for change in news):
        return VerdictWord(tone="bad", sign="▼", word="slower")
    if any(launch.status not in {"ok", "skipped"} for launch in study.launches):
        return VerdictWord(tone="warn", sign="!", word="launches lost")
    if news:
        return VerdictWord(tone="good", sign="▲", word="faster")
    return VerdictWord(tone="plain", sign="", word="nothing new")
