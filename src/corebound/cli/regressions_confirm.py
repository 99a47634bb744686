"""Suspected steps measured again before they alarm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from corebound.cli import doctor, measure, projects, session
from corebound.cli.measuring import take_host
from corebound.cli.regressions_commits import Both, Pair, pair_of
from corebound.cli.regressions_suite import Suite
from corebound.cli.session import Wanted
from corebound.cli.terminal import Console
from corebound.errors import CoreboundError
from corebound.host import provenance
from corebound.model.points import Point
from corebound.model.regression import CONFIRMATION_SCHEMA, Answer, Confirmation
from corebound.model.run import Run
from corebound.stats.regressions import Change
from corebound.stats.series import series_of_run
from corebound.stats.suspicion import both_say, rerun_says
from corebound.store import confirmations
from corebound.topology import probe

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
    host = provenance.host(probe.live()).id
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
        confirmations.keep(kept, records)


def of_both(change: Change, pair: Pair, both: Both) -> Said:
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
    again, point = _rerun(change, run, confirmations.folder_of(records), console, wait_s)
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
    here = provenance.commit(Path.cwd())
    since = [point.commit for point in change.series.points[change.step.at :]]
    known = {commit.sha for commit in since if commit is not None}
    if not known or (here is not None and here.sha in known):
        return None
    found = "no commit is" if here is None else f"{here.sha[:10]} is"
    return f"{found} checked out here, and no night since the step was of it."


def _rerun(
    change: Change, before: Run, folder: Path, console: Console, wait_s: float
) -> tuple[Run, Point | None]:
    """Run the change's cell as the last night did, beside the records: it is no night."""
    series = change.series
    source = next(one for one in before.scenarios if one.document["name"] == series.scenario)
    wanted = Wanted(
        files=(Path(source.path),),
        profile=before.profile,
        only=(f"{series.scenario}[{series.cell}]",),
        seed=None,
        committed=True,
    )
    console.print(Text(f"Measured again: {series.scenario}, {series.cell}"))
    with ExitStack() as stack:
        take_host(stack, wait_s=wait_s)
        ready = session.begin(wanted, folder, projects.teller(console))
        ready = doctor.preflight(ready, console)
        launches, _ = measure.carry_out(ready, None, console, stack, operators=False)
    found = series_of_run(ready.run, launches)
    point = next((one.points[0] for one in found if one.cell == series.cell), None)
    return ready.run, point and replace(point, run=ready.run.id)
