"""Plan all launches of a scenario on a host, or report why a cell cannot run."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine.topology import Topology
from corebound.planning.commands import command
from corebound.planning.environment_variables import inter_op, intra_op, placeholder_values
from corebound.planning.host_support import HostCapabilities, cannot_run
from corebound.planning.models import CannotRun, Command, Placement
from corebound.planning.placement import place
from corebound.planning.servers import traffic_of
from corebound.scenario import models
from corebound.scenario.builtin_workloads import built_in_of
from corebound.scenario.cell import HOST, Cell, is_project
from corebound.scenario.files import beside_scenario, name_in_working_directory
from corebound.scenario.matrix import axis_text
from corebound.scenario.metrics import parse_json_path
from corebound.scenario.placeholders import fill, placeholders_in
from corebound.scenario.server_workload import ServerWorkload
from corebound.scenario.traffic import Traffic
from corebound.worker import protocol

AnyWorkload = str | models.CommandWorkload | ServerWorkload


def unprofiled(scenario: models.Scenario, cell: Cell) -> CannotRun | None:
    """Why a cell's operators cannot be profiled; None if they can."""
    fix = "Its results are valid; only the time per operator is missing."
    if isinstance(scenario.workload, models.CommandWorkload):
        return CannotRun(what="a command is timed as a whole.", fix=fix)
    reason = cell.runtime.unprofiled
    return CannotRun(what=reason, fix=fix) if reason else None


class PlannedCell(Struct, frozen=True, kw_only=True):
    """One cell that is ready for any number of launches, or cannot be launched.

    Exactly one of `placement` and `unfit` is None. `unprofiled` says why the cell's
    operators cannot be profiled, if they cannot. A server has one command, and `traffic`
    and `python` (its environment's interpreter) instead of requests; a running service has no
    command. `own` is a server that is not built in, with `{port}` still in it, and `folder` that of
    its scenario. `threads` is the number of each worker, None if only the framework knows it.
    `duplicate_of` is the cell that is launched instead, if both are the same on the host. `files`
    maps paths in the working directory to the files that are linked there; `working_directory` is
    None if each launch gets a new one.
    """

    cell: Cell
    measure: models.Measure
    placement: Placement | None
    commands: tuple[Command, ...]
    requests: tuple[protocol.Request, ...]
    unfit: CannotRun | None
    unprofiled: CannotRun | None = None
    traffic: Traffic | None = None
    python: str | None = None
    own: ServerWorkload | None = None
    folder: str = ""
    threads: int | None = None
    files: Mapping[str, str] = {}
    working_directory: str | None = None
    duplicate_of: Cell | None = None


def plan_cells(
    scenario: models.Scenario,
    cells: tuple[Cell, ...],
    host: HostCapabilities,
    *,
    folder: str,
    profile: models.ProfileName | None,
    seed: int,
    fallback_path: Sequence[str] = (),
) -> tuple[PlannedCell, ...]:
    """Plan the cells of one scenario on one host; never raises, however unusual the host is.

    Args:
        folder: The folder of the scenario's own modules.
        profile: The profile that changes `measure`, if any.
        seed: Seed of the workers' random numbers: the same in every launch of a run.
        fallback_path: Folders whose modules may be imported after all others.
    """
    given = _Given(
        scenario=scenario,
        measure=models.measure_for(scenario, profile),
        folder=folder,
        seed=seed,
        fallback_path=fallback_path,
    )
    return tuple(_plan_cell(given, cell, host) for cell in cells)


class _Given(Struct, frozen=True, kw_only=True):
    """What the cells of a plan share, as in `plan_cells`."""

    scenario: models.Scenario
    measure: models.Measure
    folder: str
    seed: int
    fallback_path: Sequence[str]


def _plan_cell(given: _Given, cell: Cell, host: HostCapabilities) -> PlannedCell:
    scenario, measure, folder = given.scenario, given.measure, given.folder
    placement = place(cell, host.topology, host.tools)
    python = host.pythons[cell.environment]
    unfit = placement if isinstance(placement, CannotRun) else cannot_run(scenario, cell, host)
    if unfit is not None or isinstance(placement, CannotRun) or python is None:
        return PlannedCell(
            cell=cell, measure=measure, placement=None, commands=(), requests=(), unfit=unfit
        )
    planned = PlannedCell(
        cell=cell,
        measure=measure,
        placement=placement,
        commands=(),
        requests=(),
        unfit=None,
        unprofiled=unprofiled(scenario, cell),
        files={
            name_in_working_directory(file): str(PurePath(folder, file)) for file in scenario.files
        },
        working_directory=folder if _is_in_folder(scenario) else None,
    )
    start = partial(
        command, cell, placement, python=python, gpus=host.gpus, inherits=scenario.pass_env
    )
    if isinstance(workload := scenario.workload, ServerWorkload):
        own = workload.filled(placeholder_values(cell, placement, 0))
        program, *words = own.server.command if own.server is not None else ("",)
        return replace(
            planned,
            commands=(start(0, own=(beside_scenario(program, folder), *words)),) if program else (),
            own=own,
            folder=folder,
            traffic=traffic_of(cell, measure, seed=given.seed, requests=own.requests),
            python=python,
        )
    if cell.runtime.server is not None and isinstance(workload, str):
        return replace(
            planned,
            commands=(start(0, target=_target(workload, cell)),),
            traffic=traffic_of(cell, measure, seed=given.seed),
            python=python,
        )
    slots, openmp = range(len(placement.slots)), host.openmp_of(cell)
    return replace(
        planned,
        commands=tuple(start(slot, openmp=openmp) for slot in slots),
        requests=tuple(_request(given, cell, placement, slot, python) for slot in slots),
        threads=intra_op(cell, placement) or _default_threads(cell, placement, host.topology),
    )


def _is_in_folder(scenario: models.Scenario) -> bool:
    """Whether launches work in the scenario's folder; servers of the user's own do by default."""
    if "working_directory" in scenario.model_fields_set or scenario.files:
        return scenario.working_directory == "scenario"
    return isinstance(scenario.workload, ServerWorkload)


def _default_threads(cell: Cell, placement: Placement, host: Topology) -> int | None:
    """How many threads a framework has by default in each worker; None if that is not certain.

    With SMT siblings, PyTorch has fewer than one for each CPU that it may use.
    """
    (cpus, *others) = {len(slot.cpus) for slot in placement.slots}
    if not cell.runtime.is_one_per_cpu or placement.omp or others or host.has_smt:
        return None
    return cpus


# The first launches of a scenario that leaves the number of iterations open have at most so many,
# and end after two seconds if they have the least number. `stats.pilot` chooses for later ones.
_PILOT_ITERATIONS = 100
_PILOT_NS = 2_000_000_000
_LEAST_PILOT_ITERATIONS = 6
# A command that reports what it measured repeats by itself. Its first run is not observed.
_LEAST_REPORTING = 2
# Launches on GPUs have as many as fit into this time: NVML's readings are of use from 2 s on
# (`records.telemetry.GPU_PERIODS_MS`), and there have to be several of them.
_GPU_NS = 6_000_000_000
_GPU_ITERATIONS = 10_000
# A long step gets fewer: the first ones end after this share of the launch's time limit.
_PILOT_SHARE = 0.25


def _request(
    given: _Given, cell: Cell, placement: Placement, slot: int, python: str
) -> protocol.Request:
    measure, folder, workload = given.measure, given.folder, given.scenario.workload
    is_pilot = measure.iterations == "auto"
    least = _LEAST_REPORTING if cell.metrics else _LEAST_PILOT_ITERATIONS
    dropped, dropped_ns = _warm_up(measure.warmup)
    first = _GPU_ITERATIONS if cell.gpus else _PILOT_ITERATIONS
    first_ns = _GPU_NS if cell.gpus else _PILOT_NS
    values = placeholder_values(cell, placement, slot)
    commands = _commands(workload, values, folder)
    return protocol.Request(
        target=_target(workload, cell) if isinstance(workload, str) else None,
        command=commands.get("command"),
        prepare=commands.get("prepare"),
        cleanup=commands.get("cleanup"),
        parameters=_parameters(workload, cell, folder),
        framework=cell.framework,
        intra_op=intra_op(cell, placement),
        inter_op=inter_op(cell, placement),
        iterations=dropped + first if is_pilot else measure.requests,
        enough_ns=dropped_ns + first_ns if is_pilot else None,
        least_iterations=dropped + least if is_pilot else 1,
        most_ns=dropped_ns + round(_PILOT_SHARE * measure.timeout_s * 1e9) if is_pilot else None,
        seed=given.seed,
        path=[folder],
        # A checkout must not be imported beside the built commit.
        fallback_path=[] if is_project(cell.environment) else list(given.fallback_path),
        gpus=cell.gpus,
        project=is_project(cell.environment),
        awaits=given.scenario.is_async,
        programs=None if cell.environment == HOST else str(PurePath(python).parent),
        metrics=[_metric(source, values) for source in given.scenario.metrics],
    )


def _metric(source: models.MetricSource, values: Mapping[str, str]) -> dict[str, Any]:
    """How a worker finds a metric."""
    is_json = source.json_path is not None
    return protocol.fields(
        protocol.MetricSource(
            name=source.name,
            path=parse_json_path(source.json_path) if source.json_path is not None else None,
            samples=parse_json_path(source.samples) if source.samples and is_json else None,
            regex=source.regex,
            all_matches=source.samples is not None and not is_json,
            file=None if source.file is None else fill(source.file, values),
        )
    )


# What a shortened launch has at least: one iteration to warm up, and two for a median.
_LEAST_SHORT = 3
# In less time, a search for a rate learns too little of a server with a few answers a second.
_LEAST_SEARCH_S = 30.0
# So few only where they do not take this many times as long as the launch should.
_SHORT_OVERRUN = 5


def shorten(planned: PlannedCell, most_s: float, *, iterations: int | None) -> PlannedCell:
    """The cell; its launches iterate, or search for a rate, for about a time at most.

    Those of servers with other traffic stay as they are.

    Args:
        most_s: How long they iterate, in seconds, if that is enough for a few iterations.
        iterations: How many iterations they have at most; None: as many as planned.
    """
    most_ns = round(most_s * 1e9)
    requests = (
        request.replace(
            iterations=min(request.iterations, iterations or request.iterations),
            enough_ns=min(request.enough_ns or most_ns, most_ns),
            least_iterations=_LEAST_SHORT if iterations else _LEAST_PILOT_ITERATIONS,
            most_ns=min(request.most_ns or _SHORT_OVERRUN * most_ns, _SHORT_OVERRUN * most_ns),
        )
        for request in planned.requests
    )
    traffic = planned.traffic
    if traffic is not None and traffic.shape == "rate-search":
        traffic = replace(traffic, search_s=max(most_s, _LEAST_SEARCH_S))
    return replace(planned, requests=tuple(requests), traffic=traffic)


def started_programs(workload: AnyWorkload, cell: Cell, folder: str) -> tuple[str, ...]:
    """The programs that a cell's commands or server start, as they are executed.

    Args:
        workload: The workload; a function starts none.

    Returns:
        Names to search in PATH, and paths; without those that only a placement decides.
    """
    values = {name: axis_text(value) for name, value in cell.parameters}
    if isinstance(workload, ServerWorkload):
        server = workload.filled(values).server
        programs = [beside_scenario(server.command[0], folder)] if server is not None else []
    else:
        programs = [words[0] for words in _commands(workload, values, folder).values()]
    return tuple(program for program in programs if not placeholders_in(program))


def own_program(workload: AnyWorkload, cell: Cell, placement: Placement) -> tuple[str, ...]:
    """The words that start the user's program with the values of a configuration.

    A port stays `{port}`, because each start may have another one.

    Returns:
        Nothing if the program has no placeholders, or other values in each worker.
    """
    if isinstance(workload, str):
        return ()
    names = workload.placeholders() - {"port"}
    if not names or ("cpus" in names and len(placement.slots) > 1):
        return ()
    values = placeholder_values(cell, placement, 0)
    if isinstance(workload, models.CommandWorkload):
        return workload.arguments(values)["command"]
    server = workload.filled(values).server
    return tuple(server.command) if server is not None else ()


def _commands(
    workload: AnyWorkload, values: Mapping[str, str], folder: str
) -> dict[str, list[str]]:
    """The commands of a workload by their keys, with placeholders filled; empty for a function."""
    if not isinstance(workload, models.CommandWorkload):
        return {}
    return {
        key: [beside_scenario(words[0], folder), *words[1:]]
        for key, words in workload.arguments(values).items()
    }


def _parameters(
    workload: AnyWorkload, cell: Cell, folder: str
) -> dict[str, str | int | float | bool]:
    """A cell's parameters, with the paths of files as the worker, in its own folder, finds them."""
    built_in = built_in_of(workload)
    files = () if built_in is None else built_in.files
    return {
        name: str(PurePath(folder, str(value))) if name in files else value
        for name, value in cell.parameters
    }


def _warm_up(warmup: models.Warmup) -> tuple[int, int]:
    """The iterations and the nanoseconds that a scenario's own warm-up takes."""
    if isinstance(warmup, models.WarmupIterations):
        return warmup.iterations, 0
    return 0, round(warmup.seconds * 1e9) if isinstance(warmup, models.WarmupSeconds) else 0


def _target(workload: str, cell: Cell) -> str:
    built_in = built_in_of(workload)
    return workload if built_in is None else built_in.targets[cell.framework]
