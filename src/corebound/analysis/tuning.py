"""What a run of `corebound tune` says: its race, its recommendation and how sure that is."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.records.launch_record import Launch
from corebound.records.race import NO_TIME, RaceRule, RaceSetup
from corebound.records.run_record import Run, ScenarioSource
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import baseline_of, expand
from corebound.scenario.models import Scenario
from corebound.scenario.objectives import OBJECTIVES, Objective
from corebound.stats.comparison import Comparison, compare_expected
from corebound.stats.interference import is_refused, undelayed_iteration_ns
from corebound.stats.launch_summary import (
    CellSummary,
    LaunchSummary,
    combine_launches,
    summarise_launch,
)
from corebound.stats.racing import (
    LEAST_FRESH,
    Entrant,
    Finalists,
    Race,
    finalists,
)
from corebound.stats.screening import Screening, race_after, screen

# The launches of each cell that count, by block.
LaunchesByBlock = Mapping[str, Mapping[int, Launch]]
Summarise = Callable[[Launch], LaunchSummary]

# While the fresh launches do not decide between the winner and the default, these two get more,
# up to this many times the usual number. Where launches have modes far apart, the usual number
# seldom decides: processes that share CPUs took 18 ms in some launches and 480 ms in others.
MOST_FRESH = 3

# A longer time between two blocks is an interruption.
_LONGEST_GAP_S = 10.0

# What to do. `unfinished`: the race has not ended, or has too few fresh launches.
TuneAdvice = Literal["change", "keep the default", "inconclusive", "unfinished", "nothing works"]


class RacedCells(Struct, frozen=True, kw_only=True):
    """The configurations of a race, and those that take part in its fresh launches anyway.

    `default` is what runs if nothing is set, and `launcher` the framework's own launcher; each
    is None if the host cannot hold it or if the framework has none.
    """

    cells: tuple[Cell, ...]
    default: str | None
    launcher: str | None

    @property
    def always(self) -> tuple[str, ...]:
        """The keys of the default and the launcher."""
        return tuple(key for key in (self.default, self.launcher) if key is not None)

    def cell(self, key: str) -> Cell:
        """The cell of a key that takes part."""
        return next(cell for cell in self.cells if cell.key == key)


def raced_cells(scenario: Scenario, cells: Sequence[Cell], raced: Sequence[Cell]) -> RacedCells:
    """The raced cells of a scenario whose baseline is the default.

    Args:
        raced: Those that are launched: without duplicates, and without what the host cannot hold.
    """
    keys = {cell.key for cell in raced}
    default = baseline_of(cells[0], cells, scenario)
    launchers = (cell.key for cell in raced if cell.binding.mode == "launcher")
    return RacedCells(
        cells=tuple(raced),
        default=default.key if default is not None and default.key in keys else None,
        launcher=next(launchers, None),
    )


def objective_summary(
    summary: LaunchSummary, cell: Cell, objective: Objective
) -> LaunchSummary | None:
    """A launch with what the objective compares as its median; None if it is unknown.

    A server is judged by the value of its traffic, whatever its number of workers.
    """
    of = OBJECTIVES[objective]
    if of.is_cpu_time:
        cpu_ns = summary.cpu_median_ns
        return None if cpu_ns is None else replace(summary, median_ns=cpu_ns)
    if not of.is_of_metric:
        summary = replace(summary, median_ns=summary.wall_median_ns)
    if of.is_of_all_workers and cell.runtime.server is None:
        return replace(summary, median_ns=summary.median_ns / cell.workers)
    return summary


def entrants(
    of: RacedCells, launches: LaunchesByBlock, tuning: RaceSetup, summarise: Summarise
) -> list[Entrant]:
    """The configurations with their launches, as a race needs them."""
    return [_entrant(cell, launches.get(cell.key, {}), tuning, summarise, of) for cell in of.cells]


def _entrant(
    cell: Cell,
    launches: Mapping[int, Launch],
    tuning: RaceSetup,
    summarise: Summarise,
    of: RacedCells,
) -> Entrant:
    log_costs, cpu_logs, failures, bounds = {}, {}, {}, {}
    disturbed, cpus, objective = set[int](), 0, OBJECTIVES[tuning.objective]
    for block, launch in launches.items():
        if launch.status == "skipped":
            continue
        if launch.status != "ok":
            failures[block] = launch.reason or f"The launch {launch.status}."
            least_ns = undelayed_iteration_ns(launch)
            is_time = not objective.is_cpu_time and not (objective.is_of_metric and cell.metric)
            if least_ns and is_time:
                of_workers = cell.workers if objective.is_of_all_workers else 1
                bounds[block] = math.log(least_ns / of_workers)
            continue
        summary = summarise(launch)
        judged = objective_summary(summary, cell, tuning.objective)
        if judged is None or judged.median_ns <= 0:
            failures[block] = f"The launch has no {tuning.objective}."
            continue
        log_costs[block] = math.log(judged.median_ns)
        if summary.disturbed:
            disturbed.add(block)
        if summary.cpu_median_ns:
            cpu_logs[block] = math.log(summary.cpu_median_ns)
        if launch.placement is not None:
            cpus = len({cpu for slot in launch.placement.slots for cpu in slot.cpus})
    return Entrant(
        key=cell.key,
        log_costs=log_costs,
        cpu_logs=cpu_logs,
        failures=failures,
        bounds=bounds,
        disturbed=frozenset(disturbed),
        cpus=cpus,
        is_default=cell.key == of.default,
    )


class RaceState(Struct, frozen=True, kw_only=True):
    """How far a race is, and who takes part in its fresh launches once it has ended.

    Attributes:
        screening: The short launches before the race.
        race: The race; it has not begun while the screening goes on.
        finalists: Who has fresh launches; None before, or if no configuration is left.
        inconclusive: The winner and the default while their fresh launches do not decide between
            them, looked at each time the usual number is complete; else empty.
    """

    screening: Screening
    race: Race
    finalists: Finalists | None
    inconclusive: tuple[str, ...] = ()

    @property
    def complete_blocks(self) -> int:
        """How many blocks are complete before the fresh launches."""
        return self.screening.blocks + self.race.blocks

    def keys(self, block: int, confirm_blocks: int) -> frozenset[str]:
        """The keys of the cells to launch in a block; empty at the end."""
        if self.screening.launching:
            return frozenset(self.screening.launching)
        if self.race.ending is None:
            return frozenset(self.race.remaining)
        if self.finalists is None:
            return frozenset()
        if block < self.complete_blocks + confirm_blocks:
            return frozenset(self.finalists.keys)
        if block < self.complete_blocks + MOST_FRESH * confirm_blocks:
            return frozenset(self.inconclusive)
        return frozenset()


def total_seconds(launch: Launch) -> float:
    """How long a launch took, in seconds, with those that were discarded before it.

    The record of a race has no other launch for a cell in a block, so these are assumed to have
    taken as long.
    """
    return (1 + launch.attempt) * launch.duration_ns / 1e9


def _spent_s(launches: LaunchesByBlock, *, since_end: bool) -> dict[int, float]:
    """How long the launches of each block took; if `since_end`, since the end of the last block.

    On a busy host, what is between short launches takes a third of the time. A race that was
    interrupted has a long time between two blocks, which does not count.
    """
    spent_s: dict[int, float] = {}
    ended_s: dict[int, float] = {}
    for by_block in launches.values():
        for block, launch in by_block.items():
            spent_s[block] = spent_s.get(block, 0.0) + total_seconds(launch)
            began_s = datetime.fromisoformat(launch.started_at).timestamp()
            end_s = began_s + launch.duration_ns / 1e9
            ended_s[block] = max(ended_s.get(block, end_s), end_s)
    if since_end:
        for block, before in zip(sorted(ended_s)[1:], sorted(ended_s), strict=False):
            since_s = ended_s[block] - ended_s[before]
            if spent_s[block] < since_s < 2 * spent_s[block] + _LONGEST_GAP_S:
                spent_s[block] = since_s
    return spent_s


def race_state(
    of: RacedCells, launches: LaunchesByBlock, tuning: RaceSetup, summarise: Summarise
) -> RaceState:
    """The state of a race, from the launches so far."""
    taking_part = entrants(of, launches, tuning, summarise)
    spent_s = _spent_s(launches, since_end=bool(tuning.rule.screen_iterations))
    if tuning.recommended is not None:
        keys = tuple(entrant.key for entrant in taking_part)
        race = Race(blocks=0, remaining=keys, dropped=(), ending="decided")
        again = Finalists(recommended=tuning.recommended, ties=(), keys=keys)
        return RaceState(screening=Screening(remaining=keys), race=race, finalists=again)
    rule = tuning.rule
    skipped = {
        key: block
        for key, by_block in launches.items()
        for block, launch in by_block.items()
        if launch.status == "skipped"
    }
    screening = screen(taking_part, rule, skipped=skipped, spent_s=spent_s)
    if screening.launching:
        race = Race(blocks=0, remaining=screening.remaining, dropped=(), ending=None)
        return RaceState(screening=screening, race=race, finalists=None)
    race, racing = race_after(screening, taking_part, rule, spent_s=spent_s)
    if race.ending is None:
        return RaceState(screening=screening, race=race, finalists=None)
    failed = {gone.key for gone in screening.out if gone.reason is not None}
    always = [key for key in of.always if key not in failed]
    chosen = finalists(race, racing, rule, always=always)
    if chosen is None:
        return RaceState(screening=screening, race=race, finalists=None)

    # With a look after each block, twice as many equal pairs would seem different.
    first_fresh = screening.blocks + race.blocks
    fresh_blocks = max(launches[chosen.recommended]) + 1 - first_fresh
    looked_at = fresh_blocks // rule.confirm_blocks * rule.confirm_blocks

    def fresh(key: str) -> CellSummary:
        of_key = launches.get(key, {}).items()
        blocks = range(first_fresh, first_fresh + looked_at)
        later = [launch for block, launch in of_key if block in blocks]
        return _summary(of.cell(key), later, tuning.objective, summarise)

    inconclusive = _inconclusive(chosen, of.default, fresh, rule.margin)
    return RaceState(screening=screening, race=race, finalists=chosen, inconclusive=inconclusive)


def _inconclusive(
    chosen: Finalists, default: str | None, fresh: Callable[[str], CellSummary], margin: float
) -> tuple[str, ...]:
    """The winner and the default, if their fresh launches do not decide between them."""
    if default is None or default == chosen.recommended or default not in chosen.keys:
        return ()
    comparison = compare_expected(
        fresh(chosen.recommended), fresh(default), margin=margin, adaptive=True
    )
    if comparison is None or comparison.verdict != "inconclusive":
        return ()
    return chosen.recommended, default


def _summary(
    cell: Cell, launches: Collection[Launch], objective: Objective, summarise: Summarise
) -> CellSummary:
    """Launches of a cell, with what the objective compares as their medians.

    The cell of the summary has a metric only if that is compared.
    """
    if not OBJECTIVES[objective].is_of_metric:
        cell = replace(cell, metrics=())
    judged = [
        objective_summary(summarise(launch), cell, objective)
        for launch in launches
        if launch.status == "ok"
    ]
    return combine_launches(
        cell,
        [summary for summary in judged if summary is not None],
        launches,
        within_run=True,
    )


class Confirmed(Struct, frozen=True, kw_only=True):
    """A finalist, with its fresh launches only.

    `comparison` compares the recommended configuration with it: above 1, the recommended one is
    better. None for the recommended one, or without launches.
    """

    cell: Cell
    summary: CellSummary
    comparison: Comparison | None


class TuneResult(Struct, frozen=True, kw_only=True):
    """The result of a run of `corebound tune`.

    Attributes:
        run, source: The run and its scenario with the candidates.
        confirmed: The finalists, the recommended one first.
        skipped: Cells that the host cannot hold, with the reason.
        duplicates: Cells that are the same as another one, each with that one.
        summaries: The launches of the race by cell, for those that have any.
        examples: A successful launch of each cell that has one.
    """

    run: Run
    source: ScenarioSource
    tuning: RaceSetup
    raced: RacedCells
    race_state: RaceState
    confirmed: tuple[Confirmed, ...]
    skipped: tuple[tuple[Cell, str], ...]
    duplicates: tuple[tuple[Cell, Cell], ...]
    advice: TuneAdvice
    summaries: Mapping[str, CellSummary]
    examples: Mapping[str, Launch]

    @property
    def cells(self) -> dict[str, Cell]:
        """The cells that took part, by key."""
        return {cell.key: cell for cell in self.raced.cells}

    @property
    def candidates(self) -> int:
        """How many configurations could have been tried on this host, with those that were."""
        no_time = sum(reason == NO_TIME for _, reason in self.skipped)
        return len(self.raced.cells) + no_time + len(self.tuning.not_tried)

    @property
    def recommended(self) -> Cell | None:
        """The configuration to use: the default itself if it should be kept; None without one."""
        if self.advice in {"nothing works", "unfinished"} or self.race_state.finalists is None:
            return None
        key = self.race_state.finalists.recommended
        if self.advice == "keep the default" and self.raced.default is not None:
            key = self.raced.default
        return self.cells[key]

    @property
    def to_set(self) -> Cell | None:
        """The configuration that files set; None unless something is better than the default."""
        return self.recommended if self.advice == "change" else None

    @property
    def launched_fresh(self) -> frozenset[str]:
        """The keys of the finalists that have fresh launches."""
        return frozenset(
            finalist.cell.key for finalist in self.confirmed if finalist.summary.launches
        )

    @property
    def ranked(self) -> tuple[str, ...]:
        """The keys of those tried: the recommended one first, those screened out last."""
        race, best, out = self.race_state.race, self.recommended, self.race_state.screening.out
        ended = [gone.key for gone in reversed(race.dropped)]
        ended += [gone.key for gone in sorted(out, key=lambda gone: gone.ratio or (math.inf, 0.0))]
        keys = (*race.remaining, *ended)
        return tuple(sorted(keys, key=lambda key: best is None or key != best.key))

    def summary(self, key: str) -> CellSummary:
        """The launches that give a configuration its value: its fresh ones if it has any."""
        fresh = {finalist.cell.key: finalist.summary for finalist in self.confirmed}
        return fresh[key] if key in self.launched_fresh else self.summaries[key]

    def compared(self, key: str, other: str) -> Comparison | None:
        """A cell compared with another: by fresh launches if both have them, else in the race.

        None without launches of both, and for those that did not race: a screening has too few.
        """
        fresh = {finalist.cell.key: finalist.summary for finalist in self.confirmed}
        is_fresh = {key, other} <= self.launched_fresh
        summaries = fresh if is_fresh else self.summaries
        screened = {gone.key for gone in self.race_state.screening.out}
        if not is_fresh and not screened.isdisjoint({key, other}):
            return None
        if key not in summaries or other not in summaries:
            return None
        return compare_expected(
            summaries[key],
            summaries[other],
            margin=self.tuning.rule.margin,
            adaptive=is_fresh and self.raced.default in {key, other},
        )

    def compared_with_default(self, key: str) -> Comparison | None:
        """A cell compared with the default, as by `compared`; None for the default itself."""
        default = self.raced.default
        return None if default is None or key == default else self.compared(key, default)

    def against(self, key: str | None) -> Comparison | None:
        """The winner of the race compared with a finalist, by fresh launches."""
        return next(
            (finalist.comparison for finalist in self.confirmed if finalist.cell.key == key), None
        )


def analyse_tuning(run: Run, launches: Iterable[Launch]) -> TuneResult:
    """The result of a run of `corebound tune`, also of one that is not complete.

    Raises:
        ValueError: The run is not one of `corebound tune`.
        ScenarioFaults: It was written by another version of corebound.
    """
    tuning = run.tuning
    if tuning is None:
        raise ValueError("not a run of `corebound tune`")
    (source,) = run.scenarios
    scenario = load_document(source.document, source.path)
    cells = expand(scenario, source.path, run.profile)
    by_block: dict[str, dict[int, Launch]] = {}
    skipped = []
    for launch in launches:
        if launch.status == "skipped":
            skipped.append((launch.cell, launch.reason or ""))
            if launch.reason != NO_TIME:
                continue
        if launch.kind == "measure" and not is_refused(launch):
            by_block.setdefault(launch.cell.key, {})[launch.block] = launch
    unfit = {cell.key for cell, reason in skipped if reason != NO_TIME}
    raced = [cell for cell in cells if cell.key not in unfit and run.measured_key(cell) == cell.key]
    by_key = {cell.key: cell for cell in cells}
    of = raced_cells(scenario, cells, raced)
    cache: dict[str, LaunchSummary] = {}

    def summarise(launch: Launch) -> LaunchSummary:
        if launch.id not in cache:
            cache[launch.id] = summarise_launch(launch, scenario.measure.warmup)
        return cache[launch.id]

    state = race_state(of, by_block, tuning, summarise)
    first_fresh = state.complete_blocks
    untried = {cell.key for cell, reason in skipped if reason == NO_TIME}
    tried = [cell for cell in raced if cell.key not in untried]

    def summary_of(key: str, *, fresh: bool) -> CellSummary:
        counted = [
            launch
            for block, launch in by_block.get(key, {}).items()
            if (block >= first_fresh) == fresh and launch.status != "skipped"
        ]
        return _summary(by_key[key], counted, tuning.objective, summarise)

    confirmed = _confirmed(state, of, tuning.rule, lambda key: summary_of(key, fresh=True))
    return TuneResult(
        run=run,
        source=source,
        tuning=tuning,
        raced=raced_cells(scenario, cells, tried),
        race_state=state,
        confirmed=confirmed,
        skipped=tuple(skipped),
        duplicates=tuple(
            (cell, by_key[run.measured_key(cell)])
            for cell in cells
            if run.measured_key(cell) != cell.key
        ),
        advice=_advice(state, of, confirmed, tuning),
        summaries={cell.key: summary_of(cell.key, fresh=False) for cell in tried},
        examples={
            key: launch
            for key, launches_ in by_block.items()
            for launch in launches_.values()
            if launch.status == "ok"
        },
    )


def _confirmed(
    state: RaceState, of: RacedCells, rule: RaceRule, summary_of: Callable[[str], CellSummary]
) -> tuple[Confirmed, ...]:
    if state.finalists is None:
        return ()
    recommended = summary_of(state.finalists.recommended)
    others = [summary_of(key) for key in state.finalists.keys if key != recommended.cell.key]
    return (
        Confirmed(cell=recommended.cell, summary=recommended, comparison=None),
        *(
            Confirmed(
                cell=other.cell,
                summary=other,
                comparison=compare_expected(
                    recommended,
                    other,
                    margin=rule.margin,
                    adaptive=other.cell.key == of.default,
                ),
            )
            for other in others
        ),
    )


def _advice(
    state: RaceState, of: RacedCells, confirmed: Sequence[Confirmed], tuning: RaceSetup
) -> TuneAdvice:
    least = min(tuning.rule.confirm_blocks, LEAST_FRESH)
    has_fresh = all(finalist.summary.attempts >= least for finalist in confirmed)
    if state.race.ending is None or not has_fresh:
        return "unfinished"
    if state.finalists is None:
        return "nothing works"
    if state.finalists.recommended == of.default:
        return "keep the default"
    default = next((finalist for finalist in confirmed if finalist.cell.key == of.default), None)
    if default is None or default.summary.median_ns is None:
        return "change"  # the default does not work at all
    verdict = default.comparison.verdict if default.comparison is not None else "inconclusive"
    advices: Mapping[str, TuneAdvice] = {"faster": "change", "inconclusive": "inconclusive"}
    return advices.get(verdict, "keep the default")
