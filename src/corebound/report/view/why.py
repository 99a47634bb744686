"""Why a setting is fast or slow: where its threads ran, and what they waited for."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from corebound.diagnosis.evidence import spin_share
from corebound.diagnosis.launches import remote_share, total, wait_share
from corebound.model.record import Launch, ThreadEvidence
from corebound.model.topology import Cpu, CpuId, NodeId
from corebound.report.charts.axis import linear_axis, plain_tick
from corebound.report.charts.strip import Stretch, Strip, ThreadTrack
from corebound.report.view.evidence import counted, host_seen, median_of, migrations
from corebound.report.view.figure import figure_of
from corebound.report.view.page import Figure, StripPanel, Tick, Why
from corebound.report.view.study import CellStudy, Study, typical_launch
from corebound.report.view.words import binding_name, full_name, label
from corebound.units import duration, percent, ratio

# More colours than this cannot be told apart; the busiest threads get them.
_COLOURS = 8
# A setting this slow is worth a strip of its own beside the fastest.
_TRAP_RATIO = 0.5
# Rows below this height cannot carry a label each.
_MOST_LABELS = 16


def why(study: Study) -> Why | None:
    """CPU × time of the baseline, the fastest and, where it is a trap, the slowest cell."""
    chosen = shown_cells(study)
    shown = [
        (cell, found[0])
        for cell in chosen
        if (found := typical_launch(cell)) and _seen_threads(found[0])
    ]
    if not shown:
        return None
    rows = _rows(study, [launch for _, launch in shown])
    if not rows:
        return None
    tracks = max(len(_seen_threads(launch)) for _, launch in shown)
    key = [(index, f"thread {index}") for index in range(min(tracks, _COLOURS))]
    if tracks > _COLOURS:
        key.append((_COLOURS, f"{tracks - _COLOURS} more threads"))
    nodes = {cpu.id: cpu.node for cpu in study.run.host.topology.cpus}
    return Why(
        title=_title([cell for cell, _ in shown], study),
        lead=_lead(),
        key=tuple(key),
        panels=tuple(_panel(study, cell, launch, rows, nodes) for cell, launch in shown),
    )


def shown_cells(study: Study) -> tuple[CellStudy, ...]:
    """The cells a reader wants to look into: baseline, fastest, and a much slower one."""
    chosen = [study.baseline] if study.baseline and study.baseline.is_measured else []
    if study.ranked:
        chosen.append((study.winner or study.ranked[0]).cell)
        last = study.ranked[-1]
        if last.comparison.verdict == "slower" and last.comparison.speedup_ratio <= _TRAP_RATIO:
            chosen.append(last.cell)
    unique = {cell.cell.key: cell for cell in chosen}
    return tuple(unique.values())


def _seen_threads(launch: Launch) -> tuple[ThreadEvidence, ...]:
    """Threads that ran once the workers were told to go, busiest first."""
    threads = [
        thread
        for worker in launch.workers
        for thread in worker.threads
        if any(stay.to_ms > 0 for stay in thread.stays)
    ]
    return tuple(sorted(threads, key=lambda one: (-_busy_ms(one), one.tid)))


def _busy_ms(thread: ThreadEvidence) -> int:
    return sum(stay.to_ms - max(stay.from_ms, 0) for stay in thread.stays if stay.to_ms > 0)


def _title(cells: Sequence[CellStudy], study: Study) -> str:
    """Names a cause only where the records show it and a setting is clearly faster."""
    winner = study.winner
    if winner is None or len(cells) < 2:
        return "Where the threads ran"
    slow, fast = winner.baseline, winner.cell
    name = binding_name(slow.cell)
    moved, stayed = median_of(slow, migrations), median_of(fast, migrations)
    if moved is not None and stayed is not None and moved >= 10 and moved >= 3 * stayed:
        return f"Why: {name} threads keep moving"
    waits = [wait_share(found[0]) if (found := typical_launch(c)) else None for c in (slow, fast)]
    if waits[0] is not None and waits[1] is not None and waits[0] - waits[1] >= 0.1:
        return f"Why: {name} threads wait for a CPU"
    return "Where the threads ran"


def _lead() -> str:
    return (
        "Which CPU each thread was seen on while it used CPU time, in the launch nearest to the"
        " cell's median. A steady stripe is a thread that stayed put; threads that share a CPU"
        " share its row."
    )


def _rows(study: Study, launches: Sequence[Launch]) -> tuple[Cpu, ...]:
    """The CPUs any shown launch was given or seen on, cores and nodes together."""
    numbers = {
        stay.cpu
        for launch in launches
        for worker in launch.workers
        for thread in worker.threads
        for stay in thread.stays
    }
    for launch in launches:
        if launch.placement is not None:
            numbers.update(cpu for slot in launch.placement.slots for cpu in slot.cpus)
    cpus = [cpu for cpu in study.run.host.topology.cpus if cpu.id in numbers]
    return tuple(
        sorted(cpus, key=lambda cpu: (-1 if cpu.node is None else cpu.node, cpu.core, cpu.id))
    )


def _panel(
    study: Study,
    cell: CellStudy,
    launch: Launch,
    cpus: Sequence[Cpu],
    nodes: Mapping[CpuId, NodeId | None],
) -> StripPanel:
    threads = _seen_threads(launch)
    end_ms = max(stay.to_ms for thread in threads for stay in thread.stays)
    row_of = {cpu.id: row for row, cpu in enumerate(cpus)}
    tracks = tuple(
        ThreadTrack(
            colour=min(index, _COLOURS),
            name=f"thread {index}: {thread.name}",
            stretches=tuple(
                Stretch(
                    row=row_of[stay.cpu],
                    begin=max(stay.from_ms, 0) / end_ms,
                    end=stay.to_ms / end_ms,
                )
                for stay in thread.stays
                if stay.to_ms > 0 and stay.cpu in row_of
            ),
        )
        for index, thread in enumerate(threads)
    )
    breaks = range(1, len(cpus))
    spin = spin_share(cell.summary, [other.summary for other in study.cells])
    figures = _figures(cell, launch, remote_share(launch, nodes), spin)
    return StripPanel(
        label=label(cell.cell),
        caption=f"launch {launch.id}",
        strip=Strip(
            rows=len(cpus),
            tracks=tracks,
            cores=tuple(row for row in breaks if cpus[row].core != cpus[row - 1].core),
            nodes=tuple(row for row in breaks if cpus[row].node != cpus[row - 1].node),
            says=f"CPU by time, {full_name(cell.cell)}: "
            + ", ".join(f"{figure.value} {figure.says}" for figure in figures),
        ),
        rows=_row_labels(cpus),
        nodes=_node_labels(cpus),
        times=_time_labels(end_ms),
        height_px=max(72, min(len(cpus) * 24, 320)),
        figures=figures,
    )


def _row_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    step = -(-len(cpus) // _MOST_LABELS)
    return tuple(
        Tick(at=round((row + 0.5) / len(cpus) * 100, 2), text=f"CPU {cpu.id}")
        for row, cpu in enumerate(cpus)
        if row % step == 0
    )


def _node_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label in the middle of each node, where there is more than one."""
    nodes = {cpu.node for cpu in cpus}
    if len(nodes) < 2:
        return ()
    rows = {node: [row for row, cpu in enumerate(cpus) if cpu.node == node] for node in nodes}
    return tuple(
        Tick(at=round((statistics.fmean(at) + 0.5) / len(cpus) * 100, 2), text=f"node {node}")
        for node, at in sorted(rows.items(), key=lambda pair: pair[1])
    )


def _time_labels(end_ms: int) -> tuple[Tick, ...]:
    axis = linear_axis(0.0, end_ms / 1000, most_ticks=4)
    return tuple(
        Tick(at=round(axis.share(tick) * 100, 2), text=f"{plain_tick(tick)} s")
        for tick in axis.ticks
    )


def _figures(
    cell: CellStudy, launch: Launch, remote: float | None, spin: float | None
) -> tuple[Figure, ...]:
    summary = cell.summary
    figures: list[Figure] = []
    moved, pushed, waited = migrations(launch), total(launch, "involuntary"), wait_share(launch)
    if moved is not None:
        figures.append(Figure(value=f"{moved:,}", says="migrations"))
    if pushed is not None:
        figures.append(Figure(value=f"{pushed:,}", says="involuntary switches"))
    if waited is not None:
        figures.append(Figure(value=percent(waited, 0), says="of ready time spent waiting"))
    if remote is not None:
        figures.append(Figure(value=percent(remote, 0), says="of memory on another node"))
    worker = launch.workers[0]
    if worker.threads_used is not None:
        asked = "default" if worker.threads_asked is None else f"{worker.threads_asked} asked"
        said = "thread used" if worker.threads_used == 1 else "threads used"
        figures.append(Figure(value=f"{worker.threads_used}", says=f"{said} ({asked})"))
    if summary.cpu_median_ns is not None and summary.median_ns:
        busy = summary.cpu_median_ns / summary.median_ns
        figures.append(
            Figure(
                value=duration(summary.cpu_median_ns),
                says=f"CPU time {figure_of((cell,)).each}, {ratio(busy)} its wall time",
            )
        )
    if spin is not None:
        figures.append(Figure(value=percent(spin, 0), says="of it spinning, at most"))
    return (*figures, *host_seen(launch), *counted(launch))
