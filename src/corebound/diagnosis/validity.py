"""Rules about validity: signs that the launches did not measure what was intended."""

from __future__ import annotations

from collections import Counter

from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding, median
from corebound.records.launch_record import Launch
from corebound.serving.bottleneck import bottleneck_evidence
from corebound.stats.interference import is_refused
from corebound.stats.latency import percentiles
from corebound.units import duration, percent

# If half of its launches did not reach steady state, a cell's value depends on the moment.
UNSETTLED_SHARE = 0.5
LEAST_LAUNCHES = 2
# The most lines of one kind; readers skip more than that.
_MOST_LINES = 4


def generator_bound(one: CellEvidence, _: Evidence) -> Finding | None:
    """The load generator limited a server's result, by the bounds that invalidate a launch."""
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
        fix="Lower `rate` or `concurrency`, send less in a request, or give the generator a CPU"
        " that the server does not use.",
        cells=(one.cell,),
        times_ratio=1.0,
    )


def _faults(launch: Launch) -> tuple[str, ...]:
    served = launch.served
    if served is None:
        return ()
    return bottleneck_evidence(served.answered, served.traffic, len(served.generator_cpus))


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


def not_as_asked(one: CellEvidence, _: Evidence) -> Finding | None:
    """Launches ran on other CPUs, or with other thread counts, than requested."""
    found = [
        launch
        for launch in one.launches
        if launch.status == "invalid" and launch.evidence and not is_refused(launch)
    ]
    if not found:
        return None
    evidence = tuple(dict.fromkeys(line for launch in found for line in launch.evidence))
    return Finding(
        rule="not-as-asked",
        tone="warn",
        what=f"{len(found)} of {len(one.launches)} launches did not run as they were asked to, and"
        " have no figures.",
        evidence=evidence[:_MOST_LINES],
        fix="Find what re-binds its threads or sets their number (a launcher, `taskset -p`, a"
        " framework's own pinning) and switch it off, or ask for what it does.",
        cells=(one.cell,),
        times_ratio=1.0,
    )


def leftover_processes(one: CellEvidence, _: Evidence) -> Finding | None:
    """Processes outlived their worker; left running, they would disturb the next launches."""
    found = [launch for launch in one.launches if launch.strays]
    if not found:
        return None
    names = Counter(name for launch in found for name in launch.strays)
    return Finding(
        rule="strays",
        tone="warn",
        what=f"In {len(found)} of {len(one.launches)} launches processes outlived their worker;"
        " corebound ended them.",
        evidence=tuple(f"{name}: {count}" for name, count in names.most_common(_MOST_LINES)),
        fix="End them in the workload's `teardown`, or wait for them: outside corebound they"
        " go on, and take CPU time from what runs next.",
        cells=(one.cell,),
        times_ratio=1.0,
    )


def never_steady(one: CellEvidence, _: Evidence) -> Finding | None:
    """Most launches of a cell did not reach steady state while they were measured."""
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
        fix="Raise `iterations`, or set a `warmup` that leaves the change out;"
        " `corebound doctor` says what on the host may cause it.",
        cells=(one.cell,),
        times_ratio=1.0,
    )
