"""The output of `corebound regressions`: text, Markdown, JSON and JUnit XML."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from msgspec import Struct, field

from corebound import text as corebound_text
from corebound.analysis.change_history import (
    answer_words,
    commit_range,
    left_words,
    recovery_words,
    size_with_interval,
)
from corebound.analysis.commands import continuous_words
from corebound.analysis.noise_floor import calibration_for, noise_words
from corebound.analysis.serialize import change_document, series_document
from corebound.analysis.wording import count, day, last_day, too_short_words
from corebound.cli.confirm_regressions import CommitPair, pair_of
from corebound.records import documents
from corebound.records.calibration import Calibration
from corebound.records.history import HistoryPoint, Series
from corebound.report.urls import series_url
from corebound.stats.history.alerts import AssessedChange
from corebound.stats.history.regressions import Change, Failing, NotAnalysed, too_short
from corebound.workflow.run_index import Suite


class ChangeContext(Struct, frozen=True, kw_only=True):
    """Additional information to display with a change.

    Attributes:
        noise: The noise floor of the change's scenario, in a sentence; empty if unknown.
        compare: The command that measures both commits in alternation, asv's command for asv's
            series; empty if the commits cannot be built.
    """

    noise: str = ""
    compare: tuple[str, ...] = ()


def beside(found: Iterable[Change], suite: Suite, records: Path) -> Mapping[str, ChangeContext]:
    """The additional information for each change, by its id."""
    known, _ = documents.read_calibrations(records)
    return {
        change.id: ChangeContext(
            noise=_noise(change, suite, known), compare=_compare(change, suite)
        )
        for change in found
    }


def _noise(change: Change, suite: Suite, known: tuple[Calibration, ...]) -> str:
    last = change.series.points[-1]
    run = suite.runs.get(last.run or "")
    if run is None:
        return ""
    source = run.source_of(change.series.scenario)
    calibration = calibration_for(known, run, source) if source else None
    return noise_words(calibration, launches=len(last.launches))


def _compare(change: Change, suite: Suite) -> tuple[str, ...]:
    pair = pair_of(change, suite)
    if pair is not None:
        return _command(pair)
    return continuous_words(change.series, change.last_good.commit, change.first_bad.commit)


def _command(pair: CommitPair) -> tuple[str, ...]:
    words = ("corebound", "compare-commits", pair.good.sha[:10], pair.bad.sha[:10], str(pair.path))
    profile = () if pair.run.profile is None else ("--profile", pair.run.profile)
    only = ("--only", pair.cell.key) if pair.cell.axes else ()
    return (*words, *profile, *only)


class RegressionsResult(Struct, frozen=True, kw_only=True):
    """The result of the analysis.

    Attributes:
        judged: Changes and early warnings, largest first.
        failing: Series whose latest points have no results.
        not_analysed: Series whose analysis failed, so that nothing is known about them.
        series: The number of analysed series; `going` counts those that are not retired.
        site: The site's address, as a prefix for links.
        everything: Whether to list changes that are not new as well.
        beside: The additional information for each change, by its id.
    """

    judged: tuple[AssessedChange, ...]
    failing: tuple[Failing, ...]
    not_analysed: tuple[NotAnalysed, ...]
    series: tuple[Series, ...]
    going: tuple[Series, ...]
    site: str
    everything: bool
    beside: Mapping[str, ChangeContext] = field(default_factory=dict)

    def beside_of(self, one: AssessedChange) -> ChangeContext:
        """The additional information for a change; empty if there is none."""
        return self.beside.get(one.change.id, ChangeContext())

    @property
    def too_short(self) -> int:
        """How many active series are too short to detect a change."""
        unknown = {one.series.id for one in self.not_analysed}
        return len(too_short(one for one in self.going if one.id not in unknown))

    @property
    def alarms(self) -> tuple[AssessedChange, ...]:
        """The new regressions."""
        return tuple(one for one in self.judged if one.alarm)

    @property
    def suspected(self) -> tuple[AssessedChange, ...]:
        """Possible regressions that do not alarm yet."""
        return tuple(one for one in self.judged if one.change.is_regression and one.is_undecided)

    @property
    def gains(self) -> tuple[AssessedChange, ...]:
        """New improvements that have lasted."""
        return tuple(one for one in self.judged if one.is_gain)

    @property
    def rest(self) -> tuple[AssessedChange, ...]:
        """All other changes: decided, old, recovered, or possibly chance."""
        named = {id(one) for one in (*self.alarms, *self.suspected, *self.gains)}
        return tuple(one for one in self.judged if id(one) not in named)


def text(told: RegressionsResult) -> str:
    """Render the result for a terminal."""
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
    return "\n".join(map(corebound_text.one_line, lines))


def markdown(told: RegressionsResult) -> str:
    """Render the result as Markdown, for a comment or a CI summary."""
    lines = [f"**{corebound_text.markdown(headline(told))}**"]
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


def headline(told: RegressionsResult) -> str:
    """One sentence for the result, and another for series without enough data."""
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


def came_in(change: Change) -> str:
    """The commits and points around the change, or the commits' dates if that is all there is."""
    return _between(change.last_good, change.first_bad)


def recovered(change: Change) -> str:
    """The later recovery, full or partial: how much, and where; empty if there is none."""
    between = change.back_between
    if between is None:
        return ""
    left = left_words((change,))
    return f"{recovery_words(change)}: {_between(*between)}{f'; {left}' if left else ''}"


def _between(good: HistoryPoint, bad: HistoryPoint) -> str:
    commits = commit_range(good, bad)
    one = good.commit is not None and bad.commit is not None and good.commit.sha == bad.commit.sha
    when = f"{'of' if bad.is_of_commit else 'nights'} {day(good.at)} to {day(bad.at)}"
    if one and bad.commit is not None:
        return f"{when}, all of commit {bad.commit.sha[:10]}: what changed is not in it"
    if not commits:
        return when
    subject = f" ({bad.commit.subject})" if bad.commit is not None and bad.commit.subject else ""
    return f"commits {commits}{subject}, {when}"


def standing(judged: AssessedChange) -> str:
    """The current state of a change."""
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
    """A series' name to display."""
    where = series.host_name if series.project is None else f"{series.project}, {series.host_name}"
    cell = f" [{series.cell}]" if series.cell not in {"", "default"} else ""
    return f"{series.title}{cell} on {where}"


def _sections(told: RegressionsResult) -> Iterator[tuple[str, tuple[AssessedChange, ...]]]:
    every = (
        ("New regressions", told.alarms),
        ("Suspected", told.suspected),
        ("New improvements", told.gains),
        ("Other changes", told.rest if told.everything else ()),
    )
    return ((heading, several) for heading, several in every if several)


def _lines(one: AssessedChange, told: RegressionsResult) -> tuple[str, ...]:
    series = one.change.series
    lines = (
        f"{one.id}  {named(series)}",
        size_with_interval(one.change),
        came_in(one.change),
        recovered(one.change),
        standing(one),
        told.beside_of(one).noise,
        link_of(series, told.site),
        *commands(one, told),
    )
    return tuple(line for line in lines if line)


def commands(one: AssessedChange, told: RegressionsResult) -> tuple[str, ...]:
    """Commands that measure again: the cell and, if possible, both commits in alternation."""
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
    return f"{site.rstrip('/')}/{series_url(series)}"


def _item(lines: Sequence[str]) -> tuple[str, ...]:
    first, *rest = (corebound_text.markdown(line) for line in lines if line)
    return (f"- **{first}**", *(f"  - {line}" for line in rest))


def document(told: RegressionsResult) -> dict[str, Any]:
    """Build the JSON document for scripts."""
    return {
        "alarms": len(told.alarms),
        "series": len(told.series),
        "too_short": told.too_short,
        "changes": [_change(one, told) for one in told.judged],
        "failing": [
            {
                **_series(one.series, told),
                "since": one.since.at,
                "points": one.points,
                "reason": one.since.missing,
            }
            for one in told.failing
        ],
        "not_analysed": [
            {**_series(one.series, told), "reason": one.reason} for one in told.not_analysed
        ],
    }


def _series(series: Series, told: RegressionsResult) -> dict[str, Any]:
    return series_document(series, link_of(series, told.site))


def _change(one: AssessedChange, told: RegressionsResult) -> dict[str, Any]:
    context = told.beside_of(one)
    return change_document(
        one,
        link=link_of(one.change.series, told.site),
        noise=context.noise,
        compare=context.compare,
    )


def junit(told: RegressionsResult) -> str:
    """Render a test suite: new regressions fail, series without results or analysis are errors.

    Early warnings appear in the case's output and do not fail.
    """
    of_series: dict[str, list[AssessedChange]] = {}
    for one in told.judged:
        of_series.setdefault(one.change.series.id, []).append(one)
    failing = {one.series.id: one for one in told.failing}
    unknown = {one.series.id: one.reason for one in told.not_analysed}
    failed = {one.change.series.id for one in told.alarms}
    suite = ET.Element(
        "testsuite",
        name="corebound regressions",
        tests=str(len(told.series)),
        failures=str(len(failed)),
        errors=str(len(failing) + len(unknown)),
        skipped="0",
    )
    for series in told.series:
        where = series.host if series.project is None else f"{series.project}.{series.host}"
        case = ET.SubElement(
            suite,
            "testcase",
            classname=corebound_text.xml(f"{where}.{series.scenario}"),
            name=corebound_text.xml(series.cell or "default"),
        )
        mine = of_series.get(series.id, [])
        alarms = [one for one in mine if one.alarm]
        if alarms:
            what = corebound_text.xml("; ".join(size_with_interval(one.change) for one in alarms))
            failure = ET.SubElement(case, "failure", message=what, type="regression")
            failure.text = corebound_text.xml("\n\n".join(_said(one, told) for one in alarms))
        if (ended := failing.get(series.id)) is not None:
            why = ended.since.missing or "not told why"
            what = corebound_text.xml(f"no figure since {ended.since.at}: {why}")
            ET.SubElement(case, "error", message=what, type="no figure")
        if series.id in unknown:
            what = corebound_text.xml(f"not analysed: {unknown[series.id]}")
            ET.SubElement(case, "error", message=what, type="not analysed")
        quiet = [one for one in mine if one.is_open and not one.alarm]
        if quiet:
            ET.SubElement(case, "system-out").text = corebound_text.xml(
                "\n\n".join(_said(one, told) for one in quiet)
            )
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _said(one: AssessedChange, told: RegressionsResult) -> str:
    change = one.change
    lines = (
        f"{one.id} {named(change.series)}",
        size_with_interval(change),
        came_in(change),
        recovered(change),
        standing(one),
        told.beside_of(one).noise,
        link_of(change.series, told.site),
        *commands(one, told),
    )
    return "\n".join(line for line in lines if line)
