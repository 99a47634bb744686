"""A scenario as written: what the YAML may say, and nothing about any host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Discriminator,
    Field,
    PrivateAttr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from corebound.model.measure import Change, Measure, ProfileName
from corebound.model.part import Ordered, Part, has_keys
from corebound.model.plan import (
    Backend,
    BindMoment,
    CoreKindWanted,
    Framework,
    MemoryPolicy,
    NamedMode,
)
from corebound.model.topology import parse_cpu_list

Value = StrictBool | StrictInt | StrictFloat | StrictStr
Count = Annotated[StrictInt, Field(ge=1, le=65_536)]
# The largest machines of one node have 16; more is a slip.
GpuCount = Annotated[StrictInt, Field(ge=0, le=64)]
Text = Annotated[StrictStr, Field(min_length=1, pattern=r"\S")]
EnvironmentName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$")]
# What git takes for a revision, but for what begins like an option.
Revision = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./@{}~^+-]{0,79}$")]
ThreadsWanted = Literal["default", "per-core", "per-cpu", "host-cores", "cores-per-worker"] | Count
OmpWanted = Literal["host-cores"] | Count
WaitPolicy = Literal["active", "passive"]
Allocator = Literal["tcmalloc", "jemalloc"]


class ExplicitCpus(Part):
    """Exactly these CPUs, in the kernel's list format."""

    cpus: StrictStr | Annotated[StrictInt, Field(ge=0)] = Field(
        description="CPU numbers and ranges, such as 0-3,8"
    )

    @field_validator("cpus")
    @classmethod
    def _is_a_list(cls, cpus: str | int) -> str | int:
        if not parse_cpu_list(str(cpus)):
            raise ValueError("it names no CPU")
        return cpus


BindingWanted = Annotated[
    Annotated[NamedMode, Tag("plain")] | Annotated[ExplicitCpus, Tag("keys")],
    Discriminator(has_keys),
]


class CommandWorkload(Part):
    """A command timed whole, from start to exit; never a shell string."""

    command: tuple[StrictStr, ...] = Field(min_length=1, description="the words of the command")


class Settings(Part):
    """Everything a cell can be told; each may also be an axis of the matrix."""

    binding: BindingWanted = Field("none", description="which CPUs a worker is bound to")
    smt: StrictBool | None = Field(
        None, description="false: one CPU of each core; true: all of them"
    )
    avoid_cpu0: StrictBool = Field(
        False, description="leave core 0, which serves most interrupts, alone"
    )
    core_kind: CoreKindWanted = Field(None, description="on hybrid processors")
    memory: MemoryPolicy = Field("default", description="where memory may be taken")
    backend: Backend = Field("auto", description="what does the binding")
    bind: BindMoment = Field("before-start", description="bind before or after pools are sized")
    threads: ThreadsWanted = Field("default", description="threads for each worker")
    omp: OmpWanted | None = Field(None, description="OMP_NUM_THREADS alone")
    mkl: Count | None = Field(None, description="MKL_NUM_THREADS alone")
    intra_op: Count | None = Field(None, description="the framework's intra-op threads alone")
    inter_op: Count | None = Field(None, description="the framework's inter-op threads alone")
    wait_policy: WaitPolicy | None = Field(
        None, description="OMP_WAIT_POLICY: whether idle threads spin"
    )
    allocator: Allocator | None = Field(None, description="a memory allocator to preload")
    workers: Count = Field(1, description="worker processes that run at the same time")
    gpus: GpuCount = Field(0, description="GPUs that a cell computes on; 0: on the CPU")
    framework: Framework | None = Field(None, description="read off the environment if absent")
    environment: EnvironmentName | None = Field(
        None,
        description="environments/NAME.txt, host: corebound's own Python,"
        " or project: the project under test",
    )
    commit: Revision | None = Field(
        None, description="of the project under test; the working tree where absent"
    )


class MatrixEntry(Settings, Ordered):
    """A point, or part of one, of the matrix: what include and exclude match."""

    parameters: Mapping[str, Value] = Field({}, description="the workload's parameters, by name")


class Matrix(Ordered):
    """Axes, multiplied out; include and exclude work as in GitHub Actions."""

    binding: tuple[BindingWanted, ...] | None = Field(None, min_length=1)
    smt: tuple[StrictBool | None, ...] | None = Field(None, min_length=1)
    avoid_cpu0: tuple[StrictBool, ...] | None = Field(None, min_length=1)
    core_kind: tuple[CoreKindWanted, ...] | None = Field(None, min_length=1)
    memory: tuple[MemoryPolicy, ...] | None = Field(None, min_length=1)
    backend: tuple[Backend, ...] | None = Field(None, min_length=1)
    bind: tuple[BindMoment, ...] | None = Field(None, min_length=1)
    threads: tuple[ThreadsWanted, ...] | None = Field(None, min_length=1)
    omp: tuple[OmpWanted | None, ...] | None = Field(None, min_length=1)
    mkl: tuple[Count | None, ...] | None = Field(None, min_length=1)
    intra_op: tuple[Count | None, ...] | None = Field(None, min_length=1)
    inter_op: tuple[Count | None, ...] | None = Field(None, min_length=1)
    wait_policy: tuple[WaitPolicy | None, ...] | None = Field(None, min_length=1)
    allocator: tuple[Allocator | None, ...] | None = Field(None, min_length=1)
    workers: tuple[Count, ...] | None = Field(None, min_length=1)
    gpus: tuple[GpuCount, ...] | None = Field(None, min_length=1)
    framework: tuple[Framework, ...] | None = Field(None, min_length=1)
    environment: tuple[EnvironmentName, ...] | None = Field(None, min_length=1)
    commit: tuple[Revision, ...] | None = Field(None, min_length=1)
    parameters: Mapping[str, Annotated[tuple[Value, ...], Field(min_length=1)]] = Field(
        {}, description="axes over the workload's parameters"
    )
    include: tuple[MatrixEntry, ...] = Field(
        (), max_length=256, description="cells added, or widened"
    )
    exclude: tuple[MatrixEntry, ...] = Field((), max_length=256, description="cells taken out")


class Needs(Part):
    """What a claim needs of the host before it can be judged."""

    smt: StrictBool | None = Field(None, description="cores with more than one CPU, or without")
    nodes: Count | None = Field(None, description="at least so many nodes with CPUs")
    cores: Count | None = Field(None, description="at least so many physical cores")
    gpu: StrictBool | None = Field(None, description="at least one GPU, or none")
    npu: StrictBool | None = None


class Claim(Part):
    """What the source published; the report says if it reproduces here."""

    says: Text
    faster: MatrixEntry
    than: MatrixEntry
    published_ratio: Annotated[float, Field(strict=True, gt=0)] | None = Field(
        None, description="how many times as fast `faster` was"
    )
    needs: Needs = Needs()


class Profile(Change):
    """What a profile changes; what it does not name stays as it is."""

    parameters: Mapping[str, Value] = Field(
        {}, description="parameters of the workload that no axis varies, by name"
    )
    only: tuple[MatrixEntry, ...] = Field(
        (), max_length=256, description="measure the cells that one of these fits, no others"
    )


class Scenario(Settings):
    """One YAML file: one question, a workload, a matrix, how it is measured."""

    schema_version: Annotated[StrictInt, Field(ge=1, le=1)] = Field(
        alias="schema", description="the version of this format: 1"
    )
    name: Annotated[StrictStr, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")] = Field(
        description="unique in a suite; records are kept under it"
    )
    title: Text = Field(description="the heading of its page")
    question: Text = Field(description="what it is to answer, as one question")
    source: Text | None = Field(None, description="the study that it repeats")
    workload: Annotated[
        Annotated[Text, Tag("plain")] | Annotated[CommandWorkload, Tag("keys")],
        Discriminator(has_keys),
    ] = Field(description="a built-in, module:function beside this file, or {command: [...]}")
    is_async: StrictBool = Field(
        False, alias="async", description="await what each step of the function returns"
    )
    parameters: Mapping[str, Value] = Field({}, description="given to the workload, by name")
    env: Mapping[str, StrictStr] = Field({}, description="environment variables to add")
    matrix: Matrix = Matrix()
    measure: Measure = Measure()
    profiles: Mapping[ProfileName, Profile] = Field({}, description="what `--profile` changes")
    baseline: MatrixEntry | None = Field(
        None, description="the cell others are compared with; the first where absent"
    )
    claims: tuple[Claim, ...] = Field(
        (), max_length=64, description="what the source published, to be judged here"
    )
    _line: int | None = PrivateAttr(None)

    @property
    def line(self) -> int | None:
        """The line its matrix begins on; None where it came from no file."""
        return self._line

    @model_validator(mode="after")
    def _locate(self, info: ValidationInfo) -> Self:
        if isinstance(info.context, Mapping):
            self._line = info.context.get("line")
        return self

    def document(self) -> dict[str, Any]:
        """This scenario as plain JSON data: only what was written, so its hash is stable."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
