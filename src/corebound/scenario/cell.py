"""A cell of a scenario's matrix: the configuration that it requests from the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from corebound.bounded_numbers import Count, Positive
from corebound.machine.topology import CpuId, NodeId
from corebound.scenario.metrics import Metric, words_of
from corebound.scenario.runtimes import FRAMEWORKS, RUNTIMES, Framework, Runtime

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
# The mode `cpus` is not written as a word but as a list of CPUs.
BindingMode = Literal[NamedMode, "cpus"]
ThreadRule = Literal["default", "per-core", "per-cpu", "host-cores", "cores-per-worker", "quota"]
MemoryPolicy = Literal["default", "local", "bind", "preferred", "interleave", "remote"]
Backend = Literal["auto", "taskset", "numactl", "openmp"]
# What `auto` resolves to; `none` if nothing is bound or a launcher binds.
BackendUsed = Literal["none", "taskset", "numactl", "openmp"]
BindMoment = Literal["before-start", "after-start"]
# Which transparent huge pages a process may have.
HugePageMode = Literal["always", "madvise", "never"]
OpenmpRuntime = Literal["gnu", "intel", "llvm"]
# Whether a benchmark decides headlines and exit codes; a secondary one is only listed.
Importance = Literal["primary", "secondary"]


HOST = "host"
# The project under test, as asv.conf.json builds it.
PROJECT = "project"


def is_project(environment: str) -> bool:
    """Whether an environment is one of the project under test, at any commit.

    >>> is_project("project"), is_project("project@v1.2"), is_project("projector")
    (True, True, False)
    """
    return environment.partition("@")[0] == PROJECT


def framework_of(environment: str) -> Framework | None:
    """The framework that an environment's name begins with; None if it begins with none.

    >>> framework_of("pytorch-2.12"), framework_of("host"), framework_of("mine")
    ('pytorch', 'none', None)
    >>> framework_of("scikit-learn"), framework_of("scikit-learn-1.8"), framework_of("scikit")
    ('scikit-learn', 'scikit-learn', None)
    """
    if environment in {HOST, PROJECT}:
        return "none"
    return next((name for name in FRAMEWORKS[1:] if f"{environment}-".startswith(f"{name}-")), None)


class Threads(Struct, frozen=True, kw_only=True):
    """The thread counts that a cell requests, before the host is known.

    `rule` is a count, or a rule that a placement resolves to a count. Each of the other
    fields overrides it for one setting, and is None if the cell does not set it.
    """

    rule: ThreadRule | Count = "default"
    omp: Literal["host-cores"] | Count | None = None
    mkl: Count | None = None
    intra_op: Count | None = None
    inter_op: Count | None = None
    blocktime: Literal["infinite"] | Count | None = None


class Binding(Struct, frozen=True, kw_only=True):
    """The CPUs and memory that a cell requests, before the host is known.

    `cpus` is set for the mode `cpus` only. `memory_nodes` are the only nodes for `memory`; empty
    uses those that the placement chooses. `smt` False uses one CPU of each core, True
    uses all of them, and None uses the mode's default.
    """

    mode: BindingMode = "none"
    cpus: tuple[CpuId, ...] = ()
    smt: bool | None = None
    avoid_cpu0: bool = False
    core_kind: CoreKindWanted = None
    memory: MemoryPolicy = "default"
    memory_nodes: tuple[NodeId, ...] = ()
    backend: Backend = "auto"
    moment: BindMoment = "before-start"


CoreKindWanted = Literal["performance", "efficiency"] | None


def cell_id(scenario: str, key: str) -> str:
    """Identifies a cell in a suite: `resnet50-inference[binding=none,threads=2]`."""
    return f"{scenario}[{key}]"


def axes_of_key(key: str) -> dict[str, str]:
    """The axes of a cell's key.

    >>> axes_of_key("binding=none,threads=2"), axes_of_key("default")
    ({'binding': 'none', 'threads': '2'}, {})
    """
    pairs = (part.partition("=") for part in key.split(",") if "=" in part)
    return {axis: value for axis, _, value in pairs}


def cell_identity(scenario: str, key: str) -> dict[str, object]:
    """What identifies a cell in every document: its id, scenario, key and axes."""
    return {
        "id": cell_id(scenario, key),
        "scenario": scenario,
        "cell": key,
        "axes": axes_of_key(key),
    }


class Cell(Struct, frozen=True, kw_only=True):
    """One point of a scenario's matrix.

    Attributes:
        scenario: The scenario's name.
        axes: The matrix axes and this cell's value on each, as text, in file order. They
            distinguish it from the other cells.
        binding, threads, workers: What it requests from the host.
        framework, environment: What it runs in.
        parameters: The workload's parameters, by name.
        gpus: Number of GPUs that it computes on, shared by its workers; 0 uses the CPU.
        cpu_quota: The CPU time that all its processes together may use, in CPUs, as with a
            container's `--cpus`; None sets no quota.
        thp: Which transparent huge pages its processes may have; None: as on the host.
        openmp: The OpenMP runtime that its processes use; None: the framework's own.
        commit: The revision of the project under test that it runs, as the scenario
            names it; None means the working tree, or no project.
        env: Environment variables that the scenario adds, by name.
        where: `file:line` of the scenario, so that any later stage can refer to it.
        metrics: What its command reports; the first is compared instead of its time.
        hidden_axes: Axes on which all cells of its group have the same value. Labels leave
            them out; the key includes them.
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
    cpu_quota: Count | Positive | None = None
    thp: HugePageMode | None = None
    openmp: OpenmpRuntime | None = None
    commit: str | None = None
    hidden_axes: tuple[str, ...] = field(default=(), name="unsaid")
    metrics: tuple[Metric, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Whether both are the same cell; `hidden_axes` do not matter."""
        return isinstance(other, Cell) and self._identity == other._identity

    def __hash__(self) -> int:
        """Hash the same fields that `__eq__` compares."""
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return astuple(replace(self, hidden_axes=()))

    @property
    def metric(self) -> Metric | None:
        """What is compared instead of its time, if it is."""
        return self.metrics[0] if self.metrics else None

    @property
    def words(self) -> tuple[str, str]:
        """What a better value of it is called, and what a worse one is called."""
        return words_of(self.metric)

    @property
    def words_in_sentence(self) -> tuple[str, str]:
        """What a better configuration is called, and what a worse one: it has no unit beside it."""
        return self.words if self.words[0] == "faster" else ("better", "worse")

    @property
    def runtime(self) -> Runtime:
        """What its framework is."""
        return RUNTIMES[self.framework]

    @property
    def key(self) -> str:
        """Identifies the cell in its scenario: `binding=none,threads=2`; `default` without axes."""
        return ",".join(f"{axis}={value}" for axis, value in self.axes) or "default"

    @property
    def label(self) -> str:
        """A short label for displays that show the axes' names: `none, 2`."""
        return ", ".join(value for _, value in self.visible_axes) or "default"

    @property
    def visible_axes(self) -> tuple[tuple[str, str], ...]:
        """The axes that the label shows, with the cell's values."""
        return tuple(pair for pair in self.axes if pair[0] not in self.hidden_axes)

    @property
    def id(self) -> str:
        """Identifies the cell in a suite: `resnet50-inference[binding=none,threads=2]`."""
        return cell_id(self.scenario, self.key)


class OfOneCell(Struct, frozen=True, kw_only=True):
    """A result of one cell, which has the attributes that identify a cell in documents."""

    measured: Cell

    @property
    def id(self) -> str:
        """Identifies the cell in its suite."""
        return self.measured.id

    @property
    def scenario(self) -> str:
        """The scenario."""
        return self.measured.scenario

    @property
    def cell(self) -> str:
        """The configuration, such as `binding=none,threads=2`."""
        return self.measured.key

    @property
    def axes(self) -> Mapping[str, str]:
        """The same by axis; values are text."""
        return dict(self.measured.axes)
