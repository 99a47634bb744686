"""CPU affinity and thread activity: where threads may run, where they ran, and why they waited."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from corebound.analysis.launch_metrics import (
    counter_facts,
    cpu_of,
    host_facts,
    median_of,
    migration_facts,
    migrations,
)
from corebound.analysis.scenario_result import CellResult, ScenarioResult, typical_launch
from corebound.analysis.server_workers import WorkerActivity, worker_activity, worker_stays
from corebound.analysis.wording import Fact, binding_name, capital, count, full_name
from corebound.diagnosis.evidence import remote_share, spin_share, threads_of, total, wait_share
from corebound.machine.topology import Cpu, CpuId, cpu_list
from corebound.planning.models import Placement
from corebound.records.launch_record import Launch, Stay
from corebound.records.telemetry import sum_known
from corebound.records.thread_use import proof
from corebound.report.charts.axis import Tick, horizontal_ticks, linear_axis, plain_tick
from corebound.report.charts.strips import CpuStay, ThreadStrip, ThreadTrack
from corebound.report.scenario.launches import TypicalLaunch
from corebound.scenario.cell import Cell
from corebound.units import percent

# With more rows than this, not every row has room for a label.
_MAX_LABELS = 16


def _cpu_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label for each row, or for every n-th row if there are many."""
    step = -(-len(cpus) // _MAX_LABELS)
    return tuple(
        Tick(at=round((row + 0.5) / len(cpus) * 100, 2), text=f"CPU {cpu.id}")
        for row, cpu in enumerate(cpus)
        if row % step == 0
    )


def _node_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label in the middle of each node, if there are several."""
    nodes = {cpu.node for cpu in cpus}
    if len(nodes) < 2:
        return ()
    rows = {node: [row for row, cpu in enumerate(cpus) if cpu.node == node] for node in nodes}
    return tuple(
        Tick(
            at=round((statistics.fmean(node_rows) + 0.5) / len(cpus) * 100, 2), text=f"node {node}"
        )
        for node, node_rows in sorted(rows.items(), key=lambda pair: pair[1])
    )


def cpu_shares(
    tracks: Sequence[tuple[str, Sequence[Stay]]],
) -> tuple[tuple[str, str], ...]:
    """The strip as a table: for each thread the CPUs it was seen on, the most time first.

    Args:
        tracks: (name, CPUs over time) of each thread.

    Returns:
        (name, CPUs with their share of the time in which the thread was seen) of each.
    """
    rows = []
    for name, stays in tracks:
        by_cpu_ms: dict[int, int] = {}
        for stay in stays:
            if stay.to_ms > max(stay.from_ms, 0):
                by_cpu_ms[stay.cpu] = by_cpu_ms.get(stay.cpu, 0) + stay.to_ms - max(stay.from_ms, 0)
        total_ms = sum(by_cpu_ms.values())
        ranked = sorted(by_cpu_ms.items(), key=lambda pair: (-pair[1], pair[0]))
        rows.append(
            (name, ", ".join(f"CPU {cpu} {percent(ms / total_ms, 0)}" for cpu, ms in ranked))
        )
    return tuple(rows)


def _unmoved_text(rows: Sequence[tuple[str, str]], noun: str) -> str:
    """Summarise the result of `cpu_shares`: `3 of 4 threads stayed on one CPU`."""
    active = [cpus for _, cpus in rows if cpus]
    unmoved = sum("," not in cpus for cpus in active)
    return f"{unmoved} of {count(len(active), noun)} stayed on one CPU"


# More colours are not distinguishable; the busiest threads get them.
_COLOURS = 8
# With fewer samples a strip shows single moments, not where a thread stayed.
_MIN_SAMPLES = 5


class StripPanel(Struct, frozen=True, kw_only=True):
    """CPU × time of one launch, with its values.

    Attributes:
        rows, nodes, times: The labels of the strip.
        values: Of the launch.
        workers: Of the workers of a server's configuration; None for any other.
        cpu_shares: The same as a table.
    """

    cell: Cell
    caption: str
    strip: ThreadStrip
    rows: tuple[Tick, ...]
    nodes: tuple[Tick, ...]
    times: tuple[Tick, ...]
    values: tuple[Fact, ...]
    workers: WorkerActivity | None
    cpu_shares: tuple[tuple[str, str], ...]


class ThreadActivity(Struct, frozen=True, kw_only=True):
    """Where the threads ran.

    Attributes:
        noun: What they are: `thread` or `worker`.
        key: (number of its colour, name) of each.
        host_and_counters: Values of the host and hardware counters for each panel's launch.
    """

    noun: str
    lead: str
    key: tuple[tuple[int, str], ...]
    panels: tuple[StripPanel, ...]
    host_and_counters: Mapping[str, tuple[str, ...]]


def thread_activity(
    result: ScenarioResult, shown: Sequence[TypicalLaunch]
) -> ThreadActivity | None:
    """CPU × time of the shown launches; None if no thread of them was seen on a CPU."""
    cells = [(typical.cell, typical.launch) for typical in shown if _subjects(typical.launch)]
    rows = _used_cpus(result, [launch for _, launch in cells])
    if not rows:
        return None
    tracks = max(len(_subjects(launch)) for _, launch in cells)
    noun = "thread" if cells[0][1].served is None else "worker"
    key = [(index, f"{noun} {index}") for index in range(min(tracks, _COLOURS))]
    if tracks > _COLOURS:
        key.append((_COLOURS, f"other {noun}s"))
    return ThreadActivity(
        noun=noun,
        lead=_activity_lead([cell for cell, _ in cells], result, f"{noun}s"),
        key=tuple(key),
        panels=tuple(_strip_panel(result, cell, launch, rows) for cell, launch in cells),
        host_and_counters=_side_by_side([_host_and_counters(launch) for _, launch in cells]),
    )


# The name of a thread of a launch or of a server's worker, where it was seen, and its CPU time.
_Subject = tuple[str, Sequence[Stay], int | None]


def _subjects(launch: Launch) -> list[_Subject]:
    """Those that ran after timing began: threads, the busiest first, or a server's workers."""
    if launch.served is not None:
        return [
            (f"worker {worker.slot}", stays, sum_known(thread.run_ns for thread in worker.threads))
            for worker in launch.workers
            if (stays := worker_stays(worker))
        ]
    threads = (thread for worker in launch.workers for thread in worker.threads)
    seen = [thread for thread in threads if any(stay.to_ms > 0 for stay in thread.stays)]
    busiest = sorted(seen, key=lambda thread: (-(thread.run_ns or 0), thread.tid))
    return [
        (f"thread {index}: {thread.name}", thread.stays, thread.run_ns)
        for index, thread in enumerate(busiest)
    ]


def _share(stays: Sequence[Stay], run_ns: int | None) -> float:
    """CPU time as a share of the time of the stays; 1 if it is unknown."""
    seen_ms = sum(stay.to_ms - max(stay.from_ms, 0) for stay in stays if stay.to_ms > 0)
    return 1.0 if run_ns is None else run_ns / (seen_ms * 1e6)


def _activity_lead(cells: Sequence[CellResult], result: ScenarioResult, noun: str) -> str:
    """The lead; it names a cause only if the records show it and a cell is clearly faster."""
    shown = f"Where the {noun} ran, in the launch nearest to each configuration's median."
    winner = result.winner
    if winner is None or len(cells) < 2:
        return shown
    baseline, winning = winner.baseline, winner.cell
    name = binding_name(baseline.cell)
    moves, winner_moves = median_of(baseline, migrations), median_of(winning, migrations)
    if moves is not None and winner_moves is not None and moves >= max(10, 3 * winner_moves):
        return f"{capital(name)} threads keep moving."
    waiting, winner_waiting = (
        wait_share(typical[0]) if (typical := typical_launch(cell)) else None
        for cell in (baseline, winning)
    )
    if waiting is not None and winner_waiting is not None and waiting - winner_waiting >= 0.1:
        return f"{capital(name)} threads wait for a CPU."
    return shown


def _seen_text(launch: Launch, threads: int) -> str:
    """The samples and threads of a launch, and how many threads the diagnosis counts."""
    text = count(launch.looks, "sample")
    if launch.looks < _MIN_SAMPLES:
        # With only a few, neither moves nor their absence can be seen.
        text += ": too short to detect migrations"
    pools = [number for worker in launch.workers if (number := threads_of(worker)) is not None]
    if launch.served is not None or sum(pools) in {0, threads}:
        return text
    return f"{text}, {count(threads, 'thread')} seen, {count(sum(pools), 'compute thread')}"


def _used_cpus(result: ScenarioResult, launches: Sequence[Launch]) -> tuple[Cpu, ...]:
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
    cpus = [cpu for cpu in result.run.host.topology.cpus if cpu.id in numbers]
    return tuple(
        sorted(cpus, key=lambda cpu: (-1 if cpu.node is None else cpu.node, cpu.core, cpu.id))
    )


def _strip_panel(
    result: ScenarioResult, cell: CellResult, launch: Launch, cpus: Sequence[Cpu]
) -> StripPanel:
    subjects = _subjects(launch)
    end_ms = max(stay.to_ms for _, stays, _ in subjects for stay in stays)
    row_of = {cpu.id: row for row, cpu in enumerate(cpus)}
    tracks = tuple(
        ThreadTrack(
            colour=min(index, _COLOURS),
            name=name if index < _COLOURS else f"{len(subjects) - _COLOURS:,} others",
            share=_share(stays, run_ns),
            stretches=tuple(
                CpuStay(
                    row=row_of[stay.cpu],
                    begin=max(stay.from_ms, 0) / end_ms,
                    end=stay.to_ms / end_ms,
                )
                for stay in stays
                if stay.to_ms > 0 and stay.cpu in row_of
            ),
        )
        for index, (name, stays, run_ns) in enumerate(subjects)
    )
    shares = cpu_shares([(name, stays) for name, stays, _ in subjects])
    breaks = range(1, len(cpus))
    return StripPanel(
        cell=cell.cell,
        caption=f"launch {launch.id}, {_seen_text(launch, len(subjects))}",
        strip=ThreadStrip(
            rows=len(cpus),
            tracks=tracks,
            cores=tuple(row for row in breaks if cpus[row].core != cpus[row - 1].core),
            nodes=tuple(row for row in breaks if cpus[row].node != cpus[row - 1].node),
            alt_text=f"CPU by time, {full_name(cell.cell)}: "
            + _unmoved_text(shares, "thread" if launch.served is None else "worker"),
        ),
        rows=_cpu_labels(cpus),
        nodes=_node_labels(cpus),
        times=horizontal_ticks(
            linear_axis(0.0, end_ms / 1000, most_ticks=4), lambda tick: f"{plain_tick(tick)} s"
        ),
        values=tuple(_panel_values(result, cell, launch)),
        workers=worker_activity(cell, result.run.host) if launch.served else None,
        cpu_shares=shares,
    )


def _panel_values(result: ScenarioResult, cell: CellResult, launch: Launch) -> Iterator[Fact]:
    topology = result.run.host.topology
    if (moves := migrations(launch)) is not None:
        yield Fact(value=f"{moves:,}", says="migrations in this launch")
    yield from migration_facts(launch, topology)
    if (involuntary := total(launch, "involuntary")) is not None:
        yield Fact(value=f"{involuntary:,}", says="involuntary switches in this launch")
    if (waiting := wait_share(launch)) is not None:
        yield Fact(value=percent(waiting, 0), says="run-queue wait")
    remote = remote_share(launch, {cpu.id: cpu.node for cpu in topology.cpus})
    if launch.served is None and remote is not None:
        yield Fact(value=percent(remote, 0), says="of memory on another node")
    worker = launch.workers[0]
    if worker.threads_used is not None or worker.threads_asked is not None:
        text = "thread reported" if worker.threads_used == 1 else "threads reported"
        asked = worker.threads_asked
        requested = "default" if asked is None else f"{asked} requested, {proof(launch, worker)}"
        used = "–" if worker.threads_used is None else f"{worker.threads_used}"
        yield Fact(value=used, says=f"{text} ({requested})")
    yield from cpu_of(cell)
    spin = spin_share(cell.summary, [other.summary for other in result.cells])
    if spin is not None:
        yield Fact(value=f"≤ {percent(spin, 0)}", says="of CPU time spent spinning")


def _host_and_counters(launch: Launch) -> tuple[Fact, ...]:
    """Host values and hardware counters of a launch; those of a server are counted per worker."""
    return (*host_facts(launch), *(counter_facts(launch) if launch.served is None else ()))


def _side_by_side(launches: Sequence[Sequence[Fact]]) -> dict[str, tuple[str, ...]]:
    """For each value, in order of appearance, that of each launch; a dash if it has none."""
    by_name = [{value.says: value.value for value in values} for values in launches]
    names = dict.fromkeys(value.says for values in launches for value in values)
    return {name: tuple(values.get(name, "–") for values in by_name) for name in names}


def placed_cells(result: ScenarioResult) -> tuple[CellResult, ...]:
    """The best alternative and its baseline, as far as their placement was recorded."""
    best = result.leader
    cells = [best.cell, best.baseline] if best else [result.baseline]
    return tuple(cell for cell in cells if cell is not None and cell.placement is not None)


def affinity_cpus(placement: Placement) -> frozenset[CpuId]:
    """The CPUs that the threads of a configuration may use."""
    return frozenset(cpu for slot in placement.slots for cpu in slot.cpus)


def affinity_text(placement: Placement) -> str:
    """The CPUs of a configuration, per worker, and its threads."""
    workers = f", {count(len(placement.slots), 'worker')}" if len(placement.slots) > 1 else ""
    threads = "" if placement.threads is None else f", {count(placement.threads, 'thread')} each"
    return f"CPUs {_slots_text(placement)}{workers}{threads}"


def cpus_text(placement: Placement) -> str:
    """The CPUs of a configuration, per worker, and what is to be known of them."""
    notes = f". {' '.join(placement.notes)}" if placement.notes else ""
    return f"{_slots_text(placement)}{notes}"


def _slots_text(placement: Placement) -> str:
    return "; ".join(dict.fromkeys(cpu_list(slot.cpus) for slot in placement.slots))
