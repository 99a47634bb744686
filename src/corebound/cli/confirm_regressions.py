"""Confirm suspected regressions: measure both commits of a change point again before it alarms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from corebound.cli import options
from corebound.cli.commands import doctor, run
from corebound.cli.commands import run as commands_run
from corebound.cli.options import take_host
from corebound.cli.output import run as output_run
from corebound.cli.output.run import RunResult
from corebound.cli.output.terminal import Console
from corebound.errors import CoreboundError, InputError, LaunchError
from corebound.machine import discovery, identity
from corebound.records import commits, documents
from corebound.records.decisions import CONFIRMATION_SCHEMA, Answer, Confirmation
from corebound.records.history import HistoryPoint
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from corebound.stats.comparison import Comparison
from corebound.stats.history.early_warnings import both_say, rerun_says
from corebound.stats.history.regressions import Change
from corebound.stats.history.series import series_of_run
from corebound.workflow import compare_commits, prepare
from corebound.workflow.prepare import RunRequest
from corebound.workflow.run_index import Suite


class CommitPair(Struct, frozen=True, kw_only=True):
    """The cell of a change point, as recorded, and the two commits to compare.

    Attributes:
        good, bad: The commits of the last point certainly before the change point, and of the first
            point certainly after it.
        run: The run of the series' last point.
        scenario: The cell's scenario, as that run recorded it.
        cell: The cell.
        path: The path of the scenario's file at that time.
    """

    good: Commit
    bad: Commit
    run: Run
    scenario: Scenario
    cell: Cell
    path: Path


class ConfirmationResult(Struct, frozen=True, kw_only=True):
    """The result of the comparison: the bad commit relative to the good one."""

    comparison: Comparison
    run: str


# Measures a pair; raises CoreboundError if that is impossible.
Both = Callable[[CommitPair], ConfirmationResult]


def pair_of(change: Change, suite: Suite) -> CommitPair | None:
    """The two commits of a change; None if they cannot be built.

    The cell must run the checked-out project under test, and the two commits must be known and
    different. For cells that run a framework, only the points of their history can confirm.
    """
    run = suite.runs.get(change.series.points[-1].run or "")
    if run is None or change.series.project is not None:
        return None
    source = run.source_of(change.series.scenario)
    if source is None:
        return None
    scenario = Scenario.model_validate(source.document)
    cells = expand(scenario, source.path, run.profile)
    cell = next((one for one in cells if one.key == change.series.cell), None)
    if cell is None or cell.environment != PROJECT or cell.commit is not None:
        return None
    good, bad = (_commit(point, suite) for point in (change.last_good, change.first_bad))
    if good is None or bad is None or good.sha == bad.sha:
        return None
    path = Path(source.path)
    return CommitPair(good=good, bad=bad, run=run, scenario=scenario, cell=cell, path=path)


def _commit(point: HistoryPoint, suite: Suite) -> Commit | None:
    """The commit of the project that was built; the suite may be in another repository."""
    run = suite.runs.get(point.run or "")
    built = run.lock_of(PROJECT) if run is not None else None
    return (built and built.commit) or point.commit


def measure_both(
    pair: CommitPair, *, folder: Path, config: Path, console: Console, wait_s: float
) -> ConfirmationResult:
    """Build both commits and alternate launches of their cells, as many as the profile says.

    Args:
        pair: What to compare.
        folder: The folder for the run, which is not a nightly run.
        config: The asv.conf.json of the project under test.
        console: Shows the progress.
        wait_s: How long to wait for another run on this host.

    Raises:
        CoreboundError: The scenario has changed, or one of the commits gives no result.
    """
    say = options.teller(console)
    wanted = RunRequest(
        files=(pair.path,),
        profile=pair.run.profile,
        only=(pair.cell.id,),
        seed=None,
        config=config,
    )
    loaded = compare_commits.comparable(wanted, say)
    if [_substance(one.scenario, cell) for one in loaded for cell in one.cells] != [
        _substance(pair.scenario, pair.cell)
    ]:
        raise InputError(
            what="meanwhile the scenario changed.",
            where=str(pair.path),
            fix="Put it back as the last night had it, or let new nights tell.",
        )
    names = compare_commits.short(pair.good), compare_commits.short(pair.bad)
    console.print(Text(f"Both commits, in turns: {pair.cell.id}, {names[0]} and {names[1]}"))
    with ExitStack() as stack:
        take_host(stack, wait_s=wait_s)
        both = compare_commits.over(loaded, (pair.good, pair.bad), wanted)
        ready = compare_commits.opened(both, wanted, folder, say, go_on=False)
        ready = doctor.preflight(ready, console)
        launches, ending = commands_run.execute_run(ready, None, console, stack, operators=False)
    told = RunResult(run=ready.run, file=ready.file, launches=launches, ending=ending)
    compared = [
        cell.comparison
        for study in output_run.studies(told)
        for cell in study.cells
        if cell.cell.commit == names[1] and cell.comparison is not None
    ]
    if not compared:
        reasons = (one.reason for one in launches if one.reason)
        raise LaunchError(
            what=f"one of the commits gave no figure: {next(reasons, 'no launch was ok')}",
            where=pair.cell.id,
            fix="Look at the launches of the re-run.",
        )
    return ConfirmationResult(comparison=compared[0], run=ready.run.id)


def _substance(scenario: Scenario, cell: Cell) -> tuple[object, ...]:
    """What is measured, independent of the number of launches."""
    measured = scenario.measure.model_dump(mode="json", include={"iterations", "warmup"})
    return scenario.document()["workload"], replace(cell, where=""), measured


# How many points before a change point to use for the spread of good results.
MOST_GOOD_NIGHTS = 100


class Said(Struct, frozen=True, kw_only=True):
    """The result of a confirmation; the fields are those of `Confirmation`."""

    answer: Answer
    how: str
    both: bool = False
    run: str | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None


def confirm(
    changes: Sequence[Change],
    suite: Suite,
    records: Path,
    console: Console,
    *,
    both: Both,
    wait_s: float,
) -> None:
    """Measure each change again and store the result.

    If both commits are known and the cell runs builds of them, both are measured. Otherwise,
    the present state is measured and compared with the good points.

    Args:
        changes: Suspected changes without a confirmation.
        suite: The content of the records.
        records: The folder of records.
        console: Shows the progress.
        both: Measures two commits.
        wait_s: How long to wait for another run on this host.
    """
    host = identity.host(discovery.live()).id
    for change in changes:
        try:
            pair = pair_of(change, suite)
            if pair is not None and change.series.host == host:
                said = of_both(change, pair, both)
            else:
                said = _of_present(change, suite, records, console, host=host, wait_s=wait_s)
        except CoreboundError as error:
            said = Said(answer="impossible", how=str(error.what))
        kept = Confirmation(
            schema=CONFIRMATION_SCHEMA,
            id=change.id,
            place=change.place,
            at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            seen=change.series.points[-1].at,
            answer=said.answer,
            both=said.both,
            how=said.how,
            run=said.run,
            ratio=said.ratio,
            interval=said.interval,
        )
        documents.keep_confirmation(kept, records)


def of_both(change: Change, pair: CommitPair, both: Both) -> Said:
    """The result of comparing the two commits."""
    found = both(pair)
    compared = found.comparison
    bounds = compared.interval
    return Said(
        answer=both_say(compared, direction=change.step.direction, ratio=change.step.ratio),
        how=f"commits {pair.good.sha[:10]} and {pair.bad.sha[:10]} were measured in turns,"
        f" {compared.pairs} launches of each",
        both=True,
        run=found.run,
        ratio=1 / compared.speedup_ratio,
        interval=None if bounds is None else (1 / bounds.high, 1 / bounds.low),
    )


def _of_present(
    change: Change, suite: Suite, records: Path, console: Console, *, host: str, wait_s: float
) -> Said:
    """Measure the present state of the change's cell and compare it with the good points."""
    series = change.series
    last = series.points[-1]
    run = suite.runs.get(last.run or "")
    if series.project is not None or run is None:
        return Said(answer="impossible", how="it was imported, and nothing here can measure it.")
    if series.host != host:
        return Said(answer="impossible", how=f"it is of another host, {series.host_name}.")
    if (why := _elsewhere(change)) is not None:
        return Said(answer="impossible", how=why)
    again, point = _rerun(change, run, documents.confirmations_folder(records), console, wait_s)
    if point is None or point.value is None:
        why = "it was not measured" if point is None else point.missing
        return Said(answer="impossible", how=f"the re-run gave no figure: {why}.", run=again.id)
    if point.environment_key != last.environment_key:
        differ = sorted(
            {name for name, _ in set(point.environment_key) ^ set(last.environment_key)}
        )
        how = f"meanwhile the {' and the '.join(differ)} changed."
        return Said(answer="impossible", how=how, run=again.id)
    good = good_figures(change)
    level = math.exp(sum(map(math.log, good)) / len(good))
    low, high = point.bounds or (math.nan, math.nan)
    return Said(
        answer=rerun_says(
            good, point.value, direction=change.step.direction, ratio=change.step.ratio
        ),
        how=f"the present state was measured again, {len(point.launches)} launches, and held"
        f" against {len(good)} good nights; the good commit was not",
        run=again.id,
        ratio=point.value / level,
        interval=None if point.bounds is None else (low / level, high / level),
    )


def good_figures(change: Change) -> tuple[float, ...]:
    """Results before the change point that have the same circumstances as the last point."""
    points = change.series.points
    like = points[-1].environment_key
    good = [
        point.value
        for point in points[: change.step.last_good + 1]
        if point.value is not None and point.environment_key == like
    ]
    return tuple(good[-MOST_GOOD_NIGHTS:])


def _elsewhere(change: Change) -> str | None:
    """Why the checked-out commit is at no point after the change point; None if it is at one."""
    here = commits.checked_out(Path.cwd())
    since = [point.commit for point in change.series.points[change.step.at :]]
    known = {commit.sha for commit in since if commit is not None}
    if not known or (here is not None and here.sha in known):
        return None
    found = "no commit is" if here is None else f"{here.sha[:10]} is"
    return f"{found} checked out here, and no night since the step was of it."


def _rerun(
    change: Change, before: Run, folder: Path, console: Console, wait_s: float
) -> tuple[Run, HistoryPoint | None]:
    """Repeat the last nightly run's measurement of the cell, in a folder beside the records."""
    series = change.series
    source = next(one for one in before.scenarios if one.document["name"] == series.scenario)
    wanted = RunRequest(
        files=(Path(source.path),),
        profile=before.profile,
        only=(f"{series.scenario}[{series.cell}]",),
        seed=None,
        committed=True,
    )
    console.print(Text(f"Measured again: {series.scenario}, {series.cell}"))
    with ExitStack() as stack:
        take_host(stack, wait_s=wait_s)
        ready = prepare.begin(wanted, folder, options.teller(console))
        ready = doctor.preflight(ready, console)
        launches, _ = run.execute_run(ready, None, console, stack, operators=False)
    found = series_of_run(ready.run, launches)
    point = next((one.points[0] for one in found if one.cell == series.cell), None)
    return ready.run, point and replace(point, run=ready.run.id)
