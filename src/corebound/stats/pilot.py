"""How many iterations a launch is to have, given what the launches so far show."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from corebound.stats.comparison import log_ratios, time_slice_log_ratios
from corebound.stats.launch_summary import CellSummary, median_error

# The fewest iterations after the warm-up. A few disturbances do not decide their median, and
# launches that alternate have time slices enough to be paired by them.
_LEAST_STEADY = 10
# More in one launch only make the records longer.
_MOST_STEADY = 1000
# More iterations are pointless once the error within a launch is this share of what the next
# launch differs by: together they are then 5 % larger than the difference between launches alone.
_LEAST_ERROR_SHARE = 1 / 3
# How much the ratios of two launches differ before any were made. On a virtual machine with two
# CPUs, launches of one thread differed by 0.3 to 1 %, of two threads by 4 to 7 %.
_ORDINARY_SPREAD, _LEAST_SPREAD = 0.02, 0.003


class PilotLaunches(Struct, frozen=True, kw_only=True):
    """What the launches of one cell took so far; each value is the median over its launches.

    Attributes:
        setup_ns: What a launch takes beside its iterations, from its start to its end.
        iterations: The iterations of one worker, with the warm-up.
    """

    summary: CellSummary
    setup_ns: float
    iterations: float
    workers: int


class _Variances(Struct, frozen=True, kw_only=True):
    """Variances of logarithms: of one iteration, and of a launch apart from its iterations.

    `freedom` is how many degrees of freedom that of a launch has.
    """

    iteration: float
    launch: float
    freedom: int


def worthwhile_iterations(
    pilots: Sequence[PilotLaunches], baselines: Mapping[str, str]
) -> dict[str, int]:
    """How many iterations each worker of a cell's next launch is to have.

    In a given time there can be few launches with many iterations or many launches with few.
    The error of the result is least if a launch has

        n = sqrt(setup time / iteration time x variance of iterations / variance of launches)

    iterations after its warm-up. The variance between launches is hardly known after a few of
    them, so it is averaged over the cells, and with that of an ordinary launch.

    Args:
        pilots: The cells of one scenario, each with two `ok` launches or more.
        baselines: For a cell's key, the key of the cell that it is compared with.

    Returns:
        For each cell's key the number of iterations, the warm-up included. A baseline has as
        many as the cell compared with it that needs most. A launch still ends after the time
        that the plan allows.

    Source: Kalibera & Jones, "Rigorous benchmarking in reasonable time" (2013), the best number
    of repetitions at each level.
    """
    by_key = {pilot.summary.cell.key: pilot for pilot in pilots}
    compared = {key: base for key, base in baselines.items() if {key, base} <= by_key.keys()}
    alone = by_key.keys() - compared.keys() - set(compared.values())
    variances = {key: _of_ratio(by_key[key], by_key[base]) for key, base in compared.items()} | {
        key: _of_cell(by_key[key]) for key in alone
    }
    if not variances:
        return {}
    of_launches = _pooled(variances.values())
    steady = {
        key: _steady_iterations(by_key[key], variance.iteration, of_launches)
        for key, variance in variances.items()
    }
    for key, base in compared.items():
        steady[base] = max(steady.get(base, 0), steady[key])
    return {key: _with_warm_up(by_key[key], number) for key, number in steady.items()}


def _pooled(variances: Iterable[_Variances]) -> float:
    """The variance between launches, over all cells.

    Two launches that happen to be alike say little, so an ordinary launch counts as one more
    degree of freedom. Without it, such a pair would be followed by launches as long as possible.
    """
    known = [(variance.launch, variance.freedom) for variance in variances]
    total = sum(launch * freedom for launch, freedom in known) + _ORDINARY_SPREAD**2
    return max(total / (sum(freedom for _, freedom in known) + 1), _LEAST_SPREAD**2)


def _steady_iterations(pilot: PilotLaunches, of_iterations: float, of_launches: float) -> int:
    """The best number of iterations that count, for each worker."""
    step_ns = max(pilot.summary.median_ns or 0.0, 1.0)
    share = of_iterations / of_launches
    best = math.sqrt(pilot.setup_ns / step_ns * share)
    return round(min(max(min(best, share / _LEAST_ERROR_SHARE**2), _LEAST_STEADY), _MOST_STEADY))


def _with_warm_up(pilot: PilotLaunches, steady: int) -> int:
    """How many iterations give this many that count, judged by those of the launches so far."""
    launches = pilot.summary.launches
    warm_up = statistics.median(launch.steady.start for launch in launches)
    used = statistics.median(launch.used for launch in launches) / pilot.workers
    return round(warm_up + steady * max(pilot.iterations - warm_up, 1) / max(used, 1))


def _of_ratio(cell: PilotLaunches, baseline: PilotLaunches) -> _Variances:
    """The variances of the ratio of a cell to its baseline."""
    launches, baseline_launches = (
        {launch.block: launch for launch in pilot.summary.launches} for pilot in (cell, baseline)
    )
    logs = log_ratios(cell.summary, baseline.summary)
    slices = time_slice_log_ratios(cell.summary, baseline.summary)
    squares = [
        median_error(slices[block], len(slices[block])) ** 2
        if block in slices
        else launches[block].error ** 2 + baseline_launches[block].error ** 2
        for block in logs
    ]
    return _variances(list(logs.values()), squares, cell)


def _of_cell(pilot: PilotLaunches) -> _Variances:
    """The variances of the time of a cell that is not compared."""
    launches = pilot.summary.launches
    logs = [math.log(max(launch.median_ns, 1.0)) for launch in launches]
    return _variances(logs, [launch.error**2 for launch in launches], pilot)


def _variances(
    logs: Sequence[float], squared_errors: Sequence[float], pilot: PilotLaunches
) -> _Variances:
    if len(logs) < 2:
        return _Variances(iteration=0.0, launch=0.0, freedom=0)
    # The median, because the host may change its speed within a few launches.
    within = statistics.median(squared_errors)
    used = statistics.fmean(launch.used for launch in pilot.summary.launches) / pilot.workers
    return _Variances(
        iteration=within * used,
        launch=statistics.variance(logs) - within,
        freedom=len(logs) - 1,
    )
