"""`corebound regressions`: list the change points of all histories, and record decisions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from corebound import text as corebound_text
from corebound.analysis.change_history import (
    commit_range,
    recovered_amount,
    remaining_change,
    rerun_note,
    size_with_interval,
)
from corebound.analysis.serialize import change_document, series_document
from corebound.analysis.wording import count, day, last_day, too_short_note
from corebound.cli.options import Config, Json, Records, Status, Wait, wait_seconds
from corebound.cli.output.console import Console
from corebound.cli.output.json import indented_json
from corebound.cli.output.junit import TestCase, TestFailure, junit_xml
from corebound.cli.output.progress import TerminalReporter
from corebound.errors import NO_ANSWER, REGRESSION, InputError
from corebound.records.decisions import DECISIONS_FILE, State
from corebound.records.history import HistoryPoint, Series
from corebound.records.jsonl import RECORDS
from corebound.report.urls import series_url
from corebound.stats.history.alerts import AssessedChange
from corebound.stats.history.regressions import Change, Failing, NotAnalysed
from corebound.workflow import projects
from corebound.workflow.regressions import (
    AnalysedHistory,
    RegressionsResult,
    analyse_history,
    confirm_open_changes,
    record_decision,
)

Format = Literal["text", "md", "json", "junit"]


def regressions(
    *,
    form: Annotated[Format, typer.Option("--format", help="Output format.")] = "text",
    records: Records = RECORDS,
    status: Status = DECISIONS_FILE,
    site: Annotated[
        str, typer.Option("--site", help="Folder or URL of the site, for links.")
    ] = "reports/site",
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Measure suspected regressions again first.")
    ] = False,
    wait: Wait = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also list old, recovered and decided changes.")
    ] = False,
    accept: Annotated[
        str | None, typer.Option("--accept", metavar="ID", help="Record that a change is accepted.")
    ] = None,
    fixed: Annotated[
        str | None, typer.Option("--fixed", metavar="ID", help="Record that a change is fixed.")
    ] = None,
    reopen: Annotated[
        str | None, typer.Option("--reopen", metavar="ID", help="Revoke a decision.")
    ] = None,
    because: Annotated[
        str | None, typer.Option("--because", help="Reason for the decision.")
    ] = None,
    config: Config = projects.CONFIG,
    as_json: Json = False,
) -> None:
    """List regressions and improvements of the history.

    Exits with 1 if there is a new regression, else with 5 if a series could not be analysed.

    Examples:
        corebound regressions
        corebound regressions --confirm --format junit
        corebound regressions --accept 3f9a --because "parses more input"
    """
    wait_s = wait_seconds(wait)
    reporter = TerminalReporter(Console(stderr=True, soft_wrap=True))
    history = _analyse(reporter, records=records, status=status)
    decision = _decision(accept=accept, fixed=fixed, reopen=reopen)
    if decision is not None:
        state, change_id = decision
        record_decision(state, change_id, because, history, status)
        reporter.notify(f"{change_id} is {state}: recorded in {status}.")
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
        return indented_json(_document(result, site))
    if form == "md":
        return _markdown(result, site, show_all=show_all)
    return _junit(result, site) if form == "junit" else _text(result, site, show_all=show_all)


def _text(result: RegressionsResult, site: str, *, show_all: bool) -> str:
    lines = [headline(result)]
    for heading, items in _sections(result, site, show_all=show_all):
        lines += ["", heading]
        for item in items:
            lines += ["", *(f"  {line}" for line in item)]
    if result.others and not show_all:
        lines += [
            "",
            f"{count(len(result.others), 'other change')}, known or not new; --all lists them.",
        ]
    return "\n".join(map(corebound_text.one_line, lines))


def _markdown(result: RegressionsResult, site: str, *, show_all: bool) -> str:
    lines = [f"**{corebound_text.markdown(headline(result))}**"]
    for heading, items in _sections(result, site, show_all=show_all):
        lines += ["", f"### {heading}", ""]
        for item in items:
            first, *rest = (corebound_text.markdown(line) for line in item)
            lines += [f"- **{first}**", *(f"  - {line}" for line in rest)]
    if result.others and not show_all:
        lines += ["", f"{count(len(result.others), 'other change')}, known or not new."]
    return "\n".join(lines)


def headline(result: RegressionsResult) -> str:
    """One sentence for the result, and another for series without enough data."""
    parts = [count(len(result.alarms), "new regression") if result.alarms else "No new regression"]
    if result.suspected:
        parts.append(f"{len(result.suspected)} suspected")
    if result.failing:
        parts.append(f"{len(result.failing)} failing")
    if result.not_analysed:
        parts.append(f"{len(result.not_analysed)} not analysed")
    retired = len(result.series) - len(result.active)
    suffix = f", {retired:,} of them retired" if retired else ""
    sentence = f"{', '.join(parts)}, in {count(len(result.series), 'series', 'series')}{suffix}."
    return f"{sentence} {too_short_note(result.too_short, len(result.active))}".rstrip()


def _sections(
    result: RegressionsResult, site: str, *, show_all: bool
) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """The sections that are not empty: a heading, and the lines of each item."""
    changes = (
        ("New regressions", result.alarms),
        ("Suspected", result.suspected),
        ("New improvements", result.gains),
        ("Other changes", result.others if show_all else ()),
    )
    for heading, assessed_changes in changes:
        if assessed_changes:
            yield heading, [_change_lines(change, result, site) for change in assessed_changes]
    if result.failing:
        yield "Failed since", [_failing_lines(failed, site) for failed in result.failing]
    if result.not_analysed:
        yield "Not analysed", [_not_analysed_lines(failed, site) for failed in result.not_analysed]


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


def _failing_lines(failing: Failing, site: str) -> tuple[str, ...]:
    series, since = failing.series, failing.since
    reason = f": {since.missing}" if since.missing else ""
    lines = (
        series_name(series),
        f"no result since {since.at}, {count(failing.points, 'nightly run')}{reason}",
        series_link(series, site),
        f"reproduce: {shlex.join(series.reproduce)}" if series.reproduce else "",
    )
    return tuple(line for line in lines if line)


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
    elif assessed.state != "open":
        state = assessed.state
    elif change.change_point.status != "new":
        state = change.change_point.status
    elif assessed.has_ended:
        state = f"retired: {last_day(change.series.points.moments[-1])}"
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


def series_link(series: Series, site: str) -> str:
    """The address of a series' page."""
    return f"{site.rstrip('/')}/{series_url(series)}"


def _document(result: RegressionsResult, site: str) -> dict[str, Any]:
    return {
        "alarms": len(result.alarms),
        "series": len(result.series),
        "too_short": result.too_short,
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


def _junit(result: RegressionsResult, site: str) -> str:
    """Render a test suite: new regressions fail, series without results or analysis are errors.

    Early warnings appear in the case's output and do not fail.
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
        alarms = [change for change in changes if change.alarm]
        others = [change for change in changes if change.is_open and not change.alarm]
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
