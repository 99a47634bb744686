"""How good the recommendation of `corebound tune` is if its budget is short.

The costs of launches are simulated: they start for seconds, and iterate by what the configuration
costs. The planner, the race and the budget are the shipped ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from benchmarks.simulation.histories import rate
from benchmarks.simulation.tune import NOISES
from corebound.records.race import RACE_SHARE, RaceRule
from corebound.stats.racing import Entrant, finalists
from corebound.stats.screening import (
    GROUP,
    ITERATING_SHARE,
    has_screening,
    has_time_to_screen,
    race_after,
    screen,
    short_s,
)

# Thread counts on a host with sixteen CPUs, the physical cores first.
_THREADS = (16, 8, 4, 2, 1)
_START_S = (3.0, 6.0)
# Iterating takes the fastest configuration so long in all; `measure.iterations` is fixed.
_ITERATING_S = (1.0, 8.0)
_ITERATIONS = 100
_SHORT = 15
# Eight processes that import at the same time, on sixteen CPUs.
_START_TOGETHER = 1.3
# A launch that iterates for a moment only.
_SHORT_NOISE = 0.01
_CAP_S = 30.0


class Setting(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    screens: bool
    together: bool = False


SETTINGS = (
    Setting(name="a block of all first", screens=False),
    Setting(name="screening, one at a time", screens=True),
    Setting(name="screening, groups start together", screens=True, together=True),
)


class _Host(Struct, kw_only=True):
    """A simulated host with a workload, and the race on it so far."""

    costs: NDArray[np.float64]
    noise: NDArray[np.float64]
    start_s: float
    iterating_s: float
    rule: RaceRule
    setting: Setting
    rng: np.random.Generator
    now_s: float = 0.0
    launches: int = 0
    log_costs: list[dict[int, float]] = field(default_factory=list)
    failures: list[dict[int, str]] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    spent_s: dict[int, float] = field(default_factory=dict)

    @property
    def budget_s(self) -> float:
        return self.rule.whole_budget_s or math.inf

    def entrants(self) -> list[Entrant]:
        return [
            Entrant(key=str(one), log_costs=costs, failures=failures)
            for one, (costs, failures) in enumerate(zip(self.log_costs, self.failures, strict=True))
        ]

    def launch(self, block: int, ones: Sequence[int], *, short: bool) -> bool:
        """Launch a group, or one; whether there was time."""
        expected_s = self.now_s / max(self.launches, 1) * len(ones)
        if self.now_s + expected_s / 2 > self.budget_s:
            return False
        start_s = self.start_s * (_START_TOGETHER if len(ones) > 1 else 1.0)
        took_s = start_s
        known = [log for costs in self.log_costs for log in costs.values()]
        scale = self.iterating_s / _ITERATIONS * 1e9
        best_ns = math.exp(min(known)) * scale if known else None
        for one in ones:
            each_s = self.iterating_s * self.costs[one] / _ITERATIONS
            if short:
                most_s = short_s(self.rule, len(self.costs), best_ns)
                iterating_s = min(_SHORT * each_s, max(most_s, 3 * each_s))
            elif self.setting.screens:
                most_s = max(ITERATING_SHARE * self.budget_s, 6 * each_s)
                iterating_s = min(_ITERATIONS * each_s, most_s)
            else:
                iterating_s = _ITERATIONS * each_s
            if one and not block and iterating_s > _CAP_S:
                iterating_s = _CAP_S
                self.failures[one][block] = "it is too slow"
            else:
                log = math.log(self.costs[one]) + self.noise[block, one]
                log += self.rng.normal(0, _SHORT_NOISE) if short else 0.0
                self.log_costs[one][block] = log
            took_s += iterating_s
            self.launches += 1
        self.now_s += took_s
        self.spent_s[block] = self.spent_s.get(block, 0.0) + took_s
        return True


def budgets(rng: np.random.Generator, trials: int) -> None:
    """Print how far the recommended configuration is from the best of all."""
    print(
        f"{trials} races: how often what is recommended costs over 2 % or 10 % more than the best"
    )
    print("of all candidates, and how many of these were launched. A race without an answer counts")
    print("as one that recommends the default.\n")
    print(
        f"{'candidates':>10}{'budget':>8}  {'':<34}{'over 2 %':>22}{'over 10 %':>22}{'tried':>7}"
        f"{'blocks':>7}{'seconds':>8}{'most':>6}"
    )
    for candidates, budget_s in ((16, 100.0), (40, 100.0), (16, 60.0)):
        for setting in SETTINGS:
            ends = [_raced(rng, candidates, budget_s, setting, trial) for trial in range(trials)]
            excess, tried, blocks, took = (np.array(column) for column in zip(*ends, strict=True))
            print(
                f"{candidates:>10}{budget_s:>6.0f} s  {setting.name:<34}{rate(excess > 0.02):>22}"
                f"{rate(excess > 0.1):>22}{tried.mean():>7.1f}{blocks.mean():>7.1f}"
                f"{took.mean():>8.0f}{took.max():>6.0f}",
                flush=True,
            )
    print()


def _costs(rng: np.random.Generator, candidates: int) -> NDArray[np.float64]:
    """Times of an iteration over the best one's: threads by Amdahl's law, bindings, policies."""
    parallel, overhead = rng.uniform(0.5, 0.99), 10 ** rng.uniform(-3.5, -1.5)
    by_threads = [1 - parallel + parallel / count + overhead * count for count in _THREADS]
    kinds = math.ceil((candidates - 1) / len(_THREADS))
    bindings = np.exp(rng.normal(0, 0.06, kinds))
    bindings[0] = 1.0
    grid = [
        threads * binding * math.exp(rng.normal(0, 0.01))
        for binding, count in ((one, at) for at, one in enumerate(bindings))
        for threads in by_threads
    ]
    costs = np.array([grid[0] * math.exp(rng.normal(0, 0.06)), *grid])[:candidates]
    return np.asarray(costs / costs.min())


def _raced(
    rng: np.random.Generator, candidates: int, budget_s: float, setting: Setting, trial: int
) -> tuple[float, int, int, float]:
    """By how much the recommended one costs more, how many were tried, and how long it took."""
    rule = RaceRule(
        budget_s=RACE_SHARE * budget_s, screen_iterations=_SHORT if setting.screens else 0
    )
    host = _Host(
        costs=_costs(rng, candidates),
        noise=NOISES[trial % len(NOISES)].draw(rng, (80, candidates)),
        start_s=rng.uniform(*_START_S),
        iterating_s=rng.uniform(*_ITERATING_S),
        rule=rule,
        setting=setting,
        rng=rng,
        log_costs=[{} for _ in range(candidates)],
        failures=[{} for _ in range(candidates)],
    )
    recommended, blocks = _recommended(host)
    tried = len(host.costs) - len(host.skipped)
    return float(host.costs[recommended] - 1), tried, blocks, host.now_s


def _recommended(host: _Host) -> tuple[int, int]:
    block = 0
    while True:
        entrants = host.entrants()
        screening = screen(entrants, host.rule, skipped=host.skipped, spent_s=host.spent_s)
        if screening.launching:
            if not _screened(host, block, [int(key) for key in screening.launching]):
                return 0, 0
            block += 1
            continue
        race, racing = race_after(screening, entrants, host.rule, spent_s=host.spent_s)
        if race.ending is None:
            keys = [int(key) for key in race.remaining]
        else:
            break
        if not _blocked(host, block, keys):
            return 0, race.blocks
        block += 1
    chosen = finalists(race, racing, host.rule, always=("0",))
    if chosen is None:
        return 0, race.blocks
    for fresh in range(6):
        if not _blocked(host, block + fresh, [int(key) for key in chosen.keys]):
            return (int(chosen.recommended) if fresh >= 2 else 0), race.blocks
    return int(chosen.recommended), race.blocks


def _screened(host: _Host, block: int, ones: list[int]) -> bool:
    size = GROUP if host.setting.together else 1
    for at in range(0, len(ones), size):
        group = ones[at : at + size]
        first = [one for one in group if not host.log_costs[one]]
        if (
            first
            and 0 not in group
            and not has_time_to_screen(
                host.rule, [host.now_s / host.launches] * host.launches, more=len(group)
            )
        ):
            host.skipped |= {str(one): block for one in group}
        elif not host.launch(block, group, short=True):
            return False
    return True


def _blocked(host: _Host, block: int, ones: list[int]) -> bool:
    order = host.rng.permutation(ones).tolist()
    if host.setting.together:
        return all(
            host.launch(block, order[at : at + GROUP], short=False)
            for at in range(0, len(order), GROUP)
        )
    is_first = block == 0 and not has_screening(host.rule, len(host.costs))
    while order:
        left: list[int] = []
        has_launched = False
        for one in order:
            most = None
            if is_first and one and host.launches:
                most = max(int(host.budget_s * host.launches / host.now_s) - 6, 2)
            if most is not None and one >= most:
                left.append(one)
                continue
            if not host.launch(block, [one], short=False):
                return False
            has_launched = True
        if not has_launched:
            host.skipped |= {str(one): block for one in left}
            return True
        order = left
    return True
