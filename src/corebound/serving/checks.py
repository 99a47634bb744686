"""What a server's workers really got: their own word, and what is seen from outside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from corebound.launch import verification
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.worker_connection import described
from corebound.planning.slots import Command, Placement
from corebound.records.launch_record import Served, ThreadEvidence, Worker
from corebound.serving import bottleneck
from corebound.serving.launch_spec import ServingOrder
from corebound.worker import protocol

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def reported(folder: Path, pid: int) -> protocol.Ready | None:
    """What a worker of the server has said of itself; None where it said nothing."""
    try:
        message = protocol.decode_message((folder / f"{pid}.json").read_bytes())
    except (FileNotFoundError, protocol.WireError):
        return None
    return message if isinstance(message, protocol.Ready) else None


def workers(
    watching: LaunchMonitor, placement: Placement, folder: Path, threads_asked: int | None
) -> tuple[Worker, ...]:
    """A worker for each process that was watched, in the order of their slots.

    The watching is closed; without any process there is no worker.

    Which of them is of which slot is the server's affair: each gets the one whose
    CPUs it is seen to have, as far as that can be told.
    """
    if not watching.watches:
        return ()
    seen = list(zip_longest(watching.watches, watching.threads, watching.of_workers))
    # Slots and workers sorted by their CPUs pair up wherever they pair at all.
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
    """Everything that makes a launch invalid, and what the user may do about it."""
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
    """Everything that speaks against a launch's set-up, as `proof.against` does."""
    silent = tuple(
        f"worker {worker.slot} said nothing of its threads" for worker in found if not worker.python
    )
    speaking = [worker for worker in found if worker.python]
    commands = [command] * len(speaking)
    return silent + verification.binding_violations(
        placement, commands, speaking, [()] * len(speaking)
    )


def cpu_ns(processes: Iterable[int]) -> Mapping[int, int]:
    """CPU time of each process so far, its waited-for children's too; of those that live."""
    found = {}
    for pid in processes:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            continue  # it has ended
        # Fields 14 to 17 of proc(5)'s stat; the name before them may hold anything.
        fields = stat.rpartition(b")")[2].split()[11:15]
        found[pid] = sum(map(int, fields)) * _TICK_NS
    return found


def _allowed(threads: Sequence[ThreadEvidence]) -> tuple[tuple[int, ...], ...]:
    return threads[0].allowed if threads else ()
