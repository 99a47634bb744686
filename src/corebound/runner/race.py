"""The race of a task of `corebound tune`: which cells a block launches, and for how long."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.analysis.tuning import Contest, LaunchesByBlock, Summarise, standing, total_seconds
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Launch
from corebound.records.tuning import Tuning
from corebound.stats.racing import candidates_with_time

# No launch is ended before, because starting a framework takes that long.
_LEAST_CAP_S = 30.0
# A first search for a rate ends if it cannot find this share of the highest rate so far. Searches
# of few requests find a rate that is up to 40 % too high, and differ by less than that.
_LEAST_RATE_SHARE = 0.7


class TaskRace(Struct, frozen=True, kw_only=True):
    """A race: who takes part, what it is for, the launches so far, and how one is summarised.

    `launches` grows with the run. `known` are the cells of blocks that were asked for before;
    earlier blocks do not change.
    """

    contest: Contest
    tuning: Tuning
    launches: LaunchesByBlock
    summarise: Summarise
    known: dict[int, frozenset[str]] = field(default_factory=dict)

    def cells_to_launch(self, block: int) -> frozenset[str]:
        """The keys of the cells to launch in `block`, based only on earlier blocks."""
        if block in self.known:
            return self.known[block]
        before = {
            key: {at: launch for at, launch in by_block.items() if at < block}
            for key, by_block in self.launches.items()
        }
        state = standing(self.contest, before, self.tuning, self.summarise)
        self.known[block] = state.keys(block, self.tuning.rule.confirm_blocks)
        return self.known[block]

    def has_no_time(self, key: str) -> bool:
        """Whether the budget has no time for a cell's first launch, by those made so far.

        The most promising cells are launched, and the default and the launcher in any case.
        """
        took_s = [
            total_seconds(launch)
            for launch in self._first_launches().values()
            if launch.status != "skipped"
        ]
        is_verified = self.tuning.recommended is not None
        if is_verified or key in self.contest.always or not any(took_s):
            return False
        most = candidates_with_time(self.tuning.rule, statistics.fmean(took_s))
        rank = [cell.key for cell in self.contest.cells].index(key)
        return most is not None and rank >= most

    def limited(self, planned: PlannedCell) -> PlannedCell:
        """A cell for its first launch, which ends early if the cell cannot win.

        Its time limit is a multiple of the shortest first launch, and a search for a rate ends if
        it cannot find a large share of the highest rate. The default and the launcher have no such
        limits, because the winner is compared with them.
        """
        first = {
            key: launch for key, launch in self._first_launches().items() if launch.status == "ok"
        }
        if planned.cell.key in self.contest.always or not first:
            return planned
        shortest_s = min(launch.duration_ns for launch in first.values()) / 1e9
        limit_s = max(self.tuning.rule.cap * shortest_s, _LEAST_CAP_S)
        measure = planned.measure.model_copy(
            update={"timeout_s": min(planned.measure.timeout_s, limit_s)}
        )
        traffic = planned.traffic
        if traffic is not None and traffic.shape == "rate-search":
            highest_per_s = 1e9 / min(self.summarise(launch).median_ns for launch in first.values())
            traffic = replace(traffic, least_per_s=_LEAST_RATE_SHARE * highest_per_s)
        return replace(planned, measure=measure, traffic=traffic)

    def _first_launches(self) -> Mapping[str, Launch]:
        """The launch of each cell in the first block."""
        return {key: by_block[0] for key, by_block in self.launches.items() if 0 in by_block}
