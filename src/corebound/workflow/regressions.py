"""`corebound regressions` without a terminal: the change points of all histories, and decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.commands import asv_continuous_arguments
from corebound.analysis.host_evidence import HostEvidence, host_evidence, shown_by_several
from corebound.analysis.noise_floor import calibration_for, noise_floor_note
from corebound.analysis.triage import (
    CommitEntry,
    FailureGroup,
    change_status,
    commit_entries,
    group_failures,
    triage,
)
from corebound.errors import InputError
from corebound.records import documents
from corebound.records.calibration import Calibration
from corebound.records.decisions import (
    Decision,
    State,
    append_decisions,
    valid_decisions,
)
from corebound.records.history import Series, is_primary
from corebound.records.jsonl import RECORDS
from corebound.stats.history.alerts import AssessedChange, assess_changes
from corebound.stats.history.regressions import (
    Analysis,
    Change,
    Failing,
    NotAnalysed,
    analyse,
    failing,
)
from corebound.stats.history.series import retired_series
from corebound.text import one_line
from corebound.workflow.change_point_cache import cached_change_points
from corebound.workflow.confirm import commit_pair, confirm_changes
from corebound.workflow.execute import Reporter
from corebound.workflow.process_pool import forked_map
from corebound.workflow.projects import Notify
from corebound.workflow.run_index import Suite, read_suite


class ChangeContext(Struct, frozen=True, kw_only=True):
    """Additional information to display with a change.

    Attributes:
        noise: The noise floor of the change's scenario, in a sentence; empty if unknown.
        compare: The command that measures both commits interleaved, asv's command for asv's
            series; empty if the commits cannot be built.
    """

    noise: str = ""
    compare: tuple[str, ...] = ()


class RegressionsResult(Struct, frozen=True, kw_only=True):
    """The change points of all histories.

    Attributes:
        changes: Changes and early warnings, largest first.
        failing: Series whose latest points have no results.
        not_analysed: Series whose analysis failed, so that nothing is known about them.
        series: All series.
        active: The series that are not retired.
        too_short: Those of them that are too short to detect a change.
        contexts: The additional information for each change, by its id.
        evidence: What each host shows of a commit's changes, by the id of the entry.
        records_folder: The folder of records that commands have to name; empty for the default.
    """

    changes: tuple[AssessedChange, ...]
    failing: tuple[Failing, ...]
    not_analysed: tuple[NotAnalysed, ...]
    series: tuple[Series, ...]
    active: tuple[Series, ...]
    too_short: tuple[Series, ...] = ()
    contexts: Mapping[str, ChangeContext] = field(default_factory=dict)
    evidence: Mapping[str, tuple[HostEvidence, ...]] = field(default_factory=dict)
    records_folder: str = ""

    def context_of(self, change: AssessedChange) -> ChangeContext:
        """The additional information for a change; empty if there is none."""
        return self.contexts.get(change.change.id, ChangeContext())

    @property
    def alarms(self) -> tuple[AssessedChange, ...]:
        """The new regressions of primary benchmarks, which determine the exit code.

        One that several hosts show together counts once.
        """
        return tuple(change for change in self._alarms if is_primary(change.change.series))

    @property
    def secondary_alarms(self) -> tuple[AssessedChange, ...]:
        """The new regressions of secondary benchmarks."""
        return tuple(change for change in self._alarms if not is_primary(change.change.series))

    @property
    def _alarms(self) -> list[AssessedChange]:
        alarms = [change for change in self.changes if change.alarm]
        # The same change on single hosts is evidence for that of all of them.
        single = {
            change.change.id
            for entry in commit_entries(alarms)
            for change in shown_by_several(entry.regressions.changes)
        }
        return [change for change in alarms if change.change.id not in single]

    @property
    def entries(self) -> tuple[CommitEntry, ...]:
        """The significant and confirmed changes, by commit, the latest first."""
        return triage(self.changes)

    @property
    def failures(self) -> tuple[FailureGroup, ...]:
        """The series whose latest points have no results, by reason."""
        return group_failures(self.failing)

    @property
    def built(self) -> frozenset[str]:
        """The ids of our own series that measure builds of the commits under test."""
        return frozenset(
            change.change.series.id
            for change in self.changes
            if self.context_of(change).compare[:1] == ("corebound",)
        )

    @property
    def suspected(self) -> tuple[AssessedChange, ...]:
        """Possible regressions that do not alarm yet."""
        return tuple(
            change
            for change in self.changes
            if change.change.is_regression and change.is_inconclusive
        )

    @property
    def others(self) -> tuple[AssessedChange, ...]:
        """The changes that are neither significant nor suspected."""
        listed = {id(change) for entry in self.entries for change in entry.changes}
        listed |= {id(change) for change in self.suspected}
        return tuple(change for change in self.changes if id(change) not in listed)


class AnalysedHistory(Struct, frozen=True, kw_only=True):
    """All series of a folder of records, with their change points.

    Attributes:
        suite: The content of the records.
        analysis: The change points.
        retired: The ids of retired series.
        decisions: The decisions about regressions.
        records: The folder of records.
    """

    suite: Suite
    analysis: Analysis
    retired: frozenset[str]
    decisions: tuple[Decision, ...]
    records: Path

    @property
    def changes(self) -> tuple[Change, ...]:
        """All change points and early warnings."""
        return (*self.analysis.changes, *self.analysis.early_warnings)

    def assessed_changes(self) -> tuple[AssessedChange, ...]:
        """Judge each change by the decisions and by the confirmations stored so far."""
        confirmations, _ = documents.read_confirmations(self.records)
        return assess_changes(self.changes, self.decisions, confirmations, retired=self.retired)

    def result(self) -> RegressionsResult:
        """The changes with all that is displayed with them."""
        active = tuple(series for series in self.suite.series if series.id not in self.retired)
        changes = self.assessed_changes()
        return RegressionsResult(
            changes=changes,
            failing=failing(active),
            not_analysed=self.analysis.not_analysed,
            series=self.suite.series,
            active=active,
            too_short=tuple(
                series for series in self.analysis.too_short if series.id not in self.retired
            ),
            contexts=_contexts(self.changes, self.suite, self.records),
            evidence=host_evidence(triage(changes), self.suite.series),
            records_folder="" if self.records == RECORDS else str(self.records),
        )


def analyse_history(
    records: Path,
    status: Path,
    notify: Notify,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> AnalysedHistory:
    """Find the change points of all histories, with a cache beside the records.

    Args:
        records: The folder of records.
        status: The file of decisions.
        notify: Called with a warning for each thing that cannot be read.
        progress: Called with the number of analysed series and of all series.

    Raises:
        InputError: The folder has no results.
        ScenarioFaults: The file of decisions has errors.
    """
    decisions = valid_decisions(status)
    suite = read_suite(records, pooled=True)
    suite = replace(suite, series=tuple(sorted((*suite.series, *suite.pooled), key=_id)))
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
    retired = frozenset(retired_series(suite.series))
    with cached_change_points(records, all_series=True) as cache:
        analysis = analyse(
            suite.series, retired=retired, cache=cache, mapper=forked_map, progress=progress
        )
    for fault in documents.read_confirmations(records)[1]:
        notify(f"warning: {fault}")
    return AnalysedHistory(
        suite=suite, analysis=analysis, retired=retired, decisions=decisions, records=records
    )


def _id(series: Series) -> str:
    return series.id


def confirm_open_changes(
    history: AnalysedHistory, reporter: Reporter, *, config: Path, wait_s: float
) -> None:
    """Measure open changes again that have no confirmation yet, or could not be confirmed.

    Args:
        history: The changes.
        reporter: Shows the progress.
        config: The asv.conf.json of the project under test.
        wait_s: How long to wait for another run on this host, in seconds.
    """
    due = [
        change.change
        for change in history.assessed_changes()
        if change.is_open
        and (change.confirmation is None or change.confirmation.answer == "impossible")
    ]
    confirm_changes(due, history.suite, history.records, reporter, config=config, wait_s=wait_s)


def record_decision(
    state: State, name: str, because: str | None, history: AnalysedHistory, status: Path
) -> tuple[AssessedChange, ...]:
    """Append a decision to the file; existing content stays unchanged.

    Args:
        state: The decision.
        name: The id of a change, or the beginning of a commit: then the decision is about each
            change of that commit's entry that it applies to.
        because: The reason.
        history: The changes.
        status: The file of decisions.

    Returns:
        The changes that were decided, at least one.

    Raises:
        InputError: There is no such change, several commits begin with `name`, the change is
            accepted without a reason, or the file cannot be extended.
    """
    changes = _named_changes(state, name, history)
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


def _named_changes(state: State, name: str, history: AnalysedHistory) -> tuple[AssessedChange, ...]:
    assessed = history.assessed_changes()
    for change in assessed:
        if name in {change.id, change.change.id}:
            return (change,)
    entries = triage(assessed)
    named = [entry for entry in entries if entry.id == name] or [
        entry for entry in entries if len(name) >= _LEAST_DIGITS and entry.id.startswith(name)
    ]
    if len(named) > 1:
        raise InputError(
            what=f"several commits begin with `{name}`: {', '.join(entry.id for entry in named)}.",
            where=str(history.records),
            fix="Name one of them.",
        )
    if not named:
        raise InputError(
            what=f"no change `{name}` in these records, and no commit with changes.",
            where=str(history.records),
            fix="Run `corebound regressions --all` to list all changes with their ids.",
        )
    changes = named[0].leading.changes
    if state == "open":
        return tuple(change for change in changes if change.decision is not None) or changes
    pending = tuple(change for change in changes if change_status(change) in {"new", "open"})
    return pending or changes


def _contexts(
    changes: Iterable[Change], suite: Suite, records: Path
) -> Mapping[str, ChangeContext]:
    """The additional information for each change, by its id."""
    calibrations, _ = documents.read_calibrations(records)
    return {
        change.id: ChangeContext(
            noise=_noise(change, suite, calibrations), compare=_compare_command(change, suite)
        )
        for change in changes
    }


def _noise(change: Change, suite: Suite, calibrations: tuple[Calibration, ...]) -> str:
    last = change.series.points[-1]
    run = suite.run_of(change.series, last)
    if run is None:
        return ""
    source = run.source_of(change.series.scenario)
    calibration = calibration_for(calibrations, run, source) if source else None
    return noise_floor_note(calibration, launches=len(last.launches))


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
    return (*command, *profile, *only)
