"""Rules about the host: what took CPU time from launches, or from a service."""

from corebound.diagnosis.evidence import (
    LEAST_THROTTLED,
    POOLS,
    Evidence,
    Finding,
    FindingTone,
    slower_than,
)
from corebound.diagnosis.subject import Subject
from corebound.planning.placement import threads_within_quota
from corebound.records.telemetry import Cause, QuotaUse
from corebound.units import counted, cpu_quota, duration, percent

_LIMITS = (
    "a container's `--cpus`, a pod's CPU limit, or `cpu.max` of the cgroup that `corebound doctor`"
    " lists. CPUs instead of a quota (`--cpuset-cpus`) never stop threads"
)
# A larger share of lost CPU time would give an implausible ratio.
_MOST_LOST = 0.95


def throttled_text(quota: QuotaUse) -> str:
    """What a CPU quota did to a launch: "80 of 100 periods throttled, for 3.20 s of CPU time"."""
    if quota.periods is None or quota.throttled_periods is None:
        return "the kernel does not count its periods"
    return (
        f"{quota.throttled_periods:,} of {quota.periods:,} periods throttled, for"
        f" {duration(quota.throttled_ns or 0)} of CPU time"
    )


def throttled(cell: Subject, evidence: Evidence) -> Finding | None:
    """A CPU quota, the cell's own or the host's, stopped threads while they were timed."""
    disturbed = _disturbed(
        cell,
        "throttling",
        rule="throttled",
        tone="bad",
        what="A cgroup's CPU quota throttled threads",
        fix=f"Set `threads: quota`, or raise the limit: {_LIMITS}.",
    )
    quota, share = cell.quota, cell.throttled_share
    if quota is None or share is None or share < LEAST_THROTTLED:
        return disturbed
    threads, workers = cell.threads, cell.workers
    fitting = threads_within_quota(quota.cpus, cpus=max(1, len(cell.cpus)), workers=workers)
    loss = evidence.worst_loss(cell, evidence.peers(cell, POOLS))
    is_crowded = threads is not None and threads > fitting
    if not is_crowded and not cell.quota_is_own:
        return None  # `throttled_by_parent` is more specific
    what = f"Throttled by its CPU quota of {cpu_quota(quota.cpus)}: {percent(share, 0)} of periods"
    if loss is not None:
        what += f"; an iteration is {slower_than(cell, loss)}"
    limit = f"raise the limit: {cell.quota_setting}{_LIMITS}"
    setting, line = cell.thread_setting("`threads: quota`", fitting)
    return cell.finding(
        rule="more-threads-than-quota" if is_crowded else "throttled",
        tone="bad" if is_crowded or not cell.quota_setting else "warn",
        what=f"{what}.",
        evidence=(
            throttled_text(quota),
            *(() if threads is None else (_threads_text(threads, workers, quota.cpus),)),
            *((cell.stops_hidden,) if cell.stops_hidden else ()),
            *(disturbed.evidence if disturbed else ()),
        ),
        fix=(
            f"Set {setting}, or {limit}."
            if is_crowded
            else f"Its threads are as few as possible: {limit}."
        ),
        line=line if is_crowded else "",
        times_ratio=loss.ratio if loss else 1 / (1 - min(cell.throttled_cpus_share, _MOST_LOST)),
    )


def _threads_text(threads: int, workers: int, quota: float) -> str:
    text = f"{counted(threads)} thread{'s' if threads > 1 else ''}"
    of_workers = f" in each of {workers} workers" if workers > 1 else ""
    return f"{text}{of_workers} for {cpu_quota(quota)}"


def foreign_load(cell: Subject, _: Evidence) -> Finding | None:
    """Other programs ran on the launch's CPUs, and its threads had to wait for them."""
    return _disturbed(
        cell,
        "foreign load",
        rule="foreign-load",
        tone="warn",
        what="Other programs kept its threads waiting for a CPU",
        fix="Stop the other programs (`corebound doctor` lists them), or use CPUs that they do"
        f" not use: {cell.setting('`binding: {cpus: LIST}`', 'isolated CPUs, a cpuset')}.",
    )


def steal(cell: Subject, _: Evidence) -> Finding | None:
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
    cell: Subject, cause: Cause, *, rule: str, tone: FindingTone, what: str, fix: str
) -> Finding | None:
    found = cell.disturbed(cause)
    if found is None:
        return None
    return cell.finding(
        rule=rule,
        tone=tone,
        what=f"{what} {found.when}.",
        evidence=found.lines,
        fix=fix,
        times_ratio=1 / (1 - min(found.share, _MOST_LOST)),
    )
