"""Confirm suspected regressions: measure both commits of a change point again before it alarms."""

import math
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import clock
from corebound.analysis.peak_memory import judged_by
from corebound.analysis.wording import count
from corebound.errors import CoreboundError, InputError, LaunchError
from corebound.machine import discovery, identity
from corebound.records import commits, documents
from corebound.records.decisions import CONFIRMATION_SCHEMA, Answer, Confirmation
from corebound.records.history import ANCHORED, HistoryPoint, Series
from corebound.records.run_record import Commit, Run
from corebound.runner import Ending
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.compared_axis import COMMITS_SUFFIX
from corebound.scenario.matrix import expand
from corebound.scenario.metrics import JudgedBy
from corebound.scenario.models import Scenario
from corebound.stats.comparison import Comparison
from corebound.stats.history.early_warnings import evaluate_commit_comparison, evaluate_rerun
from corebound.stats.history.pooled import is_pooled
from corebound.stats.history.regressions import Change
from corebound.stats.history.series import series_of_run
from corebound.workflow.comparison_sides import load_comparable, repeat_for_commits, short_name
from corebound.workflow.execute import Budget, Reporter, RunResult, execute_run, hold_host_for
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import RunRequest, prepare_comparison, prepare_run
from corebound.workflow.run_index import Suite

# How many points before a change point to use for the spread of good results.
_MAX_GOOD_POINTS = 100


class CommitPair(Struct, frozen=True, kw_only=True):
    """The cell of a change point, as recorded, and the two commits to compare.

    Attributes:
        good, bad: The commits of the last point certainly before the change point, and of the first
            point certainly after it.
        run: The run of the series' last point.
        scenario: The cell's scenario, as that run recorded it.
        path: The path of the scenario's file at that time.
        metric: What changed.
    """

    good: Commit
    bad: Commit
    run: Run
    scenario: Scenario
    cell: Cell
    path: Path
    metric: JudgedBy = "time"


def commit_pair(change: Change, suite: Suite) -> CommitPair | None:
    """The two commits of a change; None if they cannot be built.

    The cell must run the checked-out project under test, and the two commits must be known and
    different. For cells that run a framework, only the points of their history can confirm.
    """
    run = suite.run_of(change.series, change.series.points.latest_moment)
    if run is None or change.series.project is not None:
        return None
    source = run.source_of(change.series.scenario)
    if source is None:
        return None
    scenario = Scenario.model_validate(source.document)
    cells: Sequence[Cell] = expand(scenario, source.path, run.profile)
    if change.series.is_anchored:
        cells = [*map(_without_commit, cells)]
    cell = next((cell for cell in cells if cell.key == change.series.cell), None)
    if cell is None or cell.environment != PROJECT or cell.commit is not None:
        return None
    good, bad = (
        _built_commit(change.series, point, suite) for point in (change.last_good, change.first_bad)
    )
    if good is None or bad is None or good.sha == bad.sha:
        return None
    return CommitPair(
        good=good,
        bad=bad,
        run=run,
        scenario=scenario,
        cell=cell,
        path=Path(source.path),
        metric=_metric_of(change),
    )


def _metric_of(change: Change) -> JudgedBy:
    return "memory" if change.series.metric else "time"


def _without_commit(cell: Cell) -> Cell:
    """The cell of the scenario's file, of one that an anchored run repeated for each commit."""
    axes = tuple(pair for pair in cell.axes if pair[0] != "commit")
    scenario = cell.scenario.removesuffix(COMMITS_SUFFIX)
    return replace(cell, scenario=scenario, axes=axes, environment=PROJECT, commit=None)


def _built_commit(series: Series, point: HistoryPoint, suite: Suite) -> Commit | None:
    """The commit of the project that was built; the suite may be in another repository."""
    run = suite.run_of(series, point)
    lock = run.lock_of(PROJECT) if run is not None else None
    return (lock and lock.commit) or point.commit


def confirm_changes(
    changes: Sequence[Change],
    suite: Suite,
    records: Path,
    reporter: Reporter,
    *,
    config: Path,
    wait_s: float,
    budget_s: float | None = None,
) -> None:
    """Measure each change again and store the result.

    A budget is shared equally by the changes; those that it has no time for are left for the next
    time. If both commits are known and the cell runs builds of them, both are measured. Otherwise,
    the present state is measured and compared with the good points.

    Args:
        changes: Suspected changes without a confirmation.
        wait_s: How long to wait for another run on this host, in seconds.
        budget_s: The time limit for all of them, in seconds; None is no limit.
    """
    host = identity.host(discovery.live_topology())
    folder = documents.CONFIRMATIONS.folder(records)
    budget = Budget(budget_s, time.monotonic())
    for number, change in enumerate(changes):
        share_s = budget.left_s and budget.left_s / (len(changes) - number)
        if share_s is not None and share_s <= 0:
            left = count(len(changes) - number, "suspected change")
            reporter.notify(f"The budget has no time for {left} of {len(changes)}.")
            break
        # The runs are no nightly runs, so they are in a folder of their own.
        request = RunRequest(
            files=(), config=config, records=folder, wait_s=wait_s, budget_s=share_s
        )
        try:
            pair = commit_pair(change, suite)
            if change.only_on and host.cpu_model not in change.only_on:
                models = ", ".join(change.only_on)
                how = f"it is only on {models}, and this machine has {host.cpu_model}."
                confirmation = _impossible(change, how)
            elif pair is not None and change.series.host in {host.id, ANCHORED}:
                confirmation = confirm_by_commits(change, pair, request, reporter)
            else:
                confirmation = _confirm_by_present_state(
                    change, suite, request, reporter, host=host.id
                )
        except CoreboundError as error:
            confirmation = _impossible(change, error.what)
        documents.CONFIRMATIONS.keep(confirmation, records)


def _impossible(change: Change, how: str, *, run: str | None = None) -> Confirmation:
    """A confirmation without a measurement, whose result takes the place of the answer."""
    return Confirmation(
        schema=CONFIRMATION_SCHEMA,
        id=change.id,
        location=change.location,
        at=clock.timestamp(),
        last_point=change.series.points[-1].at,
        answer="impossible",
        both=False,
        how=how,
        run=run,
        ratio=None,
        interval=None,
    )


def confirm_by_commits(
    change: Change, pair: CommitPair, request: RunRequest, reporter: Reporter
) -> Confirmation:
    """The confirmation from a comparison of the two commits."""
    comparison, result = measure_commits(pair, request, reporter)
    bounds = comparison.interval
    answer = evaluate_commit_comparison(
        comparison, direction=change.change_point.direction, ratio=change.change_point.ratio
    )
    _require_time(answer, result.ending, comparison.pairs)
    how = f"commits {pair.good.sha[:10]} and {pair.bad.sha[:10]} were measured interleaved,"
    return replace(
        _impossible(change, f"{how} {comparison.pairs} launches of each", run=result.run.id),
        answer=answer,
        both=True,
        ratio=1 / comparison.speedup_ratio,
        interval=None if bounds is None else (1 / bounds.high, 1 / bounds.low),
    )


def _require_time(answer: Answer, ending: Ending, launches: int) -> None:
    """Raise an error if a budget ended before launches decided: they are repeated next time."""
    if answer == "inconclusive" and ending == "out of time":
        raise LaunchError(
            what=f"the budget ended after {count(launches, 'launch', 'launches')} of each.",
            where="corebound regressions --confirm",
            fix="Use a larger --budget.",
        )


def measure_commits(
    pair: CommitPair, request: RunRequest, reporter: Reporter
) -> tuple[Comparison, RunResult]:
    """Build both commits and interleave launches of their cells, as many as the profile says.

    Returns:
        The comparison of the bad commit with the good one, and the run that measured them.

    Raises:
        CoreboundError: The scenario has changed, or one of the commits has no result.
    """
    request = replace(request, files=(pair.path,), profile=pair.run.profile, only=(pair.cell.id,))
    loaded = load_comparable(request, reporter.notify)
    current = [
        _what_is_measured(scenario.scenario, cell) for scenario in loaded for cell in scenario.cells
    ]
    if current != [_what_is_measured(pair.scenario, pair.cell)]:
        raise InputError(
            what="the scenario has changed since.",
            where=str(pair.path),
            fix="Restore the version of the last nightly run, or wait for new nightly runs.",
        )
    names = short_name(pair.good), short_name(pair.bad)
    reporter.notify(f"Measuring both commits: {pair.cell.id}, {names[0]} and {names[1]}")
    with hold_host_for(request, reporter.notify) as budget:
        both = repeat_for_commits(loaded, (pair.good, pair.bad), request)
        prepared = prepare_comparison(both, request, reporter.notify, resume=False)
        result = execute_run(preflight(prepared, reporter), budget, reporter)
    result = result.judged_by(pair.metric)
    comparisons = [
        cell.comparison
        for scenario_result in result.scenario_results()
        for cell in scenario_result.cells
        if cell.cell.commit == names[1] and cell.comparison is not None
    ]
    if not comparisons:
        reasons = (launch.reason for launch in result.launches if launch.reason)
        raise LaunchError(
            what=f"one of the commits has no result: {next(reasons, 'no launch succeeded')}",
            where=pair.cell.id,
            fix="See the launches of the new run.",
        )
    return comparisons[0], result


def _what_is_measured(scenario: Scenario, cell: Cell) -> tuple[object, ...]:
    """What is measured, independent of the number of launches."""
    measure = scenario.measure.model_dump(mode="json", include={"iterations", "warmup"})
    return scenario.document()["workload"], replace(cell, where=""), measure


def _confirm_by_present_state(
    change: Change,
    suite: Suite,
    request: RunRequest,
    reporter: Reporter,
    *,
    host: str,
) -> Confirmation:
    """Measure the present state of the change's cell and compare it with the good points."""
    series = change.series
    last = series.points[-1]
    run = suite.run_of(series, last)
    if series.project is not None or run is None or series.is_anchored:
        how = "imported results cannot be measured here."
        if series.is_anchored:
            how = "the commits before and after it are the same or unknown."
        elif is_pooled(series):
            how = "it is of several hosts together: measure again on one of them."
        return _impossible(change, how)
    if series.host != host:
        return _impossible(change, f"it was measured on another host, {series.host_name}.")
    if (reason := _wrong_commit(change)) is not None:
        return _impossible(change, reason)
    result, point = _measure_present_state(change, run, request, reporter)
    new_run = result.run.id
    if point is None or point.value is None:
        reason = "it was not measured" if point is None else point.missing
        return _impossible(change, f"the new run has no result: {reason}.", run=new_run)
    if point.environment_key != last.environment_key:
        changed = sorted(
            {name for name, _ in set(point.environment_key) ^ set(last.environment_key)}
        )
        how = f"the {' and the '.join(changed)} changed since."
        return _impossible(change, how, run=new_run)
    good = good_values(change)
    level = math.exp(sum(map(math.log, good)) / len(good))
    low, high = point.bounds or (math.nan, math.nan)
    answer = evaluate_rerun(
        good,
        point.value,
        direction=change.change_point.direction,
        ratio=change.change_point.ratio,
    )
    _require_time(answer, result.ending, len(point.launches))
    how = f"the checked-out commit was measured again with {len(point.launches)} launches and"
    how += f" compared with {len(good)} good nightly runs; the good commit was not measured"
    return replace(
        _impossible(change, how, run=new_run),
        answer=answer,
        ratio=point.value / level,
        interval=None if point.bounds is None else (low / level, high / level),
    )


def good_values(change: Change) -> tuple[float, ...]:
    """Results before the change point from the same environment as the last point."""
    points = change.series.points
    environment_key = points[-1].environment_key
    values = [
        point.value
        for point in points[: change.change_point.last_good + 1]
        if point.value is not None and point.environment_key == environment_key
    ]
    return tuple(values[-_MAX_GOOD_POINTS:])


def _wrong_commit(change: Change) -> str | None:
    """Why the checked-out commit is at no point after the change point; None if it is at one."""
    here = commits.checked_out(Path.cwd())
    points = change.series.points[change.change_point.at :]
    measured = {point.commit.sha for point in points if point.commit is not None}
    if not measured or (here is not None and here.sha in measured):
        return None
    if here is None:
        return "no commit is checked out here."
    return f"{here.sha[:10]} is checked out, which no nightly run since the change has measured."


def _measure_present_state(
    change: Change, before: Run, request: RunRequest, reporter: Reporter
) -> tuple[RunResult, HistoryPoint | None]:
    """Repeat the last nightly run's measurement of the cell, in a folder beside the records."""
    series = change.series
    source = next(
        source for source in before.scenarios if source.document["name"] == series.scenario
    )
    request = replace(
        request,
        files=(Path(source.path),),
        profile=before.profile,
        only=(f"{series.scenario}[{series.cell}]",),
        committed=True,
    )
    reporter.notify(f"Measuring again: {series.scenario}, {series.cell}")
    with hold_host_for(request, reporter.notify) as budget:
        prepared = prepare_run(request, reporter.notify)
        result = execute_run(preflight(prepared, reporter), budget, reporter)
    all_series = series_of_run(*judged_by(_metric_of(change), result.run, result.launches))
    point = next((new.points[0] for new in all_series if new.cell == series.cell), None)
    return result, point and replace(point, run=result.run.id)
