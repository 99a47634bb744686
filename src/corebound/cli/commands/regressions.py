"""`corebound regressions`: list the change points of all histories, and record decisions."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote

import typer
from msgspec import Struct
from rich.text import Text

from corebound import text as corebound_text
from corebound.analysis.change_history import (
    commit_range,
    latest_text,
    recovered_amount,
    remaining_change,
    rerun_note,
    size_with_interval,
)
from corebound.analysis.commands import triage_commands
from corebound.analysis.host_evidence import HostEvidence, evidence_lines
from corebound.analysis.triage import (
    STATUSES,
    CommitEntry,
    FailureGroup,
    Impact,
    change_status,
    commit_entries,
    count_causes,
    impact_extent,
    impact_size,
)
from corebound.analysis.wording import and_more, count, day, last_day, too_short_note
from corebound.cli.options import Json, Quiet
from corebound.cli.output.console import Console
from corebound.cli.output.json import result_json
from corebound.cli.output.junit import TestCase, TestFailure, junit_xml
from corebound.cli.output.progress import TerminalReporter
from corebound.errors import NO_ANSWER, REGRESSION, InputError
from corebound.records.decisions import DECISIONS_FILE, State
from corebound.records.history import HistoryPoint, Series, is_primary
from corebound.records.jsonl import RECORDS
from corebound.scenario.cell import Importance
from corebound.stats.history.alerts import AssessedChange
from corebound.stats.history.regressions import Change, NotAnalysed
from corebound.workflow import projects
from corebound.workflow.options import Config, Option, Records, Status, Wait
from corebound.workflow.regressions import (
    AnalysedHistory,
    RegressionsResult,
    analyse_history,
    confirm_open_changes,
    record_decision,
)
from corebound.workflow.regressions_document import (
    entry_link,
    regressions_document,
    series_link,
    site_page,
)

Format = Literal["text", "md", "json", "junit"]


def regressions(
    *,
    form: Annotated[Format, Option("Output format.", name="--format")] = "text",
    records: Records = RECORDS,
    status: Status = DECISIONS_FILE,
    site: Annotated[str, Option("Folder or URL of the site, for links.")] = "reports/site",
    confirm: Annotated[bool, Option("Measure suspected regressions again first.")] = False,
    wait_s: Wait = 0.0,
    show_all: Annotated[
        bool, Option("Also list old, recovered and decided changes.", name="--all")
    ] = False,
    accept: Annotated[
        str | None, Option("Acknowledge a change, or all of a commit.", metavar="ID")
    ] = None,
    fixed: Annotated[
        str | None, Option("Record that a change or a commit is fixed.", metavar="ID")
    ] = None,
    reopen: Annotated[str | None, Option("Revoke a decision.", metavar="ID")] = None,
    because: Annotated[str | None, Option("Reason for the decision.")] = None,
    config: Config = projects.CONFIG,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """List the commits that made benchmarks slower or faster.

    Exits with 1 if a primary benchmark has a new regression, else with 5 if a series could not be
    analysed. Secondary benchmarks are listed, but do not change the exit code.

    Examples:
        corebound regressions
        corebound regressions --confirm --format junit
        corebound regressions --accept 7c1e0f2aab --because "parses more input"
    """
    reporter = TerminalReporter(Console(stderr=True, quiet=quiet, soft_wrap=True))
    history = _analyse(reporter, records=records, status=status)
    decision = _decision(accept=accept, fixed=fixed, reopen=reopen)
    if decision is not None:
        state, change_id = decision
        decided = record_decision(state, change_id, because, history, status)
        what = change_id if len(decided) == 1 else f"{change_id}, {len(decided)} changes,"
        if as_json or form == "json":
            changes = [each.id for each in decided]
            document = {"id": change_id, "state": state, "changes": changes, "status": str(status)}
            typer.echo(result_json(document))
        else:
            typer.echo(corebound_text.one_line(f"{what} is {state}: recorded in {status}."))
        return
    if confirm:
        confirm_open_changes(history, reporter, config=config, wait_s=wait_s)
    result = history.result()
    typer.echo(formatted(result, "json" if as_json else form, site=site, show_all=show_all))
    if result.alarms:
        raise typer.Exit(REGRESSION)
    raise typer.Exit(NO_ANSWER if result.not_analysed else 0)


def _analyse(reporter: TerminalReporter, *, records: Path, status: Path) -> AnalysedHistory:
    console = reporter.console
    # Progress is shown only on a terminal, and only temporarily.
    with console.status("Analysing the history") as shown:

        def progress(done: int, total: int) -> None:
            if console.is_terminal:
                shown.update(Text(f"Analysing the history: {done:,} of {total:,} series"))

        return analyse_history(records, status, reporter.notify, progress)


def _decision(
    *, accept: str | None, fixed: str | None, reopen: str | None
) -> tuple[State, str] | None:
    """The requested decision and the change's id; None if there is no request."""
    options: tuple[tuple[State, str | None], ...] = (
        ("accepted", accept),
        ("fixed", fixed),
        ("open", reopen),
    )
    decisions = [(state, change_id) for state, change_id in options if change_id is not None]
    if len(decisions) > 1:
        raise InputError(
            what="--accept, --fixed and --reopen exclude each other.",
            where="corebound regressions",
            fix="Pass one of them.",
        )
    return decisions[0] if decisions else None


def formatted(result: RegressionsResult, form: Format, *, site: str, show_all: bool) -> str:
    """Render the result in a format, without a final newline.

    Args:
        result: The changes.
        form: The format.
        site: The site's address, as a prefix for links.
        show_all: Whether text and Markdown list changes that are not new as well.
    """
    if form == "json":
        return result_json(regressions_document(result, site))
    if form == "md":
        return _markdown(result, site, show_all=show_all)
    return _junit(result, site) if form == "junit" else _text(result, site, show_all=show_all)


def _text(result: RegressionsResult, site: str, *, show_all: bool) -> str:
    lines = [headline(result)]
    for section in _sections(result, site, show_all=show_all):
        lines += ["", section.heading]
        for item in section.items:
            lines += ["", *(f"  {line}" for line in item)]
        if section.hidden:
            lines += ["", f"  {and_more(section.hidden)}"]
    hidden = _hidden_note(result)
    if hidden and not show_all:
        lines += ["", f"{hidden}; --all lists them."]
    return "\n".join(map(corebound_text.one_line, lines))


def _markdown(result: RegressionsResult, site: str, *, show_all: bool) -> str:
    """A message for people: one line for a commit, and at most a few commits."""
    lines = [f"**{corebound_text.markdown(headline(result))}**"]
    for heading, entries in _entry_sections(result, show_all=show_all):
        lines += ["", f"### {heading}", ""]
        shown = entries if show_all else entries[:_MOST_BRIEF]
        evidence = result.evidence
        lines += [
            _brief(entry, _described(entry, heading), site, evidence.get(entry.id, ()))
            for entry in shown
        ]
        if len(shown) < len(entries):
            lines.append(f"- {and_more(len(entries) - len(shown))}: {site_page(site)}")
    for heading, entries in _doubtful_sections(result, show_all=show_all):
        lines += ["", f"### {heading}", ""]
        shown = entries if show_all else entries[:_MOST_BRIEF]
        lines += [f"- {corebound_text.markdown(_doubtful_line(entry))}" for entry in shown]
        if len(shown) < len(entries):
            lines.append(f"- {and_more(len(entries) - len(shown))}")
    for section in [*_other_sections(result, site), *_short_section(result, show_all=show_all)]:
        lines += ["", f"### {section.heading}", ""]
        shown_items = section.items if show_all else section.items[:_MOST_BRIEF]
        lines += [f"- {corebound_text.markdown(': '.join(item[:2]))}" for item in shown_items]
        if left := len(section.items) - len(shown_items) + section.hidden:
            lines.append(f"- {and_more(left)}")
    hidden = _hidden_note(result)
    if hidden and not show_all:
        lines += ["", f"{hidden}."]
    return "\n".join(lines)


def _brief(entry: CommitEntry, impact: Impact, site: str, evidence: Sequence[HostEvidence]) -> str:
    """A commit in one line of Markdown, with what it did in one direction."""
    write = corebound_text.markdown
    largest = impact.counted[0].changes[0]
    subject = entry.first_bad.commit.subject if entry.first_bad.commit else ""
    worse, state = largest.change.is_regression, _impact_state(impact)
    parts = [
        f"- {_sign(largest.change)}",
        f" **[{entry.id}]({quote(entry_link(entry, site), safe=_SAFE_IN_LINKS)})**",
        write(f" {subject}" if subject and entry.is_of_commits else ""),
        write(f": {impact_extent(impact)}, {impact_size(impact)}"),
        # The page has the parameters, which may be hundreds of characters.
        write(f"; worst: {largest.change.series.title}" if worse else ""),
        write(f"; {'; '.join(evidence[0].lines)}" if evidence else ""),
        write(f"; {state}" if state != "new" or largest.is_back else ""),
    ]
    return "".join(parts)


def headline(result: RegressionsResult) -> str:
    """One sentence for the result, and another for series without enough data."""
    parts = ["No new regression"]
    if result.alarms:
        causes = count_causes(_with_alarm(result, "primary"))
        parts = [f"{count(len(result.alarms), 'new regression')} from {causes}"]
    if result.secondary_alarms:
        parts.append(f"{len(result.secondary_alarms)} in secondary benchmarks")
    if result.suspected:
        parts.append(f"{len(result.suspected)} suspected")
    if result.failing:
        parts.append(f"{len(result.failing)} without values")
    if result.not_analysed:
        parts.append(f"{len(result.not_analysed)} not analysed")
    retired = len(result.series) - len(result.active)
    suffix = f", {retired:,} of them retired" if retired else ""
    sentence = f"{', '.join(parts)}, in {count(len(result.series), 'series', 'series')}{suffix}."
    return f"{sentence} {too_short_note(len(result.too_short), len(result.active))}".rstrip()


def _with_alarm(result: RegressionsResult, importance: Importance) -> list[CommitEntry]:
    """The commits with a new regression of a benchmark of this importance."""
    return [
        entry
        for entry in result.entries
        if any(
            each.alarm and each.change.series.importance == importance
            for each in entry.regressions.changes
        )
    ]


_GAINS = "New improvements"
# The benchmarks of a commit that are described, and items of a section without `--all`.
_MOST_BENCHMARKS = 3
_MOST_ITEMS = 20
# The lines of a section in Markdown: a message for people.
_MOST_BRIEF = 10
_SAFE_IN_LINKS = "/:#?&=%~+@,;"


class _Section(Struct, frozen=True, kw_only=True):
    """A heading, the lines of each item, and the number of further items."""

    heading: str
    items: list[tuple[str, ...]]
    hidden: int = 0


def _sections(result: RegressionsResult, site: str, *, show_all: bool) -> Iterator[_Section]:
    """The sections that are not empty."""
    for heading, entries in _entry_sections(result, show_all=show_all):
        yield _Section(
            heading=heading,
            items=[
                _entry_lines(entry, _described(entry, heading), result, site, show_all=show_all)
                for entry in entries
            ],
        )
    for heading, entries in _doubtful_sections(result, show_all=show_all):
        shown = entries if show_all else entries[:_MOST_ITEMS]
        yield _Section(
            heading=heading,
            items=[_doubtful_lines(entry, result, site, show_all=show_all) for entry in shown],
            hidden=len(entries) - len(shown),
        )
    yield from _other_sections(result, site)
    yield from _short_section(result, show_all=show_all)


def _entry_sections(
    result: RegressionsResult, *, show_all: bool
) -> Iterator[tuple[str, list[CommitEntry]]]:
    """The commits that are new, and with `show_all` the others."""
    regressions = _with_alarm(result, "primary")
    secondary = [entry for entry in _with_alarm(result, "secondary") if entry not in regressions]
    listed = {entry.id for entry in (*regressions, *secondary)}
    gains = [
        entry
        for entry in result.entries
        if entry.id not in listed and any(each.is_gain for each in entry.improvements.changes)
    ]
    listed |= {entry.id for entry in gains}
    others = [entry for entry in result.entries if show_all and entry.id not in listed]
    sections = (
        ("New regressions", regressions),
        ("New regressions of secondary benchmarks", secondary),
        (_GAINS, gains),
        ("Other commits", others),
    )
    return ((heading, entries) for heading, entries in sections if entries)


def _described(entry: CommitEntry, heading: str) -> Impact:
    """The direction of changes that a commit is listed for."""
    return entry.improvements if heading == _GAINS else entry.leading


def _doubtful_sections(
    result: RegressionsResult, *, show_all: bool
) -> Iterator[tuple[str, list[CommitEntry]]]:
    """Suspected regressions, and with `show_all` what is not significant, by commit."""
    sections = (
        ("Suspected", result.suspected),
        ("Not significant", result.others if show_all else ()),
    )
    return ((heading, [*commit_entries(changes)]) for heading, changes in sections if changes)


def _doubtful_line(entry: CommitEntry) -> str:
    """A commit that may have changed something, in one line."""
    largest = entry.leading.benchmarks[0].changes[0]
    return (
        f"{_sign(largest.change)} {_entry_name(entry)}: {impact_extent(entry.leading)},"
        f" {impact_size(entry.leading)}: {largest.change.series.title}; {_doubts(entry)}"
    )


def _doubts(entry: CommitEntry) -> str:
    """Why the changes are not certain, the most frequent reason first."""
    states = Counter(map(state_text, entry.leading.changes))
    if len(states) == 1:
        return next(iter(states))
    return "; ".join(f"{number} {state}" for state, number in states.most_common())


def _doubtful_lines(
    entry: CommitEntry, result: RegressionsResult, site: str, *, show_all: bool
) -> tuple[str, ...]:
    """The same, with the series; a single one in full."""
    if len(entry.changes) == 1:
        return _change_lines(entry.changes[0], result, site)
    shown = entry.changes if show_all else entry.changes[:_MOST_BENCHMARKS]
    lines = (
        f"{impact_extent(entry.leading)}: {impact_size(entry.leading)}",
        _between(entry.last_good, entry.first_bad),
        _doubts(entry),
        *(
            f"{each.id}  {series_name(each.change.series)}: {size_with_interval(each.change)}"
            for each in shown
        ),
        f"{and_more(len(entry.changes) - len(shown))} series"
        if len(shown) < len(entry.changes)
        else "",
    )
    sign = _sign(entry.changes[0].change)
    return (f"{sign} {_entry_name(entry)}", *(f"  {line}" for line in lines if line))


def _other_sections(result: RegressionsResult, site: str) -> Iterator[_Section]:
    if result.failures:
        yield _Section(
            heading="Without values",
            items=[_failure_lines(group, site) for group in result.failures],
        )
    if result.not_analysed:
        yield _Section(
            heading="Not analysed",
            items=[_not_analysed_lines(failed, site) for failed in result.not_analysed],
        )


def _short_section(result: RegressionsResult, *, show_all: bool) -> Iterator[_Section]:
    """The latest values of series that are too short, if nothing else can be said."""
    short = result.too_short
    if not short or (len(short) < len(result.active) and not show_all):
        return
    shown = short if show_all else short[:_MOST_ITEMS]
    yield _Section(
        heading="Latest values",
        items=[(series_name(series), latest_text(series)) for series in shown],
        hidden=len(short) - len(shown),
    )


def _hidden_note(result: RegressionsResult) -> str:
    """How many changes are listed with `--all` only; empty if there are none."""
    listed = [entry for _, entries in _entry_sections(result, show_all=False) for entry in entries]
    commits, changes = len(result.entries) - len(listed), len(result.others)
    are = "is" if changes == 1 else "are"
    parts = (
        count(commits, "other commit") if commits else "",
        f"{count(changes, 'change')} that {are} not significant" if changes else "",
    )
    return ", ".join(filter(None, parts))


def _entry_lines(
    entry: CommitEntry, impact: Impact, result: RegressionsResult, site: str, *, show_all: bool
) -> tuple[str, ...]:
    """A commit: what it changed, the largest change of some benchmarks, and commands.

    `impact` is the direction that is described first.
    """
    most = len(entry.changes) if show_all else _MOST_BENCHMARKS
    first, *rest = impact.benchmarks[:most]
    largest = first.changes[0]
    others = [each for group in rest for each in group.changes[:1]]
    if show_all:
        others = [each for each in entry.changes if each is not largest]
    left = len(entry.changes) - 1 - len(others)
    location, state = _between(entry.last_good, entry.first_bad), _impact_state(impact)
    repeated = {location, state}
    other = entry.improvements if impact is entry.regressions else entry.regressions
    also = f"also {impact_extent(other)}: {impact_size(other)}" if other.benchmarks else ""
    details = (
        f"{impact_extent(impact)}: {impact_size(impact)}",
        also,
        *evidence_lines(result.evidence.get(entry.id, ())),
        location,
        state,
        *(line for line in _change_lines(largest, result, site) if line not in repeated),
        *(
            f"{each.id}  {series_name(each.change.series)}: {size_with_interval(each.change)}"
            for each in others
        ),
        f"{and_more(left)} series" if left else "",
        *(
            f"{name.lower()}: {command.at(result.records_folder)}"
            for name, command in triage_commands(entry, result.built).named
        ),
        entry_link(entry, site),
    )
    return (
        f"{_sign(largest.change)} {_entry_name(entry)}",
        *(f"  {line}" for line in details if line),
    )


def _sign(change: Change) -> str:
    return "▼" if change.is_regression else "▲"


def _entry_name(entry: CommitEntry) -> str:
    commit = entry.first_bad.commit
    if commit is None or not entry.is_of_commits:
        return entry.id
    return f"{entry.id}  {commit.subject}".rstrip()


def _impact_state(impact: Impact) -> str:
    """The status of changes; the number of series in each status if they differ."""
    numbers = Counter(map(change_status, impact.changes))
    if len(numbers) == 1:
        return next(iter(numbers))
    return ", ".join(f"{numbers[status]} {status}" for status in STATUSES if numbers[status])


def _failure_lines(group: FailureGroup, site: str) -> tuple[str, ...]:
    names = [series_name(each.series) for each in group.failing[:_MOST_BENCHMARKS]]
    more = and_more(len(group.failing) - len(names))
    since, longest = group.since, max(each.points for each in group.failing)
    reason = f": {group.reason}" if group.reason else ""
    first = group.failing[0].series
    lines = (
        " ".join(part for part in ("; ".join(names), more) if part),
        f"no result since {since.at}, {count(longest, 'nightly run')}{reason}",
        series_link(first, site),
        f"reproduce: {shlex.join(first.reproduce)}" if first.reproduce else "",
    )
    return tuple(line for line in lines if line)


def _change_lines(
    assessed: AssessedChange, result: RegressionsResult, site: str
) -> tuple[str, ...]:
    series = assessed.change.series
    lines = (
        f"{assessed.id}  {series_name(series)}",
        *_description(assessed, result, site),
    )
    return tuple(line for line in lines if line)


def _description(assessed: AssessedChange, result: RegressionsResult, site: str) -> Sequence[str]:
    """Size, place, recovery, state and commands of a change; absent parts are empty."""
    series, context = assessed.change.series, result.context_of(assessed)
    return (
        size_with_interval(assessed.change),
        location_text(assessed.change),
        recovery_text(assessed.change),
        state_text(assessed),
        context.noise,
        series_link(series, site),
        f"reproduce: {shlex.join(series.reproduce)}" if series.reproduce else "",
        f"both commits: {shlex.join(context.compare)}" if context.compare else "",
    )


def _not_analysed_lines(failed: NotAnalysed, site: str) -> tuple[str, ...]:
    return (
        series_name(failed.series),
        f"its analysis failed: {failed.reason}. This is a bug in corebound; please report it.",
        series_link(failed.series, site),
    )


def location_text(change: Change) -> str:
    """The commits and points around the change, or the commits' dates if that is all there is."""
    return _between(change.last_good, change.first_bad)


def recovery_text(change: Change) -> str:
    """The later recovery, full or partial: how much, and where; empty if there is none."""
    between = change.recovered_between
    if between is None:
        return ""
    left = remaining_change((change,))
    return f"{recovered_amount(change)}: {_between(*between)}{f'; {left}' if left else ''}"


def _between(good: HistoryPoint, bad: HistoryPoint) -> str:
    commits = commit_range(good, bad)
    kind = "of" if bad.is_of_commit else "nightly runs"
    when = f"{kind} {day(good.at)} to {day(bad.at)}"
    if good.commit is not None and bad.commit is not None and good.commit.sha == bad.commit.sha:
        return f"{when}, all of commit {bad.commit.sha[:10]}: the cause is not in the commits"
    if not commits:
        return when
    subject = f" ({bad.commit.subject})" if bad.commit is not None and bad.commit.subject else ""
    return f"commits {commits}{subject}, {when}"


def state_text(assessed: AssessedChange) -> str:
    """The current state of a change."""
    parts = [_state(assessed)]
    if assessed.decision is not None and assessed.state != "open" and not assessed.is_back:
        parts.append(f"because {assessed.decision.because}")
    if assessed.confirmation is not None:
        parts.append(rerun_note(assessed.confirmation))
    return "; ".join(parts)


def _state(assessed: AssessedChange) -> str:
    change = assessed.change
    if assessed.is_back and assessed.decision is not None:
        state = f"back: marked as fixed on {assessed.decision.at[:10]}, but still present"
    elif assessed.state == "accepted":
        state = "acknowledged"
    elif assessed.state != "open":
        state = assessed.state
    elif change.change_point.status != "new":
        state = change.change_point.status
    elif assessed.has_ended:
        state = f"retired: {last_day(change.series.points.latest_moment)}"
    elif assessed.alarm:
        state = "new"
    elif not change.change_point.votes:
        state = "early warning: the last two nightly runs stand out"
    elif not change.clear:
        state = "suspected: not significant after correction for the number of series"
    else:
        state = "suspected" if change.is_regression else "new"
    return state


def series_name(series: Series) -> str:
    """A series' name to display."""
    where = series.host_name if series.project is None else f"{series.project}, {series.host_name}"
    cell = f" [{series.cell}]" if series.cell not in {"", "default"} else ""
    return f"{series.title}{cell} on {where}"


def _junit(result: RegressionsResult, site: str) -> str:
    """Render a test suite: new regressions fail, series without results or analysis are errors.

    Early warnings and regressions of secondary benchmarks appear in the case's output.
    """
    changes_by_series: dict[str, list[AssessedChange]] = {}
    for change in result.changes:
        changes_by_series.setdefault(change.change.series.id, []).append(change)
    errors: dict[str, list[TestFailure]] = {}
    for failing in result.failing:
        since = failing.since
        message = f"no result since {since.at}: {since.missing or 'unknown reason'}"
        errors.setdefault(failing.series.id, []).append(
            TestFailure(type="no result", message=message)
        )
    for failed in result.not_analysed:
        problem = TestFailure(type="not analysed", message=f"not analysed: {failed.reason}")
        errors.setdefault(failed.series.id, []).append(problem)
    cases = []
    for series in result.series:
        changes = changes_by_series.get(series.id, [])
        alarms = [change for change in changes if change.alarm and is_primary(series)]
        others = [change for change in changes if change.is_open and change not in alarms]
        failure = TestFailure(
            type="regression",
            message="; ".join(size_with_interval(change.change) for change in alarms),
            details=_descriptions(alarms, result, site),
        )
        host = series.host if series.project is None else f"{series.project}.{series.host}"
        cases.append(
            TestCase(
                classname=f"{host}.{series.scenario}",
                name=series.cell or "default",
                failure=failure if alarms else None,
                errors=tuple(errors.get(series.id, ())),
                output=_descriptions(others, result, site),
            )
        )
    return junit_xml("corebound regressions", cases)


def _descriptions(changes: Sequence[AssessedChange], result: RegressionsResult, site: str) -> str:
    return "\n\n".join(
        "\n".join(
            line
            for line in (
                f"{change.id} {series_name(change.change.series)}",
                *_description(change, result, site),
            )
            if line
        )
        for change in changes
    )
