"""What the rules look at, the cells of one scenario in one run, and what a rule finds."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Literal

from msgspec import Struct

from corebound.machine.topology import Cpu, CpuId, NodeId, Topology
from corebound.planning.slots import Placement
from corebound.records.launch_record import Launch, OperatorProfile, ThreadEvidence, Worker
from corebound.records.telemetry import known_sum
from corebound.scenario.cell import Cell
from corebound.stats.comparison import compare
from corebound.stats.launch_summary import CellSummary
from corebound.units import ratio

# `bad`: it was seen to cost time. `warn`: it was seen, what it costs was not.
# `plain`: nothing is wrong, but here is where time could be won.
Tone = Literal["bad", "warn", "plain"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that stands out in a scenario's records, and what mends it.

    Attributes:
        rule: The rule's name, as docs/diagnosis.md lists it.
        what: What was seen, in a sentence with figures; of the first of `cells`.
        evidence: The figures it rests on, a line each.
        remedy: The setting or the command that mends it.
        cells: Where it was seen, the worst first.
        times_ratio: How many times as long as need be it makes an iteration take,
            as far as that is known: what findings are ordered by.
        of_first: Whether the others of `cells` have other figures than the first.
    """

    rule: str
    tone: Tone
    what: str
    evidence: tuple[str, ...]
    remedy: str
    cells: tuple[Cell, ...]
    times_ratio: float
    of_first: bool = False


Counted = Literal["migrations", "voluntary", "involuntary", "run_ns", "wait_ns"]

# Of the threads of a process those compute that have at least this share of the CPU time
# of its busiest: the threads of a pool get about the same, a profiler's or a logger's
# next to nothing.
_LEAST_BUSY_SHARE = 0.25


def total(launch: Launch, field: Counted) -> int | None:
    """A count of every thread of a launch, taken together."""
    threads = (thread for worker in launch.workers for thread in worker.threads)
    return known_sum(getattr(thread, field) for thread in threads)


def wait_share(launch: Launch) -> float | None:
    """Share of the time its threads were ready to run that they waited for a CPU."""
    run_ns, wait_ns = total(launch, "run_ns"), total(launch, "wait_ns")
    if run_ns is None or wait_ns is None or run_ns + wait_ns == 0:
        return None
    return wait_ns / (run_ns + wait_ns)


def remote_share(launch: Launch, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
    """Share of the workers' memory that is on a node none of their CPUs belongs to.

    None where nobody could say, and on a host of one node, where it means nothing.

    Args:
        launch: The launch.
        nodes: The node of each CPU of its host.
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
    """How often threads were seen on another CPU than just before, by how far that is.

    The kernel counts moves, not whence and whither; between two looks some are not seen.
    """

    within_cores: int
    across_cores: int
    across_nodes: int


def moves(launch: Launch, topology: Topology) -> Moves | None:
    """The moves of a launch's threads once told to go; None where nobody looked."""
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
    """How many threads of the worker's busiest process compute at once; None if nobody looked.

    Threads that a worker starts for each iteration follow one another: they are as many as
    there are at one time.
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
    """The most of them between whose first and last sight some moment lies."""
    spans = [
        (min(stay.from_ms for stay in seen), max(stay.to_ms for stay in seen))
        for one in threads
        if (seen := [stay for stay in one.stays if stay.to_ms > 0])
    ]
    return max((sum(begin <= at < end for begin, end in spans) for at, _ in spans), default=0)


def threads_of(worker: Worker) -> int | None:
    """Threads that one worker computes with: as it says, or more where more were seen to."""
    said, seen = worker.threads_used, computing(worker)
    return max((number for number in (said, seen) if number is not None), default=None)


def allowed_cpus(worker: Worker) -> frozenset[CpuId] | None:
    """Where the worker's threads could run at the end; None where nobody looked."""
    last = [thread.allowed[-1] for thread in worker.threads if thread.allowed]
    return frozenset(cpu for cpus in last for cpu in cpus) if last else None


def median(launches: Iterable[Launch], of: Callable[[Launch], float | None]) -> float | None:
    """The median of a figure over launches; None where none has it."""
    known = [number for launch in launches if (number := of(launch)) is not None]
    return float(statistics.median(known)) if known else None


def most_common(values: Iterable[int | None]) -> int | None:
    """The number seen most often; None where none was."""
    counted = Counter(value for value in values if value is not None)
    return max(counted, key=lambda value: (counted[value], value)) if counted else None


# A choice: a loss below this is not worth a finding, even where it is certain, for the
# settings' table says it already. A margin of equivalence is mostly 2 %.
LEAST_LOSS_RATIO = 1.05

# Axes that change how work is run, never what is done.
HOW_IT_RUNS = (
    *("binding", "bind", "smt", "backend", "memory", "threads", "omp", "mkl", "intra_op"),
    *("inter_op", "wait_policy", "dispatch_threads", "blocking"),
)


class CellEvidence(Struct, frozen=True, kw_only=True):
    """What is known of one cell.

    Attributes:
        cell: The cell.
        launches: Every launch of it that was to measure, whatever became of it.
        summary: What the `ok` ones say.
        profile: The operators of an iteration, where they were profiled.
    """

    cell: Cell
    launches: tuple[Launch, ...]
    summary: CellSummary
    profile: OperatorProfile | None = None

    @property
    def ok(self) -> tuple[Launch, ...]:
        """The launches that enter figures."""
        return tuple(launch for launch in self.launches if launch.status == "ok")

    @property
    def placement(self) -> Placement | None:
        """Where it ran: the same for every launch of a run."""
        return next((launch.placement for launch in self.ok if launch.placement), None)

    @property
    def cpus(self) -> frozenset[CpuId]:
        """The CPUs that any of its workers was given."""
        slots = self.placement.slots if self.placement else ()
        return frozenset(chain.from_iterable(slot.cpus for slot in slots))

    @property
    def threads(self) -> int | None:
        """Threads that each worker computes with."""
        return most_common(threads_of(worker) for launch in self.ok for worker in launch.workers)

    @property
    def threads_said(self) -> int | None:
        """Threads that each worker says it has."""
        return most_common(worker.threads_used for one in self.ok for worker in one.workers)

    @property
    def wait_share(self) -> float | None:
        """Share of the time its threads were ready that they waited for a CPU."""
        return median(self.ok, wait_share)

    @property
    def involuntary(self) -> float | None:
        """Context switches a launch that its threads did not want."""
        return median(self.ok, lambda launch: total(launch, "involuntary"))

    @property
    def migrations(self) -> float | None:
        """Moves between CPUs a launch."""
        return median(self.ok, lambda launch: total(launch, "migrations"))

    def value(self, axis: str) -> str | None:
        """Its value on an axis; None where it is none of the scenario's."""
        return dict(self.cell.axes).get(axis)


class Loss(Struct, frozen=True, kw_only=True):
    """A cell that is slower than another by the 95 % interval of that one comparison.

    Attributes:
        than: The other.
        ratio: How many times as long the cell takes.
    """

    than: CellEvidence
    ratio: float


class Evidence(Struct, frozen=True, kw_only=True):
    """One scenario in one run.

    Attributes:
        cells: Those with a launch.
        topology: Of the host.
        margin, adaptive: As `stats.comparison.compare` takes them.
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
        """How many cores these CPUs belong to."""
        return len({cpu.core for cpu in self.topology.cpus if cpu.id in cpus})

    def peers(self, one: CellEvidence, axes: Collection[str]) -> tuple[CellEvidence, ...]:
        """The other measured cells that differ from this one on these axes only."""
        kept = _without(one.cell, axes)
        return tuple(
            other
            for other in self.cells
            if other.cell.key != one.cell.key
            and other.summary.median_ns is not None
            and _without(other.cell, axes) == kept
        )

    def loss(self, one: CellEvidence, other: CellEvidence) -> Loss | None:
        """What a cell loses to another; None where its 95 % interval does not show a loss."""
        compared = compare(one.summary, other.summary, margin=self.margin, adaptive=self.adaptive)
        if compared is None or compared.verdict != "slower":
            return None
        times = 1 / compared.speedup_ratio
        return Loss(than=other, ratio=times) if times >= LEAST_LOSS_RATIO else None

    def worst_loss(self, one: CellEvidence, others: Collection[CellEvidence]) -> Loss | None:
        """The greatest loss of a cell to any of others; None where none is shown.

        Each comparison is judged by itself, so of many others one may show a loss by chance more
        often than in one of twenty cases, and the greatest ratio is on average too large.
        """
        losses = [loss for other in others if (loss := self.loss(one, other)) is not None]
        return max(losses, key=lambda loss: loss.ratio, default=None)


def cpu_ratio(one: CellEvidence, other: CellEvidence) -> float | None:
    """CPU time of an iteration as a multiple of another cell's; None where unknown."""
    own_ns, other_ns = one.summary.cpu_median_ns, other.summary.cpu_median_ns
    return own_ns / other_ns if own_ns is not None and other_ns else None


def spin_share(one: CellSummary, among: Collection[CellSummary]) -> float | None:
    """CPU time of an iteration that made no progress: an estimate, and the most it can be.

    The same work is done with the least CPU time in one of the cells that differ in how
    it is run only; what a cell uses beyond that is spinning at barriers and locks, or work
    that got slower: 1 - least / own. This is work time inflation (Olivier et al.,
    Characterizing and Mitigating Work Time Inflation in Task Parallel Programs, SC 2012).

    Args:
        one: The cell.
        among: The cells of its scenario in this run.

    Returns:
        A share of its CPU time, or None where it is not known or none is comparable.
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
    """What a cell has that another has not, as a scenario writes it: `threads: 1`."""
    values = dict(other.axes)
    differing = [f"{axis}: {value}" for axis, value in cell.axes if values.get(axis) != value]
    return ", ".join(differing) or cell.key


def as_long_as(one: CellEvidence, loss: Loss) -> str:
    """How much longer a cell takes than the one it loses to: "2× as long as with `threads: 1`"."""
    return f"{ratio(loss.ratio)} as long as with `{settings(loss.than.cell, one.cell)}`"


def _without(cell: Cell, axes: Collection[str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in cell.axes if pair[0] not in axes)


def cpu_share(launch: Launch) -> float | None:
    """CPU time of a launch's processes as a share of what its CPUs could give; None if unknown."""
    host = launch.host
    if host is None:
        return None
    if not launch.alternated:
        return host.share("ran_ns", cpus=len(host.cpus))
    ran_ns, whole_ns = known_sum(window.ran_ns for window in host.windows), _whole_ns(launch)
    return ran_ns / (whole_ns * len(host.cpus)) if ran_ns is not None and whole_ns else None


def gpu_share(launch: Launch) -> float | None:
    """Share of the time that the busiest GPU was busy; None where none was watched."""
    shares = launch.host.gpu_busy_shares if launch.host else ()
    return statistics.fmean(shares) if shares else None


def waiting_share(launch: Launch) -> float | None:
    """Share of the time that the process of the step neither ran nor wanted a CPU.

    That of its busiest thread, of the worker where it is least; None where nobody could say.
    """
    whole_ns = _whole_ns(launch)
    busy = [most for worker in launch.workers if (most := _busiest_ns(worker)) is not None]
    return max(0.0, 1 - max(busy) / whole_ns) if busy and whole_ns else None


def helper_share(launch: Launch) -> float | None:
    """CPU time of the busiest process that a worker started, as a share of the time."""
    whole_ns = _whole_ns(launch)
    each = [
        ran_ns
        for worker in launch.workers
        for pid, ran_ns in _by_process(worker).items()
        if pid != _own(worker)
    ]
    return max(each) / whole_ns if each and whole_ns else None


def _whole_ns(launch: Launch) -> int:
    """How long it was timed; of launches that alternate the one's own stints."""
    if launch.alternated:
        return sum(sum(worker.wall_ns[1:]) for worker in launch.workers)
    return launch.host.duration_ms * 1_000_000 if launch.host else 0


def _own(worker: Worker) -> int | None:
    """The worker's own process: it was there before those that it started."""
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
