"""The input and output of diagnosis rules: what they judge, and findings.

A rule judges a cell of a scenario in one run. One that takes a `Subject` also judges a running
service, whose evidence has the same properties (`diagnosis.service_evidence`).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Literal

from msgspec import Struct

from corebound.machine.topology import Cpu, CpuId, NodeId, Topology
from corebound.planning.models import Placement
from corebound.records.launch_record import Launch, OperatorProfile, Worker
from corebound.records.telemetry import Cause, QuotaUse, sum_known
from corebound.records.thread_use import computing
from corebound.scenario.cell import Cell
from corebound.scenario.settings import SETTINGS
from corebound.stats.comparison import compare
from corebound.stats.interference import LEAST_LOST_CPUS, MOST_DISTURBED, lost_cpus
from corebound.stats.interference import Loss as LostCpus
from corebound.stats.launch_summary import CellSummary
from corebound.units import duration, ratio

# `bad`: seen, with a measured cost in time. `warn`: seen, but its cost was not measured.
# `plain`: nothing is wrong, but time could be saved here.
FindingTone = Literal["bad", "warn", "plain"]


class Finding(Struct, frozen=True, kw_only=True):
    """One likely cause found in a scenario's records, and its fix.

    Attributes:
        rule: The rule's name, as docs/reference/diagnosis.md lists it.
        what: What was seen, in a sentence with values; describes the first of `cells`.
        evidence: The values that support it, one line each.
        fix: The setting or the command that fixes it.
        cells: The affected cells, worst first.
        times_ratio: How many times as long as necessary an iteration takes because of it,
            as far as known. Findings are ordered by it.
        of_first: Whether the other `cells` have different values than the first.
        line: What to set outside corebound, to copy; empty if it is not a line.
    """

    rule: str
    tone: FindingTone
    what: str
    evidence: tuple[str, ...]
    fix: str
    cells: tuple[Cell, ...]
    times_ratio: float
    of_first: bool = False
    line: str = ""


class Disturbed(Struct, frozen=True, kw_only=True):
    """What took CPU time from a subject.

    Attributes:
        share: The share of its CPU time that it lost.
        when: How often, in words: `during most of 2 of 6 launches`.
        lines: The evidence.
    """

    share: float
    when: str
    lines: tuple[str, ...]


ThreadCounter = Literal["migrations", "voluntary", "involuntary", "run_ns", "wait_ns"]


def total(launch: Launch, field: ThreadCounter) -> int | None:
    """The sum of one count over all threads of a launch."""
    threads = (thread for worker in launch.workers for thread in worker.threads)
    return sum_known(getattr(thread, field) for thread in threads)


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
        nodes: The node of each CPU of the launch's host.
    """
    if launch.placement is None or len(set(nodes.values())) < 2:
        return None
    local_bytes = total_bytes = 0
    for worker in launch.workers:
        own_nodes = {nodes.get(cpu) for cpu in launch.placement.slots[worker.slot].cpus}
        local_bytes += sum(size for node, size in worker.node_bytes.items() if node in own_nodes)
        total_bytes += sum(worker.node_bytes.values())
    return 1 - local_bytes / total_bytes if total_bytes else None


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
    cpus = {cpu.id: cpu for cpu in topology.cpus}
    threads = [thread for worker in launch.workers for thread in worker.threads]
    if not threads:
        return None
    counts: Counter[str] = Counter()
    for thread in threads:
        visited = [cpus.get(stay.cpu) for stay in thread.stays if stay.to_ms > 0]
        counts.update(
            _distance(before, after) for before, after in pairwise(visited) if before and after
        )
    return Moves(**{name: counts[name] for name in Moves.__struct_fields__})


def _node_moves(launch: Launch, topology: Topology) -> int | None:
    sampled = moves(launch, topology)
    return None if sampled is None else sampled.across_nodes


def _distance(before: Cpu, after: Cpu) -> str:
    if before.node != after.node:
        return "across_nodes"
    if before.core != after.core:
        return "across_cores"
    return "within_cores" if before.id != after.id else "nowhere"


def threads_of(worker: Worker) -> int | None:
    """Threads that one worker computes with: the number it reports, or more if more were seen."""
    reported, sampled = worker.threads_used, computing(worker)
    return max((number for number in (reported, sampled) if number is not None), default=None)


def allowed_cpus(worker: Worker) -> frozenset[CpuId] | None:
    """The CPU affinity of the worker's threads at the end; None if they were not sampled."""
    last = [thread.allowed[-1] for thread in worker.threads if thread.allowed]
    return frozenset(cpu for cpus in last for cpu in cpus) if last else None


def median(launches: Iterable[Launch], value: Callable[[Launch], float | None]) -> float | None:
    """The median of a value over launches; None if no launch has it."""
    values = [number for launch in launches if (number := value(launch)) is not None]
    return float(statistics.median(values)) if values else None


def most_common(values: Iterable[int | None]) -> int | None:
    """The most frequent value; None if there are no values."""
    counts = Counter(value for value in values if value is not None)
    return max(counts, key=lambda value: (counts[value], value)) if counts else None


# Fewer throttled periods cost little: the work in a period that just exceeds its quota is done at
# the start of the next.
LEAST_THROTTLED = 0.1
# A mean this much above the median shows that stops are concentrated in few iterations.
_HIDDEN_RATIO = 1.2
# A choice: a smaller loss is not worth a finding even if it is certain, because the table of
# configurations already shows it. A margin of equivalence is mostly 2 %.
LEAST_LOSS_RATIO = 1.05

# The settings that change the number of threads and nothing else.
POOLS = ("threads", "omp", "mkl", "intra_op")
# Axes that change how the work is run, but not the work itself: settings, and parameters of the
# built-in workloads.
HOW_IT_RUNS = (
    *(name for name, setting in SETTINGS.items() if not setting.changes_work),
    *("dispatch_threads", "blocking"),
)


class CellEvidence(Struct, frozen=True, kw_only=True):
    """The evidence on one cell.

    Attributes:
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
    def reported_threads(self) -> int | None:
        """Threads that each worker reports."""
        return most_common(worker.threads_used for launch in self.ok for worker in launch.workers)

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

    @property
    def room(self) -> int | None:
        """CPUs per worker; the smallest number, if workers differ."""
        if self.placement is None:
            return None
        return min(len(set(slot.cpus)) for slot in self.placement.slots)

    @property
    def workers(self) -> int:
        """The number of its workers."""
        return self.cell.workers

    @property
    def pooled(self) -> tuple[int | None, int]:
        """The threads of each worker, and the number of workers that have as many."""
        return self.threads, self.workers

    def node_moves(self, topology: Topology) -> float:
        """Moves of its threads between nodes per launch, as sampled."""
        return median(self.ok, lambda launch: _node_moves(launch, topology)) or 0

    def remote_share(self, nodes: Mapping[CpuId, NodeId | None]) -> float | None:
        """Median share of its memory on nodes that none of its CPUs belongs to."""
        return median(self.ok, lambda launch: remote_share(launch, nodes))

    @property
    def node_bytes(self) -> Mapping[int, int]:
        """Its memory by node, over all launches."""
        by_node: Counter[int] = Counter()
        for launch in self.ok:
            for worker in launch.workers:
                by_node.update(worker.node_bytes)
        return by_node

    @property
    def affinities(self) -> tuple[tuple[frozenset[CpuId], ...], ...]:
        """The CPUs that each sampled worker was allowed, of each launch."""
        each = ([allowed_cpus(worker) for worker in launch.workers] for launch in self.ok)
        return tuple(tuple(cpus for cpus in launch if cpus is not None) for launch in each)

    def spare_cores(self, topology: Topology) -> int:
        """None: its scenario says which CPUs to use."""
        del topology
        return 0

    @property
    def cpu_time_ns(self) -> float | None:
        """CPU time per iteration or request."""
        return self.summary.cpu_median_ns

    @property
    def wall_time_ns(self) -> float | None:
        """Time per iteration or request."""
        return self.summary.wall_median_ns

    @property
    def unit(self) -> str:
        """What these times are of."""
        return "request" if any(launch.served for launch in self.ok) else "iteration"

    runnable_cpus = None
    over = "per launch"
    is_pinned = False
    is_kept_waiting = True
    quota_is_own = True

    @property
    def is_late(self) -> bool:
        """Whether it was bound after its pools had started."""
        return self.placement is not None and self.placement.moment == "after-start"

    @property
    def has_default_threads(self) -> bool:
        """Whether the scenario does not set its number of threads."""
        return self.cell.threads.rule == "default"

    @property
    def _most_throttled(self) -> Launch | None:
        launches = [launch for launch in self.launches if _throttled_share(launch) is not None]
        return max(launches, key=lambda launch: _throttled_share(launch) or 0.0, default=None)

    @property
    def quota(self) -> QuotaUse | None:
        """Its quota in the launch that was throttled most."""
        return None if self._most_throttled is None else self._most_throttled.quota

    @property
    def throttled_share(self) -> float | None:
        """The median share of periods in which the quota stopped threads."""
        return median(self.launches, _throttled_share)

    @property
    def quota_setting(self) -> str:
        """The setting that is its quota, as the first of a list."""
        return "`cpu_quota`, " if self.cell.cpu_quota else ""

    @property
    def throttled_cpus_share(self) -> float:
        """For how long, as a share of its CPUs."""
        worst = self._most_throttled
        if worst is None or worst.quota is None:
            return 0.0
        timed_ns = worst.host.duration_ms * 1_000_000 if worst.host else 0
        return (worst.quota.throttled_ns or 0) / max(1, timed_ns * max(1, len(self.cpus)))

    @property
    def stops_hidden(self) -> str | None:
        """That the median of iterations does not show how long a quota stopped threads."""
        return stops_hidden_by_the_median(self.launches)

    def disturbed(self, cause: Cause) -> Disturbed | None:
        """Whether something outside took CPU time from most of a launch."""
        hit = [launch for launch in self.launches if _is_hit(launch, cause)]
        if not hit:
            return None
        worst = max(hit, key=lambda launch: _lost_share(launch, cause))
        kept = sum(launch.status == "ok" for launch in hit)
        return Disturbed(
            share=_lost_share(worst, cause),
            when=f"during most of {len(hit)} of {len(self.launches)} launches",
            lines=(
                *(worst.disturbance.evidence if worst.disturbance else ()),
                *_counted(kept, "kept and marked"),
                *_counted(len(hit) - kept, "without results"),
            ),
        )

    def binding_advice(self) -> str:
        """The binding that gives each worker its own CPUs, if there is one to recommend."""
        if (server := self.cell.runtime.server) is not None and server.pins_workers:
            return ", or `binding: launcher`"
        return "" if self.unit == "request" else ", best with `binding: per-worker`"

    def setting(self, own: str, outside: str) -> str:
        """What to set: `threads: 1` in the scenario, or a variable outside of corebound."""
        return f"{own} (outside corebound: {outside})"

    def thread_setting(self, own: str, number: int, each: str = "") -> tuple[str, str]:
        """A setting of the scenario, or a variable outside of corebound."""
        line = f"OMP_NUM_THREADS={number}"
        return self.setting(own, line + each), line

    def value(self, axis: str) -> str | None:
        """Its value on an axis; None if the scenario has no such axis."""
        return dict(self.cell.axes).get(axis)

    @property
    def has_loaders(self) -> bool:
        """Whether processes of their own prepare its data."""
        loaders = self.value("loaders") or dict(self.cell.parameters).get("loaders")
        return loaders not in {None, "0", 0}

    def finding(
        self,
        *,
        rule: str,
        what: str,
        evidence: tuple[str, ...],
        fix: str,
        line: str = "",
        loss: Loss | None = None,
        tone: FindingTone = "warn",
        times_ratio: float = 1.0,
    ) -> Finding:
        """A finding about this cell. A loss that is shown makes it `bad`, and is its cost."""
        return Finding(
            rule=rule,
            tone="bad" if loss else tone,
            what=what,
            evidence=evidence,
            fix=fix,
            cells=(self.cell,),
            times_ratio=loss.ratio if loss else times_ratio,
            line=line,
        )


class Loss(Struct, frozen=True, kw_only=True):
    """A cell is slower than another, by the 95 % interval of that single comparison.

    Attributes:
        than: The faster cell.
        ratio: How many times as long the cell takes.
    """

    than: CellEvidence
    ratio: float


class Evidence(Struct, frozen=True, kw_only=True):
    """One scenario in one run.

    Attributes:
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

    def peers(self, cell: object, axes: Collection[str]) -> tuple[CellEvidence, ...]:
        """The other measured cells that differ from this cell on these axes only."""
        if not isinstance(cell, CellEvidence):
            return ()
        other_axes = _without(cell.cell, axes)
        return tuple(
            other
            for other in self.cells
            if other.cell.key != cell.cell.key
            and other.summary.median_ns is not None
            and _without(other.cell, axes) == other_axes
        )

    def loss(self, cell: CellEvidence, other: CellEvidence) -> Loss | None:
        """The loss of a cell against another; None if the 95 % interval does not show one."""
        compared = compare(cell.summary, other.summary, margin=self.margin, adaptive=self.adaptive)
        if compared is None or compared.verdict != "slower":
            return None
        ratio_of_times = 1 / compared.speedup_ratio
        return (
            Loss(than=other, ratio=ratio_of_times) if ratio_of_times >= LEAST_LOSS_RATIO else None
        )

    def worst_loss(self, cell: object, others: Collection[CellEvidence]) -> Loss | None:
        """The largest loss of a cell against any of `others`; None if no loss is shown.

        There is no correction for multiple comparisons. With many others, a loss appears by
        chance in more than one of twenty cases, and the largest ratio is on average too large.
        """
        if not isinstance(cell, CellEvidence):
            return None
        losses = [loss for other in others if (loss := self.loss(cell, other)) is not None]
        return max(losses, key=lambda loss: loss.ratio, default=None)


def spin_share(cell: CellSummary, cells: Collection[CellSummary]) -> float | None:
    """Share of an iteration's CPU time that made no progress: an estimated upper bound.

    Cells that differ only in how the work is run do the same work. The cell with the least
    CPU time is the reference. What another cell uses beyond that is spinning at barriers and
    locks, or work that became slower: 1 - least / own. This is work time inflation (Olivier
    et al., Characterizing and Mitigating Work Time Inflation in Task Parallel Programs,
    SC 2012).

    Args:
        cells: The cells of its scenario in this run.

    Returns:
        A share of its CPU time, or None if it is unknown or no cell is comparable.
    """
    own_ns, work = cell.cpu_median_ns, _without(cell.cell, HOW_IT_RUNS)
    others_ns = [
        other.cpu_median_ns
        for other in cells
        if other.cpu_median_ns is not None
        and other.cell.key != cell.cell.key
        and _without(other.cell, HOW_IT_RUNS) == work
    ]
    if not own_ns or not others_ns:
        return None
    return max(0.0, 1 - min(others_ns) / own_ns)


def settings(cell: CellEvidence, other: object) -> str:
    """The settings of a cell that differ from another's, as in a scenario: `threads: 1`."""
    values = dict(other.cell.axes) if isinstance(other, CellEvidence) else {}
    differing = [f"{axis}: {value}" for axis, value in cell.cell.axes if values.get(axis) != value]
    return ", ".join(differing) or cell.cell.key


def slower_than(cell: object, loss: Loss) -> str:
    """A loss in words: "2× slower than with `threads: 1`"."""
    return f"{ratio(loss.ratio)} slower than with `{settings(loss.than, cell)}`"


def _without(cell: Cell, axes: Collection[str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in cell.axes if pair[0] not in axes)


def cpu_share(launch: Launch) -> float | None:
    """CPU time of a launch's processes as a share of its CPUs' capacity; None if unknown."""
    host = launch.host
    if host is None:
        return None
    if not launch.alternated:
        return host.share("ran_ns", cpus=len(host.cpus))
    ran_ns, timed_ns = sum_known(window.ran_ns for window in host.windows), _timed_ns(launch)
    return ran_ns / (timed_ns * len(host.cpus)) if ran_ns is not None and timed_ns else None


def waiting_share(launch: Launch) -> float | None:
    """Share of the time that the process of the step neither ran nor waited for a CPU.

    The value of its busiest thread, in the worker where the share is smallest; None if unknown.
    """
    timed_ns = _timed_ns(launch)
    busy = [
        thread_ns for worker in launch.workers if (thread_ns := _busiest_ns(worker)) is not None
    ]
    return max(0.0, 1 - max(busy) / timed_ns) if busy and timed_ns else None


def helper_share(launch: Launch) -> float | None:
    """CPU time of the busiest process that a worker started, as a share of elapsed time."""
    timed_ns = _timed_ns(launch)
    helpers_ns = [
        ran_ns
        for worker in launch.workers
        for pid, ran_ns in _by_process(worker).items()
        if pid != _own(worker)
    ]
    return max(helpers_ns) / timed_ns if helpers_ns and timed_ns else None


def _timed_ns(launch: Launch) -> int:
    """How long a launch was timed; for alternating launches, the sum of its own time slices."""
    if launch.alternated:
        return sum(sum(worker.wall_ns[1:]) for worker in launch.workers)
    return launch.host.duration_ms * 1_000_000 if launch.host else 0


def _own(worker: Worker) -> int | None:
    """The worker's own process: the lowest process id, as it started before its children."""
    return min((thread.pid for thread in worker.threads), default=None)


def _busiest_ns(worker: Worker) -> int | None:
    own = _own(worker)
    threads_ns = [
        thread.run_ns + (thread.wait_ns or 0)
        for thread in worker.threads
        if thread.pid == own and thread.run_ns is not None
    ]
    return max(threads_ns, default=None)


def _by_process(worker: Worker) -> Counter[int]:
    run_ns: Counter[int] = Counter()
    for thread in worker.threads:
        run_ns[thread.pid] += thread.run_ns or 0
    return run_ns


def _throttled_share(launch: Launch) -> float | None:
    return launch.quota.throttled_share if launch.quota else None


def stops_hidden_by_the_median(launches: Sequence[Launch]) -> str | None:
    """That iterations are too short for their median to show how long a quota stopped threads."""
    stopped = [
        launch
        for launch in launches
        if launch.status == "ok" and (_throttled_share(launch) or 0.0) >= LEAST_THROTTLED
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


def _is_hit(launch: Launch, cause: Cause) -> bool:
    """Whether this cause disturbed most of a launch; less does not affect its median.

    If there are several causes, one that took almost no CPU time overall is not reported.
    """
    disturbance, host = launch.disturbance, launch.host
    if disturbance is None or host is None or disturbance.share <= MOST_DISTURBED:
        return False
    return lost_cpus(host).get(cause, LostCpus(0.0)).cpus >= LEAST_LOST_CPUS


def _lost_share(launch: Launch, cause: Cause) -> float:
    """CPU time lost to a cause: share of all the launch's CPUs, or of the one that lost most."""
    host = launch.host
    if host is None or not host.duration_ms:
        return 0.0
    loss = lost_cpus(host).get(cause, LostCpus(0.0))
    return min(1.0, max(loss.cpus / len(host.cpus), loss.most))


def _counted(number: int, what: str) -> tuple[str, ...]:
    return (f"{number} launch{'es' if number > 1 else ''} {what}",) if number else ()
