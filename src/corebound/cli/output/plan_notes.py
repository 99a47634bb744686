"""What a planned run leaves out, takes and is expected to reach, in words."""

import math
from collections.abc import Iterable, Iterator, Sequence

from corebound import units
from corebound.analysis.forecast import Forecast, shortage_note
from corebound.analysis.wording import count, day, total_time
from corebound.planning.plan import PlannedCell


def plan_notes(plans: Sequence[tuple[str, Sequence[PlannedCell]]]) -> Iterator[str]:
    """What a run does with configurations that is not obvious from the scenarios.

    Args:
        plans: The name and the planned cells of each scenario.
    """
    for scenario, planned in plans:
        if duplicates := sum(each.duplicate_of is not None for each in planned):
            are = "is" if duplicates == 1 else "are"
            yield (
                f"{scenario}: {duplicates} of {count(len(planned), 'configuration')} {are} the"
                " same as another on this host, and not measured again."
            )
    if limited := sum(_is_kept_from_alternating(each) for _, planned in plans for each in planned):
        have = "has" if limited == 1 else "have"
        yield (
            f"{count(limited, 'configuration')} {have} a CPU quota: each launch runs alone, because"
            " the quota would fill up again in every pause."
        )


# Variables that change what a workload does, and that users have in their shells.
_TELLING = (
    *("OMP_", "KMP_", "MKL_", "OPENBLAS_", "GOMP_", "NUMEXPR_", "TF_", "XLA_", "TORCH", "PYTORCH_"),
    *("HF_", "TRANSFORMERS_", "CUDA_", "LD_PRELOAD", "MALLOC_", "PYTHONPATH", "PYTHONHASHSEED"),
)


def variables_note(names: Iterable[str], planned: Iterable[PlannedCell]) -> str | None:
    """Which variables of the shell no workload inherits; None if there are none that matter.

    Args:
        names: The names of all variables of corebound's own environment.
    """
    given = {
        name
        for cell in planned
        for command in cell.commands
        for name in (*dict(command.env), *command.inherits)
    }
    dropped = sorted(name for name in names if name.startswith(_TELLING) and name not in given)
    if not dropped:
        return None
    return (
        f"Not passed to workloads: {', '.join(dropped)}. To set them, use `pass_env` or `env` in"
        " the scenario, or --env NAME."
    )


def _is_kept_from_alternating(planned: PlannedCell) -> bool:
    """Whether a configuration does not alternate only because it has a CPU quota."""
    return (
        planned.cell.cpu_quota is not None
        and planned.duplicate_of is None
        and planned.placement is not None
        and planned.traffic is None
        and planned.measure.alternate != "never"
    )


def forecast_lines(
    forecasts: Sequence[Forecast], *, budget_s: float | None, focuses: bool = False
) -> list[str]:
    """One line for the time, and one for each scenario that was measured before.

    Args:
        budget_s: The time limit in seconds; None is no limit.
        focuses: Whether a budget too short for all decides some comparisons.
    """
    if not forecasts:
        return []
    known = [forecast for forecast in forecasts if forecast.since is not None]
    launches = sum(forecast.launches * forecast.cells for forecast in forecasts)
    limit_s = math.inf if budget_s is None else budget_s
    least = min(limit_s, sum(forecast.likely_s[0] for forecast in forecasts))
    longest = min(limit_s, sum(forecast.likely_s[1] for forecast in forecasts))
    duration = total_time(round(longest * 1e9))
    if least < longest:
        duration = f"between {total_time(round(least * 1e9))} and {duration}"
    line = f"{count(launches, 'launch', 'launches')}, expected to take {duration}."
    if guessed := len(forecasts) - len(known):
        of = "" if guessed == len(forecasts) else f", for {count(guessed, 'scenario')}"
        line += f" This is a guess from usual start-up times{of}, which the launches correct."
    if budget_s is None and not known:
        line += " --budget 5m limits it, --profile quick makes fewer."
    short = shortage_note(forecasts, budget_s)
    if short and focuses:
        short += " What looks plainest after one launch of each is decided first."
    measured = [forecast for forecast in known if forecast.launches]
    return [line, *([short] if short else []), *map(_forecast_line, measured)]


def _forecast_line(forecast: Forecast) -> str:
    precision = (
        f", ratios to within ±{units.percent(forecast.half_width)}"
        if forecast.half_width is not None
        else ""
    )
    return (
        f"{forecast.scenario}: {count(forecast.launches, 'launch', 'launches')} of each of"
        f" {count(forecast.cells, 'configuration')}{precision}, judged by the run of"
        f" {day(forecast.since or '')}."
    )
