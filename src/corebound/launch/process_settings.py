"""Settings of a whole process: its huge pages, and the OpenMP runtime that it loads.

What the host offers is found here, and what a worker really has is read from outside.
"""

from __future__ import annotations

import ctypes.util
from collections.abc import Iterable
from pathlib import Path

from corebound.launch.supervisor import set_huge_pages
from corebound.machine import procfs
from corebound.machine.sysfs import LIVE, Tree
from corebound.planning.models import HugePageSupport
from corebound.records.launch_record import HugePages
from corebound.scenario.settings import ALLOCATORS, HUGE_PAGES, OPENMP_LIBRARIES

_ENABLED = "sys/kernel/mm/transparent_hugepage/enabled"


def huge_page_support(tree: Tree = LIVE) -> HugePageSupport:
    """How transparent huge pages can be set for a process of this host."""
    text = tree.read(_ENABLED) or ""
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


def loaded_libraries(processes: Iterable[int]) -> tuple[str, ...]:
    """The file names of the OpenMP runtimes and allocators that processes have loaded."""
    stems = (*OPENMP_LIBRARIES.values(), *ALLOCATORS.values())
    names = {name for pid in processes for name in procfs.mapped_files(pid)}
    return tuple(sorted(name for name in names if name.startswith(stems)))


def huge_pages(processes: Iterable[int]) -> HugePages:
    """The huge pages of processes together.

    The kernel walks every page table; call this outside measured intervals.
    """
    disabled: bool | None = None
    total = unadvised = 0
    for pid in processes:
        enabled = procfs.line_number(procfs.read(f"/proc/{pid}/status"), b"THP_enabled")
        if enabled is not None:
            disabled = enabled == 0 or bool(disabled)
        sizes = procfs.parse_smaps(procfs.read(f"/proc/{pid}/smaps").decode(errors="replace"))
        total, unadvised = total + sizes.total, unadvised + sizes.unadvised
    return HugePages(disabled=disabled, size_bytes=total, unadvised_bytes=unadvised)
