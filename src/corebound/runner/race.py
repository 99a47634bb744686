"""The race of a task of `corebound tune`: which cells a block launches, and for how long."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from msgspec import Struct, field

from corebound.analysis.tuning import Contest, LaunchesByBlock, Summarise, standing
from corebound.records.tuning import Tuning
from corebound.scenario.models import Measure
from corebound.stats.racing import candidates_with_time

# No launch is ended before, because starting a framework takes that long.
_LEAST_CAP_S = 30.0


class TaskRace(Struct, frozen=True, kw_only=True):
    """A race: who takes part, what it is for, and how launches are summarised.

    `known` are the cells of blocks that were asked for before; earlier blocks do not change.
    """

    contest: Contest
    tuning: Tuning
    summarise: Summarise
    known: dict[int, frozenset[str]] = field(default_factory=dict)

    def cells_to_launch(self, block: int, launches: LaunchesByBlock) -> frozenset[str]:
        """The keys of the cells to launch in `block`, based only on earlier blocks."""
        if block in self.known:
            return self.known[block]
        before = {
            key: {at: launch for at, launch in by_block.items() if at < block}
            for key, by_block in launches.items()
        }
        state = standing(self.contest, before, self.tuning, self.summarise)
        self.known[block] = state.keys(block, self.tuning.rule.confirm_blocks)
        return self.known[block]

    def has_no_time(self, key: str, launches: LaunchesByBlock) -> bool:
        """Whether the budget has no time for a cell's first launch, by those made so far.

        The most promising cells are launched, and the default and the launcher in any case.
        """
        took_s = [
            by_block[0].duration_ns / 1e9
            for by_block in launches.values()
            if 0 in by_block and by_block[0].status != "skipped"
        ]
        is_verified = self.tuning.recommended is not None
        if is_verified or key in self.contest.always or not any(took_s):
            return False
        most = candidates_with_time(self.tuning.rule, statistics.fmean(took_s))
        rank = [cell.key for cell in self.contest.cells].index(key)
        return most is not None and rank >= most

    def capped(self, key: str, measure: Measure, launches: LaunchesByBlock) -> Measure:
        """The measure of a cell's first launch, which has a shorter time limit.

        The limit is a multiple of the shortest first launch. The default and the launcher have
        none, because the winner is compared with them.
        """
        first: Mapping[str, float] = {
            other: by_block[0].duration_ns / 1e9
            for other, by_block in launches.items()
            if 0 in by_block and by_block[0].status == "ok"
        }
        if key in self.contest.always or not first:
            return measure
        limit_s = max(self.tuning.rule.cap * min(first.values()), _LEAST_CAP_S)
        return measure.model_copy(update={"timeout_s": min(measure.timeout_s, limit_s)})
