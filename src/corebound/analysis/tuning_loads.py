"""What the races of one scenario say together, if each is for another load.

A load is the values of the parameters that set the work, such as batch and sequence length.
Each load has its own best configuration. One configuration for all is easier to deploy; what it
costs more is compared load by load.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.tuning import TuneResult
from corebound.scenario.cell import Cell
from corebound.stats.comparison import Comparison

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
        return any(result is own for own in self.results)

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


def common_key(results: Sequence[TuneResult]) -> str | None:
    """The configuration to compare with the recommended one of each load.

    It is the one whose greatest loss is the least, as the races saw it. Among those that lose no
    more than the margin, it is the one that most loads recommend.
    """
    if not results or any(result.recommended is None for result in results):
        return None
    recommended = [result.recommended.key for result in results if result.recommended is not None]
    shared = [key for key in results[0].cells if all(key in other.cells for other in results[1:])]
    worst: dict[str, float] = {}
    for key in shared:
        ratios = [
            1.0 if key == best else _ratio(result.compared(best, key))
            for result, best in zip(results, recommended, strict=True)
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
    state = next((name for name in order if name in states), "one")
    return LoadsResult(
        results=tuple(results), common=Common(key=key, state=state, costs=tuple(costs))
    )


def _fresh(
    result: TuneResult, best: str, key: str, checks: Mapping[str, Sequence[TuneResult]]
) -> Comparison | None:
    """Two cells of a race compared by launches that did not choose them; None without any."""
    for measured in (result, *reversed(checks.get(result.run.id, ()))):
        if {best, key} <= measured.launched_fresh:
            return measured.compared(best, key)
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
