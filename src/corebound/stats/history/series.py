"""Build series from the records of runs, and find retired series."""

from __future__ import annotations

import hashlib
import itertools
import statistics
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from corebound.records.history import (
    ANCHOR_KEY,
    ANCHOR_UNIT,
    ANCHORED,
    MACHINE_KEY,
    REFUSED,
    EnvironmentKey,
    HistoryPoint,
    HistoryPoints,
    Series,
    anchored_name,
)
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run, ScenarioSource
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.compared_axis import COMMITS_SUFFIX, key_without_axis
from corebound.scenario.metrics import PEAK_MEMORY
from corebound.scenario.models import (
    Measure,
    Scenario,
    Warmup,
    WarmupIterations,
    WarmupSeconds,
    measure_for,
)
from corebound.stats.comparison import compare
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
        launches: Its launches, in any order; profiling launches are skipped.

    Raises:
        pydantic.ValidationError: This version cannot read a recorded scenario.
    """
    cells = [*_cells(run, launches)]
    all_series = (
        _series(run, source, scenario, own)
        for source, scenario, own in cells
        if run.snapshot_in([own[0].cell.environment]) is None and not _is_anchored(run, own)
    )
    # A comparison measures given commits: one without a value does not end their series.
    return (
        *(
            series
            for series in all_series
            if series.points.value_count or not series.scenario.endswith(COMMITS_SUFFIX)
        ),
        *_anchored(run, [each for each in cells if _is_anchored(run, each[2])]),
    )


_COMMIT_AXIS = ("commit",)


def _is_anchored(run: Run, launches: Sequence[Launch]) -> bool:
    return bool(run.anchors) and launches[0].cell.commit is not None


def _anchored(
    run: Run, cells: Iterable[tuple[ScenarioSource, Scenario, list[Launch]]]
) -> Iterator[Series]:
    """For each cell and anchor, a point: HEAD's value as a ratio to that of the anchor."""
    together: dict[tuple[str, str], list[tuple[ScenarioSource, Scenario, list[Launch]]]] = {}
    for each in cells:
        cell = each[2][0].cell
        together.setdefault((cell.scenario, key_without_axis(cell, _COMMIT_AXIS)), []).append(each)
    for (_, key), several in together.items():
        by_commit = {own[0].cell.commit: own for _, _, own in several}
        pinned = {
            anchor.sha: by_commit.pop(_name_in(by_commit, anchor.sha), ()) for anchor in run.anchors
        }
        for head in by_commit.values():
            for sha, anchor in pinned.items():
                yield _anchored_point(run, several[0][0], key, sha=sha, head=head, anchor=anchor)


def _name_in(names: Iterable[str | None], sha: str) -> str | None:
    return next((name for name in names if name and sha.startswith(name)), None)


def _anchored_point(
    run: Run,
    source: ScenarioSource,
    key: str,
    *,
    sha: str,
    head: Sequence[Launch],
    anchor: Sequence[Launch],
) -> Series:
    """The series of one point of a cell: the ratio with its interval, and that of each block."""
    scenario = Scenario.model_validate(source.document)
    measure = measure_for(scenario, run.profile)
    now = summarise(head[0].cell, head, measure.warmup)
    pinned = summarise(anchor[0].cell, anchor, measure.warmup) if anchor else None
    compared = pinned and compare(
        now, pinned, margin=measure.margin, adaptive=measure.launches.follow_spread
    )
    alone = _series(run, source, scenario, head)
    point = alone.points[0]
    value, bounds, missing, sides = None, None, point.missing, None
    ratios: tuple[float, ...] = ()
    if compared:
        # A rate is the reciprocal of a time, in which launches are compared.
        up = 1 if alone.more_is_better else -1
        value = compared.speedup_ratio**up
        ends = compared.speedup_interval
        bounds = ends and tuple(sorted((ends[0] ** up, ends[1] ** up)))
        ratios = tuple(ratio**up for _, ratio in compared.per_block)
        of_anchor = pinned and value_of(pinned)
        sides = (point.value, of_anchor) if point.value and of_anchor else None
    elif missing is None:
        # Nothing is known of HEAD then, and it has not failed.
        reason = _missing(pinned, anchor) if pinned and anchor else "it was not launched"
        missing = f"{REFUSED}the anchor has no value: {reason}"
    return replace(
        alone,
        host=ANCHORED,
        host_name=anchored_name(run.anchor_name(sha)),
        title=alone.title.removesuffix(": by commit"),
        cell=key,
        unit=ANCHOR_UNIT if alone.unit == "ns" else f"{ANCHOR_UNIT} in {alone.unit}",
        reproduce=(
            *("corebound", "run", source.path, "--anchor", sha[:10]),
            *(("--profile", run.profile) if run.profile else ()),
            *run.config_option,
            *(("--only", key) if key != "default" else ()),
        ),
        points=HistoryPoints.of(
            [
                replace(
                    point,
                    value=value,
                    bounds=bounds,
                    launches=ratios,
                    missing=missing,
                    environment_key=_anchored_key(point.environment_key, run, sha),
                    sides=sides,
                )
            ]
        ),
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
    a metric that the scenario no longer has: they lose their values, and say why.
    """
    by_id: dict[str, list[Series]] = {}
    for series in all_series:
        by_id.setdefault(series.id, []).append(series)
    result = []
    for _, parts in sorted(by_id.items()):
        parts.sort(key=lambda part: part.points.latest_moment.at)
        latest = parts[-1].unit, parts[-1].more_is_better
        same = (
            part.points if (part.unit, part.more_is_better) == latest else _without_values(part)
            for part in parts
        )
        points = sorted(
            itertools.chain.from_iterable(same), key=lambda point: (point.at, point.run or "")
        )
        result.append(replace(parts[-1], points=HistoryPoints.of(points)))
    return tuple(result)


def _without_values(part: Series) -> Iterator[HistoryPoint]:
    better = "more" if part.more_is_better else "less"
    why = f"{REFUSED}measured in {part.unit}, where {better} is better"
    return (
        replace(point, value=None, bounds=None, launches=(), missing=why, sides=None)
        for point in part.points
    )


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
        metric=metric.name if metric == PEAK_MEMORY else "",
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


def _anchored_key(alone: EnvironmentKey, run: Run, anchor: str) -> EnvironmentKey:
    """What may change a ratio: both sides share the kernel and the CPUs, and CPU models differ."""
    kept = {name: which for name, which in alone if name not in {"kernel", "CPUs"}}
    lock = run.lock_of_commit(anchor)
    if lock is not None:
        # A build of another night may have other packages than HEAD's.
        kept["anchor's environment"] = lock_digest([lock], lock.name)
    return (*kept.items(), (ANCHOR_KEY, run.anchor_name(anchor)), (MACHINE_KEY, run.host.cpu_model))


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
    if run.anchors and cell.commit:
        # Every night has another HEAD.
        settings |= {"commit": None, "environment": PROJECT, "scenario": ""}
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
    activity = {
        host: _Activity(recent=moments[-RECENT_POINTS:], longest_pause=_longest_pause(moments))
        for host, group in by_host.items()
        for moments in [_moments(group)]
    }
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
