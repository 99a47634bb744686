"""Where the time of a run went: starting, warming up, measuring, and launches without a result."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from corebound.analysis.scenario_result import ScenarioResult
from corebound.groups import grouped
from corebound.records.history import days_since_1970
from corebound.records.launch_record import Launch
from corebound.stats.launch_summary import LaunchSummary

# Nanoseconds by part, which add up to the whole. `start_up`: processes, imports, set-up; for a
# server its warm-up, too. `warm_up`: iterations that do not count, also the first of a time slice.
# `measuring`: those that count. `discarded`: launches that do not count. `profiling`: launches that
# profiled operators. `between`: between launches.
TimeSpent = Counter[str]

# A longer gap between launches is an interruption, after which the run was resumed.
_INTERRUPTED_S = 600


def time_spent(
    launches: Iterable[Launch], results: Iterable[ScenarioResult]
) -> dict[str, TimeSpent]:
    """Where the time of launches went, by scenario.

    Args:
        results: Results of the run. In scenarios without one, warming up is part of measuring.
    """
    cells = [cell.summary for result in results for cell in result.cells]
    summaries = {each.launch: each for cell in cells for each in (*cell.launches, *cell.left_out)}
    groups = grouped(launches, lambda launch: frozenset({launch.id, *launch.alternated}))
    spent: dict[str, TimeSpent] = {}
    for group in groups.values():
        whole_ns = sum(launch.own_duration_ns for launch in group)
        iterating_ns = [_iterating_ns(launch) for launch in group]
        rest_ns = round(max(whole_ns - sum(iterating_ns), 0) / len(group))
        for launch, own_ns in zip(group, iterating_ns, strict=True):
            parts = spent.setdefault(launch.cell.scenario, TimeSpent())
            parts.update(_parts(launch, own_ns, rest_ns, summaries))
    return spent


def between_launches(launches: Iterable[Launch], spent: Iterable[TimeSpent]) -> TimeSpent:
    """The time of a run in which none of its launches ran, without interruptions of the run."""
    ran = sorted(
        (days * 86_400, days * 86_400 + launch.duration_ns / 1e9)
        for launch in launches
        if (days := days_since_1970(launch.started_at)) is not None
    )
    if not ran:
        return TimeSpent()
    gaps_s = [after[0] - before[1] for before, after in pairwise(ran)]
    elapsed_s = ran[-1][1] - ran[0][0] - sum(gap for gap in gaps_s if gap > _INTERRUPTED_S)
    between_ns = round(elapsed_s * 1e9) - sum(parts.total() for parts in spent)
    return TimeSpent(between=max(between_ns, 0))


def _iterating_ns(launch: Launch) -> int:
    if launch.served is not None:
        return launch.served.answered.duration_ns
    return max((sum(worker.wall_ns) for worker in launch.workers), default=0)


def _parts(
    launch: Launch, own_ns: int, rest_ns: int, summaries: Mapping[str, LaunchSummary]
) -> Mapping[str, int]:
    if launch.kind == "profile" or launch.status != "ok":
        return {"profiling" if launch.kind == "profile" else "discarded": own_ns + rest_ns}
    summary = summaries.get(launch.id) if launch.served is None else None
    used_ns = min(summary.used_ns, own_ns) if summary else own_ns
    return {"start_up": rest_ns, "warm_up": own_ns - used_ns, "measuring": used_ns}
