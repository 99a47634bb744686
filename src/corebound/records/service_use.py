"""What a running service was seen to do over an interval, from outside."""

from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from corebound.machine.cgroups import CpuWeight
from corebound.machine.process_readings import ProcessReading
from corebound.machine.topology import CpuId
from corebound.records.telemetry import QuotaUse


class ThreadUse(Struct, frozen=True, kw_only=True, gc=False):
    """One thread over the interval.

    Attributes:
        tid: Its id; name: its name (comm).
        started: When it started, in clock ticks since boot: a pool's threads start together.
        run_ns, wait_ns: CPU time and run-queue wait within the interval.
        slices: How often it began to run: after it slept, or waited for a CPU.
        nice: Its nice value; policy: the kernel's number of its scheduling policy.
        allowed: The CPUs that it may run on; empty if it did not run.
        visited: The CPUs that it was seen on, in order, when it was running.
    """

    tid: int
    name: str
    started: int
    run_ns: int
    wait_ns: int
    slices: int
    nice: int
    policy: int
    allowed: tuple[CpuId, ...]
    visited: tuple[CpuId, ...] = ()

    @property
    def ready_ns(self) -> int:
        """How long it ran or waited to run."""
        return self.run_ns + self.wait_ns


class ProcessUse(ProcessReading, frozen=True, kw_only=True):
    """One process at the end of the interval, and what it did.

    Attributes:
        threads: Its threads that were read, busiest first: all that ran.
        thread_count: How many it has.
        cpu_ns: Its CPU time, with that of ended threads and of children it waited for.
        minor_faults, major_faults: Its page faults.
    """

    threads: tuple[ThreadUse, ...]
    thread_count: int
    cpu_ns: int
    minor_faults: int
    major_faults: int

    @property
    def ready_ns(self) -> int:
        """How long its threads ran or waited to run."""
        return max(self.cpu_ns, sum(thread.ready_ns for thread in self.threads))

    @property
    def cpus(self) -> frozenset[CpuId]:
        """The CPUs that its threads may run on."""
        different = {thread.allowed for thread in self.threads}
        return frozenset(chain.from_iterable(different)) or frozenset(self.allowed)


class GroupUse(Struct, frozen=True, kw_only=True):
    """A CPU quota of the service over the interval.

    Attributes:
        is_own: Whether it is the processes' own group, not an ancestor.
    """

    quota: QuotaUse
    folder: str
    is_own: bool


class CpuUse(NamedTuple):
    """How long a CPU was idle, or the hypervisor's, in nanoseconds."""

    idle_ns: int
    steal_ns: int


class Hidden(NamedTuple):
    """What could not be seen, and what would allow it."""

    what: str
    fix: str


class ServiceUse(Struct, frozen=True, kw_only=True):
    """A running service over an interval.

    Attributes:
        duration_ns: The length of the interval.
        processes: Its processes that are alive at the end.
        quotas: The CPU quotas that apply to it.
        weight: The lowest CPU weight of its groups; None if unknown.
        group: The cgroup of its first process.
        group_cpus: The CPUs that this group allows; None if it does not limit them.
        cpus: Each online CPU of the host.
        own_ns: CPU time that looking took.
        samples: How often it was looked at.
        huge_pages: The host's mode of transparent huge pages; None if it has none.
        autogroups: Whether the kernel shares CPU time between sessions.
        hidden: What could not be seen.
    """

    duration_ns: int
    processes: tuple[ProcessUse, ...]
    quotas: tuple[GroupUse, ...]
    weight: CpuWeight | None
    group: str
    group_cpus: frozenset[CpuId] | None
    cpus: dict[CpuId, CpuUse]
    own_ns: int
    samples: int
    huge_pages: str | None
    autogroups: bool
    hidden: tuple[Hidden, ...]
