"""The result of one scenario in one run: its cells, comparisons, profiles and findings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.incomplete_run import IncompleteRun, find_incomplete, spent_budget
from corebound.analysis.wording import OpenReason, open_reason, times
from corebound.diagnosis.diagnose import diagnose
from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding
from corebound.groups import grouped
from corebound.planning.models import Placement
from corebound.records.launch_record import Launch, OperatorProfile
from corebound.records.run_record import Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import baselines_of, expand, shorten_labels
from corebound.scenario.models import Measure, Scenario, measure_for
from corebound.scenario.select import filter_cells
from corebound.stats.comparison import Comparison, compare_together
from corebound.stats.interference import is_mostly_disturbed, undelayed_iteration_ns
from corebound.stats.intervals import Interval
from corebound.stats.launch_summary import CellSummary, LaunchSummary, summarise
from corebound.stats.multiplicity import holm, suite_findings


def _placement_signature(launches: Iterable[Launch]) -> object:
    """A key for what a cell ran as on this host, apart from its binding; None if unknown.

    Cells with equal keys had the same CPUs, memory and threads.
    """
    for launch in launches:
        placement = launch.placement
        if launch.status != "ok" or placement is None:
            continue
        cell = launch.cell
        return (
            placement.slots,
            placement.memory,
            placement.moment,
            # OpenMP binds each thread; the other backends bind whole processes.
            placement.backend == "openmp",
            tuple(worker.threads_used or placement.threads for worker in launch.workers),
            cell.workers,
            cell.environment,
            cell.framework,
            cell.parameters,
            cell.env,
            tuple(pair for pair in cell.axes if pair[0] not in {"binding", "threads", "smt"}),
        )
    return None


def _least_slowdown(
    cell: CellSummary, baseline: CellSummary | None, launches: Sequence[Launch]
) -> float | None:
    """How many times slower than its baseline a cell is that was too slow for the budget."""
    if cell.median_ns or cell.cell.metrics or baseline is None or not baseline.median_ns:
        return None
    known_ns = [ns for launch in launches if (ns := undelayed_iteration_ns(launch)) is not None]
    ratio = max(known_ns, default=0.0) / baseline.median_ns
    return ratio if ratio > 1 else None


class CellResult(Struct, frozen=True, kw_only=True):
    """The result of one cell that was launched, successfully or not.

    Attributes:
        launches: Every launch of it, by block, whatever its status.
        summary: The summary of its `ok` launches.
        baseline: The cell it is compared with; None for the baseline itself.
        comparison: Its speed against the baseline's; None if one of the two has no values.
        equivalent_cell: An earlier cell of the scenario that has the same CPUs, memory and threads
            on this host. The two can differ only by noise and by whether the kernel enforces the
            binding. None if there is none.
        duplicates: The cells that were not launched because this one is the same on the host, in
            the order of the file. Its result is theirs.
        least_slowdown_ratio: How many times slower than the baseline it is at least; None if it
            has a result, or if a budget did not end its launches.
        reported: The summary of each metric that its command reports, whose cell has that metric
            only; the first is what `summary` is of.
        timed: In that case, the summary of the times of its iterations.
    """

    cell: Cell
    launches: tuple[Launch, ...]
    summary: CellSummary
    baseline: Cell | None
    comparison: Comparison | None
    equivalent_cell: Cell | None
    duplicates: tuple[Cell, ...] = ()
    least_slowdown_ratio: float | None = None
    timed: CellSummary | None = None
    reported: tuple[CellSummary, ...] = ()

    @property
    def times(self) -> CellSummary:
        """The summary of its iterations' times, whatever it is judged by."""
        return self.timed or self.summary

    @property
    def is_measured(self) -> bool:
        """Whether any launch of it has a result."""
        return self.summary.median_ns is not None

    @property
    def bound(self) -> str:
        """How much slower than its baseline it is at least, in words; empty if unknown."""
        least = self.least_slowdown_ratio
        return f"at least {times(least)} slower than the baseline" if least else ""

    @property
    def placement(self) -> Placement | None:
        """Where it ran: the same for every launch of a run."""
        return next((launch.placement for launch in self.launches if launch.placement), None)


# A configuration this slow, against its baseline, is highlighted as a trap.
_MUCH_SLOWER = 0.5
# A comparison of fewer launches of either side leads a page only if equal cells look as different
# as that in one of a thousand comparisons.
_LEAST_FOR_HEADLINE = 5
_STRICT_P_VALUE = 0.001


def may_lead(cell: CellResult, other: CellResult, comparison: Comparison) -> bool:
    """Whether a difference between two cells may be a headline, if it is significant.

    Of all that a run compares, a page shows the largest first. With few launches that is too often
    one whose spread is small by chance.
    """
    fewest = min(len(cell.summary.launches), len(other.summary.launches))
    p_value = comparison.p_value
    return fewest >= _LEAST_FOR_HEADLINE or (p_value is not None and p_value <= _STRICT_P_VALUE)


class BaselineComparison(Struct, frozen=True, kw_only=True):
    """A cell, its baseline, and the result of their comparison."""

    cell: CellResult
    baseline: CellResult
    comparison: Comparison

    @property
    def is_same_placement(self) -> bool:
        """Whether both have the same CPUs, memory and threads, so that it repeats the baseline."""
        cell, baseline = (
            self.cell.equivalent_cell or self.cell.cell,
            self.baseline.equivalent_cell or self.baseline.cell,
        )
        return cell.key == baseline.key

    @property
    def is_itself(self) -> bool:
        """Whether both also have the same binding, so that only a variable or noise can differ."""
        return self.is_same_placement and self.cell.cell.binding == self.baseline.cell.binding


class ScenarioResult(Struct, frozen=True, kw_only=True):
    """The result of one scenario in one run.

    Attributes:
        source: The scenario as the run recorded it.
        scenario: The same, parsed.
        measure: How its cells were measured, under the run's profile.
        planned: All cells of the scenario, in the order of the file.
        by_key: The cells with a launch by their keys, in the same order.
        ranked: The comparisons, fastest first; ties keep the same order.
        profiles: The launches that profiled operators, in the same order. The cells do not include
            them.
        incomplete: What an interrupted run left incomplete; None if it is complete.
        decided: The ids of cells that differ from their baseline, after correction across the
            scenarios of the run: those of `decide_together`.
    """

    run: Run
    source: ScenarioSource
    scenario: Scenario
    measure: Measure
    planned: tuple[Cell, ...]
    by_key: Mapping[str, CellResult]
    ranked: tuple[BaselineComparison, ...]
    profiles: tuple[Launch, ...]
    incomplete: IncompleteRun | None
    decided: frozenset[str] = frozenset()

    @property
    def cells(self) -> tuple[CellResult, ...]:
        """The cells with a launch, in the order of the file."""
        return tuple(self.by_key.values())

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Every measuring launch, in the order they ran."""
        launches = (launch for cell in self.cells for launch in cell.launches)
        return tuple(sorted(launches, key=lambda launch: (launch.block, launch.position)))

    @property
    def winner(self) -> BaselineComparison | None:
        """The fastest of the cells that are clearly faster than their baseline.

        Clearly means significant after correcting for all comparisons of the scenario, one in
        twenty of which would look faster or slower by chance. A cell without an equivalent earlier
        cell is preferred, because only noise decides between equivalent cells. A cell with the same
        placement and binding as the baseline never wins, nor one with few launches, see `may_lead`.
        """
        significant = holm([pair.comparison.p_value for pair in self.ranked])
        faster = [
            pair
            for pair, is_significant in zip(self.ranked, significant, strict=True)
            if is_significant
            and pair.comparison.verdict == "faster"
            and not pair.is_itself
            and may_lead(pair.cell, pair.baseline, pair.comparison)
        ]
        distinct = [pair for pair in faster if pair.cell.equivalent_cell is None]
        return next(iter(distinct or faster), None)

    @property
    def leader(self) -> BaselineComparison | None:
        """The winner, else the fastest cell.

        A cell that repeats the baseline leads only if there is no other.
        """
        rivals = [pair for pair in self.ranked if not pair.is_same_placement]
        return self.winner or next(iter(rivals or self.ranked), None)

    @property
    def trap(self) -> BaselineComparison | None:
        """The slowest cell, if it is clearly and much slower than its baseline."""
        slowest = next(reversed(self.ranked), None)
        if slowest is None or slowest.comparison.verdict != "slower":
            return None
        return slowest if slowest.comparison.speedup_ratio <= _MUCH_SLOWER else None

    @property
    def baseline(self) -> CellResult | None:
        """The leader's baseline, or the first cell without a baseline."""
        leader = self.leader
        if leader is not None:
            return leader.baseline
        return next((cell for cell in self.cells if cell.baseline is None), None)

    @property
    def baselines(self) -> tuple[Cell, ...]:
        """The cells that others are compared with, in the order of the file."""
        named = {cell.baseline.key: cell.baseline for cell in self.cells if cell.baseline}
        return tuple(named[key] for key in named)

    def open_reason(self, cell: CellResult) -> OpenReason | None:
        """Why the comparison of a cell is inconclusive; None if it is not, or without one."""
        cut = self.incomplete
        out_of_budget = (
            cut is not None and bool(cut.budget) and cell.summary.count("ok") < cut.least
        )
        if cell.comparison is None:
            return None
        return open_reason(cell.comparison, out_of_budget=out_of_budget)

    def find(self, cell: Cell | None) -> CellResult | None:
        """The result of a cell, or of the one measured for it; None if neither was launched."""
        return self.by_key.get(self.run.measured_key(cell)) if cell else None


def analyse_scenario(
    run: Run, source: ScenarioSource, launches: Sequence[Launch]
) -> ScenarioResult:
    """Compute the result of one scenario in one run.

    Args:
        source: The scenario, one of the run's.
        launches: All of the run's launches, in any order. Those of other scenarios only show how
            long the run took.

    Raises:
        ScenarioFaults: this version cannot read the recorded scenario.
    """
    scenario = load_document(source.document, source.path)
    planned = tuple(expand(scenario, source.path, run.profile))
    measure = measure_for(scenario, run.profile)
    # The only place that separates the two kinds: values come from measuring launches alone.
    own_launches = [launch for launch in launches if launch.cell.scenario == scenario.name]
    launched = _by_cell((launch for launch in own_launches if launch.kind == "measure"), planned)
    profiles = [launch for launch in own_launches if launch.kind == "profile"]
    # The names tell which cells the run was to measure. An interrupted run has not launched all of
    # them.
    requested = filter_cells(planned, run.only)
    missing = [cell for cell in requested if cell.key not in launched]
    labelled = shorten_labels([*(own[0].cell for own in launched.values()), *missing])
    by_key = {cell.key: cell for cell in labelled}
    planned = tuple(by_key.get(cell.key, cell) for cell in planned)
    duplicates = grouped([by_key[cell.key] for cell in missing], run.measured_key)
    summaries = {
        key: summarise(by_key[key], own, measure.warmup, within_run=True)
        for key, own in launched.items()
    }
    baselines = _measured_baselines(run, scenario, labelled[: len(launched)], planned)
    baseline_summaries = [summaries.get(cell.key) if cell else None for cell in baselines]
    comparisons = compare_together(
        list(zip(summaries.values(), baseline_summaries, strict=True)),
        margin=measure.margin,
        adaptive=measure.launches.follow_spread,
    )
    first_alike = _first_alike(launched, by_key)
    cells: dict[str, CellResult] = {}
    for (key, own), baseline, baseline_summary, comparison in zip(
        launched.items(), baselines, baseline_summaries, comparisons, strict=True
    ):
        cell, alike = by_key[key], first_alike[key]
        repeats = baseline is not None and alike is first_alike.get(baseline.key)
        cells[key] = CellResult(
            cell=cell,
            launches=tuple(own),
            summary=summaries[key],
            baseline=baseline,
            # No number of launches can separate a cell from itself.
            comparison=replace(comparison, launches_needed=None)
            if comparison and repeats
            else comparison,
            equivalent_cell=None if alike is cell else alike,
            duplicates=tuple(duplicates.get(key, ())),
            least_slowdown_ratio=_least_slowdown(summaries[key], baseline_summary, own),
            timed=summarise(replace(cell, metrics=()), own, measure.warmup, -1, within_run=True)
            if cell.metrics
            else None,
            reported=tuple(
                summarise(
                    replace(cell, metrics=(metric,)), own, measure.warmup, index, within_run=True
                )
                for index, metric in enumerate(cell.metrics)
            ),
        )
    result = ScenarioResult(
        run=run,
        source=source,
        scenario=scenario,
        measure=measure,
        planned=planned,
        by_key=cells,
        ranked=_ranked(cells),
        profiles=tuple(sorted(profiles, key=lambda launch: launch.position)),
        incomplete=find_incomplete(
            [cell for cell in requested if run.measured_key(cell) == cell.key],
            launched,
            summaries,
            least=run.launches or measure.launches.min,
            budget=spent_budget(run, launches),
        ),
    )
    return decide_together([result])[0]


def decide_together(results: Sequence[ScenarioResult]) -> tuple[ScenarioResult, ...]:
    """The results, with the cells that are decided in all scenarios of their run together."""
    decided: dict[str, frozenset[str]] = {}
    for run in {result.run.id for result in results}:
        cells = [cell for result in results if result.run.id == run for cell in result.cells]
        significant = suite_findings([cell.comparison for cell in cells])
        decided[run] = frozenset(
            cell.cell.id
            for cell, is_significant in zip(cells, significant, strict=True)
            if is_significant
        )
    return tuple(replace(result, decided=decided[result.run.id]) for result in results)


def _ranked(cells: Mapping[str, CellResult]) -> tuple[BaselineComparison, ...]:
    comparisons = [
        BaselineComparison(cell=cell, baseline=cells[cell.baseline.key], comparison=cell.comparison)
        for cell in cells.values()
        if cell.baseline is not None and cell.comparison is not None
    ]
    return tuple(sorted(comparisons, key=lambda comparison: -comparison.comparison.speedup_ratio))


def _by_cell(launches: Iterable[Launch], planned: Sequence[Cell]) -> dict[str, list[Launch]]:
    """The launches of each cell in the order they ran, by key, in the order of the file."""
    in_order = sorted(launches, key=lambda launch: (launch.block, launch.position))
    by_key = grouped(in_order, lambda launch: launch.cell.key)
    order = {cell.key: index for index, cell in enumerate(planned)}
    return {key: by_key[key] for key in sorted(by_key, key=lambda key: order.get(key, len(order)))}


def _measured_baselines(
    run: Run, scenario: Scenario, cells: Sequence[Cell], planned: Sequence[Cell]
) -> list[Cell | None]:
    """The cell that was measured as the baseline of each cell; None for a baseline itself."""
    by_key = {cell.key: cell for cell in planned}
    measured = [
        baseline and by_key.get(run.measured_key(baseline), baseline)
        for baseline in baselines_of(cells, planned, scenario)
    ]
    return [
        baseline if baseline and baseline.key != cell.key else None
        for cell, baseline in zip(cells, measured, strict=True)
    ]


def _first_alike(
    launched: Mapping[str, Sequence[Launch]], cells: Mapping[str, Cell]
) -> dict[str, Cell]:
    """The first cell that ran as each one did, by the key of that one: itself if none before."""
    by_signature: dict[object, Cell] = {}
    return {
        key: by_signature.setdefault(_placement_signature(launches) or key, cells[key])
        for key, launches in launched.items()
    }


def compare_cells(result: ScenarioResult, cell: Cell, other: Cell) -> Comparison | None:
    """Compare any two cells of a scenario result, as a claim does; None if they cannot be.

    A cell and its baseline have the same interval here as in the table, whichever comes first.
    Other pairs share no variances.
    """
    first, second = result.find(cell), result.find(other)
    if first is None or second is None or first is second:
        return None
    if result.find(first.baseline) is second:
        return first.comparison
    pairs = [(first.summary, second.summary)]
    if result.find(second.baseline) is first:
        pairs += [
            (pair.cell.summary, pair.baseline.summary)
            for pair in result.ranked
            if pair.cell is not second
        ]
    measure = result.measure
    comparison, *_ = compare_together(
        pairs, margin=measure.margin, adaptive=measure.launches.follow_spread
    )
    return comparison


def same_configurations(result: ScenarioResult) -> int:
    """How many configurations have the same CPUs and threads on the host as an earlier one."""
    return sum(len(cell.duplicates) + (cell.equivalent_cell is not None) for cell in result.cells)


class TypicalLaunch(NamedTuple):
    """The launch of a cell that is nearest to its median, the earliest of equals."""

    cell: CellResult
    launch: Launch
    summary: LaunchSummary


def typical_launch(cell: CellResult) -> TypicalLaunch | None:
    """The launch to show for a cell; None without a result."""
    middle_ns = cell.summary.median_ns
    if middle_ns is None:
        return None
    selected = min(cell.summary.launches, key=lambda summary: abs(summary.median_ns - middle_ns))
    launch = next(launch for launch in cell.launches if launch.id == selected.launch)
    return TypicalLaunch(cell, launch, selected)


class CellProfile(Struct, frozen=True, kw_only=True):
    """A cell's profile: that of its first worker.

    Attributes:
        disturbed: Whether it was disturbed from outside so much that no sentence may use it.
        others: The profiles of its other workers.
    """

    cell: Cell
    launch: Launch
    profile: OperatorProfile
    measured_ns: float | None
    measured: Interval | None
    others: tuple[OperatorProfile, ...]
    disturbed: bool


def cell_profiles(result: ScenarioResult) -> tuple[CellProfile, ...]:
    """The cells with a profile, in the order of the file."""
    profiles = []
    for launch in result.profiles:
        profile = launch.workers[0].profile if launch.workers else None
        if launch.status == "ok" and profile is not None:
            measured_cell = result.find(launch.cell)
            profiles.append(
                CellProfile(
                    cell=launch.cell,
                    launch=launch,
                    profile=profile,
                    measured_ns=measured_cell.summary.median_ns if measured_cell else None,
                    measured=measured_cell.summary.interval if measured_cell else None,
                    others=tuple(worker.profile for worker in launch.workers[1:] if worker.profile),
                    disturbed=is_mostly_disturbed(launch),
                )
            )
    return tuple(profiles)


def findings(result: ScenarioResult) -> tuple[Finding, ...]:
    """Diagnose a scenario; findings are ordered by strength."""
    profiles = {cell.cell.key: cell.profile for cell in cell_profiles(result) if not cell.disturbed}
    return diagnose(
        Evidence(
            cells=tuple(
                CellEvidence(
                    cell=cell.cell,
                    launches=cell.launches,
                    summary=cell.summary,
                    profile=profiles.get(cell.cell.key),
                )
                for cell in result.cells
            ),
            topology=result.run.host.topology,
            margin=result.measure.margin,
            adaptive=result.measure.launches.follow_spread,
        )
    )
