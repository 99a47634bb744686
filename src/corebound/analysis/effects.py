"""Effects: differences between two configurations of a scenario, and their words."""

import math
from collections.abc import Iterable, Iterator
from itertools import combinations

from msgspec import Struct

from corebound.analysis import wording
from corebound.analysis.scenario_result import (
    BaselineComparison,
    CellResult,
    ScenarioResult,
    compare_cells,
    may_lead,
)
from corebound.analysis.selection import title_of, varying_axes
from corebound.scenario.cell import Binding, Cell, Threads
from corebound.scenario.settings import SETTINGS
from corebound.stats.comparison import Comparison
from corebound.stats.launch_summary import CellSummary

# Axes on which cells do the same work in another library, so that they can be compared although
# they have different baselines.
_LIBRARY_AXES = frozenset({"environment", "framework"})


class Effect(Struct, frozen=True, kw_only=True):
    """A difference between two configurations of one scenario.

    Attributes:
        cell, other: The two; the comparison is of the first against the second.
        title: What both have in common and other groups of the scenario do not; may be empty.
    """

    cell: CellResult
    other: CellResult
    comparison: Comparison
    title: str = ""

    @property
    def is_faster(self) -> bool:
        """Whether the first is the faster one."""
        return self.comparison.speedup_ratio > 1

    @property
    def least_ratio(self) -> float:
        """How many times faster or slower it is at least, at the end of the interval nearest to 1.

        At least 1.
        """
        interval = self.comparison.interval
        if interval is None:
            return 1.0
        return max(1.0, interval.low, 1 / interval.high)

    @property
    def may_lead(self) -> bool:
        """Whether it may be a headline, if it is significant."""
        return may_lead(self.cell, self.other, self.comparison)

    @property
    def distance(self) -> float:
        """How far the ratio is from 1, as a logarithm."""
        return abs(math.log(self.comparison.speedup_ratio))

    @property
    def slower(self) -> CellResult:
        """The slower one of the two."""
        return self.other if self.is_faster else self.cell

    @property
    def condition(self) -> str:
        """When it holds, if others disturbed the slower side; else empty."""
        return beside_others(self.slower.summary)

    @property
    def between_libraries(self) -> bool:
        """Whether both do the same work and differ in their library or framework only."""
        axes = wording.differing_axes(self.cell.cell, self.other.cell)
        return bool(axes) and _LIBRARY_AXES.issuperset(axes)

    @property
    def is_actionable(self) -> bool:
        """Whether somebody can act on it.

        What is slower because it has more to do, or may use less CPU time, is no advice.
        """
        cell, other = self.cell.cell, self.other.cell
        return self.is_faster or (cell.parameters, cell.cpu_quota) == (
            other.parameters,
            other.cpu_quota,
        )

    @property
    def subject(self) -> str:
        """The first configuration, as the subject of a sentence: `binding to one CPU`."""
        if self.between_libraries:
            return library(self.cell.cell)
        text = wording.doing(self.cell.cell, self.other.cell)
        return text[:1].lower() + text[1:]

    @property
    def name(self) -> str:
        """The first configuration by what distinguishes it from the second: `one CPU`."""
        if self.between_libraries:
            return library(self.cell.cell)
        return wording.compared_with(self.other.cell, self.cell.cell)

    @property
    def reference(self) -> str:
        """The second configuration, as the other side of the comparison: `the default`."""
        if self.between_libraries:
            return library(self.other.cell)
        axes = wording.differing_axes(self.cell.cell, self.other.cell)
        if is_default(self.other.cell) and not any(_is_work(axis) for axis in axes):
            return "the default"
        return wording.compared_with(self.cell.cell, self.other.cell)

    @property
    def instruction(self) -> str:
        """What to do to get the first configuration, without a full stop."""
        if self.between_libraries:
            what = f"Use {self.subject} instead of {self.reference}"
        else:
            what = wording.instruction(self.cell.cell, self.other.cell)
        return f"{what} {self.condition}".rstrip()


def beside_others(slower: CellSummary) -> str:
    """The words for a difference of which most launches of the slower side were disturbed.

    Threads that wait for one another may lose many times what others take, so that the difference
    is another one without them. Empty for other launches.
    """
    return "while others use the CPUs" if 2 * slower.disturbed > len(slower.launches) else ""


def library(cell: Cell) -> str:
    """The name of a cell's library: its environment, or its framework if that is an axis."""
    return cell.framework if "framework" in dict(cell.axes) else cell.environment


def _is_work(axis: str) -> bool:
    """Whether an axis changes what is computed, by what or by how many, not how it is run."""
    return axis not in SETTINGS or axis in {*_LIBRARY_AXES, "workers", "gpus", "commit"}


def is_default(cell: Cell) -> bool:
    """Whether a cell sets nothing: unbound, with the framework's own threads and variables."""
    return cell.binding == Binding() and cell.threads == Threads() and not cell.env


def effects_of(result: ScenarioResult) -> list[Effect]:
    """The comparisons that are not of a cell with itself."""
    return [effect_of(result, pair) for pair in result.ranked if not pair.is_itself]


def effect_of(result: ScenarioResult, pair: BaselineComparison) -> Effect:
    return Effect(
        cell=pair.cell,
        other=pair.baseline,
        comparison=pair.comparison,
        title=title_of(pair.cell.cell, varying_axes(result.baselines)),
    )


def effects_between_libraries(result: ScenarioResult) -> Iterator[Effect]:
    """Comparisons of the baselines of two libraries that do the same work."""
    baselines = {cell.key for cell in result.baselines}
    cells = [cell for cell in result.cells if cell.cell.key in baselines]
    axes = varying_axes([cell.cell for cell in cells])
    for left, other in combinations(cells, 2):
        differing = {
            axis
            for axis in axes
            if dict(left.cell.axes).get(axis) != dict(other.cell.axes).get(axis)
        }
        if not differing or not differing <= _LIBRARY_AXES:
            continue
        comparison = compare_cells(result, left.cell, other.cell)
        first, second = left, other
        if comparison is not None and comparison.verdict == "slower":
            first, second = other, left
            comparison = compare_cells(result, other.cell, left.cell)
        if comparison is not None:
            yield Effect(
                cell=first,
                other=second,
                comparison=comparison,
                title=title_of(left.cell, [axis for axis in axes if axis not in _LIBRARY_AXES]),
            )


def keeps_baseline(effects: Iterable[Effect]) -> bool:
    """Whether an alternative was decided not to be faster."""
    return any(effect.comparison.verdict in {"slower", "equivalent"} for effect in effects)


def likely_effects(effects: Iterable[Effect]) -> list[Effect]:
    # Nobody arrives at more threads than CPUs by accident: such a cell shows what it would cost.
    return [effect for effect in effects if effect.is_faster or not is_oversubscribed(effect.cell)]


def is_oversubscribed(cell: CellResult) -> bool:
    """Whether a cell requests more threads for a process than the process has CPUs."""
    placement = cell.placement
    if placement is None:
        return False
    threads = max(placement.threads or 0, placement.omp or 0)
    return any(threads > len(slot.cpus) for slot in placement.slots)
