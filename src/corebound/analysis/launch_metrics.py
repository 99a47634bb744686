"""Metrics of launches, summed over their threads; None if a metric is unavailable."""

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.scenario_result import CellResult
from corebound.analysis.wording import Fact, capital, count
from corebound.diagnosis.evidence import moves, total
from corebound.machine.topology import Topology
from corebound.records.launch_record import CONTINUES, Launch, Status
from corebound.records.telemetry import Cause, HostCounter, HostOverTime, QuotaUse
from corebound.stats import interference
from corebound.stats.launch_summary import is_too_short
from corebound.stats.server_summary import BY_P90, BY_TAIL
from corebound.units import cpu_quota, duration, percent, size


class Metric(Struct, frozen=True, kw_only=True):
    """The wording of a metric: as a heading, after "each launch's", and its unit of work.

    `each` is the unit with its article.
    """

    heading: str
    says: str
    unit: str
    each: str


_ITERATION = Metric(
    heading="Median", says="median iteration", unit="iteration", each="an iteration"
)
_REQUEST = Metric(
    heading="Time per request", says="time per successful request", unit="request", each="a request"
)
_P90 = Metric(heading="p90", says="90th percentile", unit="request", each="a request")
_P99 = Metric(heading="p99", says="99th percentile", unit="request", each="a request")
_RATE = Metric(
    heading="1 / highest rate",
    says="time between requests at the highest rate within the bound",
    unit="request",
    each="a request",
)
_SEVERAL_METRICS = Metric(
    heading="Value", says="time per request or percentile", unit="request", each="a request"
)


def metric_of(cells: Collection[CellResult]) -> Metric:
    """The metric of these cells; servers may use several metrics."""
    shapes = {
        launch.served.traffic.shape
        for cell in cells
        for launch in cell.launches
        if launch.served is not None
    }
    if not shapes:
        reported = next((cell.cell.metric for cell in cells if cell.cell.metric), None)
        if reported is None:
            return _ITERATION
        return replace(_ITERATION, heading=capital(reported.name), says=reported.name)
    names = {
        _RATE
        if shape == "rate-search"
        else _P99
        if shape in BY_TAIL
        else _P90
        if shape in BY_P90
        else _REQUEST
        for shape in shapes
    }
    return names.pop() if len(names) == 1 else _SEVERAL_METRICS


def migrations(launch: Launch) -> int | None:
    """Moves between CPUs of all threads of a launch."""
    return total(launch, "migrations")


def context_switches(launch: Launch) -> int | None:
    """Context switches of all threads of a launch, voluntary and involuntary."""
    counts = [total(launch, "voluntary"), total(launch, "involuntary")]
    available = [number for number in counts if number is not None]
    return sum(available) if available else None


def threads(launch: Launch) -> int | None:
    """Threads in all processes of a launch, including idle ones."""
    return sum(len(worker.threads) for worker in launch.workers) or None


def total_wall_ns(launch: Launch) -> int | None:
    """The time of all iterations of the slowest worker of a launch, warm-ups included."""
    if launch.served is not None:
        return launch.served.answered.duration_ns
    return max((sum(worker.wall_ns) for worker in launch.workers), default=0) or None


def median_of(cell: CellResult, metric: Callable[[Launch], float | None]) -> float | None:
    """The median of a value over the launches behind the cell's value."""
    counts = [metric(launch) for launch in _select_behind(cell.launches)]
    available = [number for number in counts if number is not None]
    return statistics.median(available) if available else None


def span_of(
    cell: CellResult, metric: Callable[[Launch], float | None]
) -> tuple[float, float] | None:
    """The minimum and maximum over the launches behind the cell's value.

    None with fewer than two launches, or if all have the same value.

    From six launches on these bound the median with 95 %: 1 − 2/2⁶ = 0.969.

    Source: Le Boudec, Performance Evaluation (2010), theorem 2.1.
    """
    counts = [metric(launch) for launch in _select_behind(cell.launches)]
    available = [number for number in counts if number is not None]
    ends = (min(available), max(available)) if len(available) > 1 else (0, 0)
    return None if ends[0] == ends[1] else ends


def _select_behind(launches: Iterable[Launch]) -> list[Launch]:
    """Those of a cell's launches that its value is computed from."""
    return interference.select_undisturbed(
        [launch for launch in launches if launch.status == "ok"], interference.is_mostly_disturbed
    )


def cpu_of(cell: CellResult) -> Iterator[Fact]:
    """CPU time of an iteration, and its ratio to the wall time."""
    summary = cell.summary
    if summary.cpu_median_ns is not None and (busy := summary.cpus_busy) is not None:
        yield Fact(
            value=duration(summary.cpu_median_ns),
            says=f"CPU time per {metric_of((cell,)).unit} ({busy:.3g} CPUs busy)",
        )
    elif is_too_short(summary):
        yield Fact(value="–", says="CPU time: an iteration is too short for the CPU clock")


def disturbed(cell: CellResult) -> tuple[Launch, ...]:
    """The launches behind a cell's value that are marked as disturbed from outside."""
    ids = {summary.launch for summary in cell.summary.launches if summary.disturbed}
    return tuple(launch for launch in cell.launches if launch.id in ids)


def host_facts(launch: Launch) -> tuple[Fact, ...]:
    """The state of the host while the launch was timed; unavailable values say so.

    Empty for records of a corebound version that did not sample the host.
    """
    host = launch.host
    if host is None or not host.windows:
        return ()
    figures = [
        *_split(host),
        *_memory(host),
        *_gpus(host),
        _share(host.share("steal_ns", cpus=len(host.cpus)), "CPU time stolen by the hypervisor"),
        _share(host.share("foreign_ns", cpus=len(host.cpus)), "CPU time used by other programs"),
        *(_share(host.share(counter), says) for counter, says in _PRESSURES),
        *_throttled(launch.quota, host),
        _clock(host),
    ]
    if launch.disturbance is not None:
        strongest = Fact(
            value=percent(launch.disturbance.share, 0),
            says=f"disturbed by {' and '.join(launch.disturbance.by)}",
        )
        figures.insert(0, strongest)
    return tuple(figures)


def migration_facts(launch: Launch, topology: Topology) -> tuple[Fact, ...]:
    """Where threads were seen to move; empty if threads were not sampled or none moved."""
    seen_moves = moves(launch, topology)
    if seen_moves is None:
        return ()
    each = (
        (seen_moves.within_cores, "within a core"),
        (seen_moves.across_cores, "across cores"),
        (seen_moves.across_nodes, "across nodes"),
    )
    parts = [f"{number:,} {where}" for number, where in each if number]
    return (Fact(value=", ".join(parts), says="of the sampled migrations"),) if parts else ()


def _split(host: HostOverTime) -> Iterator[Fact]:
    user, system = host.total("user_ns"), host.total("system_ns")
    if user is not None and system is not None and user + system:
        share = system / (user + system)
        yield Fact(value=percent(share, 0), says="CPU time in the kernel")


def _memory(host: HostOverTime) -> Iterator[Fact]:
    peak, minor, major = host.peak_rss_bytes, host.total("minor_faults"), host.total("major_faults")
    if peak is not None:
        yield Fact(value=size(peak), says="peak memory")
    if minor is not None and major is not None:
        yield Fact(value=f"{minor:,} and {major:,}", says="minor and major page faults")


def _gpus(host: HostOverTime) -> Iterator[Fact]:
    """The use of the busiest GPU; empty for a launch that uses no GPU."""
    if shares := host.gpu_busy_shares:
        yield Fact(value=percent(statistics.fmean(shares), 0), says="time a GPU was busy")
    elif any(window.gpus for window in host.windows):
        yield Fact(value=_UNAVAILABLE, says="time a GPU was busy")


_PRESSURES: tuple[tuple[HostCounter, str], ...] = (
    ("cpu_pressure_ns", "CPU pressure on the host"),
    ("memory_pressure_ns", "memory pressure on the host"),
    ("io_pressure_ns", "I/O pressure on the host"),
)
_UNAVAILABLE = "unavailable"


def _shares(shares: Iterable[float | None], says: str) -> Fact:
    each = ["unknown" if share is None else percent(share) for share in shares]
    is_known = any(text != "unknown" for text in each)
    return Fact(value=", ".join(each) if is_known else _UNAVAILABLE, says=says)


def _share(share: float | None, says: str) -> Fact:
    return _shares((share,), says)


def _throttled(quota: QuotaUse | None, host: HostOverTime) -> Iterator[Fact]:
    """CPU quota throttling. Without a quota the text differs from that of an unused quota."""
    if quota is not None and quota.throttled_periods is not None:
        periods = f"{quota.throttled_periods:,} of {quota.periods:,}"
        yield Fact(value=cpu_quota(quota.cpus), says="CPU quota")
        yield Fact(value=periods, says="periods throttled by it")
        yield Fact(value=duration(quota.throttled_ns or 0), says="CPU time throttled")
        return
    share = host.share("throttled_ns")
    if share is None and "throttling" in host.unavailable:
        yield Fact(value="no quota", says="throttled by a quota")
    else:
        yield _share(share, "throttled by a quota")


def _clock(host: HostOverTime) -> Fact:
    clocks = host.frequencies_hz
    if not clocks:
        return Fact(value=_UNAVAILABLE, says="clock")
    least, most = (f"{hz / 1e9:.2f}" for hz in (min(clocks), max(clocks)))
    return Fact(value=f"{least} to {most} GHz" if least != most else f"{least} GHz", says="clock")


def counter_facts(launch: Launch) -> tuple[Fact, ...]:
    """Hardware counters of the launch; empty for records of a corebound version without them."""
    counters = launch.counters
    if counters is None:
        return ()
    per_cycle = counters.instructions_per_cycle
    if per_cycle is None and not counters.slots:
        return (Fact(value=_UNAVAILABLE, says="hardware counters"),)
    instructions = _UNAVAILABLE if per_cycle is None else f"{per_cycle:.2f}"
    all_cycles = sum(counters.cycles_by_pmu.values())
    return (
        Fact(value=instructions, says="instructions per cycle"),
        *(
            Fact(value=percent(cycles / all_cycles, 0), says=f"cycles on {pmu}")
            for pmu, cycles in counters.cycles_by_pmu.items()
            if all_cycles
        ),
        _shares(
            (counters.slots.get("core_bound"), counters.slots.get("memory_bound")),
            "pipeline slots core bound and memory bound",
        ),
    )


def reason_of(launch: Launch) -> str:
    """Why a launch is not `ok`, as a sentence; empty if it is `ok`."""
    return capital(launch.reason or "")


def evidence_of(launch: Launch) -> tuple[str, ...]:
    """The evidence for the launch's status that the reason does not already contain."""
    return tuple(reason for reason in launch.evidence if reason not in (launch.reason or ""))


def fix_of(launch: Launch, others: Iterable[Launch]) -> str:
    """How the user can fix it; for a refused launch also whether it was repeated.

    Args:
        others: All launches of its run, or of its cell.
    """
    fix = launch.fix or ""
    if not interference.is_refused(launch):
        return fix
    was_repeated = any(
        other.cell.id == launch.cell.id
        and other.block == launch.block
        and other.attempt == launch.attempt + 1
        for other in others
    )
    outcome = "Launched again." if was_repeated else "The run ended before another attempt."
    return f"{outcome} {fix.removeprefix(CONTINUES).lstrip()}".rstrip()


def first_reason(launches: Iterable[Launch]) -> str:
    """The reason of the first discarded launch, else of the first skipped one; may be empty."""
    skipped = ""
    for launch in launches:
        if launch.reason and launch.status != "skipped":
            return launch.reason
        skipped = skipped or launch.reason or ""
    return skipped


_NOT_COUNTED: dict[Status, str] = {
    "dropped": "dropped from a race",
    "invalid": "not run as requested",
    "failed": "failed",
    "timed-out": "timed out",
}
# What a disturbance of each kind did to a launch.
DISTURBED: dict[Cause, str] = {
    "steal": "disturbed by the hypervisor",
    "throttling": "throttled by a quota",
    "foreign load": "disturbed by other programs",
    "suspension": "suspended",
}


def discarded_launches(launches: Iterable[Launch]) -> list[tuple[Launch, str]]:
    """The launches that do not count, and why in few words: all pages and the terminal use it.

    Skipped and profiling launches are not included: they are not meant to count.

    Args:
        launches: All launches of some cells of one or more runs.
    """
    by_cell: dict[tuple[str, str], list[Launch]] = {}
    for launch in launches:
        if launch.kind == "measure" and launch.status != "skipped":
            by_cell.setdefault((launch.run, launch.cell.id), []).append(launch)
    return [
        (launch, _discarded_as(launch))
        for made in by_cell.values()
        for counted in [_select_behind(made)]
        for launch in made
        if not any(launch is other for other in counted)
    ]


def _discarded_as(launch: Launch) -> str:
    disturbance = launch.disturbance
    if launch.status == "dropped" and launch.share_s is not None:
        return "too slow for the budget"
    if disturbance is None or not (disturbance.refused or launch.status == "ok"):
        return _NOT_COUNTED.get(launch.status, launch.status)
    refusal = interference.refusal_of(launch)
    if refusal == "unlike threads":
        return "busy threads differed from the baseline"
    if refusal == "partner disturbed" or not disturbance.by:
        return "alternated with a disturbed launch"
    return DISTURBED[disturbance.by[0]]


class LaunchCounts(Struct, frozen=True, kw_only=True):
    """How many launches count, and how many do not.

    Attributes:
        disturbed: How many of those were disturbed nevertheless.
        discarded: (reason, how many) of those that do not count, most first.
        skipped, profiled: Records of launches that were not meant to count.
    """

    counted: int
    disturbed: int
    discarded: tuple[tuple[str, int], ...]
    skipped: int
    profiled: int

    @property
    def total_discarded(self) -> int:
        """How many do not count, whatever the reason."""
        return sum(number for _, number in self.discarded)

    @property
    def headline(self) -> str:
        """How many do not count: `44 of 56 launches discarded`, `3 launches, none discarded`."""
        lost = self.total_discarded
        made = count(self.counted + lost, "launch", "launches")
        return f"{lost:,} of {made} discarded" if lost else f"{made}, none discarded"

    @property
    def reasons(self) -> str:
        """Why: `3 failed, 1 timed out`; one reason has no number. Empty if all count."""
        if len(self.discarded) == 1:
            return self.discarded[0][0]
        return ", ".join(f"{number:,} {reason}" for reason, number in self.discarded)

    @property
    def note(self) -> str:
        """What limits the trust in values of these launches; empty if nothing does."""
        made = count(self.counted, "launch", "launches")
        return "; ".join(
            (
                *((f"{self.disturbed:,} of {made} disturbed",) if self.disturbed else ()),
                *((f"{self.headline}: {self.reasons}",) if self.discarded else ()),
            )
        )

    @property
    def says(self) -> str:
        """All of it: `4 of 9 launches discarded: 3 failed, 1 timed out; 2 skipped`."""
        counted = ": ".join(filter(None, (self.headline, self.reasons)))
        return "; ".join((counted, *self.others))

    @property
    def others(self) -> tuple[str, ...]:
        """The launches that were not meant to count: `2 skipped`."""
        return (
            *((f"{self.skipped:,} skipped",) if self.skipped else ()),
            *((f"{self.profiled:,} more that profiled operators",) if self.profiled else ()),
        )


def launch_counts(launches: Iterable[Launch]) -> LaunchCounts:
    """Count launches by whether and why they do not count."""
    every = [*launches]
    discarded = discarded_launches(every)
    reasons = Counter(reason for _, reason in discarded)
    lost = {id(launch) for launch, _ in discarded}
    measuring = [launch for launch in every if launch.kind == "measure"]
    skipped = sum(launch.status == "skipped" for launch in measuring)
    return LaunchCounts(
        counted=len(measuring) - skipped - len(lost),
        disturbed=sum(
            launch.status == "ok" and interference.is_mostly_disturbed(launch)
            for launch in measuring
            if id(launch) not in lost
        ),
        discarded=tuple(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        skipped=skipped,
        profiled=len(every) - len(measuring),
    )
