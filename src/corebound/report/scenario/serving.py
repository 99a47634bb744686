"""Server performance under load: throughput and tail latency of each configuration."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from corebound.analysis.launch_metrics import span_of
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.selection import by_baseline
from corebound.analysis.server_workers import WorkerActivity, worker_activity
from corebound.analysis.wording import Label, count, full_name, label, mode_class
from corebound.planning.models import UNKNOWN
from corebound.records.launch_record import Launch, Served
from corebound.report.charts.axis import Axis, linear_axis, log_axis, plain_tick
from corebound.report.charts.lines import Curve, CurveChart, CurvePoint
from corebound.report.elements import Content
from corebound.scenario.cell import Cell
from corebound.scenario.traffic import MlPerf
from corebound.stats.latency import percentiles
from corebound.stats.server_summary import ServedCell, TypicalValue, p99_9_ns, summarise_served
from corebound.units import duration, percent, significant, time_unit

# Axes that set the load, in contrast to the server's configuration.
_LOADS = frozenset({"parameters.rate", "parameters.concurrency"})
_MIN_POINTS = 2
# From this ratio of throughputs on, only a logarithmic axis keeps them distinguishable.
_LINEAR_SPAN = 12.0
# The number of line styles that are distinguishable without colour.
_DASHES = 4
# Each reduction of the remaining requests by a factor of ten takes the same width.
_PERCENTILES = {2.0: "p50", 10.0: "p90", 100.0: "p99", 1_000.0: "p99.9", 10_000.0: "p99.99"}
_ONE_OF = Axis(low=2.0, high=10_000.0, scale="log", ticks=tuple(_PERCENTILES))


def throughput_latency(cells: Sequence[tuple[CellResult, ServedCell]]) -> CurveChart | None:
    """Successful requests per second against the 99th percentile of latency; None for a single dot.

    Configurations that differ only in their load form one line.
    """
    if len(cells) < _MIN_POINTS:
        return None
    length_ns, unit = time_unit(min(served.p99_ns.value for _, served in cells))
    curves = tuple(
        Curve(
            label=Label(mode=mode_class(group[0][0].cell.binding.mode), name=name, more=""),
            dash=index % _DASHES,
            points=tuple(
                CurvePoint(
                    x=served.per_s.value,
                    y=served.p99_ns.value / length_ns,
                    x_ends=_ends(served.per_s, 1.0),
                    y_ends=_ends(served.p99_ns, length_ns),
                )
                for _, served in sorted(group, key=lambda pair: pair[1].per_s.value)
            ),
        )
        for index, (name, group) in enumerate(_by_name_without_load(cells).items())
    )
    across, up = _axes(curves)
    points = "; ".join(
        f"{full_name(cell.cell)}: {significant(served.per_s.value)} requests/s at a p99 of"
        f" {duration(served.p99_ns.value)}"
        for cell, served in cells
    )
    return CurveChart(
        curves=curves,
        across=across,
        up=up,
        unit=unit,
        alt_text=f"Latency against throughput of {count(len(curves), 'configuration')}. {points}.",
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


def _ends(estimate: TypicalValue, unit: float) -> tuple[float, float] | None:
    interval = estimate.interval
    return None if interval is None else (interval.low / unit, interval.high / unit)


def _axes(curves: Sequence[Curve]) -> tuple[Axis, Axis]:
    """Axes over the estimates, with some padding; longer intervals end at the edge."""
    rates = [point.x for curve in curves for point in curve.points]
    tails = [point.y for curve in curves for point in curve.points]
    if max(rates) / min(rates) > _LINEAR_SPAN:
        across = log_axis(min(rates) / 1.3, max(rates) * 1.3, most_ticks=6)
    else:
        across = linear_axis(0.0, max(rates) * 1.12, most_ticks=6)
    return across, log_axis(min(tails) / 1.4, max(tails) * 1.4, most_ticks=5)


def serving(result: ScenarioResult) -> Content | None:
    """The performance of each configuration of a server; None if none was measured."""
    cells = [
        (cell, served)
        for cell in result.cells
        if (served := summarise_served(cell.launches)) is not None
    ]
    if not cells:
        return None
    rows = tuple(
        Content(
            cell=cell,
            served=served,
            workers=worker_activity(cell, result.run.host),
            p99_9_range_ns=span_of(cell, _p99_9_ns),
        )
        for cell, served in cells
    )
    unavailable = _unavailable_note([row.workers for row in rows])
    served_of = {cell.cell.key: served for cell, served in cells}
    return Content(
        notes=(*_serving_notes(cells), *([unavailable] if unavailable else [])),
        rows=rows,
        panels=tuple(
            (
                group.title,
                _percentiles([(cell, served_of[found.cell.key]) for cell, found in group.cells]),
            )
            for group in by_baseline([cell for cell, _ in cells])
        ),
        throughput_latency=throughput_latency(cells),
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
    is_known = not any(cell.placement and cell.placement.is_unknown for cell, _ in launches)
    notes = [_generator_note([served for _, served in launches], is_known=is_known)]
    if restarted := sum(served.restarts > 0 for _, served in launches):
        notes.append(f"In {count(restarted, 'launch', 'launches')} a worker was restarted.")
    by_cell: dict[str, list[MlPerf]] = {}
    for cell, served in launches:
        if served.answered.mlperf is not None:
            by_cell.setdefault(full_name(cell.cell), []).append(served.answered.mlperf)
    notes += [f"{name}: {_mlperf_note(runs)}" for name, runs in by_cell.items()]
    return tuple(notes)


def _generator_note(launches: Sequence[Served], *, is_known: bool) -> str:
    shares = [served.answered.cpu_ns / served.answered.wall_ns for served in launches]
    used = f"used at most {percent(max(shares), 1)} of a CPU"
    late = [
        tail.p99_ns
        for served in launches
        if served.answered.lateness and (tail := percentiles(served.answered.lateness)) is not None
    ]
    if late:
        used += f" and was at most {duration(max(late))} late in 99 of 100 requests"
    if not is_known:
        return f"{UNKNOWN} The load generator {used}."
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


def _percentiles(group: Sequence[tuple[Cell, ServedCell]]) -> CurveChart:
    """The latencies of configurations by percentile."""
    least_ns = min(served.p50_ns.value for _, served in group)
    length_ns, unit = time_unit(least_ns)
    curves = tuple(
        Curve(
            label=label(cell),
            dash=index % _DASHES,
            points=tuple(
                CurvePoint(x=1 / (1 - point.share), y=point.latency_ns / length_ns)
                for point in served.curve
                # A curve ends at its single slowest request.
                if 0.5 <= point.share <= 1 - 1 / (served.requests - served.errors)
            ),
            has_dots=False,
        )
        for index, (cell, served) in enumerate(group)
    )
    # A curve with too few requests to be drawn still leaves room for the values in its row.
    drawn = (point.y for curve in curves for point in curve.points)
    highest = max(*drawn, 0.0, *(served.p99_ns.value / length_ns for _, served in group))
    up = log_axis(least_ns / length_ns / 1.3, highest * 1.15, most_ticks=6)
    values_text = "; ".join(
        f"{full_name(cell)}: p50 {duration(served.p50_ns.value)}, p99"
        f" {duration(served.p99_ns.value)}"
        for cell, served in group
    )
    return CurveChart(
        curves=curves,
        across=_ONE_OF,
        up=up,
        unit=unit,
        texts=(_PERCENTILES.__getitem__, plain_tick),
        alt_text=f"Latency by percentile. {values_text}.",
    )


def _unavailable_note(configurations: Sequence[WorkerActivity]) -> str:
    """Why values are unavailable, as a sentence; empty if all are available."""
    reasons = {
        name: reason for workers in configurations for name, reason in workers.unavailable.items()
    }
    text = "; ".join(f"{name} ({reason})" for name, reason in reasons.items())
    return f"Unavailable: {text}." if text else ""
