"""Verifies a server launch: its workers' threads, CPUs and environment, and the generator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from corebound.launch import verification
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.worker_connection import described
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import Served, ThreadEvidence, Worker
from corebound.serving import bottleneck
from corebound.serving.launch_spec import ServingOrder
from corebound.worker import protocol


def reported(folder: Path, pid: int) -> protocol.Ready | None:
    """The report that a worker of the server wrote; None if it wrote none."""
    try:
        message = protocol.decode_message((folder / f"{pid}.json").read_bytes())
    except (FileNotFoundError, protocol.WireError):
        return None
    return message if isinstance(message, protocol.Ready) else None


def workers(
    watching: LaunchMonitor, placement: Placement, folder: Path, threads_asked: int | None
) -> tuple[Worker, ...]:
    """One worker record per monitored process, in the order of their slots.

    Close the monitor first. Without monitored processes, the result is empty.

    The server decides which process gets which slot. Each process is therefore assigned the
    slot that matches its observed CPUs, as far as that can be determined.
    """
    if not watching.watches:
        return ()
    seen = list(zip_longest(watching.watches, watching.threads, watching.of_workers))
    # If a matching exists, sorting slots and workers by their CPUs finds it.
    order = sorted(range(len(placement.slots)), key=lambda slot: placement.slots[slot].cpus)
    by_cpus = sorted(seen, key=lambda one: (_allowed(one[1]), one[0].root))
    made = (
        described(
            reported(folder, watch.root),
            slot=slot,
            threads_asked=threads_asked,
            threads=threads,
            peak_rss_bytes=watch.peak_rss_bytes,
            node_bytes=watch.node_bytes,
            counters=counters,
        )
        for slot, (watch, threads, counters) in zip(order, by_cpus, strict=True)
    )
    return tuple(sorted(made, key=lambda worker: worker.slot))


_LOG = "The launch's log says what the server made of its configuration."
_LAUNCHER = (
    "The launch's log says what its CPU launcher did. To bind, that needs `numactl`"
    " (`apt-get install numactl`) or `taskset`, the environment's own `python` first on its PATH,"
    " and all these CPUs in the cpuset of the container."
)
_GENERATOR = (
    "Leave the load generator CPUs of its own (a binding, or fewer workers), or ask for fewer"
    " requests at a time."
)


def held_against(
    order: ServingOrder, served: Served, found: Sequence[Worker]
) -> tuple[tuple[str, ...], str]:
    """Every reason to discard the launch as invalid, and the suggested fix."""
    of_set_up = setup_violations(order.placement, order.command, found)
    of_generator = bottleneck.bottleneck_evidence(
        served.answered, order.traffic, len(order.generator_cpus)
    )
    if not of_set_up:
        return of_generator, _GENERATOR
    return (*of_set_up, *of_generator), _LAUNCHER if order.placement.bound else _LOG


def setup_violations(
    placement: Placement, command: Command, found: Sequence[Worker]
) -> tuple[str, ...]:
    """Every deviation from the requested setup, as in `verification.binding_violations`."""
    silent = tuple(
        f"worker {worker.slot} said nothing of its threads" for worker in found if not worker.python
    )
    speaking = [worker for worker in found if worker.python]
    commands = [command] * len(speaking)
    return silent + verification.binding_violations(
        placement, commands, speaking, [()] * len(speaking)
    )


def _allowed(threads: Sequence[ThreadEvidence]) -> tuple[tuple[int, ...], ...]:
    return threads[0].allowed if threads else ()
