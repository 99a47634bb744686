"""What a run is expected to reach, given the last run of the same scenario on the same host."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct

from corebound.analysis.scenario_result import ScenarioResult
from corebound.records.launch_record import Launch
from corebound.scenario.models import Launches
from corebound.stats.intervals import log_interval

# Fewer pairs say too little about how much ratios vary.
_LEAST_PAIRS = 3


class Experience(Struct, frozen=True, kw_only=True):
    """What the last run of a scenario shows.

    Attributes:
        since: When that run started.
        launch_s: The time that an `ok` launch takes, in seconds. Launches that alternate share
            theirs, and the time of those that were discarded is added.
        spreads: For each comparison, the standard deviation of the logarithm of a block's ratio.
    """

    since: str
    launch_s: float
    spreads: tuple[float, ...]

    def half_width(self, launches: int) -> float | None:
        """The relative half width of the ratios' intervals, the median; None without ratios.

        0.02 means that a ratio is known to within 2 % either way.
        """
        if not self.spreads or launches < 2:
            return None
        error = statistics.median(self.spreads) / math.sqrt(launches)
        return log_interval(0.0, standard_error=error, freedom=launches - 1).relative_half_width


class Forecast(Struct, frozen=True, kw_only=True):
    """What a run of one scenario is expected to reach.

    Attributes:
        scenario: Its name.
        since: When the run started that the forecast relies on.
        cells: How many cells are launched.
        launches: The number of launches of each cell.
        duration_s: The time that these launches take, in seconds.
        half_width: As in `Experience.half_width`.
    """

    scenario: str
    since: str
    cells: int
    launches: int
    duration_s: float
    half_width: float | None


def experience(result: ScenarioResult) -> Experience | None:
    """What a result shows about time and spread; None without an `ok` launch."""
    launches = [launch for launch in result.launches if launch.kind == "measure"]
    ok = sum(launch.status == "ok" for launch in launches)
    if not ok:
        return None
    comparisons = [cell.comparison for cell in result.cells if cell.comparison is not None]
    return Experience(
        since=result.run.started_at,
        launch_s=_total_s(launches) / ok,
        spreads=tuple(
            statistics.stdev(math.log(ratio) for _, ratio in comparison.per_block)
            for comparison in comparisons
            if comparison.pairs >= _LEAST_PAIRS
        ),
    )


def _total_s(launches: Iterable[Launch]) -> float:
    """The time that launches took, in seconds; those that alternated ran at the same time."""
    by_group: dict[frozenset[str], int] = {}
    for launch in launches:
        group = frozenset({launch.id, *launch.alternated})
        by_group[group] = max(by_group.get(group, 0), launch.duration_ns)
    return sum(by_group.values()) / 1e9


def forecast_run(
    scenarios: Sequence[tuple[str, int, Launches, Experience]], budget_s: float | None
) -> tuple[Forecast, ...]:
    """Forecast a run of several scenarios, which take turns block by block.

    Args:
        scenarios: For each scenario its name, the number of cells that are launched, how many
            launches it requests, and its experience.
        budget_s: The time limit in seconds; None is no limit.
    """
    block_s = sum(cells * experience.launch_s for _, cells, _, experience in scenarios)
    in_time = math.inf if budget_s is None or not block_s else budget_s / block_s
    return tuple(
        Forecast(
            scenario=name,
            since=experience.since,
            cells=cells,
            launches=(number := int(min(_wanted(launches, experience), max(in_time, 1)))),
            duration_s=number * cells * experience.launch_s,
            half_width=experience.half_width(number),
        )
        for name, cells, launches, experience in scenarios
    )


def _wanted(launches: Launches, experience: Experience) -> int:
    """After how many launches the ratios are expected to be as precise as requested."""
    for number in range(launches.min, launches.max):
        half_width = experience.half_width(number)
        if half_width is not None and half_width <= launches.until_relative_ci:
            return number
    return launches.max
