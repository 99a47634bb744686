"""Records whose launches are judged by their peak memory instead of their time."""

from collections.abc import Iterable

from msgspec.structs import replace

from corebound.analysis.host_records import Record
from corebound.records.launch_record import Launch, Worker
from corebound.records.run_record import Run
from corebound.scenario.compared_axis import with_margin
from corebound.scenario.metrics import PEAK_MEMORY, JudgedBy
from corebound.stats.interference import is_refused

# Measured: see "Peak memory" in docs/explanation/statistics/launches.md.
MEMORY_MARGIN = 0.01
_MIB = 1 << 20


def judged_by(
    metric: JudgedBy, run: Run, launches: Iterable[Launch], *, margin: float = MEMORY_MARGIN
) -> Record:
    """A run and its launches as if each launch had reported its peak memory, and only that.

    Everything that compares a value that a command reports (ADR 37) then compares memory.

    Args:
        metric: For `time`, both are returned as they are.
        launches: Its launches. One whose peak memory is unknown has no value.
        margin: The least change of memory that matters; replaces that of the scenarios.
    """
    if metric == "time":
        return run, tuple(launches)
    # Without its digest, no calibration of times applies to it.
    scenarios = tuple(
        replace(source, document=with_margin(source.document, margin), sha256="")
        for source in run.scenarios
    )
    return replace(run, scenarios=scenarios), tuple(map(_by_memory, launches))


def _by_memory(launch: Launch) -> Launch:
    peak_bytes, cell = launch.peak_rss_bytes, replace(launch.cell, metrics=(PEAK_MEMORY,))
    if launch.kind != "measure":
        return replace(launch, cell=cell)
    if launch.status == "ok" and peak_bytes is None:
        return replace(launch, cell=cell, status="skipped", reason="its peak memory is unknown")
    if launch.status == "ok" or (is_refused(launch) and peak_bytes):
        # Other programs take time from a launch, but no memory.
        launch = replace(
            launch, status="ok", reason=None, fix=None, host=None, disturbance=None, alternated=()
        )
    value = () if peak_bytes is None else (((peak_bytes / _MIB,),),)
    return replace(
        launch,
        cell=cell,
        served=None,
        workers=tuple(_reporting(worker, launch, value) for worker in launch.workers),
    )


def _reporting(
    worker: Worker, launch: Launch, value: tuple[tuple[tuple[float, ...], ...], ...]
) -> Worker:
    """A worker whose iterations have reported the value."""
    answered = launch.served.answered if launch.served else None
    # A server has requests instead of iterations; the first iteration never counts.
    times_ns = (answered.duration_ns // max(answered.ok, 1),) * 2 if answered else worker.wall_ns
    return replace(worker, wall_ns=times_ns, metrics=value * len(times_ns))
