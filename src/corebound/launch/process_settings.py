"""Settings of a whole process: its huge pages, and the OpenMP runtime that it loads.

What the host offers is found here, what a worker really has is read from outside, and both are
compared with what its cell sets.
"""

import ctypes.util
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from corebound.launch.supervisor import set_huge_pages
from corebound.machine import procfs
from corebound.machine.sysfs import LIVE
from corebound.planning.host_support import HugePageSupport
from corebound.planning.models import Command
from corebound.records.launch_record import HugePages, Worker
from corebound.scenario.cell import Cell, HugePageMode, OpenmpRuntime
from corebound.scenario.settings import ALLOCATORS, HUGE_PAGES, OPENMP_LIBRARIES
from corebound.units import size

_ENABLED = "sys/kernel/mm/transparent_hugepage/enabled"


def huge_page_support() -> HugePageSupport:
    """How transparent huge pages can be set for a process of this host."""
    text = LIVE.read(_ENABLED) or ""
    mode = next((mode for mode in HUGE_PAGES if f"[{mode}]" in text), None)
    return HugePageSupport(host=mode, can_require_advice=_can_require_advice())


def _can_require_advice() -> bool:
    """Whether the kernel can restrict a process to advised regions, found out on our own."""
    can = set_huge_pages("madvise")
    set_huge_pages("always")
    return can


def openmp_runtimes(python: Path) -> dict[str, str]:
    """What to preload for each OpenMP runtime that is not a wheel's own, by its name.

    Args:
        python: The interpreter of an environment, whose packages may bring a runtime.
    """
    intel = python.parent.parent / "lib" / "libiomp5.so"
    llvm = ctypes.util.find_library("omp")
    return {
        **({"intel": str(intel)} if intel.is_file() else {}),
        **({"llvm": llvm} if llvm else {}),
    }


def of_process(cell: Cell | None) -> dict[str, str]:
    """The settings that the supervisor sets in each process of a cell, by name."""
    return {} if cell is None or cell.thp is None else {"thp": cell.thp}


def observed(cell: Cell | None, processes: Collection[int]) -> dict[str, Any]:
    """What processes have loaded, and what they have of the cell's settings.

    The kernel walks every page table for huge pages; call this outside measured intervals.

    Args:
        cell: The cell; None if it sets nothing.

    Returns:
        Fields of `Worker`, by name.
    """
    wants_pages = cell is not None and cell.thp is not None
    return {
        "libraries": loaded_libraries(processes),
        "huge_pages": huge_pages(processes) if wants_pages else None,
    }


def violations(cell: Cell | None, command: Command, worker: Worker) -> Iterator[str]:
    """Every sign that a worker does not have the settings of its cell.

    Args:
        cell: The cell; None if it sets nothing.
    """
    yield from preload_violations(command, worker, cell.openmp if cell else None)
    yield from huge_page_violations(worker, cell.thp if cell else None)


def loaded_libraries(processes: Iterable[int]) -> tuple[str, ...]:
    """The file names of the OpenMP runtimes and allocators that processes have loaded."""
    stems = (*OPENMP_LIBRARIES.values(), *ALLOCATORS.values())
    names = {name for pid in processes for name in procfs.mapped_files(pid)}
    return tuple(sorted(name for name in names if name.startswith(stems)))


def huge_pages(processes: Iterable[int]) -> HugePages:
    """The huge pages of processes together."""
    disabled: bool | None = None
    total = unadvised = 0
    for pid in processes:
        enabled = procfs.line_number(procfs.read(f"/proc/{pid}/status"), b"THP_enabled")
        if enabled is not None:
            disabled = enabled == 0 or bool(disabled)
        sizes = procfs.parse_smaps(procfs.read(f"/proc/{pid}/smaps").decode(errors="replace"))
        total, unadvised = total + sizes.total, unadvised + sizes.unadvised
    return HugePages(disabled=disabled, size_bytes=total, unadvised_bytes=unadvised)


def preload_violations(
    command: Command, worker: Worker, openmp: OpenmpRuntime | None
) -> Iterator[str]:
    """Every sign that a worker does not use the OpenMP runtime or the allocator that was set.

    The loader only warns about a library that it does not find. A preloaded runtime takes
    precedence over the framework's own, which may be loaded too.

    Args:
        openmp: The runtime that the cell sets; None if it sets none.
    """
    preloaded = dict(command.env).get("LD_PRELOAD", "").split(":")
    for library in ALLOCATORS.values():
        if library in preloaded and not _has(worker, library):
            yield f"{library} was to be preloaded, but the worker has not loaded it"
    if openmp is None:
        return
    if not _has(worker, OPENMP_LIBRARIES[openmp]):
        loaded = ", ".join(name for name in worker.libraries if name.startswith(_OPENMP)) or "none"
        yield f"the OpenMP runtime `{openmp}` was set, but the worker has loaded {loaded}"
    if openmp == "gnu" and (others := [name for name in worker.libraries if name.startswith(_KMP)]):
        yield f"the OpenMP runtime `gnu` was set, but the worker has also loaded {others[0]}"


_OPENMP = tuple(OPENMP_LIBRARIES.values())
_KMP = tuple(library for runtime, library in OPENMP_LIBRARIES.items() if runtime != "gnu")


def _has(worker: Worker, library: str) -> bool:
    return any(name.startswith(library) for name in worker.libraries)


def huge_page_violations(worker: Worker, wanted: HugePageMode | None) -> Iterator[str]:
    """Every sign that a worker's huge pages are not those that were set; none if none were set."""
    pages = worker.huge_pages
    if wanted is None or pages is None:
        return
    if wanted == "never":
        if pages.disabled is False:
            yield "`thp: never` was set, but the kernel allows the worker huge pages"
        if pages.size_bytes:
            yield f"`thp: never` was set, but the worker has {size(pages.size_bytes)} of huge pages"
        return
    if pages.disabled:
        yield f"`thp: {wanted}` was set, but huge pages are disabled for the worker"
    if wanted == "madvise" and pages.unadvised_bytes:
        yield (
            f"`thp: madvise` was set, but the worker has {size(pages.unadvised_bytes)} of huge"
            " pages that it did not ask for"
        )
