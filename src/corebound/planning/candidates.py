"""List the configurations worth trying for a workload on a host, the most promising first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct

from corebound.errors import InputError
from corebound.machine.topology import Topology, cpu_list
from corebound.planning.cpu_selection import core_by_core, cores_of, one_cpu_per_core, packed
from corebound.scenario.builtin_workloads import SHAPES_BY_PARAMETER
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import Point, baseline_of, expand, expand_matrix, points_of
from corebound.scenario.models import ProfileName, Scenario, measure_for
from corebound.scenario.objectives import OBJECTIVES, Objective
from corebound.scenario.placeholders import placeholders_in
from corebound.scenario.runtimes import RUNTIMES, Framework, Runtime
from corebound.scenario.server_workload import ServerWorkload
from corebound.scenario.settings import SETTINGS, ExplicitCpus, WaitPolicy

# The values of settings by name, as a scenario file would have them.
Choice = Mapping[str, Any]

# What runs if nothing is set.
DEFAULTS: Choice = {"binding": "none", "threads": "default", "wait_policy": None}

# Nothing binds, and what this changes most: SMT, the number of cores, and how far they are apart.
_BINDINGS = ("none", "physical-cores", "logical-cpus", "node", "socket", "cache")
# The threading layers of a BLAS that are OpenMP, as threadpoolctl names them.
_OPENMP_LAYERS = frozenset({"openmp", "intel", "gnu", "pgi"})
# The parameters that a search for a rate sets itself.
_TRAFFIC_PARAMETERS = frozenset({*SHAPES_BY_PARAMETER, "traffic", "client"})
# With fewer requests, a search seldom finds the rate to within a tenth.
_LEAST_SEARCH = 600


def choices(
    topology: Topology,
    framework: Framework,
    *,
    vary_workers: bool,
    workers: int,
    blas_layers: Collection[str] = (),
    vary_threads: bool = True,
) -> tuple[Choice, ...]:
    """The choices of bindings, threads, wait policies and workers, without duplicates.

    The most promising come first: the default, the framework's launcher, the physical cores and
    halves of them, each binding of the physical cores, several workers, the wait policies, and last
    each binding of fewer threads. The planner decides which of them the host can hold, and which
    are the same there.

    Args:
        framework: What the workload runs in.
        vary_workers: Whether the number of workers may change, as for throughput.
        workers: The workload's own number of workers.
        blas_layers: The threading layers of the BLAS that NumPy uses.
        vary_threads: Whether the number of threads changes anything; else that of CPUs varies.
    """
    cores = len(cores_of(topology.allowed))
    runtime = RUNTIMES[framework]
    default = {**DEFAULTS, "workers": workers}
    found: list[Choice] = [default]
    if runtime.has_launcher:
        found.append({**default, "binding": "launcher"})
    counts = _thread_counts(cores)
    unbound, *bindings = _BINDINGS
    found += [
        {**default, "binding": unbound, "threads": threads}
        for threads in ("per-core", "default", *counts)
    ]
    found += [
        {**default, "binding": binding, "threads": threads}
        for binding in bindings
        for threads in ("per-core", "default")
    ]
    found.append({**default, "binding": "one-cpu", "threads": 1})
    if vary_workers:
        found += _several_workers(default, cores, runtime)
    waits = runtime.wait_policy
    if waits == "openmp" or (waits and not _OPENMP_LAYERS.isdisjoint(blas_layers)):
        found += [
            {**choice, "wait_policy": policy}
            for policy in get_args(WaitPolicy)
            for choice in found
            if choice["binding"] in {"none", "physical-cores"}
            and choice["threads"] in {"default", "per-core", "cores-per-worker"}
        ]
    found += [
        {**default, "binding": binding, "threads": threads}
        for threads in counts
        for binding in bindings
    ]
    if not vary_threads:
        found = [{key: values[key] for key in values if key != "threads"} for values in found]
        found += [{**found[0], "binding": binding} for binding in _fewer_cpus(topology, counts)]
    return distinct(found)


def _fewer_cpus(topology: Topology, counts: Sequence[int]) -> Iterable[dict[str, str]]:
    """One CPU of each of so many cores that are close together; `one-cpu` is tried anyway."""
    cores = one_cpu_per_core(cores_of(topology.allowed))
    for count in counts:
        if count > 1:
            yield {"cpus": cpu_list(core_by_core(packed(cores, count, topology)[:count]))}


def _thread_counts(cores: int) -> list[int]:
    """Half the cores, a quarter of them, and so on down to one thread."""
    counts = []
    while cores > 1:
        cores //= 2
        counts.append(cores)
    return counts


def _several_workers(default: Choice, cores: int, runtime: Runtime) -> Iterable[Choice]:
    """Divide the cores among 2, 4, 8 … workers, each on its own cores where that can be set."""
    binding = "none" if runtime.server is not None else "per-worker"
    workers = 2
    while workers <= cores:
        yield {
            **default,
            "binding": binding,
            "threads": "cores-per-worker",
            "workers": workers,
        }
        workers *= 2


def distinct(found: Iterable[Choice]) -> tuple[Choice, ...]:
    """The choices in their order, each once."""
    unique: dict[tuple[tuple[str, str], ...], Choice] = {}
    for choice in found:
        unique.setdefault(
            tuple(sorted((key, repr(value)) for key, value in choice.items())), choice
        )
    return tuple(unique.values())


def include_entries(
    found: Sequence[Choice], base: Choice, keys: Sequence[str]
) -> list[dict[str, Any]]:
    """The choices as entries of a matrix's `include`, each with all of these keys.

    Args:
        base: The values of keys that a choice does not have.
        keys: The keys, in order; those of parameters begin with `parameters.`.
    """
    entries = []
    for choice in found:
        entry: dict[str, Any] = {}
        for key in keys:
            value = choice[key] if key in choice else base[key]
            section, _, name = key.rpartition(".")
            if section:
                entry.setdefault(section, {})[name] = value
            else:
                entry[key] = value
        entries.append(entry)
    return entries


class SearchSpace(Struct, frozen=True, kw_only=True):
    """The candidates of a scenario, the default first.

    Attributes:
        found: The choices; each may lack keys, which then have the value of `base`.
        base: The values of the scenario's own baseline.
        document: The scenario without its matrix, with the profile applied.
        load: The parameters that the scenario varies and that all candidates share.
        varies_threads: Whether the number of threads may vary.
    """

    found: tuple[Choice, ...]
    base: Choice
    keys: tuple[str, ...]
    document: Mapping[str, Any]
    load: tuple[tuple[str, str], ...]
    varies_threads: bool = True

    def with_candidates(self, found: Sequence[Choice]) -> dict[str, Any]:
        """The scenario whose matrix is these candidates, and whose baseline is the first."""
        entries = include_entries(found, self.base, self.keys)
        return {**self.document, "matrix": {"include": entries}, "baseline": entries[0]}


def search_space(
    scenario: Scenario,
    cells: Sequence[Cell],
    topology: Topology,
    *,
    objective: Objective,
    bound_ms: float | None,
    vary: Collection[str],
    profile: ProfileName | None,
    blas_layers: Collection[str] = (),
    follows_threads: bool = True,
) -> SearchSpace:
    """The candidates of a scenario for an objective of `corebound tune`.

    Args:
        cells: Those of its cells that are tuned; they do the same work.
        bound_ms: The latency that 99 % of requests may take, for the objective `rate`.
        vary: Parameters of the workload that may change, because they do not change its work.
        blas_layers: The threading layers of the BLAS that NumPy uses.
        follows_threads: Whether the program of a command or a server follows variables that set
            the number of threads, such as OMP_NUM_THREADS.

    Raises:
        InputError: The cells differ in a parameter that may not change, one that may change does
            not exist, a cell without a server has no rate, or corebound starts no process.
    """
    is_rate = objective == "rate"
    _require_servers(scenario, cells, is_rate=is_rate)
    matrix = expand_matrix(scenario.matrix)
    selected = {cell.key for cell in cells}
    points = [point for point in points_of(scenario, matrix, profile) if point.cell.key in selected]
    baseline = baseline_of(cells[0], cells, scenario) or cells[0]
    own_base = next(point for point in points if point.cell.key == baseline.key)
    searched = _TRAFFIC_PARAMETERS if is_rate else frozenset()
    fixed = _fixed_parameters(points, own_base, vary, searched)
    every_cell = expand(scenario, "", profile)
    load = tuple(
        (axis, value)
        for axis, value in baseline.axes
        if axis in fixed and len({dict(cell.axes).get(axis) for cell in every_cell}) > 1
    )
    varies_threads = follows_threads or _takes_threads(scenario, baseline)
    own_settings = (axis for axis, _ in baseline.axes if axis in SETTINGS)
    keys = dict.fromkeys((*DEFAULTS, "workers"))
    if "OMP_WAIT_POLICY" in scenario.env:
        del keys["wait_policy"]
    if not varies_threads:
        del keys["threads"]
    keys |= dict.fromkeys((*own_settings, *(f"parameters.{name}" for name in vary)))
    base = _values(own_base, keys)
    general = choices(
        topology,
        baseline.framework,
        vary_workers=OBJECTIVES[objective].varies_workers and _takes_workers(scenario),
        workers=baseline.workers,
        blas_layers=blas_layers if baseline.runtime.wait_policy == "blas" else (),
        vary_threads=varies_threads,
    )
    default, *others = (
        {**base, **{key: value for key, value in choice.items() if key in keys}}
        for choice in general
    )
    launchers = [choice for choice in others if choice["binding"] == "launcher"]
    own = [_values(point, keys) for point in points]
    measure = measure_for(scenario, profile)
    measured = {**measure.model_dump(mode="json", exclude_none=True), "duplicates": "once"}
    if is_rate:
        fixed |= {"traffic": "rate-search", "bound_ms": bound_ms}
        measured["iterations"] = max(measure.requests, _LEAST_SEARCH)
    document = {
        key: value
        for key, value in scenario.document().items()
        if key not in {"matrix", "baseline", "claims", "profiles", *keys}
    }
    return SearchSpace(
        found=distinct([default, *launchers, *own, *others]),
        base=base,
        keys=tuple(keys),
        document={**document, "parameters": fixed, "measure": measured},
        load=load,
        varies_threads=varies_threads,
    )


def _takes_workers(scenario: Scenario) -> bool:
    """Whether corebound, or the command of the user's server, starts as many workers as asked."""
    return not isinstance(scenario.workload, ServerWorkload) or _names(scenario, "workers")


def _takes_threads(scenario: Scenario, cell: Cell) -> bool:
    """Whether a workload gets its number of threads, as far as the scenario says so."""
    return (
        isinstance(scenario.workload, str)
        or cell.framework not in {"none", "own-server"}
        or "threads" in {*scenario.model_fields_set, *dict(cell.axes)}
        or _names(scenario, "threads")
    )


def _names(scenario: Scenario, placeholder: str) -> bool:
    """Whether the command or a variable of a scenario names a placeholder."""
    workload = scenario.workload
    values = [value for value in scenario.env.values() if value is not None]
    used = frozenset[str]() if isinstance(workload, str) else workload.placeholders()
    return placeholder in used | placeholders_in(" ".join(values))


def _values(point: Point, keys: Iterable[str]) -> dict[str, Any]:
    """The values of a point's keys, as a scenario file would have them."""
    values: dict[str, Any] = {}
    for key in keys:
        section, _, name = key.rpartition(".")
        value = (point.parameters[name] if section else point.settings[key]).value
        values[key] = {"cpus": value.cpus} if isinstance(value, ExplicitCpus) else value
    return values


def _fixed_parameters(
    points: Sequence[Point], base: Point, vary: Collection[str], searched: Collection[str]
) -> dict[str, Any]:
    """The parameters that all candidates share, without those that the objective sets itself."""
    unknown = [name for name in vary if name not in base.parameters]
    if unknown:
        raise InputError(
            what=f"the workload has no parameter `{unknown[0]}` in this scenario.",
            where="--vary",
            fix=f"Its parameters: {', '.join(base.parameters) or 'none'}.",
        )
    for name in base.parameters:
        if name in searched:
            continue
        texts = dict.fromkeys(
            point.parameters[name].text for point in points if name in point.parameters
        )
        if len(texts) > 1 and name not in vary:
            first = next(iter(texts))
            raise InputError(
                what=f"the scenario varies the parameter `{name}` ({', '.join(texts)}), and so the"
                " work that is measured.",
                where="corebound tune",
                fix=f"Select one value, as in `--only {name}={first}`, tune for each with"
                f" `--each {name}`, or let the race choose with `--vary {name}`.",
            )
    return {
        name: value.value
        for name, value in base.parameters.items()
        if name not in {*searched, *vary}
    }


def _require_servers(scenario: Scenario, cells: Sequence[Cell], *, is_rate: bool) -> None:
    """Check that corebound starts the server, and that there is one if a rate is searched."""
    workload = scenario.workload
    if isinstance(workload, ServerWorkload) and workload.server is None:
        raise InputError(
            what="a service that runs already has no configuration that corebound can change.",
            where="corebound tune",
            fix="Add `server:` with its command under `workload`.",
        )
    if is_rate and any(cell.runtime.server is None for cell in cells):
        raise InputError(
            what="only a server has a rate of requests.",
            where="--objective rate",
            fix="Write `--objective throughput`, or select cells of a server with `--only`.",
        )
