"""What stands around a CPU × time strip: its rows, its nodes, its times."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from corebound.model.record import Stay
from corebound.model.topology import Cpu
from corebound.report.charts.axis import linear_axis, plain_tick
from corebound.report.view.page import Tick
from corebound.report.view.ticks import along
from corebound.report.view.words import count
from corebound.units import percent

# Rows below this height cannot carry a label each.
_MOST_LABELS = 16


def row_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label for each row, or for every so manieth."""
    step = -(-len(cpus) // _MOST_LABELS)
    return tuple(
        Tick(at=round((row + 0.5) / len(cpus) * 100, 2), text=f"CPU {cpu.id}")
        for row, cpu in enumerate(cpus)
        if row % step == 0
    )


def node_labels(cpus: Sequence[Cpu]) -> tuple[Tick, ...]:
    """A label in the middle of each node, where there is more than one."""
    nodes = {cpu.node for cpu in cpus}
    if len(nodes) < 2:
        return ()
    rows = {node: [row for row, cpu in enumerate(cpus) if cpu.node == node] for node in nodes}
    return tuple(
        Tick(at=round((statistics.fmean(at) + 0.5) / len(cpus) * 100, 2), text=f"node {node}")
        for node, at in sorted(rows.items(), key=lambda pair: pair[1])
    )


def time_labels(end_ms: int) -> tuple[Tick, ...]:
    """Times from the start of the measurement."""
    axis = linear_axis(0.0, end_ms / 1000, most_ticks=4)
    return along(axis, lambda tick: f"{plain_tick(tick)} s")


def spent(
    tracks: Sequence[tuple[str, Sequence[Stay]]],
) -> tuple[tuple[str, str], ...]:
    """The strip as a table: for each thread the CPUs it was seen on, the most time first.

    Args:
        tracks: (name, where it was when) of each.

    Returns:
        (name, CPUs with their share of the time that it was seen at all) of each.
    """
    rows = []
    for name, stays in tracks:
        on_ms: dict[int, int] = {}
        for stay in stays:
            if stay.to_ms > max(stay.from_ms, 0):
                on_ms[stay.cpu] = on_ms.get(stay.cpu, 0) + stay.to_ms - max(stay.from_ms, 0)
        whole_ms = sum(on_ms.values())
        ranked = sorted(on_ms.items(), key=lambda pair: (-pair[1], pair[0]))
        rows.append(
            (name, ", ".join(f"CPU {cpu} {percent(ms / whole_ms, 0)}" for cpu, ms in ranked))
        )
    return tuple(rows)


def stayed(rows: Sequence[tuple[str, str]], noun: str) -> str:
    """What a strip shows, in a sentence: `3 of 4 threads stayed on one CPU`.

    Args:
        rows: What was `spent` in it.
        noun: What one of them is.
    """
    seen = [where for _, where in rows if where]
    still = sum("," not in where for where in seen)
    return f"{still} of {count(len(seen), noun)} stayed on one CPU"
