"""Verifies a launch's CPU binding, thread counts and environment; describes each violation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corebound.machine.topology import CpuId, cpu_list
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import ThreadEvidence, Worker
from corebound.records.telemetry import Pauses
from corebound.units import duration
from corebound.worker import protocol

Allowed = tuple[tuple[CpuId, ...], ...]


def binding_violations(
    placement: Placement,
    commands: Sequence[Command],
    workers: Sequence[Worker],
    of_commands: Sequence[Allowed],
    pauses: Pauses | None = None,
) -> tuple[str, ...]:
    """Every way in which a launch deviated from its request; empty if there is none.

    Args:
        placement: The requested placement, one slot per worker.
        commands: The command that started each worker.
        workers: The observations of each worker.
        of_commands: For each worker, the CPU affinity sets observed for the external command
            it timed; empty if it timed none.
        pauses: How it was paused while others ran; None if it did not alternate.
    """
    of_workers = (
        fault
        for worker, command, allowed in zip(workers, commands, of_commands, strict=True)
        for fault in (
            *_off_slot(placement, worker, allowed),
            *_wrong_thread_count(worker),
            *_wrong_environment(command, worker),
        )
    )
    return (*of_workers, *(_not_paused(pauses) if pauses is not None else ()))


def _not_paused(pauses: Pauses) -> Iterator[str]:
    if not pauses.were_quiet:
        yield (
            f"it used {duration(pauses.cpu_ns)} of CPU time in the {duration(pauses.duration_ns)}"
            " for which it was paused (measure.alternate: never runs it alone)"
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
