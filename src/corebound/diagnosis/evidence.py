"""What rules look at: the cells of one scenario in one run, and how they compare."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from msgspec import Struct

from corebound.diagnosis.launches import median, most_common, threads_of, total, wait_share
from corebound.model.plan import Cell, Placement
from corebound.model.profile import OperatorProfile
from corebound.model.record import Launch
from corebound.model.topology import CpuId, NodeId, Topology
from corebound.stats.compare import compare
from corebound.stats.summary import CellSummary
from corebound.units import ratio

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
        margin, adaptive: As `stats.compare.compare` takes them.
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
