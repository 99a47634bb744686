"""The race of a task of `corebound tune`: which cells a block launches, and for how long."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.analysis.tuning import (
    LaunchesByBlock,
    RacedCells,
    RaceState,
    Summarise,
    race_state,
    total_seconds,
)
from corebound.planning.plan import PlannedCell, shorten
from corebound.records.launch_record import Launch
from corebound.records.race import RaceSetup
from corebound.stats.screening import ITERATING_SHARE, has_time_to_screen, short_s

# No launch is ended before, because starting a framework takes that long.
_LEAST_CAP_S = 30.0
# In a screening, a launch that is so much longer than the shortest has iterations that are.
_LONGER = 2.0
_CAP_SHARE = 0.05
_LONGEST_SHARE = 0.25
# A first search for a rate ends if it cannot find this share of the highest rate so far. Searches
# of few requests find a rate that is up to 40 % too high, and differ by less than that.
_LEAST_RATE_SHARE = 0.7


class TaskRace(Struct, frozen=True, kw_only=True):
    """A race: who takes part, what it is for, the launches so far, and how one is summarised.

    `launches` grows with the run. `known` are the states before blocks that were asked for
    before; earlier blocks do not change.
    """

    raced: RacedCells
    tuning: RaceSetup
    launches: LaunchesByBlock
    summarise: Summarise
    known: dict[int, RaceState] = field(default_factory=dict)

    def cells_to_launch(self, block: int) -> frozenset[str]:
        """The keys of the cells to launch in `block`, based only on earlier blocks."""
        return self._before(block).keys(block, self.tuning.rule.confirm_blocks)

    def is_screening(self, block: int) -> bool:
        """Whether the launches of `block` choose who races."""
        return bool(self._before(block).screening.launching)

    def order(self, keys: Sequence[str], block: int) -> tuple[str, ...]:
        """Cells in the order of their launches in `block`: the most promising are screened first.

        Args:
            keys: In random order, which is that of the race.
        """
        if not self.is_screening(block):
            return tuple(keys)
        ranks = {cell.key: rank for rank, cell in enumerate(self.raced.cells)}
        return tuple(sorted(keys, key=lambda key: ranks.get(key, len(ranks))))

    def _before(self, block: int) -> RaceState:
        if block not in self.known:
            before = {
                key: {at: launch for at, launch in by_block.items() if at < block}
                for key, by_block in self.launches.items()
            }
            self.known[block] = race_state(self.raced, before, self.tuning, self.summarise)
        return self.known[block]

    def has_no_time(self, keys: Sequence[str], block: int) -> bool:
        """Whether the budget has no time for the first launches of some cells, made together.

        It is judged by the first launches so far. The most promising cells are launched, and the
        default and the launcher in any case.
        """
        first = self._first_launches()
        took_s = [total_seconds(launch) for launch in first.values() if launch.status != "skipped"]
        is_first = self.is_screening(block) and first.keys().isdisjoint(keys)
        if not is_first or not any(took_s) or not {*self.raced.always}.isdisjoint(keys):
            return False
        return not has_time_to_screen(self.tuning.rule, took_s, more=len(keys))

    def limited(self, planned: PlannedCell, block: int) -> PlannedCell:
        """A cell for a launch that takes no longer than it is worth.

        With a budget, it iterates for a share of it, and in a screening for a moment only. A first
        launch ends early if the cell cannot win: its time limit is a multiple of the shortest one,
        and a search for a rate ends if it cannot find a large share of the highest rate. The
        default and the launcher have no such limits, because the winner is compared with them;
        but no launch has more than a quarter of the budget.
        """
        rule, launched = self.tuning.rule, self._first_launches()
        budget_s, is_screening = rule.whole_budget_s, self.is_screening(block)
        first = [launch for launch in launched.values() if launch.status == "ok"]
        best_ns = min((self.summarise(launch).median_ns for launch in first), default=None)
        if budget_s is not None and rule.screen_iterations:
            if is_screening:
                most_s = short_s(rule, len(self.raced.cells), best_ns)
                planned = shorten(planned, most_s, iterations=rule.screen_iterations)
            else:
                planned = shorten(planned, ITERATING_SHARE * budget_s, iterations=None)
            measure = planned.measure
            changes = {"timeout_s": min(measure.timeout_s, _LONGEST_SHARE * budget_s)}
            if is_screening:
                # It only has to tell large differences. A late load generator tells none.
                changes["relaunch_disturbed"] = 0 if planned.traffic is None else 1
            planned = replace(planned, measure=measure.model_copy(update=changes))
        if best_ns is None or planned.cell.key in {*launched, *self.raced.always}:
            return planned
        # Of launches that start at once, each has its share of the time of all.
        shortest_s = (
            min(launch.duration_ns * (1 + len(launch.started_with)) for launch in first) / 1e9
        )
        limit_s = max(rule.cap * shortest_s, _LEAST_CAP_S)
        if is_screening:
            limit_s = min(limit_s, _LONGER * shortest_s + _CAP_SHARE * (budget_s or math.inf))
        measure = planned.measure.model_copy(
            update={"timeout_s": round(min(planned.measure.timeout_s, limit_s), 1)}
        )
        traffic = planned.traffic
        if traffic is not None and traffic.shape == "rate-search":
            traffic = replace(traffic, least_per_s=_LEAST_RATE_SHARE * 1e9 / best_ns)
        return replace(planned, measure=measure, traffic=traffic)

    def _first_launches(self) -> Mapping[str, Launch]:
        """The first launch of each cell."""
        return {key: by_block[min(by_block)] for key, by_block in self.launches.items() if by_block}
