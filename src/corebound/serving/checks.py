"""Verifies a server launch: its workers' threads, CPUs and environment, and the generator."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from corebound.launch import verification
from corebound.launch.monitor import LaunchMonitor
from corebound.launch.worker_connection import described
from corebound.planning.models import Command, Placement
from corebound.records.launch_record import Served, ThreadEvidence, Worker
from corebound.scenario.traffic import OPEN_SHAPES, Answered, Traffic
from corebound.stats import latency
from corebound.units import duration, percent
from corebound.worker import protocol

# The generator has one thread. A request that arrives while it is busy waits in its event
# loop: by queueing theory, share / (1 - share) times the cost of a request (M/M/1). That is
# four times at a share of 0.8, and grows without limit towards 1. A request costs about
# 0.1 ms, so at 0.8 the wait is still well below 1 ms.
MOST_CPU_SHARE = 0.8

# In the open shapes, lateness is part of the latency. If one request in a hundred is later
# than this share of the median latency, or of the bound of a search, the generator adds to the
# reported tail.
MOST_LATENESS_RATIO = 0.1
# Linux's timers and one turn of the event loop always take some time. That is not a fault,
# even if it is long compared with a server that answers in 0.1 ms.
LEAST_LATENESS_NS = 500_000

# In the other shapes, lateness is time in which a connection was idle but could have carried
# a request. At a share of 0.1, the server saw a tenth less concurrency than was requested
# (Little's law), which no interval here can resolve.
MOST_IDLE_SHARE = 0.1


def bottleneck_evidence(answered: Answered, traffic: Traffic, cpus: int) -> tuple[str, ...]:
    """Describe each way in which the load generator limited a launch; empty if there is none.

    Args:
        cpus: The number of CPUs that the generator may use.
    """
    limits = (_busy(answered, cpus), _late(answered, traffic), _mixed(answered, traffic))
    return tuple(limit for limit in limits if limit is not None)


def _busy(answered: Answered, cpus: int) -> str | None:
    share = answered.cpu_ns / answered.wall_ns if answered.wall_ns else 0.0
    if share <= MOST_CPU_SHARE:
        return None
    allowance = f"{cpus} CPUs but" if cpus > 1 else "a CPU and"
    return (
        f"the load generator, which has {allowance} one thread, used {percent(share, 0)} of a CPU "
        f"(more than {percent(MOST_CPU_SHARE, 0)})"
    )


def _late(answered: Answered, traffic: Traffic) -> str | None:
    if answered.lateness is None:
        return None
    if traffic.shape in {*OPEN_SHAPES, "rate-search"}:
        return _behind(answered.latencies, answered.lateness, traffic)
    mean_ns = latency.mean_ns(answered.lateness) or 0.0
    could_ns = answered.connections * answered.duration_ns
    share = mean_ns * traffic.requests / could_ns if could_ns else 0.0
    if share <= MOST_IDLE_SHARE:
        return None
    return (
        f"the load generator left its connections idle for {percent(share, 0)} of the time "
        f"(more than {percent(MOST_IDLE_SHARE, 0)}), {duration(mean_ns)} before a request"
    )


def _behind(latencies: str, lateness: str, traffic: Traffic) -> str | None:
    late, total = latency.percentiles(lateness), latency.percentiles(latencies)
    # Without a successful request there is no latency that could be wrong.
    if late is None or total is None:
        return None
    if traffic.shape == "rate-search" and traffic.bound_ms is not None:
        # Its result depends on the latencies near the bound, and on no others.
        usual_ns = traffic.bound_ms * 1e6
        beside = f"with a bound of {duration(usual_ns)}"
    else:
        usual_ns = total.p50_ns
        beside = f"where half of all were answered within {duration(usual_ns)}"
    if late.p99_ns <= max(LEAST_LATENESS_NS, MOST_LATENESS_RATIO * usual_ns):
        return None
    late_text = f"one request in a hundred {duration(late.p99_ns)} late or more"
    return f"the load generator sent {late_text}, {beside}"


def _mixed(answered: Answered, traffic: Traffic) -> str | None:
    errors = sum(answered.errors.values())
    if traffic.client != "ab" or not errors:
        return None
    return f"{errors} of {traffic.requests} requests failed, which ab includes in its averages"


def read_report(folder: Path, pid: int) -> protocol.Ready | None:
    """The report that a worker of the server wrote; None if it wrote none."""
    try:
        message = protocol.decode_message((folder / f"{pid}.json").read_bytes())
    except (FileNotFoundError, protocol.WireError):
        return None
    return message if isinstance(message, protocol.Ready) else None


def server_workers(
    monitor: LaunchMonitor, placement: Placement, folder: Path, threads_asked: int | None
) -> tuple[Worker, ...]:
    """One worker record per monitored process, in the order of their slots.

    Close the monitor first. Without monitored processes, the result is empty.

    The server decides which process gets which slot. Each process is therefore assigned the
    slot that matches its observed CPUs, as far as that can be determined.
    """
    if not monitor.samplers:
        return ()
    observed = list(zip_longest(monitor.samplers, monitor.threads, monitor.worker_counters))
    # If a matching exists, sorting slots and workers by their CPUs finds it.
    order = sorted(range(len(placement.slots)), key=lambda slot: placement.slots[slot].cpus)
    by_cpus = sorted(observed, key=lambda sampled: (_affinities(sampled[1]), sampled[0].root))
    workers = (
        described(
            read_report(folder, sampler.root),
            slot=slot,
            threads_asked=threads_asked,
            threads=threads,
            peak_rss_bytes=sampler.peak_rss_bytes,
            node_bytes=sampler.node_bytes,
            counters=counters,
        )
        for slot, (sampler, threads, counters) in zip(order, by_cpus, strict=True)
    )
    return tuple(sorted(workers, key=lambda worker: worker.slot))


_LOG_FIX = "See the launch's log for how the server read its configuration."
_LAUNCHER_FIX = (
    "See the launch's log for what its CPU launcher did. To bind, it needs `numactl`"
    " (`apt-get install numactl`) or `taskset`, the environment's own `python` first on its PATH,"
    " and all these CPUs in the cpuset of the container."
)
_GENERATOR_FIX = (
    "Leave CPUs for the load generator (a binding, or fewer workers), or request a lower"
    " concurrency."
)


def launch_violations(
    placement: Placement, command: Command | None, served: Served, workers: Sequence[Worker]
) -> tuple[tuple[str, ...], str]:
    """Every reason to discard the launch as invalid, and the suggested fix.

    Without a command, the workers of the server write no reports: only their CPUs are verified.
    """
    of_setup = setup_violations(placement, command, workers)
    of_generator = bottleneck_evidence(served.answered, served.traffic, len(served.generator_cpus))
    if not of_setup:
        return of_generator, _GENERATOR_FIX
    return (*of_setup, *of_generator), _LAUNCHER_FIX if placement.bound else _LOG_FIX


def setup_violations(
    placement: Placement, command: Command | None, workers: Sequence[Worker]
) -> tuple[str, ...]:
    """Every deviation from the requested setup, as in `verification.binding_violations`.

    Without a command, every thread that was not allowed its CPUs, or was seen on others.
    """
    reporting = [worker for worker in workers if command is None or worker.python]
    silent = {worker.slot for worker in workers} - {worker.slot for worker in reporting}
    return (
        *(f"worker {slot} reported no thread counts" for slot in sorted(silent)),
        *verification.binding_violations(
            placement,
            [command or Command(argv=(), env=())] * len(reporting),
            reporting,
            [()] * len(reporting),
        ),
    )


def _affinities(threads: Sequence[ThreadEvidence]) -> tuple[tuple[int, ...], ...]:
    return threads[0].allowed if threads else ()
