"""Server performance under load: throughput and tail latency of each configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.launch_metrics import span_of
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.selection import CellGroup, by_baseline
from corebound.analysis.server_workers import (
    BOUND_LEVELS,
    MEMORY_ON_OTHER_NODE,
    WorkerActivity,
    worker_activity,
)
from corebound.analysis.wording import (
    Fact,
    count,
    full_name,
    mode_class,
)
from corebound.records.launch_record import Launch, Served
from corebound.report.charts.axis import Axis, linear_axis, log_axis
from corebound.report.charts.lines import (
    FIRST,
    LoadPoint,
    PercentileCurve,
    TradeoffCurve,
    percentile_position,
)
from corebound.report.elements import Tick, horizontal_ticks, vertical_ticks
from corebound.scenario.traffic import MlPerf
from corebound.stats.latency import percentiles
from corebound.stats.server_summary import MeanWithInterval, ServedCell, p99_9_ns, summarise_served
from corebound.units import duration, percent, significant, time_unit

# Axes that set the load, in contrast to the server's configuration.
_LOADS = frozenset({"parameters.rate", "parameters.concurrency"})
_MIN_POINTS = 2
# From this ratio of throughputs on, only a logarithmic axis keeps them distinguishable.
_LINEAR_SPAN = 12.0
# The number of line styles that are distinguishable without colour.
_DASHES = 4


class ThroughputLatency(Struct, frozen=True, kw_only=True):
    """The drawing; the table of the section has the same content.

    Attributes:
        marks: (per cent from the left, per cent from the top, number) of each configuration's last
            dot; the number is that of `key`.
        key: (number, colour, name) of each configuration.
    """

    caption: str
    curves: tuple[TradeoffCurve, ...]
    across: Axis
    up: Axis
    says: str
    levels: tuple[Tick, ...]
    along: tuple[Tick, ...]
    marks: tuple[tuple[float, float, int], ...]
    key: tuple[tuple[int, str, str], ...]


def throughput_latency(cells: Sequence[tuple[CellResult, ServedCell]]) -> ThroughputLatency | None:
    """Successful requests per second against the 99th percentile of latency; None for a single dot.

    Configurations that differ only in their load form one line.
    """
    if len(cells) < _MIN_POINTS:
        return None
    length_ns, unit = time_unit(min(served.p99_ns.value for _, served in cells))
    configurations = _by_name_without_load(cells)
    curves = tuple(
        TradeoffCurve(
            mode=mode_class(group[0][0].cell.binding.mode),
            dash=index % _DASHES,
            spots=tuple(
                _point(served, length_ns)
                for _, served in sorted(group, key=lambda pair: pair[1].per_s.value)
            ),
        )
        for index, group in enumerate(configurations.values())
    )
    across, up = _axes(curves)
    names = list(configurations)
    points = "; ".join(
        f"{full_name(cell.cell)}: {significant(served.per_s.value)} requests/s at a p99 of"
        f" {duration(served.p99_ns.value)}"
        for cell, served in cells
    )
    return ThroughputLatency(
        caption=f"p99, {unit}, against successful requests/s; lower and further right is better",
        curves=curves,
        across=across,
        up=up,
        says=f"Latency against throughput of {count(len(curves), 'configuration')}. {points}.",
        levels=vertical_ticks(up),
        along=horizontal_ticks(across),
        marks=tuple(
            _number_position(curve, across, up, number) for number, curve in enumerate(curves, 1)
        ),
        key=tuple(
            (number, curve.mode, name)
            for number, (name, curve) in enumerate(zip(names, curves, strict=True), 1)
        ),
    )


def _by_name_without_load(
    cells: Sequence[tuple[CellResult, ServedCell]],
) -> Mapping[str, list[tuple[CellResult, ServedCell]]]:
    """Cells by their name without the load, in their order."""
    groups: dict[str, list[tuple[CellResult, ServedCell]]] = {}
    for cell, served in cells:
        axes = tuple(pair for pair in cell.cell.axes if pair[0] not in _LOADS)
        groups.setdefault(full_name(replace(cell.cell, axes=axes)), []).append((cell, served))
    return groups


def _point(served: ServedCell, length_ns: float) -> LoadPoint:
    return LoadPoint(
        per_s=served.per_s.value,
        latency=served.p99_ns.value / length_ns,
        per_s_ends=_ends(served.per_s, 1.0),
        latency_ends=_ends(served.p99_ns, length_ns),
    )


def _ends(estimate: MeanWithInterval, unit: float) -> tuple[float, float] | None:
    interval = estimate.interval
    return None if interval is None else (interval.low / unit, interval.high / unit)


def _axes(curves: Sequence[TradeoffCurve]) -> tuple[Axis, Axis]:
    """Axes over the estimates, with some padding; longer intervals end at the edge."""
    rates = [spot.per_s for curve in curves for spot in curve.spots]
    tails = [spot.latency for curve in curves for spot in curve.spots]
    if max(rates) / min(rates) > _LINEAR_SPAN:
        across = log_axis(min(rates) / 1.3, max(rates) * 1.3, most_ticks=6)
    else:
        across = linear_axis(0.0, max(rates) * 1.12, most_ticks=6)
    return across, log_axis(min(tails) / 1.4, max(tails) * 1.4, most_ticks=5)


def _number_position(
    curve: TradeoffCurve, across: Axis, up: Axis, number: int
) -> tuple[float, float, int]:
    last = curve.spots[-1]
    left, top = across.clipped(last.per_s), 1 - up.clipped(last.latency)
    return round(left * 100, 2), round(top * 100, 2), number


SHARES = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99"))


class ServingRow(Struct, frozen=True, kw_only=True):
    """One configuration's values.

    `p99_9_range_ns` has the minimum and maximum over its launches: None if all are equal.
    """

    cell: CellResult
    served: ServedCell
    workers: WorkerActivity
    p99_9_range_ns: tuple[float, float] | None


class LatencyPanel(Struct, frozen=True, kw_only=True):
    """Latency by percentile of configurations that are compared with each other.

    `key` has each configuration's name, colour and line style.
    """

    title: str
    caption: str
    curves: tuple[PercentileCurve, ...]
    axis: Axis
    shares: tuple[float, ...]
    says: str
    levels: tuple[Tick, ...]
    along: tuple[Tick, ...]
    key: tuple[tuple[str, str, int], ...]


class Serving(Struct, frozen=True, kw_only=True):
    """The section; `reading` pairs each column with its meaning.

    `command` measures all rows again.
    """

    reading: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    rows: tuple[ServingRow, ...]
    panels: tuple[LatencyPanel, ...]
    throughput_latency: ThroughputLatency | None
    command: CommandLine

    @property
    def has_streams(self) -> bool:
        """Whether the answers of any configuration are streams of tokens."""
        return any(row.served.streamed is not None for row in self.rows)

    @property
    def has_core_bound(self) -> bool:
        """Whether the core-bound share of any configuration is known."""
        return any(row.workers.core_bound is not None for row in self.rows)

    @property
    def has_remote_memory(self) -> bool:
        """Whether the share of remote memory of any configuration is known."""
        return any(row.workers.remote_memory is not None for row in self.rows)


_STREAM_READING = (
    ("First token", "The time from the start of the latency to the first token of an answer."),
    ("Per token", "An answer's mean time from one token to the next."),
    ("Within bounds", "Goodput: answers per second whose two times are within the bounds."),
)


def serving(result: ScenarioResult) -> Serving | None:
    """The performance of each configuration of a server; None if none was measured."""
    cells = [
        (cell, served)
        for cell in result.cells
        if (served := summarise_served(cell.launches)) is not None
    ]
    if not cells:
        return None
    rows = tuple(
        ServingRow(
            cell=cell,
            served=served,
            workers=worker_activity(cell, result.run.host),
            p99_9_range_ns=span_of(cell, _p99_9_ns),
        )
        for cell, served in cells
    )
    unavailable = unavailable_note(row.workers for row in rows)
    return Serving(
        reading=(
            (
                "Requests/s",
                "Successful requests. Errors are counted apart, and are in no latency.",
            ),
            ("p50 to p99", "Geometric means over launches, with their 95 % CI."),
            ("p99.9", "Of all requests of all launches, from 1,000 on."),
            *(_STREAM_READING if any(served.streamed for _, served in cells) else ()),
            (
                "Cores shared",
                "The share of time with two or more workers on a core, of the time with any.",
            ),
            ("Core bound", "The share of pipeline slots that wait for execution units."),
            ("Minimum … maximum", "Of launches; the value beside it is their median."),
        ),
        notes=(*_serving_notes(cells), *((unavailable,) if unavailable else ())),
        rows=rows,
        panels=_latency_panels(cells),
        throughput_latency=throughput_latency(cells),
        command=reproduce_command(result, [cell.cell for cell, _ in cells]),
    )


def _p99_9_ns(launch: Launch) -> int | None:
    """The 99.9th percentile of one launch; None below 1,000 requests."""
    latencies = percentiles(launch.served.answered.latencies) if launch.served else None
    return None if latencies is None else p99_9_ns(latencies)


def _serving_notes(cells: Sequence[tuple[CellResult, ServedCell]]) -> tuple[str, ...]:
    """Notes about the load generator, and about the rules it follows."""
    launches = [
        (cell, launch.served)
        for cell, _ in cells
        for launch in cell.launches
        if launch.status == "ok" and launch.served is not None
    ]
    notes = [_generator_note([served for _, served in launches])]
    if restarted := sum(served.restarts > 0 for _, served in launches):
        notes.append(f"In {count(restarted, 'launch', 'launches')} a worker was restarted.")
    by_cell: dict[str, list[MlPerf]] = {}
    for cell, served in launches:
        if served.answered.mlperf is not None:
            by_cell.setdefault(full_name(cell.cell), []).append(served.answered.mlperf)
    notes += [f"{name}: {_mlperf_note(runs)}" for name, runs in by_cell.items()]
    return tuple(notes)


def _generator_note(launches: Sequence[Served]) -> str:
    shares = [served.answered.cpu_ns / served.answered.wall_ns for served in launches]
    used = f"used at most {percent(max(shares), 1)} of a CPU"
    late = [
        tail.p99_ns
        for served in launches
        if served.answered.lateness and (tail := percentiles(served.answered.lateness)) is not None
    ]
    if late:
        used += f" and was at most {duration(max(late))} late in 99 of 100 requests"
    together = sum(not served.apart for served in launches)
    if not together:
        return f"The load generator had CPUs of its own, {used}."
    share = (
        "every launch" if together == len(launches) else f"{together} of {len(launches)} launches"
    )
    return f"In {share} the load generator had to share CPUs with the server; it {used}."


def _mlperf_note(runs: Sequence[MlPerf]) -> str:
    """The verdict of MLPerf's early stopping on the launches of one cell."""
    valid = sum(run.satisfied for run in runs)
    text = f"by MLPerf's early stopping, {valid} of {count(len(runs), 'launch', 'launches')} valid"
    estimates = [run.latency_ns for run in runs if run.latency_ns is not None]
    if estimates and runs[0].percentile is not None:
        worst = duration(max(estimates))
        text += f"; {percent(runs[0].percentile, 0)} of queries within {worst} in each launch"
    return f"{text}."


def _latency_panels(cells: Sequence[tuple[CellResult, ServedCell]]) -> tuple[LatencyPanel, ...]:
    served_of = {cell.cell.key: served for cell, served in cells}
    return tuple(
        _latency_panel(group, served_of) for group in by_baseline([cell for cell, _ in cells])
    )


def _latency_panel(grouped: CellGroup, served_of: Mapping[str, ServedCell]) -> LatencyPanel:
    group = [(cell, served_of[studied.cell.key]) for cell, studied in grouped.cells]
    length_ns, unit = time_unit(min(served.p50_ns.value for _, served in group))
    curves = tuple(
        PercentileCurve(
            mode=mode_class(cell.binding.mode),
            dash=index % _DASHES,
            points=tuple(
                (point.share, point.latency_ns / length_ns)
                for point in served.curve
                # A curve ends at its single slowest request.
                if FIRST <= point.share <= 1 - 1 / (served.requests - served.errors)
            ),
        )
        for index, (cell, served) in enumerate(group)
    )
    least_ns = min(served.p50_ns.value for _, served in group)
    # A curve with too few requests to be drawn still leaves room for the values in its row.
    drawn = (latency for curve in curves for _, latency in curve.points)
    highest = max(*drawn, 0.0, *(served.p99_ns.value / length_ns for _, served in group))
    axis = log_axis(least_ns / length_ns / 1.3, highest * 1.15, most_ticks=6)
    values_text = "; ".join(
        f"{full_name(cell)}: p50 {duration(served.p50_ns.value)}, p99"
        f" {duration(served.p99_ns.value)}"
        for cell, served in group
    )
    return LatencyPanel(
        title=grouped.title,
        caption=f"Latency by percentile, {unit}, log scales",
        curves=curves,
        axis=axis,
        shares=tuple(share_text for share_text, _ in SHARES),
        says=f"Latency by percentile. {values_text}.",
        levels=vertical_ticks(axis),
        along=tuple(
            Tick(at=round(percentile_position(share_text) * 100, 2), text=text)
            for share_text, text in SHARES
        ),
        key=tuple(
            (full_name(cell), curve.mode, curve.dash)
            for (cell, _), curve in zip(group, curves, strict=True)
        ),
    )


UNAVAILABLE = "unavailable"


def worker_values(workers: WorkerActivity) -> tuple[Fact, ...]:
    """The values that a page shows of a server configuration's workers.

    Unavailable values are marked as such, unless `reasons` covers them with one reason for all.
    """
    use_text = ", ".join(f"CPU {cpu} {percent(share, 0)}" for cpu, share in workers.cpu_use.items())
    bound_text = "of slots core bound"
    if workers.core_bound_workers:
        by_worker = ", ".join(percent(share, 0) for share in workers.core_bound_workers)
        bound_text += f" ({count(len(workers.core_bound_workers), 'worker')}: {by_worker})"
    used = Fact(
        value=use_text or UNAVAILABLE,
        says="used by workers" if use_text else "CPU use",
        known=bool(use_text),
    )
    overlap = "of busy cores' time with two workers or more"
    remote_text = "of memory on another node"
    shares = (
        (_worker_value(workers.core_bound, bound_text, "core-bound share"), BOUND_LEVELS),
        (
            _worker_value(workers.memory_bound, "of slots memory bound", "memory-bound share"),
            BOUND_LEVELS,
        ),
        (
            _worker_value(workers.remote_memory, remote_text, "share of remote memory"),
            MEMORY_ON_OTHER_NODE,
        ),
    )
    return (
        used,
        _worker_value(workers.overlap, overlap, "overlap of workers"),
        *(value for value, reason in shares if value.known or reason not in workers.unavailable),
    )


def _worker_value(ratio: float | None, says: str, name: str) -> Fact:
    """A share and its description; if unavailable, `name` names the missing value."""
    is_known = ratio is not None
    return Fact(value=share_text(ratio), says=says if is_known else name, known=is_known)


def share_text(ratio: float | None) -> str:
    """A share as a page shows it."""
    return UNAVAILABLE if ratio is None else percent(ratio, 0)


def unavailable_note(configurations: Iterable[WorkerActivity]) -> str | None:
    """Why values are unavailable, as a sentence; None if all are available."""
    reasons = {
        name: reason for workers in configurations for name, reason in workers.unavailable.items()
    }
    text = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
    return f"Unavailable: {text}." if text else None
