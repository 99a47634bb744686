"""Verifies a launch's CPU binding, thread counts and environment; describes each violation."""

from collections.abc import Iterator, Sequence

from corebound.machine.topology import CpuId, cpu_list
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import ThreadEvidence, Worker
from corebound.records.telemetry import Pauses, QuotaUse
from corebound.records.thread_use import contradictions
from corebound.scenario.runtimes import Framework
from corebound.units import cpu_quota, duration
from corebound.worker import protocol

Allowed = tuple[tuple[CpuId, ...], ...]


def binding_violations(
    placement: Placement,
    commands: Sequence[Command],
    workers: Sequence[Worker],
    of_commands: Sequence[Allowed],
    pauses: Pauses | None = None,
    *,
    wait: Pauses | None = None,
    framework: Framework = "none",
    inter_op: int | None = None,
    elapsed_ns: int = 0,
) -> tuple[str, ...]:
    """Every way in which a launch deviated from its request; empty if there is none.

    Args:
        placement: The requested placement, one slot per worker.
        commands: The command that started each worker.
        of_commands: For each worker, the CPU affinity sets observed for the external command
            it timed; empty if it timed none.
        pauses: How it was paused while others ran; None if it did not alternate.
        wait: How it was paused until its turn; None if it started by itself.
        inter_op: The inter-op threads that each worker was asked for; None: the default.
        elapsed_ns: For how long its threads were observed, as from `thread_use.timed_ns`. 0: the
            number of its busy threads is not judged.
    """
    of_workers = (
        fault
        for worker, command, allowed in zip(workers, commands, of_commands, strict=True)
        for fault in (
            *_off_slot(placement, worker, allowed),
            *contradictions(worker, elapsed_ns, framework=framework, inter_op=inter_op),
            *_wrong_environment(command, worker),
        )
    )
    return (
        *of_workers,
        *(fault for pause in (pauses, wait) if pause for fault in _not_paused(pause)),
    )


# A quota is a limit over many periods. Over a shorter time a launch may use up to one period's
# quota beyond it, and each CPU a slice that it was handed before (5 ms by default).
_QUOTA_TOLERANCE = 0.05
_SLICE_NS = 5_000_000
# With this many periods' worth of CPU time, the cgroup must have counted a period.
_LEAST_PERIODS = 3


def quota_violations(
    requested: float | None, use: QuotaUse | None, *, ran_ns: int | None, timed_ns: int, cpus: int
) -> Iterator[str]:
    """Every sign that a launch's CPU quota was not in force; none if the cell sets no quota.

    Args:
        requested: The quota that was set, in CPUs; None if the cell sets none.
        use: The quota that was read back from the cgroups of the workers.
        ran_ns: CPU time of the launch's processes while they were timed, if known.
        timed_ns: For how long they were timed.
        cpus: How many CPUs the launch was given.

    Source: Linux, Documentation/scheduler/sched-bwc.rst.
    """
    if requested is None:
        return
    quota = cpu_quota(requested)
    if use is None:
        yield f"a CPU quota of {quota} was set, but a worker had none"
        return
    # The kernel stores whole microseconds.
    if abs(use.cpus - requested) * use.period_us > 1:
        yield f"a CPU quota of {quota} was set, but the workers had {cpu_quota(use.cpus)}"
    period_ns = use.period_us * 1000
    most_ns = requested * (timed_ns * (1 + _QUOTA_TOLERANCE) + period_ns) + cpus * _SLICE_NS
    if ran_ns is not None and ran_ns > most_ns:
        yield (
            f"the launch used {duration(ran_ns)} of CPU time in {duration(timed_ns)}, more than a"
            f" CPU quota of {quota} allows"
        )
    if use.periods == 0 and (ran_ns or 0) > _LEAST_PERIODS * period_ns:
        yield f"the cgroup with the CPU quota of {quota} counted no period"


def _not_paused(pauses: Pauses) -> Iterator[str]:
    if not pauses.were_quiet:
        yield (
            f"the launch used {duration(pauses.cpu_ns)} of CPU time while it was paused for"
            f" {duration(pauses.duration_ns)} (measure.alternate: never runs it alone)"
        )


def _off_slot(placement: Placement, worker: Worker, of_command: Allowed) -> Iterator[str]:
    if not placement.bound:
        return
    cpus = placement.slots[worker.slot].cpus
    # OMP_PLACES and some frameworks bind each thread to a part of the slot; otherwise each thread
    # is allowed the whole slot.
    parts_allowed = placement.backend == "openmp" or worker.pins_threads
    affinities = [(_thread_name(thread), thread.allowed) for thread in worker.threads]
    for name, sets in (*affinities, ("the command", of_command)):
        for allowed in sets:
            if set(allowed) != set(cpus) and not (parts_allowed and set(allowed) < set(cpus)):
                yield (
                    f"{name} was allowed CPUs {cpu_list(allowed)}, but its slot is {cpu_list(cpus)}"
                )
    for thread in worker.threads:
        if outside := {stay.cpu for stay in thread.stays} - set(cpus):
            yield f"{_thread_name(thread)} was seen on CPUs {cpu_list(outside)}, outside its slot"


def _thread_name(thread: ThreadEvidence) -> str:
    return f"thread {thread.tid} ({thread.name})"


def _wrong_environment(command: Command, worker: Worker) -> Iterator[str]:
    for name, value in command.env:
        actual = worker.environment.get(name)
        if name.startswith(protocol.STEERING) and actual != value:
            yield f"{name}={value} was set, but the worker has {actual or 'none'}"
