"""List the configurations worth trying for a workload on a host, the most promising first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

from corebound.machine.topology import Topology
from corebound.planning.cpu_selection import cores_of
from corebound.scenario.builtin_workloads import LAUNCHERS, PINNING_SERVERS, SERVERS
from corebound.scenario.cell import Framework
from corebound.scenario.settings import WaitPolicy

# The values of settings by name, as a scenario file would have them.
Choice = Mapping[str, Any]

# What runs if nothing is set.
DEFAULTS: Choice = {"binding": "none", "threads": "default", "wait_policy": None}

# Nothing binds, and what this changes most: SMT, the number of cores, and how far they are apart.
_BINDINGS = ("none", "physical-cores", "logical-cpus", "node", "socket", "cache")
# Frameworks whose threads wait as OMP_WAIT_POLICY says. NumPy's do if its BLAS is built so: its
# wheels have OpenBLAS with threads of its own, conda's have MKL.
_OPENMP: frozenset[Framework] = frozenset(
    {"pytorch", "mindspore", "scikit-learn", "xgboost", "lightgbm", "llama-cpp"}
)
# The threading layers of a BLAS that are OpenMP, as threadpoolctl names them.
_OPENMP_LAYERS = frozenset({"openmp", "intel", "gnu", "pgi"})


def choices(
    topology: Topology,
    framework: Framework,
    *,
    vary_workers: bool,
    workers: int,
    blas_layers: Collection[str] = (),
) -> tuple[Choice, ...]:
    """The choices of bindings, threads, wait policies and workers, without duplicates.

    First the default, then the framework's launcher, then what changes threads and bindings, and
    last the wait policies. The planner decides which of them the host can hold, and which are the
    same there.

    Args:
        topology: The host.
        framework: What the workload runs in.
        vary_workers: Whether the number of workers may change, as for throughput.
        workers: The workload's own number of workers.
        blas_layers: The threading layers of the BLAS that NumPy uses.
    """
    cores = len(cores_of(topology.allowed))
    default = {**DEFAULTS, "workers": workers}
    found: list[Choice] = [default]
    if framework in {*LAUNCHERS, *PINNING_SERVERS}:
        found.append({**default, "binding": "launcher"})
    counts = _thread_counts(cores)
    found += [
        {**default, "binding": binding, "threads": threads}
        for binding in _BINDINGS
        for threads in ("per-core", "default", *counts)
    ]
    found.append({**default, "binding": "one-cpu", "threads": 1})
    if vary_workers:
        found += _several_workers(default, cores, framework)
    if framework in _OPENMP or not _OPENMP_LAYERS.isdisjoint(blas_layers):
        found += [
            {**choice, "wait_policy": policy}
            for policy in get_args(WaitPolicy)
            for choice in found
            if choice["binding"] in {"none", "physical-cores"}
            and choice["threads"] in {"default", "per-core", "cores-per-worker"}
        ]
    return distinct(found)


def _thread_counts(cores: int) -> list[int]:
    """Half the cores, a quarter of them, and so on down to one thread."""
    counts = []
    while cores > 1:
        cores //= 2
        counts.append(cores)
    return counts


def _several_workers(default: Choice, cores: int, framework: Framework) -> Iterable[Choice]:
    """Divide the cores among 2, 4, 8 … workers, each on its own cores where that can be set."""
    binding = "none" if framework in SERVERS else "per-worker"
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
        found: The choices.
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
