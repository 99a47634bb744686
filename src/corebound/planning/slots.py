"""Where a cell's workers run: slots of CPUs and memory, and what starts them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from corebound.bounds import Count
from corebound.machine.topology import CpuId, NodeId
from corebound.scenario.cell import BackendUsed, BindMoment, MemoryPolicy


class Slot(Struct, frozen=True, kw_only=True):
    """The CPUs and memory nodes one worker gets, by number.

    `memory_nodes` is empty where the cell leaves memory to the kernel.
    """

    cpus: tuple[CpuId, ...]
    memory_nodes: tuple[NodeId, ...] = ()

    def __post_init__(self) -> None:
        if not self.cpus:
            raise ValueError("a slot has at least one CPU")


class Placement(Struct, frozen=True, kw_only=True):
    """Where a cell's workers run, one slot each, and with how many threads.

    Attributes:
        slots: One per worker. Unbound cells hold every allowed CPU.
        threads: Threads for each worker; None sets nothing.
        omp: What OMP_NUM_THREADS alone is set to; None: to `threads`, where that is set.
        backend: What binds: `none` for unbound cells and for launchers.
        memory: The policy that `memory_nodes` are used under.
        moment: Whether workers are bound before they start or once ready.
        bound: Whether a thread found off its slot proves the launch invalid.
    """

    slots: tuple[Slot, ...]
    threads: Count | None
    backend: BackendUsed
    memory: MemoryPolicy
    moment: BindMoment
    bound: bool
    omp: Count | None = None


class Command(Struct, frozen=True, kw_only=True):
    """What starts one worker: the words and what is added to its environment."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]


class CannotRun(Struct, frozen=True, kw_only=True):
    """Why a cell cannot be launched, and what the user may do about it.

    Attributes:
        what: Why, in a sentence.
        mend: What to do, in another.
        cause: Whether the host cannot hold the cell, its environment has not been made, or that
            was tried and failed.
    """

    what: str
    mend: str
    cause: Literal["host", "environment", "build"] = "host"
