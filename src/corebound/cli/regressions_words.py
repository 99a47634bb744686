"""What `corebound regressions` tells, in words: plain and in Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from corebound import foreign
from corebound.cli.regressions_beside import Beside
from corebound.model.points import Point
from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.answers import answer_words
from corebound.report.view.changes import commit_range, left_words, recovery_words
from corebound.report.view.chronicle import size_interval, size_word
from corebound.report.view.last_measured import last_day
from corebound.report.view.too_short import too_short_words
from corebound.report.view.words import count, day
from corebound.stats.regressions import Change, Failing, NotAnalysed
from corebound.stats.regressions_judged import Judged
from corebound.stats.too_short import too_short


class Told(Struct, frozen=True, kw_only=True):
    """Everything there is to tell.

    Attributes:
        judged: Changes and suspicions, largest first.
        failing: Series that end without figures.
        not_analysed: Series that nothing is known of, for their analysis failed.
        series: All that were looked at; `going` those of them that have not ended.
        site: Where the site is, as links begin.
        everything: Whether to list also what is no news.
        beside: What stands beside a change, by its id.
    """

    judged: tuple[Judged, ...]
    failing: tuple[Failing, ...]
    not_analysed: tuple[NotAnalysed, ...]
    series: tuple[Series, ...]
    going: tuple[Series, ...]
    site: str
    everything: bool
    beside: Mapping[str, Beside] = field(default_factory=dict)

    def beside_of(self, one: Judged) -> Beside:
        """What stands beside it; nothing where nothing is known."""
        return self.beside.get(one.change.id, Beside())

    @property
    def too_short(self) -> int:
        """How many of those that have not ended cannot tell a change yet."""
        unknown = {one.series.id for one in self.not_analysed}
        return len(too_short(one for one in self.going if one.id not in unknown))

    @property
    def alarms(self) -> tuple[Judged, ...]:
        """The new regressions."""
        return tuple(one for one in self.judged if one.alarm)

    @property
    def suspected(self) -> tuple[Judged, ...]:
        """What may be a regression, and is no alarm so far."""
        return tuple(one for one in self.judged if one.change.is_regression and one.is_undecided)

    @property
    def gains(self) -> tuple[Judged, ...]:
        """New changes for the better that stand."""
        return tuple(one for one in self.judged if one.is_gain)

    @property
    def rest(self) -> tuple[Judged, ...]:
        """Everything else: decided, old, recovered, or perhaps chance."""
        named = {id(one) for one in (*self.alarms, *self.suspected, *self.gains)}
        return tuple(one for one in self.judged if id(one) not in named)


def text(told: Told) -> str:
    """For a terminal."""
    lines = [headline(told)]
    for heading, several in _sections(told):
        lines += ["", heading]
        for one in several:
            lines += ["", *(f"  {line}" for line in _lines(one, told))]
    if told.failing:
        lines += ["", "Failed since"]
        lines += [f"  {line}" for one in told.failing for line in ("", *_failed(one, told.site))]
    if told.not_analysed:
        lines += ["", "Not analysed"]
        lines += [
            f"  {line}" for one in told.not_analysed for line in ("", *_unknown(one, told.site))
        ]
    if told.rest and not told.everything:
        lines += [
            "",
            f"{count(len(told.rest), 'other change')} known or no news: --all lists all.",
        ]
    return "\n".join(map(foreign.one_line, lines))


def markdown(told: Told) -> str:
    """For a comment or a summary of a CI run."""
    lines = [f"**{foreign.markdown(headline(told))}**"]
    for heading, several in _sections(told):
        lines += ["", f"### {heading}", ""]
        for one in several:
            lines += _item(_lines(one, told))
    if told.failing:
        lines += ["", "### Failed since", ""]
        lines += [line for one in told.failing for line in _item(_failed(one, told.site))]
    if told.not_analysed:
        lines += ["", "### Not analysed", ""]
        lines += [line for one in told.not_analysed for line in _item(_unknown(one, told.site))]
    if told.rest and not told.everything:
        lines += ["", f"{count(len(told.rest), 'other change')} known or no news."]
    return "\n".join(lines)


def headline(told: Told) -> str:
    """The whole in a sentence, and in another how much cannot be told."""
    new = count(len(told.alarms), "new regression") if told.alarms else "No new regression"
    parts = [new]
    if told.suspected:
        parts.append(f"{len(told.suspected)} suspected")
    if told.failing:
        parts.append(f"{len(told.failing)} failing")
    if told.not_analysed:
        parts.append(f"{len(told.not_analysed)} not analysed")
    over = len(told.series) - len(told.going)
    ended = f", {over:,} of which ended" if over else ""
    whole = f"{', '.join(parts)}, in {count(len(told.series), 'series', 'series')}{ended}."
    return f"{whole} {too_short_words(told.too_short, len(told.going))}".rstrip()


def size(change: Change) -> str:
    """How large: `▼ 4.5 % slower, 95 % interval [3.9, 5.1] %`."""
    word = size_word(change)
    interval = size_interval(change)
    known = f"95 % interval {interval}" if interval else "too few nights for an interval"
    return f"{word.sign} {word.word}, {known}"


def came_in(change: Change) -> str:
    """Between which commits and nights, or dates of commits where no more is known."""
    return _between(change.last_good, change.first_bad)


def recovered(change: Change) -> str:
    """What took it back, all or in part: how far, and where; empty where nothing did."""
    between = change.back_between
    if between is None:
        return ""
    left = left_words((change,))
    return f"{recovery_words(change)}: {_between(*between)}{f'; {left}' if left else ''}"


def _between(good: Point, bad: Point) -> str:
    commits = commit_range(good, bad)
    one = good.commit is not None and bad.commit is not None and good.commit.sha == bad.commit.sha
    when = f"{'of' if bad.is_of_commit else 'nights'} {day(good.at)} to {day(bad.at)}"
    if one and bad.commit is not None:
        return f"{when}, all of commit {bad.commit.sha[:10]}: what changed is not in it"
    if not commits:
        return when
    subject = f" ({bad.commit.subject})" if bad.commit is not None and bad.commit.subject else ""
    return f"commits {commits}{subject}, {when}"


def standing(judged: Judged) -> str:
    """What became of it so far."""
    change = judged.change
    parts = []
    if judged.is_back and judged.decision is not None:
        parts.append(f"back: said to be fixed {judged.decision.at[:10]}, and there all the same")
    elif judged.state != "open":
        parts.append(judged.state)
    elif change.step.status != "new":
        parts.append(change.step.status)
    elif judged.has_ended:
        parts.append(f"ended: {last_day(change.series.points.moments[-1])}")
    elif judged.alarm:
        parts.append("new")
    elif not change.step.votes:
        parts.append("suspected: so far it is two nights that stand out")
    elif not change.clear:
        parts.append("suspected: one of so many series may look so by chance")
    else:
        parts.append("new" if not change.is_regression else "suspected")
    if judged.decision is not None and judged.state != "open" and not judged.is_back:
        parts.append(f"because {judged.decision.because}")
    if judged.confirmation is not None:
        parts.append(answer_words(judged.confirmation))
    return "; ".join(parts)


def named(series: Series) -> str:
    """A series for the eye."""
    where = series.host_name if series.project is None else f"{series.project}, {series.host_name}"
    cell = f" [{series.cell}]" if series.cell not in {"", "default"} else ""
    return f"{series.title}{cell} on {where}"


def _sections(told: Told) -> Iterator[tuple[str, tuple[Judged, ...]]]:
    every = (
        ("New regressions", told.alarms),
        ("Suspected", told.suspected),
        ("New improvements", told.gains),
        ("Other changes", told.rest if told.everything else ()),
    )
    return ((heading, several) for heading, several in every if several)


def _lines(one: Judged, told: Told) -> tuple[str, ...]:
    series = one.change.series
    lines = (
        f"{one.id}  {named(series)}",
        size(one.change),
        came_in(one.change),
        recovered(one.change),
        standing(one),
        told.beside_of(one).noise,
        link_of(series, told.site),
        *commands(one, told),
    )
    return tuple(line for line in lines if line)


def commands(one: Judged, told: Told) -> tuple[str, ...]:
    """What measures it again: the cell, and where that can be, its two commits in turns."""
    series, compare = one.change.series, told.beside_of(one).compare
    return (
        *((f"reproduce: {shlex.join(series.reproduce)}",) if series.reproduce else ()),
        *((f"both commits: {shlex.join(compare)}",) if compare else ()),
    )


def _failed(one: Failing, site: str) -> tuple[str, ...]:
    reason = f": {one.since.missing}" if one.since.missing else ""
    return (
        named(one.series),
        f"no figure since {one.since.at}, {count(one.points, 'night')}{reason}",
        link_of(one.series, site),
        f"reproduce: {shlex.join(one.series.reproduce)}" if one.series.reproduce else "",
    )


def _unknown(one: NotAnalysed, site: str) -> tuple[str, ...]:
    return (
        named(one.series),
        f"its analysis failed: {one.reason}. This is a bug in corebound; please report it.",
        link_of(one.series, site),
    )


def link_of(series: Series, site: str) -> str:
    return f"{site.rstrip('/')}/{series_place(series)}"


def _item(lines: Sequence[str]) -> tuple[str, ...]:
    first, *rest = (foreign.markdown(line) for line in lines if line)
    return (f"- **{first}**", *(f"  - {line}" for line in rest))
