"""Every setting of a cell, declared once: type, default, description and metadata.

The matrix's axes, the error messages, the JSON Schema, the expansion into cells, duplicates, the
words of pages and what a diagnosis compares all derive from `Settings`. To add a setting, declare
it there. Unless it is an environment variable, also give `Cell`, `Binding` or `Threads` the field
that its metadata names.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import attrgetter, or_
from types import GenericAlias, NoneType
from typing import Annotated, Any, Literal, Self, get_args, get_type_hints

from msgspec import Struct
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from corebound.machine.topology import cpu_list, parse_cpu_list
from corebound.scenario.cell import (
    PROJECT,
    Backend,
    BindMoment,
    Cell,
    CoreKindWanted,
    HugePageMode,
    MemoryPolicy,
    NamedMode,
    OpenmpRuntime,
    ThreadRule,
    is_project,
)
from corebound.scenario.fault_wording import BOOLEAN, COUNT, Expected, one_of, whole_number
from corebound.scenario.runtimes import FRAMEWORKS, NamedFramework, variables_of


class StrictModel(BaseModel):
    """Base of all parts of a scenario: frozen, and unknown keys are faults."""

    # Many commands read no scenario, so validators are built only when one is read.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def mapping_or_plain(value: Any) -> str:
    """The union branch of a value; an empty mapping is `plain`, where it is reported as wrong."""
    return (
        "keys"
        if isinstance(value, StrictModel) or (isinstance(value, Mapping) and value)
        else "plain"
    )


class Setting(Struct, frozen=True, kw_only=True):
    """The metadata of one setting.

    Attributes:
        field: Where a cell stores the value: a field of `Cell`, or a field within it such as
            `binding.smt`. `env.NAME` stores it as an environment variable of the workload.
        expected: Describes its values in error messages.
        is_nullable: Whether null, which means "not set", may be written on an axis or in an
            entry. Other settings are left out instead.
        stored: The value of the environment variable for each choice; for `env.NAME` only.
        variables: Environment variables that the setting controls. A scenario may not set
            them in `env`.
        read: How to read the value back from a cell, where it is not simply the field.
        words: What values are called on pages; `default` is the value of a cell that does not set
            it. Others are called by their names.
        changes_work: Whether it changes the work, or what does it, and not only how it is run.
    """

    field: str
    expected: Expected
    is_nullable: bool = False
    stored: Mapping[str, str] | None = None
    variables: tuple[str, ...] = ()
    read: Callable[[Cell], object] | None = None
    words: Mapping[str, str] = {}
    changes_work: bool = False

    def value_in(self, cell: Cell) -> object:
        """The cell's value; None if it is not set."""
        if self.read is not None:
            return self.read(cell)
        if self.stored is not None:
            stored = dict(cell.env).get(self.field.removeprefix("env."))
            return next((value for value, text in self.stored.items() if text == stored), None)
        return attrgetter(self.field)(cell)


def _binding(cell: Cell) -> str:
    binding = cell.binding
    return f"cpus:{cpu_list(binding.cpus)}" if binding.mode == "cpus" else binding.mode


Count = Annotated[StrictInt, Field(ge=1, le=65_536)]
# The largest single machines have 16; more than the limit is a typing error.
GpuCount = Annotated[StrictInt, Field(ge=0, le=64)]
# The kernel's least quota is a hundredth of its usual period.
CpuQuota = Annotated[
    Count | Annotated[StrictFloat, Field(ge=0.01, le=65_536)],
    # An axis shows 2 and 2.0 as the same value.
    AfterValidator(lambda cpus: int(cpus) if cpus == int(cpus) else cpus),
]
EnvironmentName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$")]
# What git accepts as a revision, except text that begins like an option.
Revision = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./@{}~^+-]{0,79}$")]
ThreadsWanted = ThreadRule | Count
OmpWanted = Literal["host-cores"] | Count
WaitPolicy = Literal["active", "passive"]
Allocator = Literal["tcmalloc", "jemalloc"]
# Library names in Debian and most other distributions; the dynamic loader finds them.
ALLOCATORS: Mapping[str, str] = {"tcmalloc": "libtcmalloc.so.4", "jemalloc": "libjemalloc.so.2"}
HUGE_PAGES: tuple[HugePageMode, ...] = get_args(HugePageMode)
# How the names of their files begin. A wheel may contain one with a hash in its name.
OPENMP_LIBRARIES: Mapping[OpenmpRuntime, str] = {
    "gnu": "libgomp",
    "intel": "libiomp5.",
    "llvm": "libomp.",
}
# Milliseconds; more than a day is a typing error.
Blocktime = Literal["infinite"] | Annotated[StrictInt, Field(ge=0, le=86_400_000)]


def _checked_list(numbers: str | int) -> str | int:
    if not parse_cpu_list(str(numbers)):
        raise ValueError("the list is empty")
    return numbers


# CPUs or nodes, in the kernel's list format.
NumberList = Annotated[StrictStr | Annotated[StrictInt, Field(ge=0)], AfterValidator(_checked_list)]


class ExplicitCpus(StrictModel):
    """Exactly these CPUs, in the kernel's list format."""

    cpus: Annotated[
        NumberList, Expected("a CPU list", "Write numbers and ranges in one text: 0-3,8.")
    ] = Field(description="CPU numbers and ranges, such as 0-3,8")


BindingWanted = Annotated[
    Annotated[NamedMode, Tag("plain")] | Annotated[ExplicitCpus, Tag("keys")],
    Discriminator(mapping_or_plain),
]


class ExistingEnvironment(StrictModel):
    """An environment that corebound did not make: exactly one of the two."""

    python: Annotated[
        Annotated[StrictStr, Field(min_length=1)] | None,
        Expected(
            "the path of an interpreter",
            "Write it relative to this file: {python: ../.venv/bin/python}.",
        ),
    ] = Field(
        None,
        description="an interpreter or the folder of a virtual environment, relative to this file",
    )
    conda: Annotated[
        Annotated[StrictStr, Field(min_length=1)] | None,
        Expected("a conda environment", "Write its name or its folder: {conda: NAME}."),
    ] = Field(None, description="the name or the folder of a conda environment")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.python is None) == (self.conda is None):
            raise ValueError("either python or conda")
        return self

    @property
    def name(self) -> str:
        """The environment's name, as cells have it."""
        return f"python:{self.python}" if self.conda is None else f"conda:{self.conda}"


EnvironmentWanted = Annotated[
    Annotated[EnvironmentName, Tag("plain")] | Annotated[ExistingEnvironment, Tag("keys")],
    Discriminator(mapping_or_plain),
]


class Settings(StrictModel):
    """All settings of a cell; each may also be an axis of the matrix."""

    binding: Annotated[
        BindingWanted,
        Setting(
            field="binding.mode",
            expected=one_of("a binding", get_args(NamedMode), "{cpus: 0-3}"),
            read=_binding,
        ),
    ] = Field("none", description="which CPUs a worker is bound to")
    smt: Annotated[
        StrictBool | None, Setting(field="binding.smt", expected=BOOLEAN, is_nullable=True)
    ] = Field(None, description="false: one CPU of each core; true: all of them")
    avoid_cpu0: Annotated[StrictBool, Setting(field="binding.avoid_cpu0", expected=BOOLEAN)] = (
        Field(default=False, description="do not use core 0, which serves most interrupts")
    )
    core_kind: Annotated[
        CoreKindWanted,
        Setting(
            field="binding.core_kind",
            expected=one_of("a kind of core", ("performance", "efficiency")),
            is_nullable=True,
            changes_work=True,
        ),
    ] = Field(None, description="on hybrid processors")
    memory: Annotated[
        MemoryPolicy,
        Setting(field="binding.memory", expected=one_of("a memory policy", get_args(MemoryPolicy))),
    ] = Field("default", description="the nodes from which memory is allocated")
    memory_nodes: Annotated[
        NumberList | None,
        Setting(
            field="binding.memory_nodes",
            expected=Expected("memory nodes", "Write numbers and ranges, such as 0,2-3."),
            is_nullable=True,
            read=lambda cell: cpu_list(cell.binding.memory_nodes) or None,
        ),
    ] = Field(None, description="exactly these nodes for `memory`, such as those without CPUs")
    backend: Annotated[
        Backend, Setting(field="binding.backend", expected=one_of("a backend", get_args(Backend)))
    ] = Field("auto", description="the tool that binds")
    bind: Annotated[
        BindMoment,
        Setting(field="binding.moment", expected=one_of("a moment to bind", get_args(BindMoment))),
    ] = Field("before-start", description="bind before or after thread pools are created")
    threads: Annotated[
        ThreadsWanted,
        Setting(
            field="threads.rule",
            expected=one_of(
                "a thread count",
                get_args(ThreadRule),
                "a whole number from 1",
            ),
            variables=("OPENBLAS_NUM_THREADS",),
        ),
    ] = Field("default", description="threads for each worker")
    omp: Annotated[
        OmpWanted | None,
        Setting(
            field="threads.omp",
            expected=Expected(
                "a thread count", "Write host-cores or a whole number from 1 to 65,536."
            ),
            is_nullable=True,
            variables=("OMP_NUM_THREADS",),
        ),
    ] = Field(None, description="only OMP_NUM_THREADS")
    mkl: Annotated[
        Count | None,
        Setting(
            field="threads.mkl", expected=COUNT, is_nullable=True, variables=("MKL_NUM_THREADS",)
        ),
    ] = Field(None, description="only MKL_NUM_THREADS")
    intra_op: Annotated[
        Count | None,
        Setting(
            field="threads.intra_op",
            expected=COUNT,
            is_nullable=True,
            variables=variables_of("intra_op"),
        ),
    ] = Field(None, description="only the framework's intra-op threads")
    inter_op: Annotated[
        Count | None,
        Setting(
            field="threads.inter_op",
            expected=COUNT,
            is_nullable=True,
            variables=variables_of("inter_op"),
        ),
    ] = Field(None, description="only the framework's inter-op threads")
    wait_policy: Annotated[
        WaitPolicy | None,
        Setting(
            field="env.OMP_WAIT_POLICY",
            expected=one_of("a wait policy", get_args(WaitPolicy)),
            is_nullable=True,
            stored={policy: policy.upper() for policy in get_args(WaitPolicy)},
            variables=("OMP_WAIT_POLICY",),
        ),
    ] = Field(None, description="OMP_WAIT_POLICY: whether idle threads spin")
    blocktime: Annotated[
        Blocktime | None,
        Setting(
            field="threads.blocktime",
            expected=Expected(
                "a time to spin", "Write milliseconds, 0 to 86,400,000, or infinite."
            ),
            is_nullable=True,
            variables=("KMP_BLOCKTIME", "GOMP_SPINCOUNT"),
            words={
                "0": "no spinning",
                "infinite": "endless spinning",
                "default": "usual spinning",
            },
        ),
    ] = Field(None, description="how long an idle OpenMP thread spins before it sleeps, in ms")
    openmp: Annotated[
        OpenmpRuntime | None,
        Setting(
            field="openmp",
            expected=one_of("an OpenMP runtime", get_args(OpenmpRuntime)),
            is_nullable=True,
            words={
                "gnu": "GNU's OpenMP",
                "intel": "Intel's OpenMP",
                "llvm": "LLVM's OpenMP",
                "default": "its own OpenMP",
            },
        ),
    ] = Field(None, description="the OpenMP runtime; intel and llvm are preloaded")
    thp: Annotated[
        HugePageMode | None,
        Setting(
            field="thp",
            expected=one_of("a mode of huge pages", get_args(HugePageMode)),
            is_nullable=True,
            words={
                "always": "huge pages everywhere",
                "madvise": "huge pages on request",
                "never": "no huge pages",
                "default": "huge pages as on the host",
            },
        ),
    ] = Field(None, description="which transparent huge pages the processes may have")
    allocator: Annotated[
        Allocator | None,
        Setting(
            # A scenario may still set LD_PRELOAD in `env` to load another library.
            field="env.LD_PRELOAD",
            expected=one_of("an allocator", get_args(Allocator)),
            is_nullable=True,
            stored=ALLOCATORS,
            words={"default": "usual allocator"},
        ),
    ] = Field(None, description="a memory allocator to preload")
    cpu_quota: Annotated[
        CpuQuota | None,
        Setting(
            field="cpu_quota",
            expected=Expected(
                "a CPU quota", "Write the number of CPUs, 0.01 to 65,536, such as 1.5."
            ),
            is_nullable=True,
            words={"default": "no CPU quota"},
        ),
    ] = Field(
        None, description="CPU time that all workers together may use, in CPUs, as in a container"
    )
    workers: Annotated[Count, Setting(field="workers", expected=COUNT, changes_work=True)] = Field(
        1, description="worker processes that run at the same time"
    )
    gpus: Annotated[
        GpuCount,
        Setting(
            field="gpus",
            expected=whole_number("a number of GPUs", 0, 64),
            variables=("CUDA_VISIBLE_DEVICES",),
            words={"0": "on the CPU"},
            changes_work=True,
        ),
    ] = Field(0, description="number of GPUs to compute on; 0: the CPU")
    framework: Annotated[
        NamedFramework | None,
        Setting(field="framework", expected=one_of("a framework", FRAMEWORKS), changes_work=True),
    ] = Field(None, description="the framework; default: derived from the environment's name")
    environment: Annotated[
        EnvironmentWanted | None,
        Setting(
            field="environment",
            expected=Expected(
                "an environment",
                "Write the name of a file in environments/, without .txt, {python: PATH} or"
                " {conda: NAME}.",
            ),
            read=lambda cell: PROJECT if is_project(cell.environment) else cell.environment,
            changes_work=True,
        ),
    ] = Field(
        None,
        description="environments/NAME.txt, host: corebound's own Python, project: the project"
        " under test, or an existing {python: PATH} or {conda: NAME}",
    )
    commit: Annotated[
        Revision | None,
        Setting(
            field="commit",
            expected=Expected(
                "a commit",
                'Write a branch, a tag or a hash of the project under test, in quotes: "1a2b3c4d".',
            ),
            changes_work=True,
        ),
    ] = Field(None, description="a revision of the project under test; default: the working tree")


SETTINGS: Mapping[str, Setting] = {
    name: next(item for item in field.metadata if isinstance(item, Setting))
    for name, field in Settings.model_fields.items()
}


def is_nullable(key: str) -> bool:
    """Whether a key is a setting for which null is a value, meaning "not set"."""
    return key in SETTINGS and SETTINGS[key].is_nullable


def axis_fields() -> dict[str, Any]:
    """For each setting, the definition of its axis: a list of at least one value."""
    hints = get_type_hints(Settings, include_extras=True)
    return {
        name: (
            GenericAlias(tuple, (_axis_value(hints[name], setting), ...)) | None,
            Field(None, min_length=1),
        )
        for name, setting in SETTINGS.items()
    }


def _axis_value(hint: Any, setting: Setting) -> Any:
    """The type of one value on a setting's axis: null only if it is a value there."""
    kind, *constraints = get_args(hint)
    if not setting.is_nullable:
        parts = [part for part in get_args(kind) if part is not NoneType]
        kind = reduce(or_, parts) if NoneType in get_args(kind) else kind
    return Annotated[kind, *constraints]
