"""Rules on whether figures can be believed: what was measured may not be what was meant."""

from __future__ import annotations

from corebound.diagnosis.evidence import CellEvidence, Evidence
from corebound.diagnosis.finding import Finding
from corebound.diagnosis.launches import median
from corebound.model.record import Launch
from corebound.serving.bottleneck import against
from corebound.stats.latency import percentiles
from corebound.units import duration, percent

# With half of its launches still changing, a cell's figure is that of a moment.
UNSETTLED_SHARE = 0.5
LEAST_LAUNCHES = 2


def generator_bound(one: CellEvidence, _: Evidence) -> Finding | None:
    """A server's figure that the load generator made: by the bounds that make a launch invalid."""
    found = [(launch, faults) for launch in one.launches if (faults := _faults(launch))]
    if not found:
        return None
    served = [launch for launch, _ in found]
    evidence = list(dict.fromkeys(fault for _, faults in found for fault in faults))[:3]
    share, late_ns = median(served, _generator_share), median(served, _late_ns)
    if share is not None:
        evidence.append(f"generator: {percent(share, 0)} of a CPU")
    if late_ns is not None:
        evidence.append(f"lateness: one request in a hundred {duration(late_ns)} or more")
    return Finding(
        rule="generator-bound",
        tone="warn",
        what=f"In {len(found)} of {sum(each.served is not None for each in one.launches)} launches"
        " the load generator, not the server, set the figure.",
        evidence=tuple(evidence),
        remedy="Lower `rate` or `concurrency`, send less in a request, or give the generator a CPU"
        " that the server does not use.",
        cells=(one.cell,),
        times_ratio=1.0,
    )


def _faults(launch: Launch) -> tuple[str, ...]:
    served = launch.served
    if served is None:
        return ()
    return against(served.answered, served.traffic, len(served.generator_cpus))


def _generator_share(launch: Launch) -> float | None:
    served = launch.served
    if served is None or not served.answered.wall_ns:
        return None
    return served.answered.cpu_ns / served.answered.wall_ns


def _late_ns(launch: Launch) -> float | None:
    served = launch.served
    if served is None or served.answered.lateness is None:
        return None
    found = percentiles(served.answered.lateness)
    return None if found is None else float(found.p99_ns)


def never_steady(one: CellEvidence, _: Evidence) -> Finding | None:
    """A cell most of whose launches kept changing as they were measured."""
    launches, unsettled = len(one.summary.launches), one.summary.unsettled
    if launches < LEAST_LAUNCHES or unsettled < UNSETTLED_SHARE * launches:
        return None
    kinds = [each.steady.kind for each in one.summary.launches if not each.settled]
    seen = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return Finding(
        rule="never-steady",
        tone="warn",
        what=f"{unsettled} of {launches} launches never became steady: the figure depends on when"
        " one stops looking.",
        evidence=(f"how they went: {seen}",),
        remedy="Raise `iterations`, or set a `warmup` that leaves the change out;"
        " `corebound doctor` says what on the host may cause it.",
        cells=(one.cell,),
        times_ratio=1.0,
    )
