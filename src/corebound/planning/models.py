"""The types of a plan: slots of CPUs and memory, placements, and start commands."""

from typing import Literal

from msgspec import Struct

from corebound.bounded_numbers import Count
from corebound.machine.topology import CpuId, NodeId
from corebound.scenario.cell import BackendUsed, BindMoment, MemoryPolicy


class Slot(Struct, frozen=True, kw_only=True):
    """The CPUs and memory nodes of one worker, by number.

    `memory_nodes` is empty if the cell leaves memory to the kernel.
    """

    cpus: tuple[CpuId, ...]
    memory_nodes: tuple[NodeId, ...] = ()

    def __post_init__(self) -> None:
        if not self.cpus:
            raise ValueError("a slot has at least one CPU")


# The note of a running service.
UNKNOWN = "Placement is unknown: corebound did not start the service."


class Placement(Struct, frozen=True, kw_only=True):
    """The slot of each of a cell's workers, and their number of threads.

    Attributes:
        slots: One per worker. The slots of unbound cells contain every allowed CPU.
        threads: Threads of each worker; None sets nothing.
        omp: Value of OMP_NUM_THREADS; None uses `threads`, if that is set.
        backend: The tool that binds; `none` for unbound cells and for launchers.
        memory: The memory policy applied to `memory_nodes`.
        moment: Whether workers are bound before they start or once they are ready.
        bound: Whether a thread seen outside its slot makes the launch invalid.
        notes: What the binding does that its name does not say, in sentences.
    """

    slots: tuple[Slot, ...]
    threads: Count | None
    backend: BackendUsed
    memory: MemoryPolicy
    moment: BindMoment
    bound: bool
    omp: Count | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Whether the slots say nothing, because corebound starts no process."""
        return UNKNOWN in self.notes


class Command(Struct, frozen=True, kw_only=True):
    """The command that starts one worker.

    Attributes:
        inherits: The names of variables that the scenario passes on from corebound's environment.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    inherits: tuple[str, ...] = ()


class CannotRun(Struct, frozen=True, kw_only=True):
    """Why a cell cannot be launched, and how to fix it.

    Attributes:
        what: The reason, in a sentence.
        fix: How to fix it, in a sentence.
        cause: `host` if the host cannot run the cell, `environment` if its environment has
            not been made or a program is missing, `build` if making it failed.
    """

    what: str
    fix: str
    cause: Literal["host", "environment", "build"] = "host"
