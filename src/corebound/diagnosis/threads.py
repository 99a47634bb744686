"""Rules about threads: their number, the CPUs they have, and when pools were sized."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from corebound.diagnosis.evidence import (
    CellEvidence,
    Evidence,
    Finding,
    Loss,
    as_long_as,
    cpu_ratio,
    settings,
)
from corebound.units import counted, duration, percent, ratio

# The settings that change the number of threads and nothing else.
_POOLS = ("threads", "omp", "mkl", "intra_op")
# With several workers, giving each enough CPUs may also need a binding.
_SHARING = (*_POOLS, "binding", "backend", "smt")

# CPU time per iteration, relative to a cell whose threads fit, from which threads are
# considered to spin rather than compute. Several processes with default threads took 2 to 12
# times as much (ResNet-18 behind TorchServe: 171 ms against 45); noise and caches cause far
# less.
SPINNING_RATIO = 1.5
# Run-queue wait (share of ready time) from which too many threads are considered its cause,
# although no cell has fewer. Two threads on one CPU wait half of the time; on a quiet host
# threads that fit wait under 0.02.
WAITING_SHARE = 0.3


class _Harm(Struct, frozen=True, kw_only=True):
    """The observed cost of too many threads.

    Attributes:
        loss: Loss against a cell whose threads fit; None if it is not certain.
        spin: CPU time per iteration as a multiple of `beside`'s; None below SPINNING_RATIO.
        beside: The cell it is compared with; None if no cell has threads that fit.
    """

    loss: Loss | None
    spin: float | None
    beside: CellEvidence | None


def more_threads_than_cpus(one: CellEvidence, among: Evidence) -> Finding | None:
    """A worker computes with more threads than it has CPUs."""
    room, threads = _room(one), one.threads
    if room is None or threads is None or threads <= room or _is_late(one):
        return None
    if room == 1 and one.cell.threads.rule == "default":
        return None  # `one_cpu_default_threads` is more specific
    fitting = _fitting(one, among, _POOLS)
    harm = _harm(one, among, fitting, most=room)
    if harm is None:
        return None
    return _finding(
        "more-threads-than-cpus",
        one,
        harm,
        what=f"{threads} threads share {_cpus(room)}",
        fix=f"Set `threads: {room}` (outside corebound OMP_NUM_THREADS={room}), or bind to"
        " as many CPUs as there are threads.",
    )


def one_cpu_default_threads(one: CellEvidence, among: Evidence) -> Finding | None:
    """A worker runs on one CPU, but its framework still creates several threads."""
    threads = one.threads
    if _room(one) != 1 or threads is None or threads <= 1 or _is_late(one):
        return None
    if one.cell.threads.rule != "default":
        return None
    fitting = _fitting(one, among, _POOLS)
    harm = _harm(one, among, fitting, most=1)
    if harm is None:
        return None
    return _finding(
        "one-cpu-default-threads",
        one,
        harm,
        what=f"{threads} threads, which nobody asked for by name, share one CPU",
        fix="Set `threads: 1` (outside corebound OMP_NUM_THREADS=1).",
    )


def processes_with_all_threads(one: CellEvidence, among: Evidence) -> Finding | None:
    """Several processes each have as many threads as there are CPUs for all of them."""
    threads, cpus, workers = one.threads, len(one.cpus), one.cell.workers
    if workers < 2 or threads is None or threads < cpus or cpus < 2:
        return None
    fitting = _fitting(one, among, _SHARING)
    harm = _harm(one, among, fitting, most=cpus - 1)
    if harm is None:
        return None
    each = max(1, cpus // workers)
    fix = f"Set `threads: {each}` (outside corebound OMP_NUM_THREADS={each} for each process)"
    fix += f"{_apart(one)}." if workers <= cpus else "."
    passive = [
        other
        for other in among.peers(one, ("wait_policy",))
        if other.value("wait_policy") == "passive"
    ]
    if (loss := among.worst_loss(one, passive)) is not None:
        fix += (
            f" Where the threads have to stay, OMP_WAIT_POLICY=PASSIVE alone makes"
            f" it {ratio(loss.ratio)} faster: they then do not spin."
        )
    return _finding(
        "processes-with-all-threads",
        one,
        harm,
        what=f"{workers} processes have {threads} threads each, {workers * threads} on"
        f" {_cpus(cpus)}",
        fix=fix,
    )


def bound_after_start(one: CellEvidence, among: Evidence) -> Finding | None:
    """A worker was bound after its thread pool had been sized for more CPUs."""
    room, threads = _room(one), one.threads
    if room is None or threads is None or threads <= room or not _is_late(one):
        return None
    # Compare with the same configuration bound before start, whatever its number of threads.
    early = [other for other in among.peers(one, ("bind", *_POOLS)) if not _is_late(other)]
    harm = _harm(one, among, early, most=room)
    if harm is None:
        return None
    return _finding(
        "bound-after-start",
        one,
        harm,
        what=f"It was bound to {_cpus(room)} when its pool already had {threads} threads",
        fix="Bind before it starts: `bind: before-start` (outside corebound `taskset -c CPUS"
        f" command`, not `taskset -ap`), or set OMP_NUM_THREADS={room} as well.",
    )


def dispatch_threads(one: CellEvidence, among: Evidence) -> Finding | None:
    """MindSpore's pipeline threads spin on CPUs that its operators need."""
    room = _room(one)
    if one.cell.framework != "mindspore" or room is None:
        return None
    parameters = dict(one.cell.parameters)
    asked = parameters.get("dispatch_threads", 0)
    eager = parameters.get("mode") == "eager" and not parameters.get("blocking")
    crowded = isinstance(asked, int) and asked > room
    if not crowded and not eager:
        return None
    axis = "dispatch_threads" if crowded else "blocking"
    loss = among.worst_loss(one, among.peers(one, (axis,)))
    if loss is None:
        return None
    what = (
        f"{asked} dispatch threads spin on {_cpus(room)}"
        if crowded
        else "Run operator by operator, its pipeline threads spin where its operators have to run"
    )
    fix = (
        "Set `dispatch_threads: 1` (outside corebound ms.runtime.dispatch_threads_num(1)), or"
        " MS_DEV_RUNTIME_CONF=pipeline:False."
        if crowded
        else "Set `blocking: true` (outside corebound ms.runtime.launch_blocking())."
    )
    harm = _Harm(loss=loss, spin=None, beside=loss.than)
    return _finding("dispatch-threads", one, harm, what=what, fix=fix)


def _room(one: CellEvidence) -> int | None:
    """CPUs per worker; the smallest number, if workers differ."""
    placement = one.placement
    return None if placement is None else min(len(set(slot.cpus)) for slot in placement.slots)


def _apart(one: CellEvidence) -> str:
    """The binding that gives each worker its own CPUs, if there is one to recommend."""
    if one.cell.framework == "torchserve":
        return ", or `binding: launcher`"
    return "" if any(launch.served for launch in one.ok) else ", best with `binding: per-worker`"


def _is_late(one: CellEvidence) -> bool:
    return one.placement is not None and one.placement.moment == "after-start"


def _each_is(one: CellEvidence) -> str:
    """What the cell's values describe: requests for a server, else iterations."""
    return "a request" if any(launch.served for launch in one.ok) else "an iteration"


def _cpus(number: int) -> str:
    return "one CPU" if number == 1 else f"{number} CPUs"


def _fitting(one: CellEvidence, among: Evidence, axes: Collection[str]) -> tuple[CellEvidence, ...]:
    """The peers of this cell whose threads fit on their CPUs.

    With more workers than CPUs, one thread per worker is the minimum and counts as fitting.
    """
    return tuple(
        other
        for other in among.peers(one, axes)
        if other.threads is not None
        and (
            other.threads * other.cell.workers <= max(len(other.cpus), other.cell.workers)
            and other.threads <= (_room(other) or 0)
        )
    )


def _harm(
    one: CellEvidence, among: Evidence, fitting: Collection[CellEvidence], *, most: int
) -> _Harm | None:
    """The cost of a cell's threads compared with cells that fit; None if no cost was seen.

    Without such cells, use its run-queue wait, but only if the workers themselves report more
    threads than `most`: threads that were only counted might belong to something else.
    """
    if not fitting:
        waits = (one.threads_said or 0) > most and (one.wait_share or 0) >= WAITING_SHARE
        return _Harm(loss=None, spin=None, beside=None) if waits else None
    loss = among.worst_loss(one, fitting)
    beside = loss.than if loss else min(fitting, key=lambda other: other.summary.median_ns or 0)
    spun = cpu_ratio(one, beside)
    spin = spun if spun is not None and spun >= SPINNING_RATIO else None
    return _Harm(loss=loss, spin=spin, beside=beside) if loss or spin else None


def _finding(rule: str, one: CellEvidence, harm: _Harm, *, what: str, fix: str) -> Finding:
    said = what
    each = _each_is(one)
    if harm.loss is not None:
        said += f": {each} takes {as_long_as(one, harm.loss)}"
    elif harm.spin is not None and harm.beside is not None:
        said += f": {each} takes {ratio(harm.spin)} the CPU time of"
        said += f" `{settings(harm.beside.cell, one.cell)}`"
    times = harm.loss.ratio if harm.loss else 1 / (1 - min(one.wait_share or 0.0, 0.9))
    return Finding(
        rule=rule,
        tone="bad" if harm.loss else "warn",
        what=f"{said}.",
        evidence=_figures(one, harm.beside),
        fix=fix,
        cells=(one.cell,),
        times_ratio=times,
    )


def _figures(one: CellEvidence, beside: CellEvidence | None) -> tuple[str, ...]:
    """The cell's values as lines, each with the other cell's value."""

    def both(says: str, own: str | None, other: str | None) -> str | None:
        if own is None:
            return None
        return f"{says}: {own}" + (f" (beside: {other})" if other is not None else "")

    figures = (
        both("waiting for a CPU, of ready time", *_each(one, beside, _waits)),
        both("involuntary switches, median of launches", *_each(one, beside, _pushed)),
        both(f"CPU time of {_each_is(one)}", *_each(one, beside, _cpu_time)),
        both(f"wall time of {_each_is(one)}", *_each(one, beside, _wall_time)),
    )
    return tuple(figure for figure in figures if figure is not None)


def _each(
    one: CellEvidence, beside: CellEvidence | None, of: Callable[[CellEvidence], str | None]
) -> tuple[str | None, str | None]:
    return of(one), None if beside is None else of(beside)


def _waits(one: CellEvidence) -> str | None:
    return None if one.wait_share is None else percent(one.wait_share, 0)


def _pushed(one: CellEvidence) -> str | None:
    return None if one.involuntary is None else counted(one.involuntary)


def _cpu_time(one: CellEvidence) -> str | None:
    found_ns = one.summary.cpu_median_ns
    return None if found_ns is None else duration(found_ns)


def _wall_time(one: CellEvidence) -> str | None:
    found_ns = one.summary.median_ns
    return None if found_ns is None else duration(found_ns)
