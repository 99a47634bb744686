"""What a cell was told, key by key, as its axes show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from corebound.model.plan import Cell
from corebound.model.scenario import MatrixEntry
from corebound.model.topology import cpu_list
from corebound.planning.points import AXES, Key, entry, text

# Their names in Debian and in most other distributions; the loader finds them.
ALLOCATORS = {"tcmalloc": "libtcmalloc.so.4", "jemalloc": "libjemalloc.so.2"}


def _binding(cell: Cell) -> str:
    binding = cell.binding
    return f"cpus:{cpu_list(binding.cpus)}" if binding.mode == "cpus" else binding.mode


def _wait_policy(cell: Cell) -> str | None:
    policy = dict(cell.env).get("OMP_WAIT_POLICY")
    return policy and policy.lower()


def _allocator(cell: Cell) -> str | None:
    preloaded = dict(cell.env).get("LD_PRELOAD")
    return next((name for name, library in ALLOCATORS.items() if library == preloaded), None)


_VALUES: dict[str, Callable[[Cell], object]] = {
    "binding": _binding,
    "smt": lambda cell: cell.binding.smt,
    "avoid_cpu0": lambda cell: cell.binding.avoid_cpu0,
    "core_kind": lambda cell: cell.binding.core_kind,
    "memory": lambda cell: cell.binding.memory,
    "backend": lambda cell: cell.binding.backend,
    "bind": lambda cell: cell.binding.moment,
    "threads": lambda cell: cell.threads.rule,
    "omp": lambda cell: cell.threads.omp,
    "mkl": lambda cell: cell.threads.mkl,
    "intra_op": lambda cell: cell.threads.intra_op,
    "inter_op": lambda cell: cell.threads.inter_op,
    "wait_policy": _wait_policy,
    "allocator": _allocator,
    "workers": lambda cell: cell.workers,
    "gpus": lambda cell: cell.gpus,
    "framework": lambda cell: cell.framework,
    "environment": lambda cell: cell.environment.partition("@")[0],
    "commit": lambda cell: cell.commit,
}


def value_of(cell: Cell, key: Key) -> str:
    """A cell's value of anything that can be varied, as its axes would show it."""
    if key[0] == "parameters":
        return text(dict(cell.parameters).get(key[1]))
    return text(_VALUES[key[0]](cell))


def key_of(axis: str) -> Key:
    """The key of an axis by its name; `load` sees to it that no parameter has a setting's."""
    return (axis,) if axis in AXES else ("parameters", axis)


def matching(wanted: MatrixEntry, cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that have every value an entry names."""
    named = {key: found.text for key, found in entry(wanted, ()).items()}
    return tuple(cell for cell in cells if all(value_of(cell, key) == named[key] for key in named))
