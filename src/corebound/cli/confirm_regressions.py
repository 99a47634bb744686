"""Suspected change points measured again, at both of their commits, before they alarm."""

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
from corebound.records import documents, git_commit
from corebound.records.decisions import CONFIRMATION_SCHEMA, Answer, Confirmation
from corebound.records.history import HistoryPoint
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import PROJECT, expand
from corebound.scenario.models import Scenario
from corebound.stats.comparison import Comparison
from corebound.stats.history.early_warnings import both_say, rerun_says
from corebound.stats.history.regressions import Change
from corebound.stats.history.series import series_of_run
from corebound.workflow import compare_commits, prepare
from corebound.workflow.prepare import RunRequest
from corebound.workflow.run_index import Suite


class CommitPair(Struct, frozen=True, kw_only=True):
    """What is to be compared: the cell as it was recorded, at two commits.

    Attributes:
        good, bad: Of the last point surely before the step, and the first surely after it.
        run: The run of the series' last point.
        scenario: The cell's, as that run recorded it.
        cell: The cell.
        path: Of the scenario's file then.
    """

    good: Commit
    bad: Commit
    run: Run
    scenario: Scenario
    cell: Cell
    path: Path


class ConfirmationResult(Struct, frozen=True, kw_only=True):
    """What the comparison came to: of the bad commit with the good one."""

    comparison: Comparison
    run: str


# Measures a pair. Raises CoreboundError where that cannot be done.
Both = Callable[[CommitPair], ConfirmationResult]


def pair_of(change: Change, suite: Suite) -> CommitPair | None:
    """The two commits of a change; None where it is of none that can be built.

    That takes a cell which runs the project under test as it is checked out, and two
    commits that are known and differ. What runs a framework is told by its nights alone.
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
    """Of the project that was built; the suite around it may be another repository."""
    run = suite.runs.get(point.run or "")
    built = run.lock_of(PROJECT) if run is not None else None
    return (built and built.commit) or point.commit


def measure_both(
    pair: CommitPair, *, folder: Path, config: Path, console: Console, wait_s: float
) -> ConfirmationResult:
    """Build both commits and launch the cell of each in turns, as often as its profile says.

    Args:
        pair: What to compare.
        folder: Where the run is kept, which is no night.
        config: The asv.conf.json of the project under test.
        console: Shows the progress.
        wait_s: How long to wait for another run on this host.

    Raises:
        CoreboundError: the scenario is another now, or one of the two gives no figure.
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
            mend="Put it back as the last night had it, or let new nights tell.",
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
            mend="Look at the launches of the re-run.",
        )
    return ConfirmationResult(comparison=compared[0], run=ready.run.id)


def _substance(scenario: Scenario, cell: Cell) -> tuple[object, ...]:
    """What is measured, apart from how often."""
    measured = scenario.measure.model_dump(mode="json", include={"iterations", "warmup"})
    return scenario.document()["workload"], replace(cell, where=""), measured


# Of the nights before a step, those that say how good ones vary.
MOST_GOOD_NIGHTS = 100


class Said(Struct, frozen=True, kw_only=True):
    """What measuring again came to; the fields are those of `Confirmation`."""

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
    """Measure each change again and keep what that says.

    Where its two commits are known and the cell runs what is built of them, both are
    measured; elsewhere the present state is, and held against the good nights.

    Args:
        changes: What is suspected, and has not been asked about.
        suite: What the records hold.
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
    """What a comparison of the two commits says."""
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
    """Measure the present state of the change's cell and hold it against the good nights."""
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
    if point is None or point.figure is None:
        why = "it was not measured" if point is None else point.missing
        return Said(answer="impossible", how=f"the re-run gave no figure: {why}.", run=again.id)
    if point.circumstances != last.circumstances:
        differ = sorted({name for name, _ in set(point.circumstances) ^ set(last.circumstances)})
        how = f"meanwhile the {' and the '.join(differ)} changed."
        return Said(answer="impossible", how=how, run=again.id)
    good = good_figures(change)
    level = math.exp(sum(map(math.log, good)) / len(good))
    low, high = point.bounds or (math.nan, math.nan)
    return Said(
        answer=rerun_says(
            good, point.figure, direction=change.step.direction, ratio=change.step.ratio
        ),
        how=f"the present state was measured again, {len(point.launches)} launches, and held"
        f" against {len(good)} good nights; the good commit was not",
        run=again.id,
        ratio=point.figure / level,
        interval=None if point.bounds is None else (low / level, high / level),
    )


def good_figures(change: Change) -> tuple[float, ...]:
    """Of the nights before the step that were measured as the last one was."""
    points = change.series.points
    like = points[-1].circumstances
    good = [
        point.figure
        for point in points[: change.step.last_good + 1]
        if point.figure is not None and point.circumstances == like
    ]
    return tuple(good[-MOST_GOOD_NIGHTS:])


def _elsewhere(change: Change) -> str | None:
    """Why what is checked out is none of the nights since the step; None where it is one."""
    here = git_commit.commit(Path.cwd())
    since = [point.commit for point in change.series.points[change.step.at :]]
    known = {commit.sha for commit in since if commit is not None}
    if not known or (here is not None and here.sha in known):
        return None
    found = "no commit is" if here is None else f"{here.sha[:10]} is"
    return f"{found} checked out here, and no night since the step was of it."


def _rerun(
    change: Change, before: Run, folder: Path, console: Console, wait_s: float
) -> tuple[Run, HistoryPoint | None]:
    """Run the change's cell as the last night did, beside the records: it is no night."""
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
