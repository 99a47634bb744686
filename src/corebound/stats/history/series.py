"""Build series from the records of runs, and find retired series."""

from __future__ import annotations

import hashlib
import statistics
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from corebound.records.history import EnvironmentKey, HistoryPoint, HistoryPoints, Series
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.compared_axis import COMMITS_SUFFIX
from corebound.scenario.models import (
    Measure,
    Scenario,
    Warmup,
    WarmupIterations,
    WarmupSeconds,
    measure_for,
)
from corebound.stats.history.detection import RECENT_POINTS
from corebound.stats.interference import delay
from corebound.stats.launch_summary import CellSummary, summarise, value_ends, value_of
from corebound.stats.noise_floor import lock_digest

_canonical = msgspec.json.Encoder(order="sorted")


def series_of_run(run: Run, launches: Sequence[Launch]) -> tuple[Series, ...]:
    """Convert one run to series of one point, one for each cell that it launched.

    Cells that did not fit the host are left out. So are cells measured on a working tree with
    uncommitted changes, because no commit accounts for their values.

    Args:
        run: The run.
        launches: Its launches, in any order; profiling launches are skipped.

    Raises:
        pydantic.ValidationError: This version cannot read a recorded scenario.
    """
    all_series = (
        _series(run, source, scenario, own)
        for source, scenario, own in _cells(run, launches)
        if run.snapshot_in([own[0].cell.environment]) is None
    )
    # A comparison measures given commits: one without a value does not end their series.
    return tuple(
        series
        for series in all_series
        if series.points.value_count or not series.scenario.endswith(COMMITS_SUFFIX)
    )


def environment_keys_of_run(run: Run, launches: Sequence[Launch]) -> dict[str, EnvironmentKey]:
    """The environment of one run, by the id of each cell for which `series_of_run` has a series.

    It does not compute the cells' values, which would take long.

    Raises:
        pydantic.ValidationError: This version cannot read a recorded scenario.
    """
    return {
        own[0].cell.id: _environment_key(run, scenario, measure_for(scenario, run.profile), own)
        for _, scenario, own in _cells(run, launches)
    }


def delays_of_run(launches: Iterable[Launch]) -> dict[str, float]:
    """The most that other programs can have slowed each cell's `ok` launches, by the cell's id.

    The mean of `interference.delay`; cells without any delay are left out.
    """
    by_cell = {}
    for name, own in launches_by_cell(launches).items():
        delays = [delay(series.host) for series in own if series.status == "ok"]
        if any(delays):
            by_cell[name] = statistics.fmean(delays)
    return by_cell


def launches_by_cell(launches: Iterable[Launch]) -> dict[str, list[Launch]]:
    """The measuring launches that were not skipped, by their cell's id."""
    by_cell: dict[str, list[Launch]] = {}
    for launch in launches:
        if launch.kind == "measure" and launch.status != "skipped":
            by_cell.setdefault(launch.cell.id, []).append(launch)
    return by_cell


def _cells(
    run: Run, launches: Sequence[Launch]
) -> Iterator[tuple[ScenarioSource, Scenario, list[Launch]]]:
    """Each cell's launches with its recorded and parsed scenario, by the cell's id."""
    scenarios = {
        source.document["name"]: (source, Scenario.model_validate(source.document))
        for source in run.scenarios
    }
    for _, own in sorted(launches_by_cell(launches).items()):
        if own[0].cell.scenario in scenarios:
            yield (*scenarios[own[0].cell.scenario], own)


def joined(all_series: Iterable[Series]) -> tuple[Series, ...]:
    """Merge the points of equal series, oldest first; the result is sorted by id.

    All other attributes come from the part with the latest point. Points in another unit are of
    a metric that the scenario no longer has, and left out.
    """
    by_id: dict[str, list[Series]] = {}
    for series in all_series:
        by_id.setdefault(series.id, []).append(series)
    result = []
    for _, parts in sorted(by_id.items()):
        parts.sort(key=lambda part: part.points.latest_moment.at)
        latest = parts[-1].unit, parts[-1].more_is_better
        same = (part for part in parts if (part.unit, part.more_is_better) == latest)
        points = sorted((point for part in same for point in part.points), key=_moment)
        result.append(replace(parts[-1], points=HistoryPoints.of(points)))
    return tuple(result)


def _moment(point: HistoryPoint) -> tuple[str, str]:
    return point.at, point.run or ""


def _series(
    run: Run, source: ScenarioSource, scenario: Scenario, launches: Sequence[Launch]
) -> Series:
    cell, metric = launches[0].cell, launches[0].cell.metric
    measure = measure_for(scenario, run.profile)
    summary = summarise(cell, launches, measure.warmup)
    return Series(
        project=None,
        host=run.host.id,
        host_name=run.host.name,
        scenario=scenario.name,
        title=scenario.title,
        cell=cell.key,
        unit=metric.unit if metric else "ns",
        more_is_better=metric is not None and metric.better == "higher",
        margin=measure.margin,
        reproduce=_reproduce(run, source, cell),
        importance=scenario.importance,
        points=HistoryPoints.of(
            [
                HistoryPoint(
                    at=run.started_at,
                    run=run.id,
                    commit=run.commit_of(cell.environment),
                    value=value_of(summary),
                    bounds=value_ends(summary),
                    launches=tuple(
                        series.median_ns
                        if metric is None
                        else metric.from_time_ns(series.median_ns)
                        for series in summary.launches
                    ),
                    missing=_missing(summary, launches),
                    environment_key=_environment_key(run, scenario, measure, launches),
                )
            ]
        ),
    )


def _missing(summary: CellSummary, launches: Sequence[Launch]) -> str | None:
    if summary.median_ns is not None:
        return None
    # A launch that failed says more than one that was refused.
    told = sorted(launches, key=lambda launch: launch.status == "invalid")
    reasons = (f"{launch.status}: {launch.reason}" for launch in told if launch.reason)
    return next(reasons, "no launch was ok")


def _reproduce(run: Run, source: ScenarioSource, cell: Cell) -> tuple[str, ...]:
    arguments = ["corebound", "run", source.path]
    if run.profile is not None:
        arguments += ["--profile", run.profile]
    arguments += run.config_option
    if cell.axes:
        arguments += ["--only", cell.key]
    return tuple(arguments)


def _environment_key(
    run: Run, scenario: Scenario, measure: Measure, launches: Sequence[Launch]
) -> EnvironmentKey:
    """Everything but the commit of the project under test that can change a value.

    It covers what is measured, not how often it is measured or what it is called.
    """
    topology, cell = run.host.topology, launches[0].cell
    workers = (worker for launch in launches for worker in launch.workers)
    models = {worker.versions["model"] for worker in workers if "model" in worker.versions}
    cpus: list[object] = [run.host.cpu_model, [cpu.id for cpu in topology.allowed]]
    if topology.cpu_quota is not None:
        cpus.append(topology.cpu_quota)
    settings = msgspec.to_builtins(replace(cell, axes=(), where=""))
    # A cell of an earlier version has none, and how a value is found belongs to it.
    settings["metrics"] = scenario.document().get("metric") if cell.metrics else None
    if not cell.metrics:
        del settings["metrics"]
    substance = (scenario.document()["workload"], settings)
    return (
        ("kernel", run.host.kernel),
        ("CPUs", _digest(cpus)),
        ("environment", lock_digest(run.environments, cell.environment)),
        ("scenario", _digest(substance)),
        # A profile has its own; its points form a separate segment.
        ("iterations", str(measure.iterations)),
        ("warm-up", _warmup(measure.warmup)),
        *((("model file", ", ".join(sorted(models))),) if models else ()),
    )


def _warmup(warmup: Warmup) -> str:
    if isinstance(warmup, WarmupIterations):
        return f"{warmup.iterations} iterations"
    return f"{warmup.seconds:g} s" if isinstance(warmup, WarmupSeconds) else warmup


def _digest(value: object) -> str:
    return hashlib.sha256(_canonical.encode(value)).hexdigest()[:12]


# A machine idle for more than this many times its longest pause is not expected back.
_PAUSE_FACTOR = 2
# The length of the date in a moment.
_DATE_LENGTH = 10


def retired_series(suite: Iterable[Series]) -> frozenset[str]:
    """The ids of retired series, to which no run will add points, so nothing in them is new.

    A series is retired if its benchmark or environment is: its last point lies before the last
    30 moments of its host or machine. It is also retired if its host or machine is: others of
    the project have 30 moments since its last one, and it has been idle for twice as long as
    ever before.
    """
    by_host: dict[tuple[str | None, str], list[Series]] = {}
    for series in suite:
        by_host.setdefault((series.project, series.host), []).append(series)
    # Of each host only its recent moments stay in memory; more of them decide nothing.
    activity = {host: _activity(_moments(group)) for host, group in by_host.items()}
    retired: set[str] = set()
    for (project, host), group in by_host.items():
        own = activity[project, host]
        others = [
            each.recent for (of, name), each in activity.items() if of == project and name != host
        ]
        latest = own.recent[-1]
        is_retired = _is_retired_host(
            own, {at for each in others for at in each[bisect_right(each, latest) :]}
        )
        retired |= {
            series.id
            for series in group
            if is_retired or series.points.latest_moment.at < own.recent[0]
        }
    return frozenset(retired)


class _Activity(NamedTuple):
    """When a host or machine measured: its recent moments, and its longest pause in days."""

    recent: list[str]
    longest_pause: int | None


def _activity(moments: list[str]) -> _Activity:
    return _Activity(recent=moments[-RECENT_POINTS:], longest_pause=_longest_pause(moments))


def _moments(group: Iterable[Series]) -> list[str]:
    """The moments at which a host or machine measured, in order."""
    # Most series share their moments.
    columns = {id(series.points.moments): series.points.moments for series in group}.values()
    return sorted({moment.at for column in columns for moment in column})


def _is_retired_host(own: _Activity, later: Collection[str]) -> bool:
    """Whether a machine is no longer used, from its own moments and later ones of others."""
    if len(later) < RECENT_POINTS or own.longest_pause is None:
        return False
    quiet = _longest_pause((own.recent[-1], max(later)))
    return quiet is not None and quiet > _PAUSE_FACTOR * own.longest_pause


def _longest_pause(moments: Sequence[str]) -> int | None:
    """The longest time between two moments in days; None if one is no date, as in other tools."""
    try:
        days = np.array([at[:_DATE_LENGTH] for at in moments], dtype="datetime64[D]")
    except ValueError:
        return None
    return max(np.diff(days).astype(int).tolist(), default=0)
