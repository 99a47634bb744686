"""What the page of an imported benchmark says first: what is new, in how many cells, in which."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.model.series import Series
from corebound.report.view.addresses import anchor_of
from corebound.report.view.change_groups import change_group, grouped
from corebound.report.view.chronicle import Chronicle, size_word, way_word
from corebound.report.view.command import NO_COMMAND
from corebound.report.view.failing_rows import failing_rows, gives
from corebound.report.view.page import Hero, Piece, Text
from corebound.report.view.series_names import axes, natural_place, shared_axes
from corebound.report.view.words import count, rich, strong
from corebound.stats.regressions import Change

# What happened more often than that is in the charts below.
_MOST_EVENTS = 4
# Fewer cells have something in common by chance.
_TOLD_APART = 5


def benchmark_hero(
    project: str, series: Sequence[Series], silent: Sequence[Series], known: Chronicle
) -> Hero:
    """The verdict of a benchmark, and what it rests on.

    Args:
        project: Whose it is.
        series: Its series, at least one, each with a figure.
        silent: Those without any.
        known: What changed in them.
    """
    found = [change for one in series for change in known.of(one)]
    news = [change for change in found if known.is_news(change)]
    # asv's `pretty_name` stands in its place.
    own_name = series[0].scenario if series[0].title != series[0].scenario else ""
    return Hero(
        title=series[0].title,
        question="",
        context=", ".join(
            part for part in (own_name, f"of {project}", shared_axes(series)) if part
        ),
        verdict=_verdict(series, found, news, known),
        support=rich(
            *_events(series, news, known),
            _counted(series, known),
            f"{count(len(found), 'change')} in all.",
            _failing(series, known),
            f" {count(len(silent), 'cell')} never gave a figure." if silent else "",
            "" if any(one.reproduce for one in series) else f" {NO_COMMAND}",
        ),
        flags=(),
    )


def _verdict(
    series: Sequence[Series], found: Sequence[Change], news: Sequence[Change], known: Chronicle
) -> Text:
    """What is new, else what is still open, else whether anything could be."""
    going = [one for one in series if one.id not in known.ended]
    if len({change.series.id for change in news}) > 1:
        return _verdict_of_many(going, news)
    if news:
        largest = max(news, key=lambda change: abs(change.step.ratio - 1))
        since = largest.first_bad.at[:10]
        return rich(_toned(size_word(largest).word, largest), f" since {since}.")
    old = sum(one.is_regression and known.status(one) == "open" for one in found)
    if old:
        are = "is" if old == 1 else "are"
        return rich(Piece(count(old, "older regression"), "bad"), f" {are} still open.")
    failing = sum(one.id in known.failing for one in going)
    if failing:
        which = f"{failing:,} of {len(going):,} cells" if len(going) > 1 else "It"
        return rich(f"{which} {gives(failing)} ", Piece("no figure", "bad"), " any more.")
    return _nothing(series, going, known)


def _nothing(series: Sequence[Series], going: Sequence[Series], known: Chronicle) -> Text:
    """That nothing is new, or why that cannot be told."""
    reasons = [known.not_analysed[one.id] for one in series if one.id in known.not_analysed]
    if reasons:
        which = f"{len(reasons):,} of {len(series):,} cells" if len(series) > 1 else "It"
        return rich(f"{which} ", Piece("could not be analysed", "bad"), f": {reasons[0]}")
    if going and all(one.id in known.too_short for one in going):
        return rich("Too early to tell what changed.")
    return rich("Nothing new.")


def _failing(series: Sequence[Series], known: Chronicle) -> str:
    """Which give no figure any more, and why, by the day since when and the reason."""
    found = [known.failing[one.id] for one in series if one.id in known.failing]
    rows = failing_rows(found, known)
    told = "; ".join(f"{count(row.cells, 'cell')} {row.says}" for row in rows[:_MOST_EVENTS])
    more = "; …" if len(rows) > _MOST_EVENTS else ""
    return f" No figure any more: {told}{more}." if rows else ""


def _verdict_of_many(going: Sequence[Series], news: Sequence[Change]) -> Text:
    """In how many something is new: the size of one would be taken for that of all."""
    parts: list[str | Piece] = []
    for is_regression in (True, False):
        alike = [one for one in news if one.is_regression is is_regression]
        if alike:
            word = way_word(alike[0])
            number = f"{len({one.series.id for one in alike}):,}"
            got = f", {number} " if parts else f"{number} of {len(going):,} cells got "
            parts += [got, _toned(word, alike[0])]
    return rich(*parts, ".")


def _toned(word: str, change: Change) -> Piece:
    return Piece(word, "bad" if change.is_regression else "good")


def _events(
    series: Sequence[Series], news: Sequence[Change], known: Chronicle
) -> list[str | Piece]:
    """What one commit each can have made, that of most cells first; nothing of a single series."""
    if len(series) == 1:
        return []
    groups = sorted(grouped(news, known), key=len, reverse=True)
    said: list[str | Piece] = []
    for group in groups[:_MOST_EVENTS]:
        first = min((change.series for change in group), key=natural_place)
        there = [one for one in series if one.host == first.host and one.id not in known.ended]
        row = change_group(group, known, root="../").head
        # A link's name tells it from the others: so the size is in it.
        name = f"{_which(group, first, there)} {row.size.word}"
        own = _in_common([change.series for change in group], there)
        said += [strong(name, f"#{anchor_of(first)}"), f", all {', '.join(own)}," if own else ""]
        said.append(f" since {row.since[:10]}")
        said += [" by ", strong(row.commits, row.link)] if row.commits else []
        said.append(". ")
    more = len(groups) - _MOST_EVENTS
    return [*said, f"{count(more, 'change')} more below. "] if more > 0 else said


def _which(group: Sequence[Change], first: Series, there: Sequence[Series]) -> str:
    """The cells of one event: a name, or how many they are of those of their machine."""
    if len(there) == 1:
        return f"On {first.host_name}"
    which = f"{len(group):,} of {len(there):,} cells"
    if len(group) == 1:
        which = ", ".join(_not_shared(first, there)) or "1 cell"
    return f"{which} on {first.host_name}"


def _not_shared(one: Series, every: Sequence[Series]) -> list[str]:
    """The parameters of a series that not all of its machine have."""
    usual = _shared(every)
    return [axis for axis in axes(one.cell) if axis not in usual]


def _in_common(some: Sequence[Series], every: Sequence[Series]) -> list[str]:
    """The parameters that all of some, if they are many, share, and not every one does."""
    if len(some) < _TOLD_APART:
        return []
    shared = _shared(some)
    return [axis for axis in _not_shared(some[0], every) if axis in shared]


def _shared(series: Sequence[Series]) -> frozenset[str]:
    return frozenset.intersection(*(frozenset(axes(one.cell)) for one in series))


def _counted(series: Sequence[Series], known: Chronicle) -> str:
    hosts = len({one.host for one in series})
    points = max(len(one.points.measured) for one in series)
    latest = max(one.points.moments[-1].at for one in series)
    ended = sum(one.id in known.ended for one in series)
    return (
        f"{count(len(series), 'series', 'series')} on {count(hosts, 'machine')}, "
        f"up to {count(points, 'point')} each, the last of {latest[:10]}; "
        f"{f'{ended:,} measured no longer; ' if ended else ''}"
    )
