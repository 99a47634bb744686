"""A suspected step measured again at both of its commits, launched in turns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from corebound.cli import commits, doctor, measure, outcome, projects
from corebound.cli.measuring import take_host
from corebound.cli.outcome import Told
from corebound.cli.regressions_suite import Suite
from corebound.cli.session import Wanted
from corebound.cli.terminal import Console
from corebound.errors import InputError, LaunchError
from corebound.model.plan import Cell
from corebound.model.points import Point
from corebound.model.run import Commit, Run
from corebound.model.scenario import Scenario
from corebound.planning.expand import PROJECT, expand
from corebound.stats.compare import Comparison
from corebound.stats.regressions import Change


class Pair(Struct, frozen=True, kw_only=True):
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


class Outcome(Struct, frozen=True, kw_only=True):
    """What the comparison came to: of the bad commit with the good one."""

    comparison: Comparison
    run: str


# Measures a pair. Raises CoreboundError where that cannot be done.
Both = Callable[[Pair], Outcome]


def pair_of(change: Change, suite: Suite) -> Pair | None:
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
    return Pair(good=good, bad=bad, run=run, scenario=scenario, cell=cell, path=path)


def _commit(point: Point, suite: Suite) -> Commit | None:
    """Of the project that was built; the suite around it may be another repository."""
    run = suite.runs.get(point.run or "")
    built = run.lock_of(PROJECT) if run is not None else None
    return (built and built.commit) or point.commit


def measure_both(
    pair: Pair, *, folder: Path, config: Path, console: Console, wait_s: float
) -> Outcome:
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
    say = projects.teller(console)
    wanted = Wanted(
        files=(pair.path,),
        profile=pair.run.profile,
        only=(pair.cell.id,),
        seed=None,
        config=config,
    )
    loaded = commits.comparable(wanted, say)
    if [_substance(one.scenario, cell) for one in loaded for cell in one.cells] != [
        _substance(pair.scenario, pair.cell)
    ]:
        raise InputError(
            what="meanwhile the scenario changed.",
            where=str(pair.path),
            mend="Put it back as the last night had it, or let new nights tell.",
        )
    names = commits.short(pair.good), commits.short(pair.bad)
    console.print(Text(f"Both commits, in turns: {pair.cell.id}, {names[0]} and {names[1]}"))
    with ExitStack() as stack:
        take_host(stack, wait_s=wait_s)
        both = commits.over(loaded, (pair.good, pair.bad), wanted)
        ready = commits.opened(both, wanted, folder, say, go_on=False)
        ready = doctor.preflight(ready, console)
        launches, ending = measure.carry_out(ready, None, console, stack, operators=False)
    told = Told(run=ready.run, file=ready.file, launches=launches, ending=ending)
    compared = [
        cell.comparison
        for study in outcome.studies(told)
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
    return Outcome(comparison=compared[0], run=ready.run.id)


def _substance(scenario: Scenario, cell: Cell) -> tuple[object, ...]:
    """What is measured, apart from how often."""
    measured = scenario.measure.model_dump(mode="json", include={"iterations", "warmup"})
    return scenario.document()["workload"], replace(cell, where=""), measured
