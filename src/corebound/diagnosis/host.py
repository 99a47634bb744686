"""Rules about the host: what took CPU time from launches while they were timed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from corebound.diagnosis.evidence import (
    POOLS,
    CellEvidence,
    Evidence,
    Finding,
    FindingTone,
    median,
    slower_than,
)
from corebound.planning.placement import threads_within_quota
from corebound.records.launch_record import Launch
from corebound.records.telemetry import Cause, QuotaUse
from corebound.stats.interference import LEAST_LOST_CPUS, MOST_DISTURBED, Loss, lost_cpus
from corebound.units import counted, cpu_quota, duration, percent

# Fewer throttled periods cost little: the work in a period that just exceeds its quota is done at
# the start of the next.
LEAST_THROTTLED = 0.1
# A mean this much above the median shows that stops are concentrated in few iterations.
_HIDDEN_RATIO = 1.2
_LIMITS = (
    "a container's `--cpus`, a pod's CPU limit, or `cpu.max` of the cgroup that `corebound doctor`"
    " lists. CPUs instead of a quota (`--cpuset-cpus`) never stop threads"
)
# A larger share of lost CPU time would give an implausible ratio.
_MOST_LOST = 0.95
_NO_LOSS = Loss(0.0)


def throttled_text(quota: QuotaUse) -> str:
    """What a CPU quota did to a launch: "80 of 100 periods throttled, for 3.20 s of CPU time"."""
    if quota.periods is None or quota.throttled_periods is None:
        return "the kernel does not count its periods"
    return (
        f"{quota.throttled_periods:,} of {quota.periods:,} periods throttled, for"
        f" {duration(quota.throttled_ns or 0)} of CPU time"
    )


def throttled(cell: CellEvidence, evidence: Evidence) -> Finding | None:
    """A CPU quota, the cell's own or the host's, stopped threads while they were timed."""
    disturbed = _disturbed(
        cell,
        "throttling",
        rule="throttled",
        tone="bad",
        what="A cgroup's CPU quota throttled threads",
        fix=f"Set `threads: quota`, or raise the limit: {_LIMITS}.",
    )
    launches = [launch for launch in cell.launches if _throttled_share(launch) is not None]
    worst = max(launches, key=lambda launch: _throttled_share(launch) or 0.0, default=None)
    share = median(launches, _throttled_share)
    if worst is None or worst.quota is None or share is None or share < LEAST_THROTTLED:
        return disturbed
    quota, threads, workers = worst.quota, cell.threads, cell.cell.workers
    fitting = threads_within_quota(quota.cpus, cpus=max(1, len(cell.cpus)), workers=workers)
    loss = evidence.worst_loss(cell, evidence.peers(cell, POOLS))
    is_crowded = threads is not None and threads > fitting
    what = f"Throttled by its CPU quota of {cpu_quota(quota.cpus)}: {percent(share, 0)} of periods"
    if loss is not None:
        what += f"; an iteration is {slower_than(cell, loss)}"
    limit = f"raise the limit: {'`cpu_quota`, ' if cell.cell.cpu_quota else ''}{_LIMITS}"
    lost_share = (quota.throttled_ns or 0) / max(1, _timed_ns(worst) * max(1, len(cell.cpus)))
    return cell.finding(
        rule="throttled",
        tone="bad" if is_crowded or cell.cell.cpu_quota is None else "warn",
        what=f"{what}.",
        evidence=(
            throttled_text(quota),
            *(() if threads is None else (_threads_text(threads, workers, quota.cpus),)),
            *((hidden,) if (hidden := stops_hidden_by_the_median(cell.launches)) else ()),
            *(disturbed.evidence if disturbed else ()),
        ),
        fix=(
            f"Set `threads: quota` (outside corebound: OMP_NUM_THREADS={fitting}), or {limit}."
            if is_crowded
            else f"Its threads are as few as possible: {limit}."
        ),
        times_ratio=loss.ratio if loss else 1 / (1 - min(lost_share, _MOST_LOST)),
    )


def _throttled_share(launch: Launch) -> float | None:
    return launch.quota.throttled_share if launch.quota else None


def _timed_ns(launch: Launch) -> int:
    return launch.host.duration_ms * 1_000_000 if launch.host else 0


def _threads_text(threads: int, workers: int, quota: float) -> str:
    text = f"{counted(threads)} thread{'s' if threads > 1 else ''}"
    of_workers = f" in each of {workers} workers" if workers > 1 else ""
    return f"{text}{of_workers} for {cpu_quota(quota)}"


def stops_hidden_by_the_median(launches: Sequence[Launch]) -> str | None:
    """That iterations are too short for their median to show how long a quota stopped threads.

    Args:
        launches: Those of a cell.
    """
    stopped = [
        one
        for one in launches
        if one.status == "ok" and (_throttled_share(one) or 0.0) >= LEAST_THROTTLED
    ]
    walls_ns = [
        wall_ns for launch in stopped for worker in launch.workers for wall_ns in worker.wall_ns[1:]
    ]
    if not walls_ns:
        return None
    mean_ns, median_ns = statistics.fmean(walls_ns), statistics.median(walls_ns)
    if mean_ns <= _HIDDEN_RATIO * median_ns:
        return None
    return (
        f"time per iteration: mean {duration(mean_ns)}, median {duration(median_ns)}, because"
        " few iterations are stopped"
    )


def foreign_load(cell: CellEvidence, _: Evidence) -> Finding | None:
    """Other programs ran on the launch's CPUs, and its threads had to wait for them."""
    return _disturbed(
        cell,
        "foreign load",
        rule="foreign-load",
        tone="warn",
        what="Other programs kept its threads waiting for a CPU",
        fix="Stop the other programs (`corebound doctor` lists them), or use CPUs that they do"
        " not use: `binding: {cpus: LIST}`, or isolated CPUs.",
    )


def steal(cell: CellEvidence, _: Evidence) -> Finding | None:
    """A hypervisor gave the launch's CPUs to other guests."""
    return _disturbed(
        cell,
        "steal",
        rule="steal",
        tone="warn",
        what="The hypervisor gave its CPUs to other guests",
        fix="Use dedicated CPUs (a dedicated host, pinned virtual CPUs), or measure at a quieter"
        " time. Until then, trust ratios of interleaved launches, not absolute times.",
    )


def _disturbed(
    cell: CellEvidence, cause: Cause, *, rule: str, tone: FindingTone, what: str, fix: str
) -> Finding | None:
    disturbed = [launch for launch in cell.launches if _is_hit(launch, cause)]
    if not disturbed:
        return None
    worst = max(disturbed, key=lambda launch: _lost_share(launch, cause))
    share = _lost_share(worst, cause)
    return cell.finding(
        rule=rule,
        tone=tone,
        what=f"{what} during most of {len(disturbed)} of {len(cell.launches)} launches.",
        evidence=(
            *(worst.disturbance.evidence if worst.disturbance else ()),
            *_counted(sum(launch.status == "ok" for launch in disturbed), "kept and marked"),
            *_counted(sum(launch.status != "ok" for launch in disturbed), "without results"),
        ),
        fix=fix,
        times_ratio=1 / (1 - min(share, _MOST_LOST)),
    )


def _is_hit(launch: Launch, cause: Cause) -> bool:
    """Whether this cause disturbed most of a launch; less does not affect its median.

    If there are several causes, one that took almost no CPU time overall is not reported.
    """
    disturbance, host = launch.disturbance, launch.host
    if disturbance is None or host is None or disturbance.share <= MOST_DISTURBED:
        return False
    return lost_cpus(host).get(cause, _NO_LOSS).cpus >= LEAST_LOST_CPUS


def _lost_share(launch: Launch, cause: Cause) -> float:
    """CPU time lost to a cause: share of all the launch's CPUs, or of the one that lost most."""
    host = launch.host
    if host is None or not host.duration_ms:
        return 0.0
    loss = lost_cpus(host).get(cause, _NO_LOSS)
    return min(1.0, max(loss.cpus / len(host.cpus), loss.most))


def _counted(number: int, what: str) -> tuple[str, ...]:
    return (f"{number} launch{'es' if number > 1 else ''} {what}",) if number else ()
