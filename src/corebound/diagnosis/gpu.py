"""Rules about how busy a GPU is kept: starved, waiting, fluctuating or busy."""

import statistics
from collections.abc import Callable

from corebound.diagnosis.evidence import (
    CellEvidence,
    Evidence,
    Finding,
    cpu_share,
    helper_share,
    median,
    waiting_share,
)
from corebound.units import cpu_quota, percent

# A GPU that is idle for a larger share of the time does not limit a step.
IDLE_SHARE = 0.5
# Share from which a GPU, a process or CPUs count as fully busy: the rest goes into passing batches
# on.
BUSY_SHARE = 0.8
# A single reading covers at most a second, and may be an exception.
_LEAST_READINGS = 4


def _class_of(cell: CellEvidence) -> Finding | None:
    """How busy the cell keeps its GPU, and what to set; None if there are too few readings."""
    readings = sorted(
        share
        for launch in cell.ok
        if launch.host is not None
        for share in launch.host.gpu_busy_shares
    )
    if len(readings) < _LEAST_READINGS:
        return None
    mean, spread = statistics.fmean(readings), _spread(readings)
    low, high = (percent(share, 0) for share in spread)
    text = f"The GPU is busy {percent(mean, 0)} of the time"
    if mean >= BUSY_SHARE:
        own, what = "gpu-busy", f"{text}: it limits the step, not the CPUs."
        fix = "Leave the CPUs as they are. A smaller network or number type makes the step faster."
    elif spread[1] < IDLE_SHARE and not _preparing(cell):
        own, what = "gpu-waits", f"{text}, though no process is busy preparing data."
        fix = "Give it more to do in each step: a larger `batch`."
    elif spread[1] < IDLE_SHARE:
        own, what = "gpu-starved", f"{text}: it is starved by preprocessing."
        fix = _fix(cell)
    else:
        own = "gpu-fluctuates"
        what = f"{text}, and it fluctuates: preprocessing and the network take turns."
        fix = _fix(cell)
    return cell.finding(
        rule=own,
        tone="plain" if own == "gpu-busy" else "warn",
        what=what,
        evidence=(
            f"{low} to {high} busy in most of {len(readings)} readings",
            *_evidence(cell),
        ),
        fix=fix,
        times_ratio=1.0 if own == "gpu-busy" else 1 / max(mean, 0.01),
    )


def _spread(readings: list[float]) -> tuple[float, float]:
    """The readings that eight of ten are between."""
    tenth = len(readings) // 10
    return readings[tenth], readings[-1 - tenth]


def _preparing(cell: CellEvidence) -> bool:
    """Whether a process that prepares batches is always busy: a loader, or without one the step."""
    waits, helpers = median(cell.ok, waiting_share), median(cell.ok, helper_share)
    if cell.has_loaders:
        return helpers is not None and helpers >= BUSY_SHARE
    prepares = any(name == "preprocessing" for name, _ in (*cell.cell.axes, *cell.cell.parameters))
    return prepares and waits is not None and 1 - waits >= BUSY_SHARE


def _evidence(cell: CellEvidence) -> tuple[str, ...]:
    waits, helpers = median(cell.ok, waiting_share), median(cell.ok, helper_share)
    lines = []
    if waits is not None:
        lines.append(f"training process active {percent(1 - waits, 0)} of the time")
    if cell.has_loaders and helpers is not None:
        lines.append(f"busiest loader {percent(helpers, 0)}")
    if (cpus := median(cell.ok, cpu_share)) is not None:
        lines.append(f"{percent(cpus, 0)} of {cpu_quota(len(cell.cpus))} in use")
    return tuple(lines)


def _fix(cell: CellEvidence) -> str:
    """What to set, in the order of what it usually brings."""
    cpus = median(cell.ok, cpu_share)
    if cpus is not None and cpus >= BUSY_SHARE:
        return (
            "The CPUs have no time left: preprocess the data once, before training, make it"
            " smaller, or prepare it on the GPU."
        )
    more = "more `loaders`" if cell.has_loaders else "`loaders: 1` or more"
    return (
        f"Prepare batches in parallel processes: {more}, of one thread each, up to one per core."
        " `corebound tune` with `--vary loaders` finds the number. Then try a larger `batch`."
    )


def _rule(name: str) -> Callable[[CellEvidence, Evidence], Finding | None]:
    """The rule that finds one class only: what is found of several cells is one finding a rule."""

    def find(cell: CellEvidence, _: Evidence) -> Finding | None:
        found = _class_of(cell)
        return found if found is not None and found.rule == name else None

    return find


RULES = tuple(map(_rule, ("gpu-starved", "gpu-waits", "gpu-fluctuates", "gpu-busy")))
