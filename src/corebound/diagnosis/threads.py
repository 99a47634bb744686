"""Rules about threads: their number, the CPUs they have, and when pools were sized."""

from collections.abc import Callable, Collection

from msgspec import Struct

from corebound.diagnosis.evidence import (
    POOLS,
    CellEvidence,
    Evidence,
    Finding,
    Loss,
    settings,
    slower_than,
)
from corebound.diagnosis.subject import Subject
from corebound.planning.placement import threads_within_quota
from corebound.units import counted, duration, percent, ratio

# With several workers, giving each enough CPUs may also need a binding.
_SHARING = (*POOLS, "binding", "backend", "smt")

# CPU time per iteration, relative to a cell whose threads fit, from which threads are
# considered to spin rather than compute. Several processes with default threads took 2 to 12
# times as much (ResNet-18 behind TorchServe: 171 ms against 45); noise and caches cause far
# less.
SPINNING_RATIO = 1.5
# Run-queue wait (share of ready time) from which too many threads are considered its cause,
# although no cell has fewer. Two threads on one CPU wait half of the time; on a quiet host
# threads that fit wait under 0.02.
WAITING_SHARE = 0.3


class _Cost(Struct, frozen=True, kw_only=True):
    """The observed cost of too many threads.

    Attributes:
        loss: Loss against a cell whose threads fit; None if it is not certain.
        spin: CPU time per iteration as a multiple of `compared`'s; None below SPINNING_RATIO.
        compared: The cell it is compared with; None if no cell has threads that fit.
    """

    loss: Loss | None
    spin: float | None
    compared: CellEvidence | None


def more_threads_than_cpus(cell: Subject, evidence: Evidence) -> Finding | None:
    """A worker computes with more threads than it has CPUs."""
    room, threads = cell.room, cell.threads
    if room is None or threads is None or threads <= room or cell.is_late:
        return None
    if room == 1 and (cell.has_default_threads or cell.is_pinned):
        return None  # another rule is more specific
    usual, workers = cell.pooled
    if workers > 1 and threads < 2 * (usual or 0) and 1 < len(cell.cpus) <= room:
        return None  # so is `processes_with_all_threads`, whose number is for all of them
    fitting = _fitting(cell, evidence, POOLS)
    cost = _cost(cell, evidence, fitting, room=room)
    if cost is None:
        return None
    quota = cell.runnable_cpus
    best = threads_within_quota(quota, cpus=room)
    allows = "" if quota is None or quota >= room else f", of which its quota allows {quota:g}"
    setting, line = cell.thread_setting(f"`threads: {best}`", best)
    return _finding(
        "more-threads-than-cpus",
        cell,
        cost,
        what=f"{threads} threads share {_cpus(room)}{allows}",
        fix=f"Set {setting}, or bind to as many CPUs as there are threads.",
        line=line,
    )


def one_cpu_default_threads(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """A worker runs on one CPU, but its framework still creates several threads."""
    threads = cell.threads
    if cell.room != 1 or threads is None or threads <= 1 or cell.is_late:
        return None
    if not cell.has_default_threads:
        return None
    fitting = _fitting(cell, evidence, POOLS)
    cost = _cost(cell, evidence, fitting, room=1)
    if cost is None:
        return None
    return _finding(
        "one-cpu-default-threads",
        cell,
        cost,
        what=f"The framework starts {threads} threads by default, on one CPU",
        fix=f"Set {cell.setting('`threads: 1`', 'OMP_NUM_THREADS=1')}.",
        line="OMP_NUM_THREADS=1",
    )


def processes_with_all_threads(cell: Subject, evidence: Evidence) -> Finding | None:
    """Several processes together have more threads than CPUs, though each alone may fit."""
    (threads, workers), cpus = cell.pooled, len(cell.cpus)
    if workers < 2 or threads is None or threads < 2 or threads * workers <= cpus or cpus < 2:
        return None
    if threads > (cell.room or 0) and (cell.room or 0) < cpus:
        return None  # `more_threads_than_cpus` is more specific
    fitting = _fitting(cell, evidence, _SHARING)
    threads_each = threads_within_quota(cell.runnable_cpus or cpus, cpus=cpus, workers=workers)
    cost = _cost(cell, evidence, fitting, room=threads_each)
    if cost is None:
        return None
    setting, line = cell.thread_setting(
        f"`threads: {threads_each}`", threads_each, " for each process"
    )
    fix = f"Set {setting}"
    fix += f"{cell.binding_advice()}." if workers <= cpus else "."
    passive = [
        other
        for other in evidence.peers(cell, ("wait_policy",))
        if other.value("wait_policy") == "passive"
    ]
    if (loss := evidence.worst_loss(cell, passive)) is not None:
        fix += (
            " If the threads must stay, OMP_WAIT_POLICY=PASSIVE alone makes it"
            f" {ratio(loss.ratio)} faster, because idle threads then do not spin."
        )
    return _finding(
        "processes-with-all-threads",
        cell,
        cost,
        what=f"{workers} processes with {threads} threads each ({workers * threads} in total)"
        f" share {_cpus(cpus)}",
        fix=fix,
        line=line,
    )


def bound_after_start(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """A worker was bound after its thread pool had been sized for more CPUs."""
    room, threads = cell.room, cell.threads
    if room is None or threads is None or threads <= room or not cell.is_late:
        return None
    # Compare with the same configuration bound before start, whatever its number of threads.
    bound_before = [other for other in evidence.peers(cell, ("bind", *POOLS)) if not other.is_late]
    cost = _cost(cell, evidence, bound_before, room=room)
    if cost is None:
        return None
    return _finding(
        "bound-after-start",
        cell,
        cost,
        what=f"The worker was bound to {_cpus(room)} after its pool had started {threads} threads",
        fix="Bind before the start: `bind: before-start` (outside corebound: `taskset -c CPUS"
        f" command`, not `taskset -ap`), or also set OMP_NUM_THREADS={room}.",
    )


def dispatch_threads(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """MindSpore's pipeline threads spin on CPUs that its operators need."""
    room = cell.room
    if cell.cell.runtime.inter_op != "pipelines" or room is None:
        return None
    parameters = dict(cell.cell.parameters)
    requested = parameters.get("dispatch_threads", 0)
    is_eager = parameters.get("mode") == "eager" and not parameters.get("blocking")
    is_crowded = isinstance(requested, int) and requested > room
    if not is_crowded and not is_eager:
        return None
    axis = "dispatch_threads" if is_crowded else "blocking"
    loss = evidence.worst_loss(cell, evidence.peers(cell, (axis,)))
    if loss is None:
        return None
    what = (
        f"{requested} dispatch threads spin on {_cpus(room)}"
        if is_crowded
        else "In eager mode, pipeline threads spin on the CPUs that the operators need"
    )
    fix = (
        "Set `dispatch_threads: 1` (outside corebound: ms.runtime.dispatch_threads_num(1)), or"
        " MS_DEV_RUNTIME_CONF=pipeline:False."
        if is_crowded
        else "Set `blocking: true` (outside corebound: ms.runtime.launch_blocking())."
    )
    cost = _Cost(loss=loss, spin=None, compared=loss.than)
    return _finding("dispatch-threads", cell, cost, what=what, fix=fix)


def _cpus(number: int) -> str:
    return "one CPU" if number == 1 else f"{number} CPUs"


def _fitting(cell: Subject, evidence: Evidence, axes: Collection[str]) -> tuple[CellEvidence, ...]:
    """The peers of this cell whose threads fit on their CPUs.

    With more workers than CPUs, one thread per worker is the minimum and counts as fitting.
    """
    return tuple(
        other
        for other in evidence.peers(cell, axes)
        if other.threads is not None
        and (
            other.threads * other.workers <= max(len(other.cpus), other.workers)
            and other.threads <= (other.room or 0)
        )
    )


def _cost(
    cell: Subject, evidence: Evidence, fitting: Collection[CellEvidence], *, room: int
) -> _Cost | None:
    """The cost of a cell's threads compared with cells that fit; None if no cost was seen.

    Without such cells, use its run-queue wait, but only if the workers themselves report more
    threads than `room`: threads that were only counted might belong to something else.
    """
    if not fitting:
        is_waiting = (cell.reported_threads or 0) > room and (cell.wait_share or 0) >= WAITING_SHARE
        return _Cost(loss=None, spin=None, compared=None) if is_waiting else None
    loss = evidence.worst_loss(cell, fitting)
    compared = loss.than if loss else min(fitting, key=lambda other: other.summary.median_ns or 0)
    times = _cpu_ratio(cell, compared)
    spin = times if times is not None and times >= SPINNING_RATIO else None
    return _Cost(loss=loss, spin=spin, compared=compared) if loss or spin else None


def _finding(
    rule: str, cell: Subject, cost: _Cost, *, what: str, fix: str, line: str = ""
) -> Finding:
    sentence = what
    unit = f"a{'n' if cell.unit == 'iteration' else ''} {cell.unit}"
    if cost.loss is not None:
        sentence += f": {unit} is {slower_than(cell, cost.loss)}"
    elif cost.spin is not None and cost.compared is not None:
        sentence += f": {unit} uses {ratio(cost.spin)} the CPU time of"
        sentence += f" `{settings(cost.compared, cell)}`"
    return cell.finding(
        rule=rule,
        loss=cost.loss,
        what=f"{sentence}.",
        evidence=_evidence(cell, cost.compared),
        fix=fix,
        line=line,
        times_ratio=1 / (1 - min(cell.wait_share or 0.0, 0.9)),
    )


def _evidence(cell: Subject, compared: CellEvidence | None) -> tuple[str, ...]:
    """The cell's values as lines, each with the compared cell's value."""
    measures: tuple[tuple[str, Callable[[Subject], str | None], str], ...] = (
        ("run-queue wait", _run_queue_wait, " of ready time"),
        ("preemptions", _involuntary_switches, f" {cell.over}"),
        (f"CPU time per {cell.unit}", lambda other: _duration(other.cpu_time_ns), ""),
        (f"time per {cell.unit}", lambda other: _duration(other.wall_time_ns), ""),
    )
    lines = []
    for label, measure, unit in measures:
        if (own := measure(cell)) is None:
            continue
        line = f"{label}: {own}{unit}"
        if compared is not None and (other := measure(compared)) is not None:
            line += f" ({other} with `{settings(compared, cell)}`)"
        lines.append(line)
    return tuple(lines)


def _run_queue_wait(cell: Subject) -> str | None:
    return None if cell.wait_share is None else percent(cell.wait_share, 0)


def _involuntary_switches(cell: Subject) -> str | None:
    return None if cell.involuntary is None else counted(cell.involuntary)


def _duration(duration_ns: float | None) -> str | None:
    return None if duration_ns is None else duration(duration_ns)


def _cpu_ratio(cell: Subject, other: Subject) -> float | None:
    """CPU time of an iteration as a multiple of another cell's; None if unknown."""
    own_ns, other_ns = cell.cpu_time_ns, other.cpu_time_ns
    return own_ns / other_ns if own_ns is not None and other_ns else None
