"""Screen the configurations of a race with short launches, so that its budget covers all of them.

Each is launched once for a moment, in groups whose launches may start together. Then the better
half is launched again, and so on, until the budget has time to race those that are left. One that
is far behind the best goes at once. This chooses who races, and nothing more: the race has
launches of its own. So what a screening says of a configuration is the ratio of a few short
launches, without an interval.

Source: successive halving, Jamieson & Talwalkar, "Non-stochastic best arm identification and
hyperparameter optimization" (2016).
"""

import math
from collections.abc import Container, Mapping, Sequence
from statistics import median_low
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from corebound.records.race import RaceRule
from corebound.stats.intervals import exp
from corebound.stats.racing import (
    FINALISTS,
    Dropped,
    Ending,
    Entrant,
    Race,
    has_launch,
    least_fresh_launches,
    mean_log,
    replay,
)

_Value = TypeVar("_Value")

# The launches of a group may start together; more would need too much memory.
GROUP = 8
# One that costs this many times as much as the best goes, however few are left.
HOPELESS = 10.0
# How long a launch of the race iterates at most, as a share of the budget.
ITERATING_SHARE = 0.02
# All launches of the first round iterate for at most this share together.
_SHORT_SHARE = 0.25
# Where the best one is known, others iterate for at most this many times as long.
_SHORT_RATIO = 2.0
# The first round has at most this share of the budget. This and what follows were found by
# simulation: `python -m benchmarks.simulation budgets`.
_FIRST_SHARE = 0.6
# A race of one would be none.
_LEAST_TRIED = 2
# What is left after the first round, and after each later one, at least.
_LEAST_FIRST, _LEAST_LATER = 4, FINALISTS
# The screening goes on until the budget has time for a race of so many blocks.
_RACE_BLOCKS = 5
# How long a launch of a race usually iterates, in seconds, if the budget allows it.
_USUAL_ITERATING_S = 2.0


class Screening(Struct, frozen=True, kw_only=True):
    """How far a screening is.

    Attributes:
        blocks: How many blocks are complete.
        launching: The names of those that the next block launches; empty: the race begins.
        remaining: The names of those that take part in the race, or still may.
        out: Those that do not, each with its ratio to the best one; nothing bounds it.
        seconds: How long the blocks took.
        has_race: Whether there is time for a race, once the screening is over.
    """

    blocks: int = 0
    launching: tuple[str, ...] = ()
    remaining: tuple[str, ...]
    out: tuple[Dropped, ...] = ()
    seconds: float = 0.0
    has_race: bool = True


class _Time(Struct, frozen=True, kw_only=True):
    """What a budget has time for, if a short launch takes `launch_s`."""

    rule: RaceRule
    launch_s: float
    spent_s: float = 0.0

    @property
    def raced_s(self) -> float:
        """How long a launch of the race probably takes."""
        budget_s = self.rule.whole_budget_s or math.inf
        return self.launch_s + min(ITERATING_SHARE * budget_s, _USUAL_ITERATING_S)

    @property
    def left_s(self) -> float:
        """What is left for screening and race, without the fresh launches that an answer needs."""
        fresh_s = least_fresh_launches(FINALISTS) * self.raced_s
        budget_s = self.rule.whole_budget_s or math.inf
        return min(self.rule.budget_s or math.inf, budget_s - fresh_s) - self.spent_s

    def race(self, blocks: int, *, after_s: float = 0.0) -> int:
        """How many can race for so many blocks, if something else takes a time before."""
        return int(max(self.left_s - after_s, 0.0) / (blocks * max(self.raced_s, 1e-9)))


def has_screening(rule: RaceRule, candidates: int) -> bool:
    """Whether a race of so many configurations begins with a screening."""
    return bool(rule.budget_s and rule.screen_iterations) and candidates > _LEAST_TRIED


def short_s(rule: RaceRule, candidates: int, best_ns: float | None) -> float:
    """How long a launch of a screening iterates at most, in seconds.

    Args:
        candidates: How many configurations there are.
        best_ns: An iteration of the best one so far; None if none is known.
    """
    shares = ITERATING_SHARE, _SHORT_SHARE / candidates
    most_s = min(shares) * (rule.whole_budget_s or math.inf)
    if best_ns is None:
        return most_s
    return min(most_s, _SHORT_RATIO * rule.screen_iterations * best_ns / 1e9)


def has_time_to_screen(rule: RaceRule, took_s: Sequence[float], *, more: int) -> bool:
    """Whether the first round has time for so many `more` launches.

    Args:
        took_s: How long its launches took so far, in seconds; two have time in any case.
        more: How many are made together now.
    """
    if len(took_s) < _LEAST_TRIED:
        return True
    # The first launch may have filled caches for all.
    launch_s = median_low(took_s)
    return sum(took_s) + more * launch_s <= _first_round_s(rule, launch_s)


def screened_with_time(rule: RaceRule, launch_s: float) -> int:
    """How many configurations a screening has time for, if a launch takes this many seconds."""
    # A division may have rounded down.
    return max(math.floor(_first_round_s(rule, launch_s) / launch_s + 1e-9), _LEAST_TRIED)


def _first_round_s(rule: RaceRule, launch_s: float) -> float:
    share_s = _FIRST_SHARE * (rule.whole_budget_s or math.inf)
    return min(share_s, _Time(rule=rule, launch_s=launch_s).left_s)


def least_budget_s(candidates: int, launch_s: float) -> float:
    """The budget in which a screening has time for all, in seconds.

    >>> rule = RaceRule(budget_s=0.7 * least_budget_s(16, 3.0), screen_iterations=15)
    >>> screened_with_time(rule, 3.0)
    16
    """
    fresh_s = least_fresh_launches(FINALISTS) * (launch_s + _USUAL_ITERATING_S)
    return max(candidates * launch_s / _FIRST_SHARE, candidates * launch_s + fresh_s)


def screen(
    entrants: Sequence[Entrant],
    rule: RaceRule,
    *,
    skipped: Mapping[str, int],
    spent_s: Mapping[int, float],
) -> Screening:
    """How far a screening is, from its launches alone.

    Args:
        entrants: All configurations, the most promising first.
        skipped: Those that the budget had no time for, each with the block that would have
            launched it.
        spent_s: For each block how long its launches took.
    """
    by_key = {entrant.key: entrant for entrant in entrants}
    remaining = tuple(by_key)
    out: tuple[Dropped, ...] = ()
    blocks, total_s, least = 0, 0.0, _LEAST_FIRST
    is_over, has_race = not has_screening(rule, len(by_key)), True
    while not is_over:
        before_s = total_s
        for group in _groups(remaining):
            is_complete = all(
                has_launch(by_key[key], blocks) or skipped.get(key) == blocks for key in group
            )
            if not is_complete:
                left = _without(skipped, remaining)
                return Screening(blocks=blocks, launching=group, remaining=left, out=out)
            total_s += spent_s.get(blocks, 0.0)
            blocks += 1
        launched = _without(skipped, remaining)
        launch_s = (total_s - before_s) / max(len(launched), 1)
        time = _Time(rule=rule, spent_s=total_s, launch_s=launch_s)
        ranked, failed = _rank([by_key[key] for key in launched], blocks)
        hopeless = {
            key
            for key, ratio in ranked.items()
            # On a busy host, one launch of a good one can take a hundred times as long.
            if ratio >= HOPELESS and by_key[key].disturbed.isdisjoint(range(blocks))
        }
        near = tuple(key for key in ranked if key not in hopeless)
        remaining, is_over = _keep(near, least, time)
        again = _again([by_key[key] for key in launched], near, remaining, blocks)
        another_s = (len(remaining) + len(again)) * launch_s
        if again and time.race(1, after_s=another_s) >= FINALISTS:
            remaining, is_over = (*remaining, *again), False
        behind = (
            Dropped(key=key, block=blocks - 1, by=next(iter(ranked)), ratio=(ratio, 0.0))
            for key, ratio in ranked.items()
            if key not in remaining
        )
        out, least = (*out, *failed, *behind), _LEAST_LATER
        has_race = time.race(1) >= min(len(remaining), _LEAST_TRIED)
    return Screening(
        blocks=blocks,
        remaining=_without(skipped, remaining),
        out=out,
        seconds=total_s,
        has_race=has_race,
    )


def race_after(
    screening: Screening,
    entrants: Sequence[Entrant],
    rule: RaceRule,
    *,
    spent_s: Mapping[int, float],
) -> tuple[Race, list[Entrant]]:
    """The race after a screening that is over, and who takes part in it, from its first block on.

    Args:
        entrants: As for `screen`.
        rule: As for `screen`.
        spent_s: As for `screen`.
    """
    first = screening.blocks

    def later(by_block: Mapping[int, _Value]) -> dict[int, _Value]:
        return {block - first: value for block, value in by_block.items() if block >= first}

    racing = [
        replace(
            entrant,
            log_costs=later(entrant.log_costs),
            cpu_logs=later(entrant.cpu_logs),
            failures=later(entrant.failures),
        )
        for entrant in entrants
        if entrant.key in screening.remaining
    ]
    if not racing or not screening.has_race:
        ending: Ending = "time" if racing else "nothing left"
        race = Race(blocks=0, remaining=screening.remaining, dropped=(), ending=ending)
        return race, racing
    return replay(racing, rule, spent_s=later(spent_s), before_s=screening.seconds), racing


def _groups(keys: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The groups of a round, of nearly equal sizes; the most promising are in the first."""
    size = math.ceil(len(keys) / max(math.ceil(len(keys) / GROUP), 1))
    return tuple(tuple(keys[at : at + size]) for at in range(0, len(keys), max(size, 1)))


def _without(skipped: Container[str], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(key for key in keys if key not in skipped)


def _mean_log(entrant: Entrant, blocks: int) -> float:
    """The mean logarithm of its costs, without disturbed launches if it has others."""
    quiet = {
        block: cost
        for block, cost in entrant.log_costs.items()
        if block < blocks and block not in entrant.disturbed
    }
    return mean_log(quiet or entrant.log_costs, blocks)


def _again(
    launched: Sequence[Entrant], near: Sequence[str], remaining: Container[str], blocks: int
) -> tuple[str, ...]:
    """Those that one disturbed launch would cut; none if disturbances are usual on this host."""
    disturbed = [entrant for entrant in launched if not entrant.disturbed.isdisjoint(range(blocks))]
    if 2 * len(disturbed) > len(launched):
        return ()
    once = {
        entrant.key
        for entrant in disturbed
        if len([*filter(blocks.__gt__, entrant.log_costs)]) == 1
    }
    return tuple(key for key in near if key in once and key not in remaining)


def _rank(launched: Sequence[Entrant], blocks: int) -> tuple[dict[str, float], tuple[Dropped, ...]]:
    """Those that may go on with the ratios of their costs to the best, and those that failed."""
    gone = {
        entrant.key for entrant in launched if any(block < blocks for block in entrant.failures)
    }
    means = {
        entrant.key: _mean_log(entrant, blocks) for entrant in launched if entrant.key not in gone
    }
    best = min(means.values(), default=0.0)

    def least(entrant: Entrant, block: int) -> tuple[float, float] | None:
        if block not in entrant.bounds or not means:
            return None
        ratio = exp(entrant.bounds[block] - best)
        return ratio, ratio

    failed = tuple(
        Dropped(key=entrant.key, block=block, ratio=least(entrant, block), reason=reason)
        for entrant in launched
        for block, reason in entrant.failures.items()
        if block < blocks
    )
    return {key: exp(means[key] - best) for key in sorted(means, key=means.__getitem__)}, failed


def _keep(near: tuple[str, ...], least: int, time: _Time) -> tuple[tuple[str, ...], bool]:
    """Those that remain after a round, best first, and whether the race begins with them."""
    if len(near) <= time.race(_RACE_BLOCKS):
        return near, True
    kept = near[: max(math.ceil(len(near) / 2), least)]
    if len(kept) <= max(time.race(_RACE_BLOCKS), _LEAST_LATER):
        return kept, True
    another_s = len(kept) * time.launch_s
    if time.race(1, after_s=another_s) < FINALISTS:
        return kept[: max(time.race(1), _LEAST_TRIED)], True
    return kept, False
