"""Launches for real: a scratch folder each, of which only a trace is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import corebound
from corebound.launch import gpu_use, perf
from corebound.launch.launch import Order, Outcome, launch
from corebound.launch.supervise import Supervision
from corebound.model import wire
from corebound.model.plan import Placement
from corebound.runner.job import Job
from corebound.runner.serving import serving_order
from corebound.serving.session import serve
from corebound.store import traces


def launcher(
    supervision: Supervision,
    scratch: Path,
    kept: Path,
    tick: Callable[[], None],
    *,
    gpus: int,
) -> Callable[[Job], Outcome]:
    """What launches a planned cell for real.

    Args:
        supervision: Starts the workers.
        scratch: A folder for all that launches leave; each leaves nothing.
        kept: The folder that the run's traces are kept in.
        tick: Called as time passes within a launch.
        gpus: How many GPUs the host has.
    """
    python_path = _python_path(scratch)
    on_cpus = perf.offer()
    on_gpus = replace(on_cpus, gpus=gpu_use.opened(gpus=gpus))
    folder = scratch / "launch"

    def launch_one(job: Job) -> Outcome:
        planned = job.planned
        if planned.placement is None:
            raise ValueError("an unfit cell is skipped, never launched")
        counting = on_gpus if planned.cell.gpus or not gpus else on_cpus
        folder.mkdir()
        try:
            if planned.traffic is not None:
                served = serving_order(planned, python_path, folder)
                return serve(replace(served, counting=counting), supervision, tick)
            order = _order(job, planned.placement, python_path, folder)
            if job.kind == "measure":
                order = replace(order, counting=counting)
            outcome = launch(order, supervision, tick)
            if outcome.trace is None:
                return outcome
            return replace(outcome, trace=traces.keep(outcome.trace, kept, job.id))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return launch_one


def _order(job: Job, placement: Placement, python_path: Path, scratch: Path) -> Order:
    planned = job.planned
    return Order(
        placement=placement,
        commands=planned.commands,
        requests=requests(job),
        threads_asked=planned.requests[0].intra_op,
        timeout_s=planned.measure.timeout_s,
        python_path=python_path,
        scratch=scratch,
    )


def requests(job: Job) -> tuple[wire.Request, ...]:
    """What each worker of a job is asked."""
    if job.kind == "measure":
        return job.planned.requests
    operators = job.planned.measure.operators
    return tuple(replace(request, operators=operators) for request in job.planned.requests)


def _python_path(scratch: Path) -> Path:
    """A folder with the package and nothing else, for PYTHONPATH.

    Where corebound is installed, its neighbours (another NumPy, say) must not
    reach the worker's environment.
    """
    folder = scratch / "library"
    folder.mkdir()
    (folder / "corebound").symlink_to(Path(corebound.__file__).parent)
    return folder
