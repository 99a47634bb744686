"""How often `corebound tune` recommends a configuration that is not the best.

The true costs of the configurations are known. Other ways to choose see the same launches. A
second table is of the fresh launches that compare the winner with the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import optuna
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.simulation.few import host_levels
from benchmarks.simulation.histories import rate
from benchmarks.simulation.verdicts import BASELINE, CELL, TYPICAL_NS, summary_of
from corebound.analysis.tuning import MOST_FRESH
from corebound.records.race import RaceRule
from corebound.stats.comparison import Verdict, compare_expected
from corebound.stats.racing import (
    Entrant,
    Race,
    finalists,
    gaps_to_first,
    look_error,
    replay,
)

RULE = RaceRule(max_blocks=60)
# True costs, as multiples of the best one's.
COSTS: Mapping[str, tuple[float, ...]] = {
    "usual": (1.0, 1.005, 1.01, 1.03, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0),
    "one 3 % better": (1.0, *[1.03] * 11),
}
# Two of three configurations are dropped after each round of successive halving.
_KEPT = 1 / 3

Array = NDArray[np.float64]


class Noise(Struct, frozen=True):
    """Draws the logarithms of launches, of shape (blocks, configurations)."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Array]


def _normal(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.normal(0, 0.015, shape)


def _heavy_tail(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.asarray(0.01 * rng.standard_t(3, shape))


def _outliers(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.normal(0, 0.01, shape) + math.log(1.3) * (rng.random(shape) < 0.1)


def _two_kinds(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.normal(0, 0.01, shape) + math.log(1.06) * (rng.random(shape) < 0.5)


def _skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return 0.01 * rng.lognormal(0, 1, shape)


def _own_spreads(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.normal(0, 0.01, shape) * np.exp(rng.normal(0, 0.7, (1, shape[1])))


def _drift(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    walk = np.cumsum(rng.normal(0, 0.03, (shape[0], 1)), axis=0)
    return rng.normal(0, 0.01, shape) + walk


def _correlated(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """The host changes by 15 % every few launches, so that neighbours are alike."""
    levels: Array = host_levels(rng, (1, *shape), length=3)[0]
    return rng.normal(0, 0.01, shape) + levels


NOISES = (
    Noise("normal, 1.5 %", _normal),
    Noise("heavy tails, t with 3 degrees", _heavy_tail),
    Noise("one launch in ten 30 % slower", _outliers),
    Noise("two kinds of process, 6 % apart", _two_kinds),
    Noise("skewed, log-normal", _skewed),
    Noise("every one has its own spread", _own_spreads),
    Noise("the session drifts", _drift),
    Noise("correlated, the host changes", _correlated),
)


def _far_modes(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.normal(0, 0.05, shape) + math.log(10) * (rng.random(shape) < 0.5)


_FAR_MODES = Noise("half of the launches ten times as long", _far_modes)


class _Choice(Struct, frozen=True, kw_only=True):
    """What one way of choosing recommends, by its index, and how many launches it takes."""

    index: int
    launches: int


def raced(rng: np.random.Generator, trials: int) -> None:
    """Print how often each way of choosing is more than the margin from the best."""
    print(f"{trials} trials: how often the recommended configuration costs over")
    print(f"{RULE.margin:.0%} more than the best. Share: the launches of the races, as a share of")
    print(
        "launching all configurations equally often until the same rule decides. Grid: one launch"
    )
    print("of each, the smallest value wins. The others have the race's launches: random search,")
    print("successive halving, and Optuna's TPE, whose best trial wins.\n")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(
        f"{'costs':<16}{'noise':<34}{'race':>20}{'launches':>10}{'share':>7}{'decided':>9}"
        f"{'grid':>7}{'random':>8}{'halving':>9}{'TPE':>7}"
    )
    for name, costs in COSTS.items():
        for noise in NOISES:
            races, equal, launches = [], [], []
            wrong: dict[str, list[bool]] = {
                way: [] for way in ("race", "grid", "random", "halving", "TPE")
            }
            for _ in range(trials):
                true = rng.permutation(costs)
                logs = noise.draw(rng, (RULE.max_blocks, len(true))) + np.log(true)
                race = _replayed(logs)
                choice = _raced(race, logs)
                races.append(race)
                launches.append(choice.launches)
                equal.append(_launched_equally(logs))
                for way, index in {
                    "race": choice.index,
                    "grid": int(np.argmin(logs[0])),
                    "random": _random(rng, logs, choice.launches),
                    "halving": _halving(logs, choice.launches),
                    "TPE": _tpe(rng, logs, choice.launches),
                }.items():
                    wrong[way].append(bool(true[index] > 1 + RULE.margin))
            decided = np.mean([race.ending == "decided" for race in races])
            print(
                f"{name:<16}{noise.name:<34}{rate(wrong['race']):>20}{np.mean(launches):>10.0f}"
                f"{sum(launches) / sum(equal):>7.0%}{decided:>9.0%}{np.mean(wrong['grid']):>7.1%}"
                f"{np.mean(wrong['random']):>8.1%}{np.mean(wrong['halving']):>9.1%}"
                f"{np.mean(wrong['TPE']):>7.1%}",
                flush=True,
            )
    print()


def confirmed(rng: np.random.Generator, trials: int) -> None:
    """Print what more fresh launches of the winner and the default cost and gain."""
    usual, most = RULE.confirm_blocks, MOST_FRESH * RULE.confirm_blocks
    print(f"{trials} trials of fresh launches: {usual} of winner and default, or up to {most}")
    print("while they decide nothing. The advice is to change if the winner is faster.")
    print("`launches`: the mean number of each.\n")
    print(f"{'':<58}{f'{usual} launches':>28}{f'up to {most}':>28}")
    titles = f"{'change':>20}{'open':>8}"
    print(f"{'the default':<18}{'noise':<40}{titles}{titles}{'launches':>10}")
    modes_of_default = Noise("only the default: half ten times as long", _modes_of_default)
    for name, gap, noises in (
        ("as good", 0.0, (*NOISES, _FAR_MODES)),
        ("costs 5 % more", 0.05, NOISES),
        ("costs 5.8 times", 0.05, (modes_of_default,)),
    ):
        for noise in noises:
            fixed: list[Verdict] = []
            extended: list[Verdict] = []
            launches: list[int] = []
            for _ in range(trials):
                logs = noise.draw(rng, (most, 2)) + np.array([0.0, math.log1p(gap)])
                fixed.append(_fresh_verdict(logs[:usual], adaptive=False))
                taken = usual
                while (
                    verdict := _fresh_verdict(logs[:taken], adaptive=True)
                ) == "inconclusive" and taken < len(logs):
                    taken += usual
                extended.append(verdict)
                launches.append(taken)
            columns = "".join(
                f"{rate(verdict == 'faster' for verdict in verdicts):>20}"
                f"{np.mean([verdict == 'inconclusive' for verdict in verdicts]):>8.1%}"
                for verdicts in (fixed, extended)
            )
            print(f"{name:<18}{noise.name:<40}{columns}{np.mean(launches):>10.1f}", flush=True)
    print()


def _modes_of_default(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return np.column_stack([_normal(rng, shape)[:, 0], _far_modes(rng, shape)[:, 1]])


def _fresh_verdict(logs: Array, *, adaptive: bool) -> Verdict:
    """The verdict on the winner, the first of each pair, as `analysis.tuning` reaches it."""
    winner, default = (TYPICAL_NS * np.exp(logs)).T.tolist()
    comparison = compare_expected(
        summary_of(CELL, winner),
        summary_of(BASELINE, default),
        margin=RULE.margin,
        adaptive=adaptive,
    )
    assert comparison is not None
    return comparison.verdict


def _entrants(logs: Array) -> list[Entrant]:
    return [
        Entrant(key=str(index), log_costs=dict(enumerate(column)))
        for index, column in enumerate(logs.T.tolist())
    ]


def _replayed(logs: Array) -> Race:
    return replay(_entrants(logs), RULE)


def _raced(race: Race, logs: Array) -> _Choice:
    chosen = finalists(race, _entrants(logs), RULE)
    assert chosen is not None
    launches = sum(dropped.block + 1 for dropped in race.dropped)
    return _Choice(
        index=int(chosen.recommended), launches=launches + race.blocks * len(race.remaining)
    )


def _launched_equally(logs: Array) -> int:
    """How many launches the rule of the race takes if no configuration ever leaves."""
    entrants = _entrants(logs)
    arms, room = len(entrants), math.log1p(RULE.margin)
    for blocks in range(2, RULE.max_blocks + 1):
        leader = int(np.argmin(logs[:blocks].mean(axis=0)))
        ordered = [entrants[leader], *entrants[:leader], *entrants[leader + 1 :]]
        alpha = look_error(RULE, entrants=arms, blocks=blocks)
        if min(gap.low for gap in gaps_to_first(ordered, blocks, alpha)) >= -room:
            return blocks * arms
    return RULE.max_blocks * arms


def _random(rng: np.random.Generator, logs: Array, launches: int) -> int:
    """Launch configurations drawn at random; the smallest value wins."""
    blocks, arms = logs.shape
    drawn = rng.integers(arms, size=min(launches, blocks * arms))
    values = logs[np.arange(drawn.size) // arms, drawn]
    return int(drawn[np.argmin(values)])


def _tpe(rng: np.random.Generator, logs: Array, launches: int) -> int:
    """Launch what Optuna's TPE proposes; its best trial is its answer.

    The configurations are one categorical parameter, as the planner's are.
    """
    blocks, arms = logs.shape
    sampler = optuna.samplers.TPESampler(seed=int(rng.integers(2**31)))
    study = optuna.create_study(sampler=sampler)
    for launch in range(min(launches, blocks * arms)):
        trial = study.ask()
        arm = int(trial.suggest_categorical("configuration", list(range(arms))))
        study.tell(trial, float(logs[launch // arms, arm]))
    return int(study.best_params["configuration"])


def _halving(logs: Array, launches: int) -> int:
    """Successive halving: spend the same on each round, and keep the best third by their means.

    Source: Jamieson & Talwalkar, "Non-stochastic best arm identification and hyperparameter
    optimization" (2016), with the factor of Hyperband.
    """
    remaining, begin = np.arange(logs.shape[1]), 0
    rounds = math.ceil(math.log(logs.shape[1]) / -math.log(_KEPT))
    for _ in range(rounds):
        blocks = max(1, launches // rounds // remaining.size)
        means = logs[begin : begin + blocks, remaining].mean(axis=0)
        begin = min(begin + blocks, logs.shape[0] - 1)
        kept = max(1, math.ceil(remaining.size * _KEPT))
        remaining = remaining[np.argsort(means)[:kept]]
    return int(remaining[0])
