"""What a run is expected to take and to reach.

The last run of the same scenario on the same host tells both. Without one, the time is a guess from
the usual start-up times of frameworks, and a range is given; launches correct it as they end.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import count, listed, total_time
from corebound.planning.budget import LEAST_ITERATIONS, Turns, blocks_within, fair_share_s
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Launch
from corebound.scenario.cell import Cell
from corebound.scenario.models import Launches
from corebound.stats.interference import is_refused
from corebound.stats.intervals import log_interval

# Fewer pairs say too little about how much ratios vary.
_LEAST_PAIRS = 3
# What a launch of a server takes, in seconds.
_SERVER_S = 25.0
# A benchmark's iterations usually take about two seconds in all, because its author chose their
# number so; the pilot of `iterations: auto` takes as long.
_ITERATING_S = 2.0
# A guess knows neither the iterations nor how busy the host is. Of 22 scenarios of the suite, quick
# and on a busy host, 18 took between a third and three times of it, and one five times.
GUESS_FACTOR = 3.0
# An expectation counts like so many launches of the scenario, and like so many scenarios that took
# as long as expected.
_GUESS_LAUNCHES = 2
_GUESS_SCENARIOS = 4
# So many scenarios that a budget has no time for are named.
_NAMED = 5
# A cell has two refused launches at most in a run, which has three launches of it or more.
_MOST_OFTEN = 5 / 3


class Experience(Struct, frozen=True, kw_only=True):
    """What the last run of a scenario shows.

    Attributes:
        since: When that run started; None for a guess.
        launch_s: The time that an `ok` launch takes, in seconds. Launches that alternate share
            theirs, and the time of those that were discarded is added.
        iterating_s: The part of it that its iterations take.
        iterations: The number of iterations of a launch.
        spreads: For each comparison, the standard deviation of the logarithm of a block's ratio.
    """

    since: str | None
    launch_s: float
    spreads: tuple[float, ...]
    iterating_s: float = 0.0
    iterations: float | None = None

    def launch_s_with(self, iterations: float | None) -> float:
        """The time that a launch with another number of iterations takes, in seconds.

        Args:
            iterations: The number; None if it is left to the pilot, which takes the same time.
        """
        if iterations is None or not self.iterations:
            return self.launch_s
        return self.launch_s + self.iterating_s * (iterations / self.iterations - 1)

    @property
    def least_launch_s(self) -> float:
        """The time that a launch takes with just enough iterations to count, in seconds."""
        fewest = min(LEAST_ITERATIONS / self.iterations, 1.0) if self.iterations else 0.0
        return self.launch_s - self.iterating_s * (1 - fewest)

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
        since: When the run started that the forecast relies on; None for a guess.
        cells: How many cells are launched.
        launches: The number of launches of each cell; 0 if the budget has no time for them.
        launch_s: The time of a launch, in seconds.
        duration_s: The time that these launches take, in seconds.
        requested_s: The time of as many launches as the scenario requests at least, in seconds.
        half_width: As in `Experience.half_width`.
        range_s: The least and the longest time that is likely, in seconds, for a guess; None if a
            run tells.
    """

    scenario: str
    since: str | None
    cells: int
    launches: int
    launch_s: float
    duration_s: float
    requested_s: float
    half_width: float | None
    range_s: tuple[float, float] | None = None

    @property
    def likely_s(self) -> tuple[float, float]:
        """The least and the longest time that is likely, in seconds; equal if a run tells."""
        return self.range_s or (self.duration_s, self.duration_s)


def experience(result: ScenarioResult) -> Experience | None:
    """What a result shows about time and spread; None without an `ok` launch."""
    launches = [launch for launch in result.launches if launch.kind == "measure"]
    ok = sum(launch.status == "ok" for launch in launches)
    if (launch_s := time_of_launch(launches)) is None:
        return None
    comparisons = [cell.comparison for cell in result.cells if cell.comparison is not None]
    numbers = [len(worker.wall_ns) for launch in launches for worker in launch.workers]
    return Experience(
        since=result.run.started_at,
        launch_s=launch_s,
        iterating_s=sum(
            max((sum(worker.wall_ns) for worker in launch.workers), default=0)
            for launch in launches
        )
        / 1e9
        / ok,
        iterations=statistics.median(numbers) if numbers else None,
        spreads=tuple(
            statistics.stdev(math.log(ratio) for _, ratio in comparison.per_block)
            for comparison in comparisons
            if comparison.pairs >= _LEAST_PAIRS
        ),
    )


def time_of_launch(launches: Collection[Launch]) -> float | None:
    """The time that an `ok` launch takes with its share of the others, in seconds."""
    ok = sum(launch.status == "ok" for launch in launches)
    return sum(launch.own_duration_ns for launch in launches) / 1e9 / ok if ok else None


def besides_iterations_ns(launch: Launch) -> int:
    """What a launch took beside its iterations, without its pauses for others."""
    iterations_ns = max((sum(worker.wall_ns) for worker in launch.workers), default=0)
    # One that was ended before its first iteration ended had that time for it.
    iterations_ns = iterations_ns or launch.least_iteration_ns or 0
    # Those of launches with `started_with` are not part of their duration.
    paused_ns = launch.pauses.duration_ns if launch.pauses and not launch.started_with else 0
    return max(launch.duration_ns - paused_ns - iterations_ns, 0)


def guess(planned: Sequence[PlannedCell]) -> Experience | None:
    """What launches of a scenario usually take, without a run of it; None without a launch.

    Args:
        planned: The cells of the scenario that are launched.
    """
    if not planned:
        return None
    return Experience(
        since=None,
        launch_s=statistics.fmean(
            usual_start_s(each) + (_ITERATING_S if each.traffic is None else 0.0)
            for each in planned
        ),
        iterating_s=_ITERATING_S if planned[0].traffic is None else 0.0,
        spreads=(),
    )


def usual_start_s(planned: PlannedCell) -> float:
    """What a launch usually takes before it iterates, in seconds; a server takes it in all."""
    return planned.cell.runtime.start_up_s if planned.traffic is None else _SERVER_S


class TimeLeft:
    """The time that the rest of a run takes, from its launches so far.

    A scenario without launches has its expectation, corrected by the ratio of what the others took
    to what was expected of them.
    """

    def __init__(self, expected_s: Mapping[str, float]) -> None:
        """Take the expected time of a launch of each scenario, in seconds; it may lack some."""
        self._expected_s = dict(expected_s)
        self._last_s: dict[str, float] = {}
        self._starts: list[float] = []
        self._took_s: defaultdict[str, float] = defaultdict(float)
        self._attempts: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()

    def add(self, launch: Launch) -> None:
        """Count a launch."""
        scenario = launch.cell.scenario
        self._last_s[launch.cell.id] = launch.own_duration_ns / 1e9
        has_iterated = any(worker.wall_ns for worker in launch.workers)
        # A server that was ended before its requests has neither.
        if launch.served is None and (has_iterated or launch.least_iteration_ns is not None):
            start_s = launch.cell.runtime.start_up_s
            self._starts.append(besides_iterations_ns(launch) / 1e9 / max(start_s, 0.1))
        self._took_s[scenario] += launch.own_duration_ns / 1e9
        self._attempts[scenario] += 1
        self._refused[scenario] += is_refused(launch)

    @property
    def start_factor(self) -> float:
        """How many times the usual time a start takes here; without a launch, the most likely."""
        return max(statistics.median(self._starts), 1.0) if self._starts else GUESS_FACTOR

    def launch_s(self, cell: Cell) -> float:
        """The time that a launch of a cell takes: as its last one, or as others; 0 if unknown."""
        last_s = self._last_s.get(cell.id)
        return self._launch_s(cell.scenario, self._correction()) if last_s is None else last_s

    def seconds(self, left: Mapping[str, int]) -> float | None:
        """The time of the launches that are left; None if nothing is known.

        Args:
            left: The number of launches by scenario.
        """
        if not self._attempts and not self._expected_s:
            return None
        correction = self._correction()
        return sum(
            number * self._launch_s(scenario, correction) * self._repeated(scenario)
            for scenario, number in left.items()
            if number
        )

    def _launch_s(self, scenario: str, correction: float) -> float:
        """The time of a launch: what the scenario's took so far, and the expectation."""
        attempts, took_s = self._attempts[scenario], self._took_s[scenario]
        expected_s = self._expected_s.get(scenario)
        if expected_s is None:
            if not attempts:
                attempts, took_s = self._attempts.total(), sum(self._took_s.values())
            return took_s / max(attempts, 1)
        guessed_s = _GUESS_LAUNCHES * expected_s * correction
        return (took_s + guessed_s) / (attempts + _GUESS_LAUNCHES)

    def _repeated(self, scenario: str) -> float:
        """How often a launch is made: once, and again as often as launches were refused."""
        attempts, refused = self._attempts[scenario], self._refused[scenario]
        often = (attempts + _GUESS_LAUNCHES) / (attempts - refused + _GUESS_LAUNCHES)
        return min(often, _MOST_OFTEN)

    def _correction(self) -> float:
        """How much longer launches take than expected; near 1 if few scenarios tell."""
        known = [
            (self._took_s[scenario] / attempts, self._expected_s[scenario])
            for scenario, attempts in self._attempts.items()
            if scenario in self._expected_s
        ]
        if not known:
            return 1.0
        took_s, expected_s = sum(took for took, _ in known), sum(expected for _, expected in known)
        as_expected_s = _GUESS_SCENARIOS * expected_s / len(known)
        return (took_s + as_expected_s) / (expected_s + as_expected_s)


def forecast_run(
    scenarios: Sequence[tuple[str, int, Launches, Experience]], budget_s: float | None
) -> tuple[Forecast, ...]:
    """Forecast a run of several scenarios, which take turns as the runner lets them.

    Args:
        scenarios: For each scenario its name, the number of cells that are launched, how many
            launches it requests, and its experience.
        budget_s: The time limit in seconds; None is no limit.
    """
    limit_s = math.inf if budget_s is None else budget_s
    numbers = blocks_within(
        [
            Turns(
                blocks=0,
                wanted=_wanted(launches, known),
                block_s=cells * known.launch_s,
                least_block_s=cells * known.least_launch_s,
            )
            for _, cells, launches, known in scenarios
        ],
        limit_s,
    )
    made = [
        (number * cells, known.launch_s)
        for number, (_, cells, _, known) in zip(numbers, scenarios, strict=True)
    ]
    # What a budget leaves for each launch, if it cuts them.
    is_cut = sum(number * each_s for number, each_s in made) > limit_s
    share_s = fair_share_s(limit_s, 0, made) if is_cut else math.inf
    return tuple(
        Forecast(
            scenario=name,
            since=known.since,
            cells=cells,
            launches=number,
            launch_s=known.launch_s,
            duration_s=(duration_s := number * cells * min(known.launch_s, share_s)),
            requested_s=launches.min * cells * known.launch_s,
            half_width=known.half_width(number),
            range_s=(duration_s / GUESS_FACTOR, duration_s * GUESS_FACTOR)
            if known.since is None
            else None,
        )
        for number, (name, cells, launches, known) in zip(numbers, scenarios, strict=True)
    )


def shortage_note(forecasts: Sequence[Forecast], budget_s: float | None) -> str | None:
    """What a budget does not hold of what the scenarios request; None if it holds all of it.

    Args:
        forecasts: The forecast of each scenario, for this budget.
        budget_s: The time limit in seconds; None is no limit.
    """
    requested_s = sum(forecast.requested_s for forecast in forecasts)
    if budget_s is None or requested_s <= budget_s:
        return None
    missing = [forecast.scenario for forecast in forecasts if not forecast.launches]
    fewest = min((forecast.launches for forecast in forecasts if forecast.launches), default=0)
    held = f"holds {count(fewest, 'launch', 'launches')} of each configuration"
    if not fewest:
        held = "holds no launch of each configuration"
    requested = total_time(round(requested_s) * 1_000_000_000)
    text = f"The budget {held}; what the scenarios request takes about {requested}."
    if missing:
        named = listed(missing, _NAMED)
        text += f" It has no time for {count(len(missing), 'scenario')}: {named}."
    return text


def _wanted(launches: Launches, experience: Experience) -> int:
    """After how many launches the ratios are expected to be as precise as requested."""
    if not experience.spreads:
        return (launches.min + launches.max) // 2
    for number in range(launches.min, launches.max):
        half_width = experience.half_width(number)
        if half_width is not None and half_width <= launches.until_relative_ci:
            return number
    return launches.max
