"""What `corebound regressions` says: the changes by commit, and what gave no result."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from corebound.analysis.change_history import (
    ChangeHistory,
    latest_text,
    size_with_interval,
)
from corebound.analysis.host_evidence import HostEvidence, evidence_lines, host_evidence
from corebound.analysis.json_documents import attributes
from corebound.analysis.series_wording import too_short_note
from corebound.analysis.suggested_commands import series_command, triage_commands
from corebound.analysis.triage import (
    CommitEntry,
    FailureGroup,
    Impact,
    change_factor,
    commit_entries,
    count_causes,
    group_failures,
    impact_extent,
    impact_size,
)
from corebound.analysis.wording import and_more, count
from corebound.present.changes import (
    Address,
    ChangeGroup,
    change_table,
    entry_table,
    failure_table,
    series_name,
)
from corebound.present.sections import Column, Fact, Facts, Named, Section, Sentence, Table, text_of
from corebound.records.history import ANCHOR_KEY, HistoryPoint, Series
from corebound.scenario.cell import Importance, axes_of_key
from corebound.stats.between_hosts import ClassEstimate
from corebound.stats.history.alerts import HistoryChange
from corebound.stats.history.latest import latest_difference
from corebound.stats.history.regressions import Change, arrays_of
from corebound.stats.intervals import ratio_interval_pair

# Without `--all`: the changes of a commit, the rows of a table, and those in a message for people.
_MOST_CHANGES, _MOST_ROWS, _MOST_BRIEF = 3, 20, 10


def regressions_sections(
    history: ChangeHistory,
    address: Address,
    *,
    records: str = "",
    show_all: bool = False,
    brief: bool = False,
) -> Iterator[Section]:
    """What a terminal and Markdown show.

    Args:
        records: The folder of records that commands have to name; empty for the default.
        show_all: Whether to list also changes that are not new, and all series of each commit.
        brief: Whether it is a message for people: one line for a commit, without commands.
    """
    yield Sentence(headline(history), "lead")
    most = _MOST_BRIEF if brief else _MOST_ROWS
    evidence = host_evidence(history.entries, history.series)
    hosts = {name: tuple(evidence_lines(own)) for name, own in evidence.items()}
    new, rest = _new_entries(history), _other_entries(history)
    listed = {**new, **(rest if show_all else {_SUSPECTED: rest[_SUSPECTED]})}
    for title, entries in listed.items():
        # A regression that counts is left out only of a message.
        shown = entries if show_all or not (brief or title == _SUSPECTED) else entries[:most]
        if shown:
            notes = filter(None, (and_more(len(entries) - len(shown)),))
            beside = hosts if brief else {}
            yield entry_table(shown, history, title, address, evidence=beside, notes=notes)
        for entry, impact in () if brief else shown:
            yield _details(entry, impact, history, address, show_all=show_all)
            own = (Fact(term="Hosts", value=line) for line in hosts.get(entry.id, ()))
            yield Facts((*own, *_facts_of_entry(entry, impact, history, address, records)))
    if history.failing:
        failures = group_failures(history.failing.values())
        yield failure_table(failures, address)
        yield Facts(() if brief else tuple(_reproduce(failures)))
    if history.not_analysed:
        yield not_analysed_table(history, address)
    short = _too_short(history)
    if short and (show_all or len(short) == len(history.active)):
        yield _latest_values(short, most=len(short) if show_all else most)
    others, unclear = rest[_OTHERS], rest[_UNCLEAR]
    hidden = (
        count(len(others), "other commit") if others else "",
        f"changes of {count(len(unclear), 'commit')} that are not significant" if unclear else "",
    )
    if any(hidden) and not show_all:
        yield Sentence(f"{', '.join(filter(None, hidden))}; --all lists them.", "note")


def _latest_values(short: Sequence[Series], *, most: int) -> Table:
    """The latest values of series that are too short to detect a change."""
    return Table(
        title="Latest values",
        columns=(Column("series", "long"), Column("latest value", "long")),
        rows=tuple((series_name(series), latest_text(series)) for series in short[:most]),
        notes=tuple(filter(None, (and_more(len(short) - most),))),
    )


def headline(history: ChangeHistory) -> str:
    """One sentence for the result, and another for series without enough data."""
    parts = ["No new regression"]
    if history.alarms:
        causes = count_causes(_with_alarm(history, "primary"))
        parts = [f"{count(len(history.alarms), 'new regression')} from {causes}"]
    numbers = {
        "in secondary benchmarks": len(history.secondary_alarms),
        "suspected": len(history.suspected),
        "without values": len(history.failing),
        "not analysed": len(history.not_analysed),
    }
    parts += [f"{number} {what}" for what, number in numbers.items() if number]
    retired = len(history.series) - len(history.active)
    suffix = f", {retired:,} of them retired" if retired else ""
    sentence = f"{', '.join(parts)}, in {count(len(history.series), 'series', 'series')}{suffix}."
    short = too_short_note(len(_too_short(history)), len(history.active))
    return f"{sentence} {short}".rstrip()


def _too_short(history: ChangeHistory) -> list[Series]:
    """The active series that are too short to detect a change."""
    return [series for series in history.active if series.id in history.too_short]


def _with_alarm(history: ChangeHistory, importance: Importance) -> list[CommitEntry]:
    """The commits with a new regression of a benchmark of this importance."""
    return [
        entry
        for entry in history.entries
        if any(
            each.is_alarm and each.change.series.importance == importance
            for each in entry.regressions.changes
        )
    ]


_Entries = list[tuple[CommitEntry, Impact]]
_SUSPECTED, _OTHERS, _UNCLEAR = "Suspected", "Other commits", "Not significant"


def _new_entries(history: ChangeHistory) -> dict[str, _Entries]:
    """The commits that are new, each with the direction of changes that it is listed for."""
    regressions = _with_alarm(history, "primary")
    secondary = [entry for entry in _with_alarm(history, "secondary") if entry not in regressions]
    listed = {entry.id for entry in (*regressions, *secondary)}
    gains = [
        (entry, entry.improvements)
        for entry in history.entries
        if entry.id not in listed and any(each.is_gain for each in entry.improvements.changes)
    ]
    return {
        "New regressions": [(entry, entry.leading) for entry in regressions],
        "New regressions of secondary benchmarks": [(each, each.leading) for each in secondary],
        "New improvements": gains,
    }


def _other_entries(history: ChangeHistory) -> dict[str, _Entries]:
    """The commits of suspected regressions, those that are not new, and what is not significant."""
    new = {entry.id for entries in _new_entries(history).values() for entry, _ in entries}
    groups = {
        _SUSPECTED: commit_entries(history.suspected),
        _OTHERS: [entry for entry in history.entries if entry.id not in new],
        _UNCLEAR: commit_entries(history.not_significant),
    }
    return {
        title: [(entry, entry.leading) for entry in entries] for title, entries in groups.items()
    }


def _details(
    entry: CommitEntry, impact: Impact, history: ChangeHistory, address: Address, *, show_all: bool
) -> Table:
    """The changes of a commit in one direction: the largest, or all, with the other direction."""
    shown = [each.changes[0] for each in impact.benchmarks[:_MOST_CHANGES]]
    if len(impact.benchmarks) == 1:
        shown = [*impact.changes[:_MOST_CHANGES]]
    if show_all:
        shown = [*impact.changes, *(each for each in entry.changes if each not in impact.changes)]
    left = len(entry.changes) - len(shown)
    return change_table(
        [ChangeGroup(changes=(each.change,), history=history) for each in shown],
        f"Changes of {entry.id}",
        address,
        notes=(f"{and_more(left)} series.",) if left else (),
    )


def _facts_of_entry(
    entry: CommitEntry, impact: Impact, history: ChangeHistory, address: Address, records: str
) -> Iterator[Fact]:
    """What one can do about a commit, what is known of its largest change, and its page."""
    for name, command in triage_commands(entry, history.built).items():
        yield Fact(term=name, value=command.at(records))
    yield from _facts(impact.changes[0], history, address)
    if entry in history.entries and (page := address(entry)):
        yield Fact(term="Commit", value=page)


def _facts(each: HistoryChange, history: ChangeHistory, address: Address) -> Iterator[Fact]:
    """What is known of a single change, with its commands and its page."""
    series, context = each.change.series, history.context(each.change.id)
    values = {
        "Noise": context.noise,
        "Both commits": shlex.join(context.compare),
        "Reproduce": shlex.join(series.reproduce),
        "Series": address(series),
    }
    return (Fact(term=term, value=value) for term, value in values.items() if value)


def described(each: HistoryChange, history: ChangeHistory, address: Address) -> str:
    """A change in lines of text, with its commands and its page."""
    table = change_table([ChangeGroup(changes=(each.change,), history=history)], "Change", address)
    lines = [*map(text_of, table.rows[0]), *(
        f"{fact.term}: {fact.value}" for fact in _facts(each, history, address)
    )]  # fmt: skip
    return "\n".join(filter(None, lines))


def _reproduce(failures: Sequence[FailureGroup]) -> Iterator[Fact]:
    for group in failures:
        command = series_command([group.failing[0].series])
        if command is not None:
            yield Fact(term="Reproduce", value=command.line)


def not_analysed_table(history: ChangeHistory, address: Address) -> Table:
    """A row for each series whose analysis failed, so that no change in it is known."""
    return Table(
        title="Not analysed",
        columns=(Column("series", "long"), Column("reason", "long")),
        rows=tuple(
            (Named(series_name(series), link=address(series)), history.not_analysed[series.id])
            for series in history.series
            if series.id in history.not_analysed
        ),
        notes=("The search for changes failed. This is a bug in corebound; please report it.",),
    )


def regressions_document(
    history: ChangeHistory, address: Address, *, records: str = ""
) -> dict[str, Any]:
    """The commits, changes and failing series as plain data; see `regressions_parts`."""
    parts = regressions_parts(history, address, records=records)
    return {key: [*part] if isinstance(part, Iterator) else part for key, part in parts.items()}


def regressions_parts(
    history: ChangeHistory, address: Address, *, records: str = ""
) -> dict[str, Any]:
    """The document with an iterator for each list, because all items take much memory.

    Args:
        records: The folder of records that commands have to name; empty for the default.
    """
    evidence = host_evidence(history.entries, history.series)
    short = _too_short(history)

    def entry_document(entry: CommitEntry) -> dict[str, Any]:
        return {
            **attributes(entry, "id", "project", "hosts", "status"),
            "regression": entry.is_regression,
            "importance": "secondary" if entry.is_secondary else "primary",
            "summary": f"{impact_extent(entry.leading)}: {impact_size(entry.leading)}",
            "last_good": _point(entry.last_good),
            "first_bad": _point(entry.first_bad),
            "regressions": _impact(entry.regressions),
            "improvements": _impact(entry.improvements),
            "changes": [change.id for change in entry.changes],
            "evidence_of_hosts": [_evidence(each) for each in evidence.get(entry.id, ())],
            "commands": {
                name.lower(): command.at(records)
                for name, command in triage_commands(entry, history.built).items()
            },
            "link": address(entry),
        }

    return {
        "alarms": len(history.alarms),
        "secondary_alarms": len(history.secondary_alarms),
        "series": len(history.series),
        "too_short": len(short),
        "latest": (_latest(series, address) for series in short),
        "commits": map(entry_document, history.entries),
        "changes": (_change(each, history, address) for each in history.assessed.values()),
        "failing": (
            {
                **_series(each.series, address),
                "since": each.since.at,
                "points": each.points,
                "reason": each.since.missing,
            }
            for each in history.failing.values()
        ),
        "not_analysed": (
            {**_series(series, address), "reason": history.not_analysed[series.id]}
            for series in history.series
            if series.id in history.not_analysed
        ),
    }


def _series(series: Series, address: Address) -> dict[str, Any]:
    """A series' identity, with the address of its page."""
    anchor = series.is_anchored and dict(series.points.environment_keys[-1])[ANCHOR_KEY]
    return {
        "series": series.id,
        **attributes(series, "project", "host", "scenario", "cell"),
        **({"anchor": anchor} if anchor else {}),
        "axes": axes_of_key(series.cell),
        **attributes(series, "title", "importance", "reproduce"),
        "link": address(series),
    }


def _latest(series: Series, address: Address) -> dict[str, Any]:
    """The latest value of a series that is too short to detect a change."""
    difference = latest_difference(arrays_of(series))
    return {
        **_series(series, address),
        "values_before": difference.before if difference else 0,
        **attributes(difference, "ratio"),
        "interval": ratio_interval_pair(difference.interval if difference else None),
    }


def _change(each: HistoryChange, history: ChangeHistory, address: Address) -> dict[str, Any]:
    """A change or an early warning, with the decision about it."""
    change, context = each.change, history.context(each.change.id)
    step = change.change_point
    return {
        **attributes(each, "id", "unit", "ratio", "interval", "confirmation"),
        "alarm": each.is_alarm,
        "regression": each.is_regression,
        "state": "back" if each.is_back else each.state,
        **attributes(each.decision, "because"),
        "step": step.status,
        "ended": each.has_ended,
        "suspicion": step.is_early,
        "clear": each.is_significant,
        "size": size_with_interval(change),
        **attributes(change.series, "more_is_better"),
        "only_on": change.only_on,
        "last_good": _point(change.last_good),
        "first_bad": _point(change.first_bad),
        "recovery": _recovery(change),
        "noise": context.noise or None,
        "compare": context.compare,
        **_series(change.series, address),
    }


def _evidence(evidence: HostEvidence) -> dict[str, Any]:
    """Ratios are of the value after the change to that before, with 95 % intervals."""
    return {
        **attributes(evidence, "scenario", "cell"),
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
    sha = point.commit.sha if point.commit else None
    return {"at": point.at, "commit": sha, **attributes(point.commit, "subject")}


def _recovery(change: Change) -> dict[str, Any] | None:
    recovery, between = change.change_point.recovery, change.recovered_between
    if recovery is None or between is None:
        return None
    good, bad = between
    return {
        "last_good": _point(good),
        "first_bad": _point(bad),
        **attributes(recovery, "steps", "left", "whole"),
        "clear": change.back_is_clear,
    }
