"""A scenario over time, in a line of the first page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.series import Series
from corebound.report.view.chronicle import Chronicle, size_word
from corebound.report.view.page import Bounded, VerdictWord
from corebound.report.view.series_figure import figures_span, latest_of
from corebound.report.view.series_rows import last_change, no_change
from corebound.report.view.study import Study
from corebound.report.view.words import count


class Past(Struct, frozen=True, kw_only=True):
    """A scenario over time: a cell's figures for the spark, how it stands, what changed last.

    Attributes:
        mode: Class of the cell's colour.
        figures: What the spark draws.
        latest: The last of them, with its interval beneath.
        span: From the least of them to the most.
        runs: How many runs they are of, in words.
        points: Address of the table of the points, from the site's top.
        status: How it stands tonight.
        change, since: What changed last, and when.
        unchanged: What stands there where nothing did.
    """

    mode: str
    figures: Sequence[float]
    latest: Bounded
    span: str
    runs: str
    points: str
    status: VerdictWord
    change: VerdictWord | None
    unchanged: str
    since: str


def past_of(study: Study, chosen: Sequence[str], known: Chronicle) -> Past | None:
    """The history on this host of the first of these cells, or of whichever cell has one.

    Args:
        study: The scenario.
        chosen: Keys of cells, that which is to be shown first.
        known: The histories.
    """
    series = [
        one
        for one in known.grown(project=None, scenario=study.scenario.name)
        if one.host == study.run.host.id
    ]
    if not series:
        return None
    by_cell = {one.cell: one for one in series}
    shown = next((by_cell[key] for key in chosen if key in by_cell), series[0])
    last = last_change(series, known)
    return Past(
        mode=known.label(shown).mode,
        figures=shown.points.figures,
        latest=latest_of(shown),
        span=figures_span(shown),
        runs=count(len(shown.points), "run"),
        points=f"scenario/{study.scenario.name}.html#history",
        status=_standing(study, series, known),
        change=size_word(last) if last else None,
        unchanged=no_change(series, known),
        since=last.since[:10] if last else "",
    )


def _standing(study: Study, series: Sequence[Series], known: Chronicle) -> VerdictWord:
    """How a scenario stands tonight, in a word: the worst of what is new in it."""
    news = [change for one in series for change in known.of(one) if known.is_news(change)]
    if any(change.is_regression for change in news):
        return VerdictWord(tone="bad", sign="▼", word="slower")
    if any(launch.status not in {"ok", "skipped"} for launch in study.launches):
        return VerdictWord(tone="warn", sign="!", word="launches lost")
    if news:
        return VerdictWord(tone="good", sign="▲", word="faster")
    if any(one.id in known.not_analysed for one in series):
        return VerdictWord(tone="warn", sign="!", word="not analysed")
    short = all(one.id in known.too_short for one in series)
    return VerdictWord(tone="plain", sign="", word="too short to tell" if short else "nothing new")
