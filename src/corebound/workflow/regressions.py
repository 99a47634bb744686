"""`corebound regressions` without a terminal: the change points of all histories, and decisions."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.change_history import (
    ChangeContext,
    ChangeHistory,
    assess_history,
    build_change_history,
)
from corebound.analysis.noise_floor import calibration_for, noise_floor_note
from corebound.analysis.suggested_commands import asv_continuous_arguments
from corebound.errors import NO_ANSWER, REGRESSION, InputError
from corebound.records import documents
from corebound.records.calibration import Calibration
from corebound.records.decisions import Decision, State, append_decisions, valid_decisions
from corebound.records.jsonl import RECORDS
from corebound.scenario.metrics import JudgedBy
from corebound.stats.history.alerts import HistoryChange
from corebound.stats.history.regressions import Change
from corebound.text import one_line
from corebound.workflow.change_point_cache import cached_change_points
from corebound.workflow.confirm import commit_pair, confirm_changes
from corebound.workflow.execute import Reporter
from corebound.workflow.process_pool import forked_map
from corebound.workflow.projects import Notify
from corebound.workflow.run_index import Suite, read_suite


class AnalysedHistory(Struct, frozen=True, kw_only=True):
    """All series of a folder of records, with their changes.

    Attributes:
        suite: The content of the records.
        history: The changes, with the decisions and the confirmations stored so far.
        decisions: The decisions about regressions.
        records: The folder of records.
    """

    suite: Suite
    history: ChangeHistory
    decisions: tuple[Decision, ...]
    records: Path

    @property
    def exit_code(self) -> int:
        """What the command exits with: whether there are alarms, or series without an analysis."""
        if self.history.alarms:
            return REGRESSION
        return NO_ANSWER if self.history.not_analysed else 0

    @property
    def records_folder(self) -> str:
        """The folder of records that commands have to name; empty for the default."""
        return "" if self.records == RECORDS else str(self.records)


def analyse_history(
    records: Path,
    status: Path,
    notify: Notify,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    *,
    metric: JudgedBy = "time",
) -> AnalysedHistory:
    """Find the change points of all histories, with a cache beside the records.

    Args:
        notify: Called with a warning for each thing that cannot be read.
        progress: Called with the number of analysed series and of all series.

    Raises:
        InputError: The folder has no results.
        ScenarioFaults: The file of decisions has errors.
    """
    decisions = valid_decisions(status)
    suite = read_suite(records, pooled=True, metric=metric)
    suite = replace(suite, series=(*suite.series, *suite.pooled))
    for fault in suite.faults:
        notify(f"warning: {fault}")
    latest = suite.latest
    snapshot = None
    if latest is not None:
        snapshot = latest.snapshot_in([lock.name for lock in latest.environments])
        if snapshot is not None:
            notify(
                one_line(
                    f"The latest run, {latest.id}, measured uncommitted changes, {snapshot.name}:"
                    " it is not part of the history."
                )
            )
    if not suite.series and snapshot is None:
        # A mistyped or damaged folder must not look like a nightly run without regressions.
        raise InputError(
            what="no results to analyse.",
            where=str(records),
            fix="Measure first (`corebound run`), import a history, or name the folder of"
            " records with --records.",
        )
    confirmations, faults = documents.CONFIRMATIONS.read(records)
    with cached_change_points(records, all_series=metric == "time") as cache:
        history = build_change_history(
            suite.series,
            decisions=decisions,
            confirmations=confirmations,
            cache=cache,
            mapper=forked_map,
            progress=progress,
        )
    for fault in faults:
        notify(f"warning: {fault}")
    contexts = _contexts(history, suite, records)
    return AnalysedHistory(
        suite=suite,
        history=replace(history, contexts=contexts),
        decisions=decisions,
        records=records,
    )


def confirm_open_changes(
    analysed: AnalysedHistory,
    reporter: Reporter,
    *,
    config: Path,
    wait_s: float,
    budget_s: float | None = None,
) -> AnalysedHistory:
    """Measure open changes again that have no confirmation yet, or could not be confirmed.

    Args:
        wait_s: How long to wait for another run on this host, in seconds.
        budget_s: The time limit in seconds; None is no limit.

    Returns:
        The changes with the new confirmations.
    """
    due = [
        each.change
        for each in analysed.history.assessed.values()
        if each.is_open and (each.confirmation is None or each.confirmation.answer == "impossible")
    ]
    confirm_changes(
        due,
        analysed.suite,
        analysed.records,
        reporter,
        config=config,
        wait_s=wait_s,
        budget_s=budget_s,
    )
    confirmations, _ = documents.CONFIRMATIONS.read(analysed.records)
    return replace(
        analysed, history=assess_history(analysed.history, analysed.decisions, confirmations)
    )


def record_decision(
    state: State, name: str, because: str | None, analysed: AnalysedHistory, status: Path
) -> tuple[HistoryChange, ...]:
    """Append a decision to the file; existing content stays unchanged.

    Args:
        name: The id of a change, or the beginning of a commit: then the decision is about each
            change of that commit's entry that it applies to.

    Returns:
        The changes that were decided, at least one.

    Raises:
        InputError: There is no such change, several commits begin with `name`, the change is
            accepted without a reason, or the file cannot be extended.
    """
    changes = _named_changes(state, name, analysed)
    if state == "accepted" and not (because and because.strip()):
        raise InputError(
            what="accepting a regression requires a reason.",
            where="--accept",
            fix='Give one: --because "the new parser checks what it reads".',
        )
    at = clock.timestamp()
    decisions = [
        Decision(
            id=change.id,
            state=state,
            because=" ".join((because or "").split()) or f"it was recorded as {state}",
            at=at,
            location=change.change.location,
        )
        for change in changes
    ]
    append_decisions(decisions, status)
    return changes


# Fewer digits of a commit are likely to be a typing error.
_LEAST_DIGITS = 4


def _named_changes(state: State, name: str, analysed: AnalysedHistory) -> tuple[HistoryChange, ...]:
    history, where = analysed.history, str(analysed.records)
    for change in history.assessed.values():
        if name in {change.id, change.change.id}:
            return (change,)
    named = [entry for entry in history.entries if entry.id == name] or [
        entry
        for entry in history.entries
        if len(name) >= _LEAST_DIGITS and entry.id.startswith(name)
    ]
    if len(named) > 1:
        raise InputError(
            what=f"several commits begin with `{name}`: {', '.join(entry.id for entry in named)}.",
            where=where,
            fix="Name one of them.",
        )
    if not named:
        raise InputError(
            what=f"no change `{name}` in these records, and no commit with changes.",
            where=where,
            fix="Run `corebound regressions --all` to list all changes with their ids.",
        )
    changes = named[0].leading.changes
    if state == "open":
        return tuple(change for change in changes if change.decision is not None) or changes
    pending = tuple(change for change in changes if change.status in {"new", "open"})
    return pending or changes


def _contexts(history: ChangeHistory, suite: Suite, records: Path) -> dict[str, ChangeContext]:
    """What the records of each change's runs add to it, by its id."""
    calibrations, _ = documents.CALIBRATIONS.read(records)
    return {
        name: ChangeContext(
            noise=_noise(each.change, suite, calibrations),
            compare=_compare_command(each.change, suite),
        )
        for name, each in history.assessed.items()
    }


def _noise(change: Change, suite: Suite, calibrations: tuple[Calibration, ...]) -> str:
    points = change.series.points
    run = suite.run_of(change.series, points.latest_moment)
    if run is None:
        return ""
    source = run.source_of(change.series.scenario)
    calibration = calibration_for(calibrations, run, source) if source else None
    return noise_floor_note(calibration, launches=len(points[-1].launches))


def _compare_command(change: Change, suite: Suite) -> tuple[str, ...]:
    pair = commit_pair(change, suite)
    if pair is None:
        return asv_continuous_arguments(
            change.series, change.last_good.commit, change.first_bad.commit
        )
    command = (
        "corebound", "compare-commits", pair.good.sha[:10], pair.bad.sha[:10], str(pair.path),
    )  # fmt: skip
    profile = () if pair.run.profile is None else ("--profile", pair.run.profile)
    only = ("--only", pair.cell.key) if pair.cell.axes else ()
    metric = ("--metric", "memory") if change.series.metric else ()
    return (*command, *profile, *only, *metric)
