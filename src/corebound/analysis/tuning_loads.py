"""What the races of one scenario say together, if each is for another load.

A load is the values of the parameters that set the work, such as batch and sequence length.
Each load has its own best configuration. One configuration for all is easier to deploy; what it
costs more is compared load by load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from corebound.analysis.serialize import ratio_interval_pair
from corebound.analysis.tuning import TuneResult
from corebound.analysis.tuning_text import headline, names, times
from corebound.analysis.wording import capital
from corebound.records.tuning import Tuning
from corebound.scenario.cell import Cell
from corebound.stats.comparison import Comparison
from corebound.units import percent

# Whether one configuration does for all loads. `one`: it is the recommended one of each, or costs
# no more than the margin beyond it. `several`: it costs more for at least one load. `unchecked`:
# fresh launches of it are missing.
CommonState = Literal["one", "several", "inconclusive", "unchecked"]


class Common(Struct, frozen=True, kw_only=True):
    """The configuration that does best for all loads together.

    Attributes:
        key: Its key, which is the same in each race.
        state: Whether it does for all.
        costs: For each load, its recommended configuration compared with this one: above 1, that
            one is better. None if it is the same one, or without fresh launches of both.
    """

    key: str
    state: CommonState
    costs: tuple[Comparison | None, ...]


class LoadsResult(Struct, frozen=True, kw_only=True):
    """The races of one scenario and objective on one host, one for each load.

    `common` is None if a race has no recommendation, or if no configuration works for all.
    """

    results: tuple[TuneResult, ...]
    common: Common | None

    def has(self, result: TuneResult) -> bool:
        """Whether a race is one of these."""
        return any(result is one for one in self.results)

    @property
    def unchecked(self) -> tuple[tuple[TuneResult, str], ...]:
        """The races that need fresh launches of the common configuration, with its key."""
        if self.common is None:
            return ()
        return tuple(
            (result, self.common.key)
            for result, cost in zip(self.results, self.common.costs, strict=True)
            if cost is None
            and result.recommended is not None
            and result.recommended.key != self.common.key
        )


def load_text(tuning: Tuning) -> str:
    """A load in words: `batch=1, sequence=128`."""
    return ", ".join(f"{name}={value}" for name, value in tuning.load)


def common_key(results: Sequence[TuneResult]) -> str | None:
    """The configuration to compare with the recommended one of each load.

    It is the one whose greatest loss is the least, as the races saw it. Among those that lose no
    more than the margin, it is the one that most loads recommend.
    """
    if not results or any(one.recommended is None for one in results):
        return None
    recommended = [one.recommended.key for one in results if one.recommended is not None]
    shared = [key for key in results[0].cells if all(key in other.cells for other in results[1:])]
    worst: dict[str, float] = {}
    for key in shared:
        ratios = [
            1.0 if key == best else _ratio(one.compared(best, key))
            for one, best in zip(results, recommended, strict=True)
        ]
        if all(ratio is not None for ratio in ratios):
            worst[key] = max(ratio for ratio in ratios if ratio is not None)
    limit = 1 + results[0].tuning.rule.margin

    def preference(key: str) -> tuple[float, int, float]:
        return max(worst[key], limit), -recommended.count(key), worst[key]

    return min(worst, key=preference, default=None)


def _ratio(comparison: Comparison | None) -> float | None:
    return None if comparison is None else comparison.speedup_ratio


def loads_result(
    results: Sequence[TuneResult], checks: Mapping[str, Sequence[TuneResult]]
) -> LoadsResult:
    """What the races of several loads say together.

    Args:
        results: The races, one for each load.
        checks: By the id of a race's run, later launches of some of its cells, latest last.
    """
    key = common_key(results)
    if key is None:
        return LoadsResult(results=tuple(results), common=None)
    costs, states = [], []
    for result in results:
        comparison = None
        state: CommonState = "one"
        if result.recommended is not None and key != result.recommended.key:
            comparison = _fresh(result, result.recommended.key, key, checks)
            state = _state(comparison, result.tuning.rule.margin)
        costs.append(comparison)
        states.append(state)
    order: tuple[CommonState, ...] = ("several", "unchecked", "inconclusive")
    state = next((one for one in order if one in states), "one")
    return LoadsResult(
        results=tuple(results), common=Common(key=key, state=state, costs=tuple(costs))
    )


def _fresh(
    result: TuneResult, best: str, key: str, checks: Mapping[str, Sequence[TuneResult]]
) -> Comparison | None:
    """Two cells of a race compared by launches that did not choose them; None without any."""
    for one in (result, *reversed(checks.get(result.run.id, ()))):
        if {best, key} <= one.launched_fresh:
            return one.compared(best, key)
    return None


def _state(comparison: Comparison | None, margin: float) -> CommonState:
    if comparison is None:
        return "unchecked"
    if comparison.interval is None:
        return "inconclusive"
    if comparison.interval.high <= 1 + margin:
        return "one"
    is_worse = comparison.interval.low > 1 and comparison.speedup_ratio > 1 + margin
    return "several" if is_worse else "inconclusive"


def common_cell(loads: LoadsResult) -> Cell | None:
    """The common configuration, if there is one."""
    return None if loads.common is None else loads.results[0].cells[loads.common.key]


def common_sentence(loads: LoadsResult) -> str:
    """Whether one configuration does for all loads, in a sentence."""
    common, first = loads.common, loads.results[0]
    if common is None:
        return "There is no common configuration yet: not every load has a recommendation."
    name, margin = names(first)[common.key], percent(first.tuning.rule.margin, 0)
    pairs = [
        (load_text(result.tuning), cost)
        for result, cost in zip(loads.results, common.costs, strict=True)
        if cost is not None
    ]
    if common.state == "unchecked":
        return f"Whether {name} does for all loads is not checked. Continue with `--resume`."
    if not pairs:
        return f"Use {name} for all loads: it is the best for each."
    load, worst = max(pairs, key=lambda pair: pair[1].speedup_ratio)
    compared = times(worst, first.tuning.objective)
    if common.state == "one":
        return f"Use {name} for all loads: none has a configuration that is over {margin} better."
    if common.state == "several":
        return (
            f"One configuration for all loads costs more than {margin}. The best common one is"
            f" {name}; for {load}, the recommended one is {compared}."
        )
    return (
        f"Inconclusive: {name} may cost more than {margin}. For {load}, the winner compared with it"
        f" is {compared}."
    )


class LoadRow(Struct, frozen=True, kw_only=True):
    """A load in words: the winner of its race, and what that one gains.

    `gain` is against the default, and `against_common` against the common configuration.
    """

    load: str
    winner: str
    gain: str
    against_common: str


def load_rows(loads: LoadsResult) -> tuple[LoadRow, ...]:
    """A row for each load, in their order."""
    return tuple(_load_row(loads, index) for index in range(len(loads.results)))


def _load_row(loads: LoadsResult, index: int) -> LoadRow:
    result, common = loads.results[index], loads.common
    best, objective = result.recommended, result.tuning.objective
    if best is None:
        return LoadRow(
            load=load_text(result.tuning), winner=headline(result), gain="", against_common=""
        )
    is_default = best.key == result.contest.default
    if common is None:
        against_common = ""
    elif best.key == common.key:
        against_common = "the same"
    else:
        against_common = times(common.costs[index], objective)
    return LoadRow(
        load=load_text(result.tuning),
        winner=capital(names(result)[best.key]),
        gain="the same" if is_default else times(result.compared_with_default(best.key), objective),
        against_common=against_common,
    )


def common_document(loads: LoadsResult) -> dict[str, Any]:
    """The common configuration as plain data."""
    common, cell = loads.common, common_cell(loads)
    return {
        "sentence": common_sentence(loads),
        "state": common.state if common is not None else None,
        "cell": common.key if common is not None else None,
        "name": capital(names(loads.results[0])[common.key]) if common is not None else None,
        "settings": dict(cell.axes) if cell is not None else None,
        "costs": [
            {
                "load": dict(result.tuning.load),
                "recommended_speedup_ratio": cost.speedup_ratio if cost is not None else None,
                "recommended_speedup_interval": ratio_interval_pair(cost.interval)
                if cost is not None
                else None,
            }
            for result, cost in zip(
                loads.results, common.costs if common is not None else (), strict=common is not None
            )
        ],
    }
