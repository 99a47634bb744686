"""One configuration: what a cell of a scenario's matrix asks of the host."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import astuple, replace

from corebound.bounds import Count
from corebound.machine.topology import CpuId

Scalar = str | int | float | bool

NamedMode = Literal[
    "none",
    "one-cpu",
    "physical-cores",
    "logical-cpus",
    "smt-siblings",
    "cache",
    "node",
    "socket",
    "per-worker",
    "compact",
    "scatter",
    "launcher",
]
# `cpus` is not written by its name, but by the CPUs that it asks for.
BindingMode = Literal[NamedMode, "cpus"]
Framework = Literal["none", "numpy", "pytorch", "tensorflow", "mindspore", "torchserve", "litserve"]
ThreadRule = Literal["default", "per-core", "per-cpu", "host-cores", "cores-per-worker"]
MemoryPolicy = Literal["default", "local", "bind", "preferred", "interleave", "remote"]
Backend = Literal["auto", "taskset", "numactl", "openmp"]
# What `auto` comes to; none, where nothing is bound or a launcher does it.
BackendUsed = Literal["none", "taskset", "numactl", "openmp"]
BindMoment = Literal["before-start", "after-start"]


class Threads(Struct, frozen=True, kw_only=True):
    """How many threads a cell asks for, before the host is known.

    `rule` is a count or a rule that a placement resolves to one; the rest
    override it singly and are None where the cell says nothing.
    """

    rule: ThreadRule | Count = "default"
    omp: Literal["host-cores"] | Count | None = None
    mkl: Count | None = None
    intra_op: Count | None = None
    inter_op: Count | None = None


class Binding(Struct, frozen=True, kw_only=True):
    """Where a cell asks to run, before the host is known.

    `cpus` is set for the mode `cpus` only. `smt` False keeps to one CPU of
    each core, True takes all, None leaves it to the mode.
    """

    mode: BindingMode = "none"
    cpus: tuple[CpuId, ...] = ()
    smt: bool | None = None
    avoid_cpu0: bool = False
    core_kind: CoreKindWanted = None
    memory: MemoryPolicy = "default"
    backend: Backend = "auto"
    moment: BindMoment = "before-start"


CoreKindWanted = Literal["performance", "efficiency"] | None


class Cell(Struct, frozen=True, kw_only=True):
    """One point of a scenario's matrix.

    Attributes:
        scenario: The scenario's name.
        axes: The matrix axes and this cell's value on each, as text, in the
            order of the file: what tells this cell from its neighbours.
        binding, threads, workers: What is asked of the host.
        framework, environment: What it runs in.
        parameters: Given to the workload, by name.
        gpus: How many GPUs it computes on; its workers share them. 0: on the CPU.
        commit: The revision of the project under test that it runs, as the scenario
            names it; None: the working tree, or none at all.
        env: Environment variables the scenario adds, by name.
        where: `file:line` of the scenario, so any later stage can name it.
        unsaid: Axes on which all cells that it stands among have one value: names leave
            them out, its key has them all the same.
    """

    scenario: str
    axes: tuple[tuple[str, str], ...]
    binding: Binding
    threads: Threads
    workers: Count
    framework: Framework
    environment: str
    parameters: tuple[tuple[str, Scalar], ...]
    env: tuple[tuple[str, str], ...]
    where: str
    gpus: Count = 0
    commit: str | None = None
    unsaid: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Whether it is the same cell, whichever others either stands among."""
        return isinstance(other, Cell) and self._itself == other._itself

    def __hash__(self) -> int:
        """As it is compared."""
        return hash(self._itself)

    @property
    def _itself(self) -> tuple[object, ...]:
        return astuple(replace(self, unsaid=()))

    @property
    def key(self) -> str:
        """This cell within its scenario: `binding=none,threads=2`; `default` without axes."""
        return ",".join(f"{axis}={value}" for axis, value in self.axes) or "default"

    @property
    def label(self) -> str:
        """What tells it apart, for the eye, where the axes are named beside it: `none, 2`."""
        return ", ".join(value for _, value in self.said) or "default"

    @property
    def said(self) -> tuple[tuple[str, str], ...]:
        """The axes that its name shows, with its values."""
        return tuple(pair for pair in self.axes if pair[0] not in self.unsaid)

    @property
    def id(self) -> str:
        """This cell within a suite: `resnet50-inference[binding=none,threads=2]`."""
        return f"{self.scenario}[{self.key}]"
