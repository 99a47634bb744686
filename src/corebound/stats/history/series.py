"""From records to series, and which of them have ended."""

from __future__ import annotations

import hashlib
import statistics
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from corebound.records.history import Circumstances, HistoryPoint, HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.models import (
    Measure,
    Scenario,
    Warmup,
    WarmupIterations,
    WarmupSeconds,
    measured,
)
from corebound.stats.history.detection import RECENT_NIGHTS
from corebound.stats.interference import delay
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.noise_floor import lock_digest

_canonical = msgspec.json.Encoder(order="sorted")


def series_of_run(run: Run, launches: Sequence[Launch]) -> tuple[Series, ...]:
    """What one run says: for each cell it launched, a series of one point.

    Cells that the host could not hold are left out: they have no history. Those of a working
    tree with changes are no point of a history either: a change there is no commit's doing.

    Args:
        run: The run.
        launches: Its launches, in any order; those that profile are passed over.

    Raises:
        pydantic.ValidationError: a recorded scenario is none this version can read.
    """
    return tuple(
        _series(run, source, scenario, own)
        for source, scenario, own in _cells(run, launches)
        if run.snapshot_in([own[0].cell.environment]) is None
    )


def circumstances_of_run(run: Run, launches: Sequence[Launch]) -> dict[str, Circumstances]:
    """What one run was made in, by the id of each cell that `series_of_run` has a series of.

    Its figures, which take long to find, are not looked for.

    Raises:
        pydantic.ValidationError: a recorded scenario is none this version can read.
    """
    return {
        own[0].cell.id: _circumstances(run, scenario, measured(scenario, run.profile), own[0].cell)
        for _, scenario, own in _cells(run, launches)
    }


def delays_of_run(launches: Iterable[Launch]) -> dict[str, float]:
    """How much longer other programs can have made each cell's `ok` launches take, by its id.

    The mean of `disturbance.delay`; cells that nobody delayed are left out.
    """
    found = {}
    for name, own in launches_by_cell(launches).items():
        delays = [delay(one.host) for one in own if one.status == "ok"]
        if any(delays):
            found[name] = statistics.fmean(delays)
    return found


def launches_by_cell(launches: Iterable[Launch]) -> dict[str, list[Launch]]:
    """The launches that were to measure, by their cell's id; not those that could not be made."""
    by_cell: dict[str, list[Launch]] = {}
    for launch in launches:
        if launch.kind == "measure" and launch.status != "skipped":
            by_cell.setdefault(launch.cell.id, []).append(launch)
    return by_cell


def _cells(
    run: Run, launches: Sequence[Launch]
) -> Iterator[tuple[ScenarioSource, Scenario, list[Launch]]]:
    """Each cell's launches with its scenario, as recorded and read, by the cell's id."""
    scenarios = {
        source.document["name"]: (source, Scenario.model_validate(source.document))
        for source in run.scenarios
    }
    for _, own in sorted(launches_by_cell(launches).items()):
        if own[0].cell.scenario in scenarios:
            yield (*scenarios[own[0].cell.scenario], own)


def joined(series: Iterable[Series]) -> tuple[Series, ...]:
    """Put the points of equal series together, oldest first.

    Whatever else a series says, its latest point says. By id.
    """
    by_id: dict[str, list[Series]] = {}
    for one in series:
        by_id.setdefault(one.id, []).append(one)
    result = []
    for _, parts in sorted(by_id.items()):
        parts.sort(key=lambda part: part.points.moments[-1].at)
        points = sorted((point for part in parts for point in part.points), key=_moment)
        result.append(replace(parts[-1], points=HistoryPoints.of(points)))
    return tuple(result)


def _moment(point: HistoryPoint) -> tuple[str, str]:
    return point.at, point.run or ""


def _series(
    run: Run, source: ScenarioSource, scenario: Scenario, launches: Sequence[Launch]
) -> Series:
    cell = launches[0].cell
    measure = measured(scenario, run.profile)
    summary = summarise(cell, launches, measure.warmup)
    return Series(
        project=None,
        host=run.host.id,
        host_name=run.host.name,
        scenario=scenario.name,
        title=scenario.title,
        cell=cell.key,
        unit="ns",
        margin=measure.margin,
        reproduce=_reproduce(run, source, cell),
        points=HistoryPoints.of(
            [
                HistoryPoint(
                    at=run.started_at,
                    run=run.id,
                    commit=run.commit,
                    figure=summary.median_ns,
                    bounds=_bounds(summary),
                    launches=tuple(one.median_ns for one in summary.launches),
                    missing=_missing(summary, launches),
                    circumstances=_circumstances(run, scenario, measure, cell),
                )
            ]
        ),
    )


def _bounds(summary: CellSummary) -> tuple[float, float] | None:
    interval = summary.interval
    return None if interval is None else (interval.low, interval.high)


def _missing(summary: CellSummary, launches: Sequence[Launch]) -> str | None:
    if summary.median_ns is not None:
        return None
    reasons = (f"{launch.status}: {launch.reason}" for launch in launches if launch.reason)
    return next(reasons, "no launch was ok")


def _reproduce(run: Run, source: ScenarioSource, cell: Cell) -> tuple[str, ...]:
    words = ["corebound", "run", source.path]
    if run.profile is not None:
        words += ["--profile", run.profile]
    if cell.axes:
        words += ["--only", cell.key]
    return tuple(words)


def _circumstances(run: Run, scenario: Scenario, measure: Measure, cell: Cell) -> Circumstances:
    """What a commit of the project under test is not to blame for.

    What is measured counts, not how often or how it is called.
    """
    allowed = [cpu.id for cpu in run.host.topology.allowed]
    substance = (scenario.document()["workload"], replace(cell, axes=(), where=""))
    return (
        ("kernel", run.host.kernel),
        ("CPUs", _digest((run.host.cpu_model, allowed))),
        ("environment", lock_digest(run.environments, cell.environment)),
        ("scenario", _digest(substance)),
        # A profile has its own, and its nights are others.
        ("iterations", str(measure.iterations)),
        ("warm-up", _warmup(measure.warmup)),
    )


def _warmup(warmup: Warmup) -> str:
    if isinstance(warmup, WarmupIterations):
        return f"{warmup.iterations} iterations"
    return f"{warmup.seconds:g} s" if isinstance(warmup, WarmupSeconds) else warmup


def _digest(value: object) -> str:
    return hashlib.sha256(_canonical.encode(value)).hexdigest()[:12]


# Times its longest pause: a machine that is quiet for longer is not expected back.
_QUIET = 2
# Letters of a moment that are its day.
_OF_DAY = 10


def ended(suite: Iterable[Series]) -> frozenset[str]:
    """The ids of series that no night will add to, so that nothing in them is news.

    Their benchmark or environment was retired: the last point lies before the last 30 moments
    of its host or machine. Or that was: others of the project have 30 moments since its last,
    and it has been quiet for twice as long as ever before.
    """
    by_host: dict[tuple[str | None, str], list[Series]] = {}
    for one in suite:
        by_host.setdefault((one.project, one.host), []).append(one)
    moments = {host: _moments(several) for host, several in by_host.items()}
    found: set[str] = set()
    for (project, host), several in by_host.items():
        own = moments[project, host]
        others = [each for (of, name), each in moments.items() if of == project and name != host]
        since = own[-RECENT_NIGHTS:][0]
        gone = _is_gone(own, {at for each in others for at in each[bisect_right(each, own[-1]) :]})
        found |= {one.id for one in several if gone or one.points.moments[-1].at < since}
    return frozenset(found)


def _moments(several: Iterable[Series]) -> list[str]:
    """When a host or machine measured, in order."""
    # Most series share their moments.
    columns = {id(one.points.moments): one.points.moments for one in several}.values()
    return sorted({moment.at for column in columns for moment in column})


def _is_gone(own: Sequence[str], later: Collection[str]) -> bool:
    """Whether a machine is no longer used, by its own moments and those of others since."""
    if len(later) < RECENT_NIGHTS:
        return False
    try:
        days = np.array([at[:_OF_DAY] for at in (*own, max(later))], dtype="datetime64[D]")
    except ValueError:  # what another tool takes for a moment may be none
        return False
    *before, quiet = np.diff(days).astype(int).tolist()
    return bool(quiet > _QUIET * max(before, default=0))
