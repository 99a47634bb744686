"""One launch of real processes: a function of tests/data/workloads/steps.py, or a command."""

import os
import shutil
import sys
from pathlib import Path

from corebound.launch.launch import LaunchResult, LaunchSpec, launch
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.machine.topology import CpuId
from corebound.planning.models import Command, Placement, Slot
from corebound.scenario.cell import BindMoment, Scalar
from corebound.worker.protocol import Request
from support.paths import DATA

CPUS = sorted(os.sched_getaffinity(0))


def launch_step(
    supervision: Supervision,
    scratch: Path,
    function: str | None,
    *,
    command: list[str] | None = None,
    parameters: dict[str, Scalar] | None = None,
    cpus: tuple[int, ...] | None = (CPUS[0],),
    iterations: int = 20,
    timeout_s: float = 20.0,
    share_s: float | None = None,
    moment: BindMoment = "before-start",
    workers: int = 1,
    env: tuple[tuple[str, str], ...] = (),
    strip: tuple[str, ...] = (),
    awaits: bool = False,
    counting: CounterSupport | None = None,
) -> LaunchResult:
    """Launch it on these CPUs, or unbound; `strip` comes before the worker's interpreter."""
    bound = cpus is not None
    slot = Slot(cpus=tuple(CpuId(cpu) for cpu in cpus or CPUS))
    prefix = (
        ("taskset", "-c", ",".join(map(str, slot.cpus)))
        if bound and moment == "before-start"
        else ()
    )
    request = Request(
        target=None if function is None else f"steps:{function}",
        command=command,
        parameters=parameters or {},
        framework="none",
        intra_op=None,
        inter_op=None,
        iterations=iterations,
        seed=1,
        path=[str(DATA / "workloads")],
        awaits=awaits,
    )
    folder = scratch / "launch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    argv = (*prefix, *strip, sys.executable, "-m", "corebound.worker")
    return launch(
        LaunchSpec(
            placement=Placement(
                slots=(slot,) * workers,
                threads=None,
                backend="taskset" if bound else "none",
                memory="default",
                moment=moment,
                bound=bound,
            ),
            commands=(Command(argv=argv, env=env),) * workers,
            requests=(request,) * workers,
            threads_asked=None,
            timeout_s=timeout_s,
            share_s=share_s,
            python_path=scratch / "library",
            scratch=folder,
            counting=counting or CounterSupport(),
        ),
        supervision,
        lambda: None,
    )
