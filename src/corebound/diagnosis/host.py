"""Rules about the host: what took CPU time from launches while they were timed."""

from __future__ import annotations

from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding, FindingTone
from corebound.records.launch_record import Launch
from corebound.records.telemetry import Cause
from corebound.stats.interference import LEAST_LOST_CPUS, MOST_DISTURBED, lost_cpus

# A larger share of lost CPU time would give an implausible ratio.
_MOST_LOST = 0.95


def throttled(cell: CellEvidence, _: Evidence) -> Finding | None:
    """A cgroup's quota throttled threads while they were timed."""
    return _disturbed(
        cell,
        "throttling",
        rule="throttled",
        tone="bad",
        what="A cgroup's CPU quota throttled threads",
        fix="Remove the quota while measuring: `echo max > cpu.max` in the cgroup that"
        " `corebound doctor` lists, a container's `--cpus`, a pod's CPU limit. Or assign CPUs"
        " instead of a quota (`--cpuset-cpus`), and as many threads as the quota allows.",
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
    return Finding(
        rule=rule,
        tone=tone,
        what=f"{what} during most of {len(disturbed)} of {len(cell.launches)} launches.",
        evidence=(
            *(worst.disturbance.evidence if worst.disturbance else ()),
            *_counted(sum(launch.status == "ok" for launch in disturbed), "kept and marked"),
            *_counted(sum(launch.status != "ok" for launch in disturbed), "without results"),
        ),
        fix=fix,
        cells=(cell.cell,),
        times_ratio=1 / (1 - min(share, _MOST_LOST)),
    )


def _is_hit(launch: Launch, cause: Cause) -> bool:
    """Whether this cause disturbed most of a launch; less does not affect its median.

    If there are several causes, one that took almost no CPU time overall is not reported.
    """
    disturbance, host = launch.disturbance, launch.host
    if disturbance is None or host is None or disturbance.share <= MOST_DISTURBED:
        return False
    return lost_cpus(host).get(cause, 0.0) >= LEAST_LOST_CPUS


def _lost_share(launch: Launch, cause: Cause) -> float:
    """CPU time lost to a cause, as a share of the capacity of the launch's CPUs."""
    host = launch.host
    if host is None or not host.duration_ms:
        return 0.0
    return min(1.0, lost_cpus(host).get(cause, 0.0) / len(host.cpus))


def _counted(number: int, what: str) -> tuple[str, ...]:
    return (f"{number} launch{'es' if number > 1 else ''} {what}",) if number else ()
