"""What a host can do, and why a cell cannot run on it."""

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from corebound.machine.cgroups import QuotaSupport
from corebound.machine.topology import Topology
from corebound.planning.models import CannotRun
from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.scenario.cell import Cell, HugePageMode
from corebound.scenario.models import Scenario
from corebound.scenario.runtimes import Framework, Program
from corebound.units import cpu_quota


class HugePageSupport(Struct, frozen=True, kw_only=True):
    """How transparent huge pages can be set for a process on a host.

    Attributes:
        host: The host's own mode, which a process cannot exceed; None: it has no huge pages.
        can_require_advice: Whether a process can be restricted to advised regions.
    """

    host: HugePageMode | None = "always"
    can_require_advice: bool = True


class HostCapabilities(Struct, frozen=True, kw_only=True):
    """The host's topology, tools, environments and GPUs.

    Attributes:
        topology: The machine, and which parts of it we may use.
        tools: Which of `taskset`, `numactl`, `java` and `g++` are installed.
        pythons: For each environment the path of its interpreter, or None if the
            environment has not been made.
        gpus: The GPUs that may be used, by CUDA's numbers or names.
        build_failures: Why an environment has no interpreter, if making it failed.
        quota: How a CPU quota can be set.
        instructions: The processor's instruction sets, by the kernel's names; empty if unknown.
        huge_pages: How transparent huge pages can be set.
        openmp: For each environment, what to preload for an OpenMP runtime.
        without_framework: The environments that lack a framework of their cells, and why.
        without_program: The cells whose command or server starts a program that is not found, by
            their ids, and why.
    """

    topology: Topology
    tools: frozenset[str]
    pythons: Mapping[str, str | None]
    gpus: tuple[str, ...] = ()
    build_failures: Mapping[str, CannotRun] = field(default_factory=dict)
    quota: QuotaSupport = QuotaSupport()
    instructions: frozenset[str] = frozenset()
    huge_pages: HugePageSupport = HugePageSupport()
    openmp: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    without_framework: Mapping[tuple[str, Framework], CannotRun] = field(default_factory=dict)
    without_program: Mapping[str, CannotRun] = field(default_factory=dict)

    def openmp_of(self, cell: Cell) -> str | None:
        """What to preload for a cell's OpenMP runtime; None if nothing is needed or known."""
        return self.openmp.get(cell.environment, {}).get(cell.openmp or "")


def cannot_run(scenario: Scenario, cell: Cell, host: HostCapabilities) -> CannotRun | None:
    """Why a cell cannot run on a host, whatever its placement; None if it can."""
    return (
        _impossible_quota(cell, host)
        or _too_few_gpus(cell, len(host.gpus))
        or _missing_program(cell, host)
        or _missing_instructions(scenario, cell, host)
        or _missing_environment(cell, host)
        or host.without_program.get(cell.id)
        or _impossible_huge_pages(cell, host.huge_pages)
        or _missing_openmp(cell, host)
    )


def _impossible_quota(cell: Cell, host: HostCapabilities) -> CannotRun | None:
    """Why a cell's CPU quota cannot be set on a host; None if it can, or if it has none."""
    quota, limit, support = cell.cpu_quota, host.topology.cpu_quota, host.quota
    if quota is None:
        return None
    if (cpus := len(host.topology.allowed)) < quota:
        return CannotRun(
            what=f"`cpu_quota: {quota:g}` limits nothing on the {cpu_quota(cpus)} that corebound"
            " may use here.",
            fix="Write a smaller quota, or measure this cell on a host with more CPUs.",
        )
    if limit is not None and limit < quota:
        return CannotRun(
            what=f"`cpu_quota: {quota:g}` is more than this host allows: {cpu_quota(limit)}.",
            fix="Write a smaller quota, or raise the limit of the cgroup that `corebound doctor`"
            " lists.",
        )
    if support.tool is None:
        return CannotRun(
            what=f"`cpu_quota: {quota:g}` cannot be set on this host: {support.reason}.",
            fix=support.fix,
        )
    if support.tool == "systemd-run" and (cell.workers > 1 or cell.runtime.server is not None):
        return CannotRun(
            what=f"`cpu_quota: {quota:g}` of several processes needs a cgroup of its own, which"
            " `systemd-run` cannot make.",
            fix="Run corebound as root, or write `workers: 1`.",
        )
    return None


def _impossible_huge_pages(cell: Cell, support: HugePageSupport) -> CannotRun | None:
    """Why a cell's mode of huge pages cannot be had on a host; None if it can.

    A process can only do without huge pages that the host allows.
    """
    wanted, host = cell.thp, support.host
    if wanted is None:
        return None
    if cell.runtime.server is not None:
        return CannotRun(
            what=f"`thp: {wanted}` is for workers that corebound starts, not for a server's.",
            fix="Remove `thp`.",
        )
    if wanted in {"never", host}:
        return None
    if wanted == "madvise" and host == "always":
        return (
            None
            if support.can_require_advice
            else CannotRun(
                what="`thp: madvise` needs Linux 6.18 on a host whose own mode is `always`.",
                fix="Write madvise to /sys/kernel/mm/transparent_hugepage/enabled, as root.",
            )
        )
    return CannotRun(
        what=f"`thp: {wanted}` is more than this host allows: {host or 'no huge pages'}.",
        fix=f"Write {wanted} to /sys/kernel/mm/transparent_hugepage/enabled, as root.",
    )


def _missing_openmp(cell: Cell, host: HostCapabilities) -> CannotRun | None:
    """Why a cell's OpenMP runtime cannot be used; None if it can, or if it is the usual one."""
    if cell.openmp is None:
        return None
    if cell.runtime.server is not None:
        return CannotRun(
            what=f"`openmp: {cell.openmp}` is for workers that corebound starts, not for a"
            " server's.",
            fix="Remove `openmp`.",
        )
    if cell.openmp == "gnu" or host.openmp_of(cell) is not None:
        return None
    if cell.openmp == "llvm":
        return CannotRun(
            what="this host has no OpenMP runtime of LLVM.",
            fix="Install libomp, on Debian the package libomp5-14 or a newer one.",
        )
    return CannotRun(
        what=f"environment {cell.environment} has no OpenMP runtime of Intel.",
        fix="Add intel-openmp==VERSION to its requirements file, and make it again.",
    )


def _too_few_gpus(cell: Cell, gpus: int) -> CannotRun | None:
    if cell.gpus <= gpus:
        return None
    available = "has none that CUDA could use" if gpus == 0 else f"has {gpus}"
    return CannotRun(
        what=f"`gpus: {cell.gpus}` does not fit this host, which {available}.",
        fix="Measure this cell on a host with enough GPUs (/dev/nvidia0 and so on)"
        " that CUDA_VISIBLE_DEVICES does not hide.",
    )


def programs_of(cell: Cell) -> Iterator[Program]:
    """The programs that a cell needs on the host."""
    mode = dict(cell.parameters).get("mode")
    return (
        program for program in cell.runtime.programs if program.mode is None or program.mode == mode
    )


def _missing_program(cell: Cell, host: HostCapabilities) -> CannotRun | None:
    missing = next(
        (program for program in programs_of(cell) if program.name not in host.tools), None
    )
    return None if missing is None else CannotRun(what=missing.what, fix=missing.fix)


# The instruction sets that compute with a type, by the names of Linux; elsewhere it is emulated
# or converted, so a comparison would show only that.
_INSTRUCTIONS_OF: Mapping[str, frozenset[str]] = {
    "bfloat16": frozenset({"avx512_bf16", "amx_bf16", "bf16"}),
    "int8": frozenset({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp"}),
}


def _missing_instructions(
    scenario: Scenario, cell: Cell, host: HostCapabilities
) -> CannotRun | None:
    dtype = str(dict(cell.parameters).get("dtype"))
    sets = _INSTRUCTIONS_OF.get(dtype)
    if sets is None or scenario.workload not in BUILT_IN or not host.instructions:
        return None
    if cell.runtime.quantizes_for_memory or sets & host.instructions:
        return None
    return CannotRun(
        what=f"`dtype: {dtype}` has no instructions on this processor.",
        fix=f"Measure this cell on a host with one of {', '.join(sorted(sets))} in /proc/cpuinfo.",
    )


def _missing_environment(cell: Cell, host: HostCapabilities) -> CannotRun | None:
    if host.pythons[cell.environment] is not None:
        return host.without_framework.get((cell.environment, cell.framework))
    return host.build_failures.get(cell.environment) or CannotRun(
        what=f"environment `{cell.environment}` has not been made.",
        fix=f"Make it with `corebound environment make {cell.environment}`.",
        cause="environment",
    )
