"""Race configurations: launch all, drop those that are slower, stop when the best is certain.

Each block launches every remaining configuration once, in random order. After a block, the
logarithms of the costs are compared with those of the leader, paired by block. A configuration
that is certainly slower leaves. So does one that was slower by more than the margin and certainly
is not faster by more than the margin: it is no tie, and it need not be found. The race ends when
no other one, dropped or not, can be faster than the leader by more than the margin.

Source: paired blocks and elimination, Birattari et al., "A racing algorithm for configuring
metaheuristics" (2002), after Maron & Moore, "Hoeffding races" (1994). An error that is spent over
looks, so that there may be any number of them: Even-Dar, Mannor & Mansour, "Action elimination and
stopping conditions for the multi-armed bandit and reinforcement learning problems" (2006).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from corebound.records.race import RaceRule
from corebound.stats.distributions import student_quantiles
from corebound.stats.intervals import exp, middles
from corebound.stats.shared_variance import share_variances

# The spread of one block is unknown.
_LEAST_BLOCKS = 2
# The winner, the runner-up and the default have fresh launches; with one of each, no interval.
FINALISTS = 3
LEAST_FRESH = 2
# A tie is broken by CPU time only if it differs by more than this share.
_CPU_TIME_MARGIN = 0.05


class Entrant(Struct, frozen=True, kw_only=True):
    """A configuration in a race, with its launches so far.

    Attributes:
        log_costs: By block, the logarithm of its launch's cost: less is better.
        cpu_logs: By block, the logarithm of the CPU time that its launch took for one iteration.
        failures: By block, why its launch has no cost.
        bounds: By block, the logarithm of the least cost of a launch that was ended before its end.
        disturbed: The blocks in which something outside disturbed most of its launch.
        cpus: How many CPUs it occupies.
        is_default: Whether nothing has to be set for it.
    """

    key: str
    log_costs: Mapping[int, float]
    cpu_logs: Mapping[int, float] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    bounds: Mapping[int, float] = field(default_factory=dict)
    disturbed: frozenset[int] = frozenset()
    cpus: int = 1
    is_default: bool = False


class Dropped(Struct, frozen=True, kw_only=True):
    """A configuration that left the race.

    Attributes:
        block: The last block that launched it.
        by: The leader that it was compared with; None if its launch failed.
        ratio: Its cost over the leader's, and the least that this can be, which are the same if its
            launch was ended before its end; None if its launch failed.
        reason: Why its launch has no cost; None if it was slower.
    """

    key: str
    block: int
    by: str | None = None
    ratio: tuple[float, float] | None = None
    reason: str | None = None


# `decided`: nothing can be faster than the leader by more than the margin. `alone`: one that left
# can, but nothing else remains.
Ending = Literal["decided", "alone", "blocks", "time", "nothing left"]


class Race(Struct, frozen=True, kw_only=True):
    """The state of a race after its complete blocks.

    Attributes:
        blocks: How many blocks are complete.
        remaining: The names of those in the race, best mean first.
        dropped: Those that left, in order.
        ending: Why it ended; None: the next block launches `remaining`.
        faster_at_most: How much faster than the leader another one can be, as a share; infinite
            after one block, or where the launches differ too much for a bound.
    """

    blocks: int
    remaining: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    ending: Ending | None
    faster_at_most: float = math.inf

    @property
    def leader(self) -> str | None:
        """The name of the best so far; None if none is left."""
        return next(iter(self.remaining), None)


def look_error(rule: RaceRule, *, entrants: int, blocks: int) -> float:
    """The error that one comparison may have at one look, one-sided.

    Over all looks, and over the comparisons of the best configuration with all others, these add
    up to `rule.error`. They are proportional to 1 / `blocks`, because a race with k times the
    spread needs some k² times the blocks, and nobody knows the spread before.

    >>> rule = RaceRule(error=0.05, max_blocks=30)
    >>> round(sum(look_error(rule, entrants=11, blocks=n) for n in range(2, 31)) * 10, 6)
    0.05
    """
    looks = sum(1 / look for look in range(_LEAST_BLOCKS, max(rule.max_blocks, blocks) + 1))
    return rule.error / (max(entrants - 1, 1) * blocks * looks)


def least_fresh_launches(candidates: int) -> int:
    """How many fresh launches an answer needs."""
    return LEAST_FRESH * min(FINALISTS, candidates)


def replay(
    entrants: Sequence[Entrant],
    rule: RaceRule,
    *,
    spent_s: Mapping[int, float] | None = None,
    before_s: float = 0.0,
) -> Race:
    """The state of a race, from its launches alone.

    A block counts once every remaining configuration has a cost or a failure in it. Launches in
    later blocks change nothing, so the finalists' fresh launches may be among them.

    Args:
        entrants: All configurations that the race began with.
        spent_s: For each block how long its launches took.
        before_s: How much of the budget was spent before the race.

    Returns:
        The state after the last complete block.
    """
    by_key = {entrant.key: entrant for entrant in entrants}
    race = Race(blocks=0, remaining=tuple(by_key), dropped=(), ending=None)
    total_s = before_s
    while race.ending is None and all(
        has_launch(by_key[key], race.blocks) for key in race.remaining
    ):
        block_s, launched = (spent_s or {}).get(race.blocks, 0.0), len(race.remaining)
        total_s += block_s
        race = _after_next_block(race, by_key, rule)
        next_s = block_s * len(race.remaining) / launched
        if race.ending is None and race.blocks >= rule.max_blocks:
            race = replace(race, ending="blocks")
        elif race.ending is None and rule.budget_s is not None:
            fresh_s = block_s / launched * least_fresh_launches(len(entrants))
            last_s = min(rule.budget_s, (rule.whole_budget_s or math.inf) - fresh_s)
            ends = total_s + next_s > last_s
            race = replace(race, ending="time") if ends else race
    return race


def _after_next_block(race: Race, by_key: Mapping[str, Entrant], rule: RaceRule) -> Race:
    """The state after one more block, in which all that remain have a cost or a failure."""
    block, blocks = race.blocks, race.blocks + 1
    failed = tuple(
        Dropped(key=key, block=block, reason=by_key[key].failures[block])
        for key in race.remaining
        if block not in by_key[key].log_costs
    )
    failed_keys = {dropped.key for dropped in failed}
    remaining = sorted(
        (key for key in race.remaining if key not in failed_keys),
        key=lambda key: mean_log(by_key[key].log_costs, blocks),
    )
    after = Race(
        blocks=blocks,
        remaining=tuple(remaining),
        dropped=race.dropped + failed,
        ending=None if remaining else "nothing left",
    )
    if len(remaining) == 1 and not race.dropped:
        return replace(after, ending="decided", faster_at_most=0.0)
    if blocks < _LEAST_BLOCKS or not remaining:
        return after
    alpha = look_error(rule, entrants=len(by_key), blocks=blocks)
    gaps = gaps_to_first([by_key[key] for key in remaining], blocks, alpha)
    room = math.log1p(rule.margin)
    leaving = {
        gap.key: gap for gap in gaps if gap.low > 0 or (gap.middle > room and gap.low >= -room)
    }
    dropped = after.dropped + tuple(
        Dropped(
            key=key,
            block=block,
            by=remaining[0],
            ratio=(exp(gap.middle), exp(gap.low)),
        )
        for key, gap in leaving.items()
    )
    staying = [key for key in remaining if key not in leaving]
    leader = staying[0]
    faster_at_most = _faster_at_most(leader, gaps, dropped, by_key, rule)
    # Where only dropped ones are uncertain, a former leader that dropped them may be certain.
    others = staying[1:] if all(gap.low >= -room for gap in gaps) else []
    for other in others:
        if faster_at_most <= rule.margin:
            break
        field = [by_key[other], *(by_key[key] for key in staying if key != other)]
        limit = _faster_at_most(other, gaps_to_first(field, blocks, alpha), dropped, by_key, rule)
        if limit <= rule.margin:
            leader, faster_at_most = other, limit
    return replace(
        after,
        remaining=(leader, *(key for key in staying if key != leader)),
        dropped=dropped,
        ending=_ending(len(staying), faster_at_most, rule),
        faster_at_most=faster_at_most,
    )


def _ending(remaining: int, faster_at_most: float, rule: RaceRule) -> Ending | None:
    if faster_at_most <= rule.margin:
        return "decided"
    return "alone" if remaining == 1 else None


def _faster_at_most(
    leader: str,
    gaps: Sequence[Gap],
    dropped: Sequence[Dropped],
    by_key: Mapping[str, Entrant],
    rule: RaceRule,
) -> float:
    """How much faster than the leader another configuration can be, as a share.

    One that a former leader dropped is compared with this one by the launches that both have. Or
    it is as far from this one as from that one and that one from this one, together.
    """
    room = math.log1p(rule.margin)
    lows = {leader: 0.0} | {gap.key: gap.low for gap in gaps}
    # The launches of dropped ones take time to compare, and matter only if the others are certain.
    compares = all(low >= -room for low in lows.values())
    for gone in reversed(dropped):
        if gone.by is None or gone.ratio is None or gone.key in lows:
            continue
        low = math.log(gone.ratio[1]) + lows.get(gone.by, 0.0)
        if compares and low < -room and gone.by != leader:
            low = max(low, _low_when_dropped(gone, leader, by_key, rule))
        lows[gone.key] = low
    # After two blocks, one odd launch can leave bounds beyond the range of floats.
    with np.errstate(over="ignore"):
        return float(np.expm1(max(0.0, *(-low for low in lows.values()))))


def _low_when_dropped(
    gone: Dropped, leader: str, by_key: Mapping[str, Entrant], rule: RaceRule
) -> float:
    """The low end of the gap of a dropped configuration to another leader, in the same blocks."""
    blocks = gone.block + 1
    field = [
        entrant
        for key, entrant in by_key.items()
        if key != leader and all(block in entrant.log_costs for block in range(blocks))
    ]
    alpha = look_error(rule, entrants=len(by_key), blocks=blocks)
    gaps = gaps_to_first([by_key[leader], *field], blocks, alpha)
    return next(gap.low for gap in gaps if gap.key == gone.key)


class Finalists(Struct, frozen=True, kw_only=True):
    """What fresh launches confirm.

    Attributes:
        recommended: The cheapest of those that nothing beats by more than the margin.
        ties: Those, in the order of their costs; only the leader if the race is not decided.
        keys: All configurations to launch, each once: with the best of the others.
    """

    recommended: str
    ties: tuple[str, ...]
    keys: tuple[str, ...]


def finalists(
    race: Race, entrants: Sequence[Entrant], rule: RaceRule, *, always: Collection[str] = ()
) -> Finalists | None:
    """The configurations for the fresh launches of a race that has ended.

    Among ties, less CPU time wins, then fewer CPUs, then the default, then the better mean.

    Args:
        race: A race that has ended.
        entrants: As for `replay`.
        rule: As for `replay`.
        always: Names that take part whatever their costs, such as the default. Those whose
            launches failed do not.

    Returns:
        The finalists; None if no configuration is left.
    """
    if race.leader is None:
        return None
    by_key = {entrant.key: entrant for entrant in entrants}
    ties = _ties(race, by_key, rule)
    recommended = _cheapest([by_key[key] for key in ties], race.blocks)
    slower = sorted(
        (dropped for dropped in race.dropped if dropped.ratio is not None),
        key=lambda dropped: dropped.ratio or (math.inf, math.inf),
    )
    others = [key for key in race.remaining if key != recommended]
    runner_up = next(iter([*others, *(dropped.key for dropped in slower)]), None)
    failed = {dropped.key for dropped in race.dropped if dropped.reason is not None}
    wanted = [recommended, runner_up, *(key for key in always if key not in failed)]
    keys = tuple(dict.fromkeys(key for key in wanted if key is not None))
    return Finalists(recommended=recommended, ties=ties, keys=keys)


def _ties(race: Race, by_key: Mapping[str, Entrant], rule: RaceRule) -> tuple[str, ...]:
    """The remaining ones that no other one beats by more than the margin, best first.

    The leader of a race that is decided is one of them.
    """
    if race.ending != "decided" or len(race.remaining) == 1:
        return race.remaining[:1]
    alpha = look_error(rule, entrants=len(by_key), blocks=race.blocks)

    def is_tie(key: str) -> bool:
        field = [by_key[key], *(by_key[other] for other in race.remaining if other != key)]
        gaps = gaps_to_first(field, race.blocks, alpha)
        return _faster_at_most(key, gaps, race.dropped, by_key, rule) <= rule.margin

    leader, *others = race.remaining
    # Those that were dropped after the last block shared their variances with the leader's.
    return (leader, *(key for key in others if is_tie(key)))


def _cheapest(ties: Sequence[Entrant], blocks: int) -> str:
    cpu_logs = {entrant.key: mean_log(entrant.cpu_logs, blocks) for entrant in ties}
    least = min(cpu_logs.values())

    def preference(entrant: Entrant) -> tuple[bool, int, bool]:
        takes_more = cpu_logs[entrant.key] > least + math.log1p(_CPU_TIME_MARGIN)
        return takes_more, entrant.cpus, not entrant.is_default

    return min(ties, key=preference).key  # the first of equals has the best mean


class Gap(Struct, frozen=True, kw_only=True):
    """How much more a configuration costs than another one, as a logarithm.

    The true gap is below `low` with the error of one look, at most.
    """

    key: str
    middle: float
    low: float


def gaps_to_first(entrants: Sequence[Entrant], blocks: int, alpha: float) -> list[Gap]:
    """The gaps of all entrants but the first to the first."""
    first, *others = entrants
    if not others:
        return []
    rows = np.array(
        [
            [other.log_costs[block] - first.log_costs[block] for block in range(blocks)]
            for other in others
        ],
        dtype=np.float64,
    )
    means = middles(rows)
    confidence = 1 - 2 * alpha
    shared = share_variances(
        np.array([mean.error for mean in means]),
        np.array([float(mean.freedom) for mean in means]),
        confidence=confidence,
    )
    reaches = shared.errors * student_quantiles(shared.freedoms, 1 - alpha)
    return [
        Gap(key=other.key, middle=mean.mean, low=mean.mean - float(reach))
        for other, mean, reach in zip(others, means, reaches, strict=True)
    ]


def has_launch(entrant: Entrant, block: int) -> bool:
    """Whether a block has launched an entrant."""
    return block in entrant.log_costs or block in entrant.failures


def mean_log(logs: Mapping[int, float], blocks: int) -> float:
    """The mean over the first blocks; infinite without any."""
    values = [log for block, log in logs.items() if block < blocks]
    return statistics.fmean(values) if values else math.inf
