"""Verifies a launch's CPU binding, thread counts and environment; describes each violation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corebound.machine.topology import CpuId, cpu_list
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import ThreadEvidence, Worker
from corebound.records.telemetry import sum_known
from corebound.units import duration
from corebound.worker import protocol

Allowed = tuple[tuple[CpuId, ...], ...]

# CPU time a worker may use between its time slices, as a share of what it uses within them.
# Handing over takes about 0.1 ms, and a time slice lasts at least 1 ms.
_MOST_BETWEEN = 0.5
# An additional allowance for the messages it sends at the end.
_HANDING_OVER_NS = 20_000_000


def binding_violations(
    placement: Placement,
    commands: Sequence[Command],
    workers: Sequence[Worker],
    of_commands: Sequence[Allowed],
) -> tuple[str, ...]:
    """Every way in which a launch deviated from its request; empty if there is none.

    Args:
        placement: The requested placement, one slot per worker.
        commands: The command that started each worker.
        workers: The observations of each worker.
        of_commands: For each worker, the CPU affinity sets observed for the external command
            it timed; empty if it timed none.
    """
    return tuple(
        fault
        for worker, command, allowed in zip(workers, commands, of_commands, strict=True)
        for fault in (
            *_off_slot(placement, worker, allowed),
            *_wrong_thread_count(worker),
            *_wrong_environment(command, worker),
            *_between_time_slices(worker),
        )
    )


def _between_time_slices(worker: Worker) -> Iterator[str]:
    """For a worker that alternates: excess CPU time used outside its own time slices."""
    ran_ns = sum_known(thread.run_ns for thread in worker.threads)
    if not worker.time_slices or ran_ns is None:
        return
    within_ns = sum(worker.cpu_ns[1:])
    between_ns = ran_ns - within_ns
    if between_ns > _MOST_BETWEEN * within_ns + _HANDING_OVER_NS:
        yield (
            f"it used {duration(between_ns)} of CPU time between its stints,"
            f" {duration(within_ns)} within (measure.alternate: never keeps them apart)"
        )


def _off_slot(placement: Placement, worker: Worker, of_command: Allowed) -> Iterator[str]:
    if not placement.bound:
        return
    cpus = placement.slots[worker.slot].cpus
    # OMP_PLACES binds each thread to a part of the slot; other backends allow the whole slot.
    parts_allowed = placement.backend == "openmp"
    affinities = [(_thread_name(thread), thread.allowed) for thread in worker.threads]
    for name, sets in (*affinities, ("the command", of_command)):
        for allowed in sets:
            if set(allowed) != set(cpus) and not (parts_allowed and set(allowed) < set(cpus)):
                yield f"{name} was allowed CPUs {cpu_list(allowed)}, its slot is {cpu_list(cpus)}"
    for thread in worker.threads:
        if outside := {stay.cpu for stay in thread.stays} - set(cpus):
            yield f"{_thread_name(thread)} was seen on CPUs {cpu_list(outside)}, off its slot"


def _thread_name(thread: ThreadEvidence) -> str:
    return f"thread {thread.tid} ({thread.name})"


def _wrong_thread_count(worker: Worker) -> Iterator[str]:
    requested, used = worker.threads_asked, worker.threads_used
    if requested is not None and used is not None and requested != used:
        yield f"{requested} threads were requested, the framework uses {used}"


def _wrong_environment(command: Command, worker: Worker) -> Iterator[str]:
    for name, value in command.env:
        actual = worker.environment.get(name)
        if name.startswith(protocol.STEERING) and actual != value:
            yield f"{name}={value} was set, the worker got {actual or 'none'}"
