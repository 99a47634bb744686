"""The input and output of diagnosis rules: the cells of a scenario in one run, and findings."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Literal

from msgspec import Struct

from corebound.machine.topology import Cpu, CpuId, NodeId, Topology
from corebound.planning.models import Placement
from corebound.records.launch_record import Launch, OperatorProfile, ThreadEvidence, Worker
from corebound.records.telemetry import known_sum
from corebound.scenario.cell import Cell
from corebound.stats.comparison import compare
from corebound.stats.launch_summary import CellSummary
from corebound.units import ratio

# `bad`: seen, with a measured cost in time. `warn`: seen, but its cost was not measured.
# `plain`: nothing is wrong, but time could be saved here.
Tone = Literal["bad", "warn", "plain"]


class Finding(Struct, frozen=True, kw_only=True):
    """One likely cause found in a scenario's records, and its fix.

    Attributes:
        rule: The rule's name, as docs/diagnosis.md lists it.
        what: What was seen, in a sentence with values; describes the first of `cells`.
        evidence: The values that support it, one line each.
        fix: The setting or the command that fixes it.
        cells: The affected cells, worst first.
        times_ratio: How many times as long as necessary an iteration takes because of it,
            as far as known. Findings are ordered by it.
        of_first: Whether the other `cells` have different values than the first.
    """

    rule: str
    tone: Tone
    what: str
    evidence: tuple[str, ...]
    fix: str
    cells: tuple[Cell, ...]
    times_ratio: float
    of_first: bool = False


Counted = Literal["migrations", "voluntary", "involuntary", "run_ns", "wait_ns"]

# A thread counts as computing if it has at least this share of the CPU time of its process's
# busiest thread. The threads of a pool use about the same time; those of a profiler or a
# logger use next to nothing.
_LEAST_BUSY_SHARE = 0.25


def total(launch: Launch, field: Counted) -> int | None:
    """The sum of one count over all threads of a launch."""
    threads = (thread for worker in launch.workers for thread in worker.threads)
    return known_sum(getattr(thread, field) for thread in threads)


def wait_share(launch: Launch) -> float | None:
    """Run-queue wait: the share of ready time that the launch's threads waited for a CPU."""
    run_ns, wait_ns = total(launch, "run_ns"), total(launch, "wait_ns")
    if run_ns is None or wait_ns is None or run_ns + wait_ns == 0:
        return None
    return wait_ns / (run_ns + wait_ns)


def remote_share(launch: Launch, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
    """Share of the workers' memory on nodes that none of their CPUs belongs to.

    None if unknown, and on a host with one node, where it has no meaning.

    Args:
        launch: The launch.
        nodes: The node of each CPU of the launch's host.
    """
    if launch.placement is None or len(set(nodes.values())) < 2:
        return None
    own = all_bytes = 0
    for worker in launch.workers:
        mine = {nodes.get(cpu) for cpu in launch.placement.slots[worker.slot].cpus}
        own += sum(size for node, size in worker.node_bytes.items() if node in mine)
        all_bytes += sum(worker.node_bytes.values())
    return 1 - own / all_bytes if all_bytes else None


class Moves(Struct, frozen=True, kw_only=True):
    """How often threads were seen on another CPU than just before, by distance.

    The kernel counts migrations, not their source or target. Migrations between two samples
    can be missed.
    """

    within_cores: int
    across_cores: int
    across_nodes: int


def moves(launch: Launch, topology: Topology) -> Moves | None:
    """The moves of a launch's threads once measuring began; None if threads were not sampled."""
    places = {cpu.id: cpu for cpu in topology.cpus}
    threads = [thread for worker in launch.workers for thread in worker.threads]
    if not threads:
        return None
    found: Counter[str] = Counter()
    for thread in threads:
        seen = [places.get(stay.cpu) for stay in thread.stays if stay.to_ms > 0]
        found.update(_distance(one, other) for one, other in pairwise(seen) if one and other)
    return Moves(**{name: found[name] for name in Moves.__struct_fields__})


def _distance(one: Cpu, other: Cpu) -> str:
    if one.node != other.node:
        return "across_nodes"
    if one.core != other.core:
        return "across_cores"
    return "within_cores" if one.id != other.id else "nowhere"


def computing(worker: Worker) -> int | None:
    """Threads of the worker's busiest process that compute at once; None if not sampled.

    Threads that a worker starts anew for each iteration follow one another, so only those
    that exist at the same time count.
    """
    by_process: dict[int, list[ThreadEvidence]] = {}
    for thread in worker.threads:
        if thread.run_ns is not None and any(stay.to_ms > 0 for stay in thread.stays):
            by_process.setdefault(thread.pid, []).append(thread)
    if not by_process:
        return None
    main = max(by_process.values(), key=lambda threads: sum(one.run_ns or 0 for one in threads))
    most_ns = max(one.run_ns or 0 for one in main)
    return _at_once([one for one in main if (one.run_ns or 0) >= _LEAST_BUSY_SHARE * most_ns])


def _at_once(threads: Sequence[ThreadEvidence]) -> int:
    """The maximum number of threads whose spans from first to last sample overlap."""
    spans = [
        (min(stay.from_ms for stay in seen), max(stay.to_ms for stay in seen))
        for one in threads
        if (seen := [stay for stay in one.stays if stay.to_ms > 0])
    ]
    return max((sum(begin <= at < end for begin, end in spans) for at, _ in spans), default=0)


def threads_of(worker: Worker) -> int | None:
    """Threads that one worker computes with: the number it reports, or more if more were seen."""
    said, seen = worker.threads_used, computing(worker)
    return max((number for number in (said, seen) if number is not None), default=None)


def allowed_cpus(worker: Worker) -> frozenset[CpuId] | None:
    """The CPU affinity of the worker's threads at the end; None if they were not sampled."""
    last = [thread.allowed[-1] for thread in worker.threads if thread.allowed]
    return frozenset(cpu for cpus in last for cpu in cpus) if last else None


def median(launches: Iterable[Launch], of: Callable[[Launch], float | None]) -> float | None:
    """The median of a value over launches; None if no launch has it."""
    known = [number for launch in launches if (number := of(launch)) is not None]
    return float(statistics.median(known)) if known else None


def most_common(values: Iterable[int | None]) -> int | None:
    """The most frequent value; None if there are no values."""
    counted = Counter(value for value in values if value is not None)
    return max(counted, key=lambda value: (counted[value], value)) if counted else None


# A choice: a smaller loss is not worth a finding even if it is certain, because the table of
# configurations already shows it. A margin of equivalence is mostly 2 %.
LEAST_LOSS_RATIO = 1.05

# Axes that change how the work is run, but not the work itself.
HOW_IT_RUNS = (
    *("binding", "bind", "smt", "backend", "memory", "threads", "omp", "mkl", "intra_op"),
    *("inter_op", "wait_policy", "dispatch_threads", "blocking"),
)


class CellEvidence(Struct, frozen=True, kw_only=True):
    """The evidence on one cell.

    Attributes:
        cell: The cell.
        launches: All its launches that were meant to measure, whatever their status.
        summary: The summary of its `ok` launches.
        profile: The operators of an iteration, if they were profiled.
    """

    cell: Cell
    launches: tuple[Launch, ...]
    summary: CellSummary
    profile: OperatorProfile | None = None

    @property
    def ok(self) -> tuple[Launch, ...]:
        """The launches that count for results."""
        return tuple(launch for launch in self.launches if launch.status == "ok")

    @property
    def placement(self) -> Placement | None:
        """Its placement: the same for every launch of a run."""
        return next((launch.placement for launch in self.ok if launch.placement), None)

    @property
    def cpus(self) -> frozenset[CpuId]:
        """The CPUs of all its workers."""
        slots = self.placement.slots if self.placement else ()
        return frozenset(chain.from_iterable(slot.cpus for slot in slots))

    @property
    def threads(self) -> int | None:
        """Threads that each worker computes with."""
        return most_common(threads_of(worker) for launch in self.ok for worker in launch.workers)

    @property
    def threads_said(self) -> int | None:
        """Threads that each worker reports."""
        return most_common(worker.threads_used for one in self.ok for worker in one.workers)

    @property
    def wait_share(self) -> float | None:
        """Run-queue wait: the median share of ready time that its threads waited for a CPU."""
        return median(self.ok, wait_share)

    @property
    def involuntary(self) -> float | None:
        """Involuntary context switches per launch."""
        return median(self.ok, lambda launch: total(launch, "involuntary"))

    @property
    def migrations(self) -> float | None:
        """Migrations between CPUs per launch."""
        return median(self.ok, lambda launch: total(launch, "migrations"))

    def value(self, axis: str) -> str | None:
        """Its value on an axis; None if the scenario has no such axis."""
        return dict(self.cell.axes).get(axis)


class Loss(Struct, frozen=True, kw_only=True):
    """A cell is slower than another, by the 95 % interval of that single comparison.

    Attributes:
        than: The other cell.
        ratio: How many times as long the cell takes.
    """

    than: CellEvidence
    ratio: float


class Evidence(Struct, frozen=True, kw_only=True):
    """One scenario in one run.

    Attributes:
        cells: The cells that have a launch.
        topology: The host's topology.
        margin, adaptive: Arguments of `stats.comparison.compare`.
    """

    cells: tuple[CellEvidence, ...]
    topology: Topology
    margin: float
    adaptive: bool

    @property
    def nodes(self) -> dict[CpuId, NodeId | None]:
        """The node of each CPU."""
        return {cpu.id: cpu.node for cpu in self.topology.cpus}

    def cores(self, cpus: Collection[CpuId]) -> int:
        """Number of cores that these CPUs belong to."""
        return len({cpu.core for cpu in self.topology.cpus if cpu.id in cpus})

    def peers(self, one: CellEvidence, axes: Collection[str]) -> tuple[CellEvidence, ...]:
        """The other measured cells that differ from this cell on these axes only."""
        kept = _without(one.cell, axes)
        return tuple(
            other
            for other in self.cells
            if other.cell.key != one.cell.key
            and other.summary.median_ns is not None
            and _without(other.cell, axes) == kept
        )

    def loss(self, one: CellEvidence, other: CellEvidence) -> Loss | None:
        """The loss of a cell against another; None if the 95 % interval does not show one."""
        compared = compare(one.summary, other.summary, margin=self.margin, adaptive=self.adaptive)
        if compared is None or compared.verdict != "slower":
            return None
        times = 1 / compared.speedup_ratio
        return Loss(than=other, ratio=times) if times >= LEAST_LOSS_RATIO else None

    def worst_loss(self, one: CellEvidence, others: Collection[CellEvidence]) -> Loss | None:
        """The largest loss of a cell against any of `others`; None if no loss is shown.

        There is no correction for multiple comparisons. With many others, a loss appears by
        chance in more than one of twenty cases, and the largest ratio is on average too large.
        """
        losses = [loss for other in others if (loss := self.loss(one, other)) is not None]
        return max(losses, key=lambda loss: loss.ratio, default=None)


def cpu_ratio(one: CellEvidence, other: CellEvidence) -> float | None:
    """CPU time of an iteration as a multiple of another cell's; None if unknown."""
    own_ns, other_ns = one.summary.cpu_median_ns, other.summary.cpu_median_ns
    return own_ns / other_ns if own_ns is not None and other_ns else None


def spin_share(one: CellSummary, among: Collection[CellSummary]) -> float | None:
    """Share of an iteration's CPU time that made no progress: an estimated upper bound.

    Cells that differ only in how the work is run do the same work. The cell with the least
    CPU time is the reference. What another cell uses beyond that is spinning at barriers and
    locks, or work that became slower: 1 - least / own. This is work time inflation (Olivier
    et al., Characterizing and Mitigating Work Time Inflation in Task Parallel Programs,
    SC 2012).

    Args:
        one: The cell.
        among: The cells of its scenario in this run.

    Returns:
        A share of its CPU time, or None if it is unknown or no cell is comparable.
    """
    own_ns, work = one.cpu_median_ns, _without(one.cell, HOW_IT_RUNS)
    others_ns = [
        other.cpu_median_ns
        for other in among
        if other.cpu_median_ns is not None
        and other.cell.key != one.cell.key
        and _without(other.cell, HOW_IT_RUNS) == work
    ]
    if not own_ns or not others_ns:
        return None
    return max(0.0, 1 - min(others_ns) / own_ns)


def settings(cell: Cell, other: Cell) -> str:
    """The settings of a cell that differ from another's, as in a scenario: `threads: 1`."""
    values = dict(other.axes)
    differing = [f"{axis}: {value}" for axis, value in cell.axes if values.get(axis) != value]
    return ", ".join(differing) or cell.key


def as_long_as(one: CellEvidence, loss: Loss) -> str:
    """A loss in words: "2× as long as with `threads: 1`"."""
    return f"{ratio(loss.ratio)} as long as with `{settings(loss.than.cell, one.cell)}`"


def _without(cell: Cell, axes: Collection[str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in cell.axes if pair[0] not in axes)


def cpu_share(launch: Launch) -> float | None:
    """CPU time of a launch's processes as a share of its CPUs' capacity; None if unknown."""
    host = launch.host
    if host is None:
        return None
    if not launch.alternated:
        return host.share("ran_ns", cpus=len(host.cpus))
    ran_ns, whole_ns = known_sum(window.ran_ns for window in host.windows), _whole_ns(launch)
    return ran_ns / (whole_ns * len(host.cpus)) if ran_ns is not None and whole_ns else None


def gpu_share(launch: Launch) -> float | None:
    """Share of the time that the busiest GPU was busy; None if no GPU was monitored."""
    shares = launch.host.gpu_busy_shares if launch.host else ()
    return statistics.fmean(shares) if shares else None


def waiting_share(launch: Launch) -> float | None:
    """Share of the time that the process of the step neither ran nor waited for a CPU.

    The value of its busiest thread, in the worker where the share is smallest; None if unknown.
    """
    whole_ns = _whole_ns(launch)
    busy = [most for worker in launch.workers if (most := _busiest_ns(worker)) is not None]
    return max(0.0, 1 - max(busy) / whole_ns) if busy and whole_ns else None


def helper_share(launch: Launch) -> float | None:
    """CPU time of the busiest process that a worker started, as a share of elapsed time."""
    whole_ns = _whole_ns(launch)
    each = [
        ran_ns
        for worker in launch.workers
        for pid, ran_ns in _by_process(worker).items()
        if pid != _own(worker)
    ]
    return max(each) / whole_ns if each and whole_ns else None


def _whole_ns(launch: Launch) -> int:
    """How long a launch was timed; for alternating launches, the sum of its own time slices."""
    if launch.alternated:
        return sum(sum(worker.wall_ns[1:]) for worker in launch.workers)
    return launch.host.duration_ms * 1_000_000 if launch.host else 0


def _own(worker: Worker) -> int | None:
    """The worker's own process: the lowest process id, as it started before its children."""
    return min((thread.pid for thread in worker.threads), default=None)


def _busiest_ns(worker: Worker) -> int | None:
    own = _own(worker)
    used = [
        thread.run_ns + (thread.wait_ns or 0)
        for thread in worker.threads
        if thread.pid == own and thread.run_ns is not None
    ]
    return max(used, default=None)


def _by_process(worker: Worker) -> Counter[int]:
    found: Counter[int] = Counter()
    for thread in worker.threads:
        found[thread.pid] += thread.run_ns or 0
    return found
