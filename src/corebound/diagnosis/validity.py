"""Rules about validity: signs that the launches did not measure what was intended."""

from collections import Counter

from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding, median
from corebound.records.launch_record import Launch
from corebound.serving.checks import bottleneck_evidence
from corebound.stats.interference import is_refused
from corebound.stats.latency import percentiles
from corebound.units import duration, percent

# If half of its launches did not reach steady state, a cell's value depends on the moment.
UNSETTLED_SHARE = 0.5
LEAST_LAUNCHES = 2
# The most lines of one kind; readers skip more than that.
_MOST_LINES = 4


def generator_bound(cell: CellEvidence, _: Evidence) -> Finding | None:
    """The load generator limited a server's result, by the bounds that invalidate a launch."""
    faulty = [(launch, faults) for launch in cell.launches if (faults := _faults(launch))]
    if not faulty:
        return None
    served = [launch for launch, _ in faulty]
    lines = list(dict.fromkeys(fault for _, faults in faulty for fault in faults))[:3]
    share, late_ns = median(served, _generator_share), median(served, _late_ns)
    if share is not None:
        lines.append(f"the load generator used {percent(share, 0)} of a CPU")
    if late_ns is not None:
        lines.append(f"1 % of requests were sent {duration(late_ns)} late or more")
    measured = sum(launch.served is not None for launch in cell.launches)
    return cell.finding(
        rule="generator-bound",
        what=f"In {len(faulty)} of {measured} launches the load generator, not the"
        " server, limited the result.",
        evidence=tuple(lines),
        fix="Lower `rate` or `concurrency`, send smaller requests, or give the generator a CPU"
        " that the server does not use.",
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
    percentiles_of_lateness = percentiles(served.answered.lateness)
    return None if percentiles_of_lateness is None else float(percentiles_of_lateness.p99_ns)


def not_as_asked(cell: CellEvidence, _: Evidence) -> Finding | None:
    """Launches ran on other CPUs, or with other thread counts, than requested."""
    invalid = [
        launch
        for launch in cell.launches
        if launch.status == "invalid" and launch.evidence and not is_refused(launch)
    ]
    if not invalid:
        return None
    lines = tuple(dict.fromkeys(line for launch in invalid for line in launch.evidence))
    return cell.finding(
        rule="not-as-asked",
        what=f"{len(invalid)} of {len(cell.launches)} launches did not run as configured and"
        f" {'was' if len(invalid) == 1 else 'were'} discarded.",
        evidence=lines[:_MOST_LINES],
        fix="Find what rebinds its threads or sets their number (a launcher, `taskset -p`, the"
        " framework's own pinning). Switch it off, or configure what it does.",
    )


def leftover_processes(cell: CellEvidence, _: Evidence) -> Finding | None:
    """Processes outlived their worker; left running, they would disturb the next launches."""
    affected = [launch for launch in cell.launches if launch.leftover_processes]
    if not affected:
        return None
    names = Counter(name for launch in affected for name in launch.leftover_processes)
    return cell.finding(
        rule="strays",
        what=f"In {len(affected)} of {len(cell.launches)} launches, processes outlived"
        " their worker. corebound ended them.",
        evidence=tuple(f"{name}: {count}" for name, count in names.most_common(_MOST_LINES)),
        fix="End them in the workload's `teardown`, or wait for them. Outside corebound they keep"
        " running and take CPU time from the next program.",
    )


def never_steady(cell: CellEvidence, _: Evidence) -> Finding | None:
    """Most launches of a cell did not reach steady state while they were measured."""
    launches, unsettled = len(cell.summary.launches), cell.summary.unsettled
    if launches < LEAST_LAUNCHES or unsettled < UNSETTLED_SHARE * launches:
        return None
    kinds = [launch.steady.kind for launch in cell.summary.launches if not launch.settled]
    listed = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return cell.finding(
        rule="never-steady",
        what=f"{unsettled} of {launches} launches did not reach steady state: the result depends"
        " on the number of iterations.",
        evidence=(f"classification: {listed}",),
        fix="Raise `iterations`, or set a `warmup` that excludes the change. `corebound doctor`"
        " checks the host for causes.",
    )
