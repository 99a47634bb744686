"""Metrics of launches, summed over their threads; None if a metric is unavailable."""

import statistics
from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.launch_counts import counted_launches
from corebound.analysis.scenario_result import CellResult
from corebound.analysis.wording import capital
from corebound.diagnosis.evidence import total
from corebound.records.launch_record import Launch
from corebound.stats.server_summary import BY_P90, BY_TAIL


class MetricWords(Struct, frozen=True, kw_only=True):
    """The wording of a metric: as a heading, after "each launch's", and its unit of work.

    `each` is the unit with its article.
    """

    heading: str
    says: str
    unit: str
    each: str


_ITERATION = MetricWords(
    heading="Median", says="median iteration", unit="iteration", each="an iteration"
)
_REQUEST = MetricWords(
    heading="Time per request", says="time per successful request", unit="request", each="a request"
)
_P90 = MetricWords(heading="p90", says="90th percentile", unit="request", each="a request")
_P99 = MetricWords(heading="p99", says="99th percentile", unit="request", each="a request")
_RATE = MetricWords(
    heading="1 / highest rate",
    says="time between requests at the highest rate within the bound",
    unit="request",
    each="a request",
)
_SEVERAL_METRICS = MetricWords(
    heading="Value", says="time per request or percentile", unit="request", each="a request"
)


def metric_of(cells: Collection[CellResult]) -> MetricWords:
    """The metric of these cells; servers may use several metrics."""
    shapes = {
        launch.served.traffic.shape
        for cell in cells
        for launch in cell.launches
        if launch.served is not None
    }
    if not shapes:
        reported = next((cell.cell.metric for cell in cells if cell.cell.metric), None)
        if reported is None:
            return _ITERATION
        return replace(_ITERATION, heading=capital(reported.name), says=reported.name)
    names = {
        _RATE
        if shape == "rate-search"
        else _P99
        if shape in BY_TAIL
        else _P90
        if shape in BY_P90
        else _REQUEST
        for shape in shapes
    }
    return names.pop() if len(names) == 1 else _SEVERAL_METRICS


def migrations(launch: Launch) -> int | None:
    """Moves between CPUs of all threads of a launch."""
    return total(launch, "migrations")


def context_switches(launch: Launch) -> int | None:
    """Context switches of all threads of a launch, voluntary and involuntary."""
    counts = [total(launch, "voluntary"), total(launch, "involuntary")]
    available = [number for number in counts if number is not None]
    return sum(available) if available else None


def threads(launch: Launch) -> int | None:
    """Threads in all processes of a launch, including idle ones."""
    return sum(len(worker.threads) for worker in launch.workers) or None


def total_wall_ns(launch: Launch) -> int | None:
    """The time of all iterations of the slowest worker of a launch, warm-ups included."""
    if launch.served is not None:
        return launch.served.answered.duration_ns
    return max((sum(worker.wall_ns) for worker in launch.workers), default=0) or None


def median_of(cell: CellResult, metric: Callable[[Launch], float | None]) -> float | None:
    """The median of a value over the launches behind the cell's value."""
    available = _available(cell, metric)
    return statistics.median(available) if available else None


def span_of(
    cell: CellResult, metric: Callable[[Launch], float | None]
) -> tuple[float, float] | None:
    """The minimum and maximum over the launches behind the cell's value.

    None with fewer than two launches, or if all have the same value.

    From six launches on these bound the median with 95 %: 1 − 2/2⁶ = 0.969.

    Source: Le Boudec, Performance Evaluation (2010), theorem 2.1.
    """
    available = _available(cell, metric)
    ends = (min(available), max(available)) if len(available) > 1 else (0, 0)
    return None if ends[0] == ends[1] else ends


def _available(cell: CellResult, metric: Callable[[Launch], float | None]) -> list[float]:
    values = map(metric, counted_launches(cell.launches))
    return [value for value in values if value is not None]
