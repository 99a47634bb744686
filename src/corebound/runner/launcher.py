"""Launches planned cells as real processes, each in a scratch folder; only traces are kept."""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

import corebound
from corebound.errors import LaunchError
from corebound.launch import cpu_quota, host_sampler, perf
from corebound.launch.environments import cache_dir
from corebound.launch.interleaving import JointStart, Participant
from corebound.launch.launch import LaunchResult, LaunchSpec, NoRoomError, launch
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.machine.cgroups import available_memory_bytes
from corebound.machine.procfs import descendants, resource_usage
from corebound.machine.sysfs import LIVE
from corebound.machine.topology import CpuId
from corebound.planning.models import Placement
from corebound.planning.plan import PlannedCell
from corebound.records import traces
from corebound.runner.jobs import Job
from corebound.scenario.cell import HOST
from corebound.scenario.traffic import Traffic
from corebound.serving.own_server import DeclaredServer, at_port
from corebound.serving.served_model import recipe_of, served_model
from corebound.serving.servers import server_of
from corebound.serving.session import ServingSpec, serve
from corebound.worker import protocol


def serving_spec(planned: PlannedCell, python_path: Path, scratch: Path) -> ServingSpec:
    """Resolve everything that a launch of a planned server needs.

    Args:
        planned: A cell with traffic that fits this host.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: An empty folder for the launch.
    """
    cell, placement, traffic = planned.cell, planned.placement, planned.traffic
    if placement is None or traffic is None or planned.python is None:
        raise ValueError("an unfit cell is skipped, and a server has traffic and an interpreter")
    python = Path(planned.python)
    new_spec = partial(
        ServingSpec,
        placement=placement,
        traffic=traffic,
        generator=Path(sys.executable),
        generator_cpus=_generator_cpus(placement),
        threads_asked=placement.threads,
        timeout_s=planned.measure.timeout_s,
        python_path=python_path,
        scratch=scratch,
        cpu_quota=cell.cpu_quota,
    )
    if planned.own is None:
        return new_spec(
            command=planned.commands[0],
            model=lambda execute: served_model(
                cache_dir() / "models", recipe_of(cell), python=python, execute=execute
            ),
            server=partial(server_of, cell, placement, python),
        )
    path = os.pathsep.join((str(python.parent), os.environ.get("PATH", os.defpath)))
    declared = DeclaredServer(
        planned.own,
        folder=planned.folder,
        workers=cell.workers,
        path=None if cell.environment == HOST else path,
    )
    folder = planned.working_directory
    return new_spec(
        command=at_port(planned.commands[0], declared.port) if planned.commands else None,
        model=lambda _: None,
        server=lambda *_: declared,
        reports_itself=False,
        files=planned.files,
        working_directory=None if folder is None else Path(folder),
    )


# More than the trials that a search makes at one rate, each with the next seed.
_SEEDS_A_BLOCK = 1000


def traffic_in_block(traffic: Traffic, block: int) -> Traffic:
    """The traffic of a launch in a block.

    Searches for a rate have the same arrivals in a block, so that their ratio does not depend on
    them, and other ones in each block, so that the interval of the ratio contains their effect.
    """
    if traffic.shape != "rate-search":
        return traffic
    return replace(traffic, seed=traffic.seed + _SEEDS_A_BLOCK * block)


def _generator_cpus(placement: Placement) -> tuple[CpuId, ...]:
    """The load generator's CPUs: apart from the server's if the host has enough CPUs."""
    allowed = {CpuId(cpu) for cpu in os.sched_getaffinity(0)}
    taken = {cpu for slot in placement.slots for cpu in slot.cpus}
    return tuple(sorted(allowed - taken or allowed))


_LIBRARY = "library"
# The memory that must be available before one more launch joins an alternation, as a multiple of
# what the largest one has after its first iteration. Iterations may need more.
_MEMORY_RESERVE = 2.0
# Launches that start at once leave this share of the available memory while they import.
_MEMORY_SHARE = 0.5
# How often progress is shown while launches take turns, and memory is read while all import.
_TICK_S = 0.5
_IMPORT_TICK_S = 0.1


class Launcher(Struct, frozen=True, kw_only=True):
    """Launches planned cells as real processes.

    Attributes:
        scratch: The parent of the launches' scratch folders, each removed after its launch.
        tick: Called from time to time during a launch.
        on_cpus, on_gpus: The counters for launches on CPUs only, and for launches on GPUs.
        supervisions: One supervisor per concurrent launch; more are started as needed.
        stack: Ends the supervisors.
        peak_bytes: The most memory that a launch of each scenario had so far.
    """

    scratch: Path
    traces_folder: Path
    tick: Callable[[], None]
    gpus: int
    on_cpus: CounterSupport
    on_gpus: CounterSupport
    supervisions: list[Supervision]
    stack: ExitStack
    peak_bytes: dict[str, int] = field(default_factory=dict)

    def __call__(self, jobs: Sequence[Job]) -> tuple[LaunchResult, ...]:
        """Launch one cell, or several at once, of which those with the same turn alternate.

        Raises:
            LaunchError: a supervisor has ended.
        """
        together: dict[str, LaunchResult | None] = {}
        for part in self._parts(jobs):
            if len(part) > 1:
                together |= zip((job.id for job in part), self._together(part), strict=True)
        # What could not start with others does so by itself.
        results = tuple(
            together.get(job.id) or self._launch(job, 0, self.tick, None) for job in jobs
        )
        for job, result in zip(jobs, results, strict=True):
            peaks = (worker.peak_rss_bytes or 0 for worker in result.workers)
            scenario = job.planned.cell.scenario
            self.peak_bytes[scenario] = max(self.peak_bytes.get(scenario, 0), sum(peaks))
        return results

    def _parts(self, jobs: Sequence[Job]) -> tuple[tuple[Job, ...], ...]:
        """The jobs in parts, of whole turns, for which there is memory at the same time.

        A launch may need as much as the largest of its scenario so far.
        """
        largest_bytes = max(self.peak_bytes.get(job.planned.cell.scenario, 0) for job in jobs)
        most = available_memory_bytes(LIVE) // max(largest_bytes, 1)
        parts: list[tuple[Job, ...]] = []
        for turn in sorted({job.turn for job in jobs}):
            members = tuple(job for job in jobs if job.turn == turn)
            if parts and len(parts[-1]) + len(members) <= most:
                parts[-1] += members
            else:
                parts.append(members)
        return tuple(parts)

    def _together(self, jobs: Sequence[Job]) -> tuple[LaunchResult | None, ...]:
        """Launch several cells that start at once; None for those that have to start alone."""
        while len(self.supervisions) < len(jobs):
            # Start it in this thread, because a supervisor ends with the thread that started it.
            folder = Path(tempfile.mkdtemp(prefix="supervisor-", dir=self.scratch))
            self.supervisions.append(self.stack.enter_context(Supervision(folder)))
        stopped, lost = threading.Event(), list[Supervision]()

        def tick(role: Participant) -> None:
            if stopped.is_set():
                raise KeyboardInterrupt
            if role.has_no_room:
                raise NoRoomError

        turns = [
            [len(job.planned.requests) for job in jobs if job.turn == turn]
            for turn in sorted({job.turn for job in jobs})
        ]
        start = JointStart(turns, cpus=len(os.sched_getaffinity(0)), has_room=self._has_room)
        least_bytes = _MEMORY_SHARE * available_memory_bytes(LIVE)
        with start, ThreadPoolExecutor(len(jobs)) as pool:
            futures = [
                pool.submit(self._in_turn, job, number, partial(tick, role), role, lost)
                for number, (job, role) in enumerate(zip(jobs, start.participants, strict=True))
            ]
            try:
                tick_s = _IMPORT_TICK_S
                while wait(futures, timeout=tick_s).not_done:
                    self.tick()
                    tick_s = _IMPORT_TICK_S if start.is_importing else _TICK_S
                    if start.is_importing and available_memory_bytes(LIVE) < least_bytes:
                        start.give_up_imports()
            except BaseException:
                stopped.set()  # each launch cleans up first, then the exception propagates
                raise
            results = tuple(future.result() for future in futures)
        # Another one starts the launches of those that have ended.
        for supervision in lost[: len(self.supervisions) - 1]:
            self.supervisions.remove(supervision)
        return results

    def _in_turn(
        self,
        job: Job,
        number: int,
        tick: Callable[[], None],
        role: Participant,
        lost: list[Supervision],
    ) -> LaunchResult | None:
        """The result of a launch that starts with others; None if it has to start by itself.

        It has to if there is no memory for it now, if its supervisor has ended, and if it failed
        to import, because others did so at the same time.
        """
        supervision = self.supervisions[number]
        try:
            result = self._launch(job, number, tick, role)
        except NoRoomError:
            return None
        except LaunchError:
            supervision.close()
            lost.append(supervision)
            return None
        finally:
            role.leave()  # whatever its outcome, the others must not wait for it
        has_failed = result.status == "failed" and not role.has_imported
        return None if has_failed else result

    def _launch(
        self, job: Job, number: int, tick: Callable[[], None], role: Participant | None
    ) -> LaunchResult:
        planned, folder = job.planned, self.scratch / f"launch-{number}"
        supervision = self.supervisions[number]
        if planned.placement is None:
            raise ValueError("an unfit cell is skipped, never launched")
        counting = self.on_gpus if planned.cell.gpus or not self.gpus else self.on_cpus
        folder.mkdir()
        try:
            if planned.traffic is not None:
                server = serving_spec(planned, self._python_path, folder)
                traffic = traffic_in_block(planned.traffic, job.block)
                limit_s = min(server.timeout_s, job.share_s or math.inf)
                server = replace(server, counting=counting, traffic=traffic, timeout_s=limit_s)
                return serve(server, supervision, tick)
            own = planned.working_directory
            spec = LaunchSpec(
                placement=planned.placement,
                commands=planned.commands,
                requests=requests(job),
                threads_asked=planned.requests[0].intra_op,
                timeout_s=planned.measure.timeout_s,
                share_s=job.share_s,
                python_path=self._python_path,
                scratch=folder,
                cpu_quota=planned.cell.cpu_quota,
                cell=planned.cell,
                files=planned.files,
                working_directory=Path(own) if own else None,
            )
            if job.kind == "measure":
                others = tuple(other.pid for other in self.supervisions if other is not supervision)
                spec = replace(spec, counting=counting, role=role, other_supervisors=others)
            result = launch(spec, supervision, tick)
            if result.trace is None:
                return result
            return replace(result, trace=traces.keep(result.trace, self.traces_folder, job.id))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _has_room(self) -> bool:
        """Whether there is memory for a launch as large as the largest that is ready."""
        largest_bytes = max(
            resource_usage(partial(descendants, supervision.pid)).rss_bytes
            for supervision in self.supervisions
        )
        return available_memory_bytes(LIVE) >= _MEMORY_RESERVE * largest_bytes

    @property
    def _python_path(self) -> Path:
        return self.scratch / _LIBRARY


def launcher(
    stack: ExitStack, scratch: Path, traces_folder: Path, tick: Callable[[], None], *, gpus: int
) -> Launcher:
    """Create a launcher and start its first supervisor.

    Args:
        stack: Ends the processes that are started here.
        scratch: The parent of the launches' scratch folders. The supervisor removes it at the
            end, even if this process is killed.
        tick: Called from time to time during a launch.
    """
    cpu_quota.remove_abandoned()
    supervision = stack.enter_context(Supervision(scratch))
    _link_library(scratch)
    on_cpus = perf.detect_counters()
    return Launcher(
        scratch=scratch,
        traces_folder=traces_folder,
        tick=tick,
        gpus=gpus,
        on_cpus=on_cpus,
        on_gpus=replace(on_cpus, gpus=host_sampler.gpu_sampler(gpus=gpus)),
        supervisions=[supervision],
        stack=stack,
    )


def requests(job: Job) -> tuple[protocol.Request, ...]:
    """The request for each worker of a job."""
    planned = job.planned
    if job.kind == "profile":
        changes = {"operators": planned.measure.operators}
    elif job.iterations is not None:
        changes = {"iterations": job.iterations}
    else:
        return planned.requests
    return tuple(request.replace(**changes) for request in planned.requests)


def _link_library(scratch: Path) -> None:
    """Create a folder for PYTHONPATH that holds only the package `corebound`.

    Other packages installed beside corebound, such as another NumPy, must not reach the
    worker's environment.
    """
    folder = scratch / _LIBRARY
    folder.mkdir()
    (folder / "corebound").symlink_to(Path(corebound.__file__).parent)
