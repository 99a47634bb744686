"""A machine in memory that `corebound doctor` finds nothing wrong with, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Mapping

from corebound.machine.doctor.check import JudgedCheck
from corebound.machine.doctor.checks import examine
from corebound.machine.doctor.checks_tools import PROGRAMS
from corebound.machine.topology import Topology
from support.build import a_host
from support.trees import Texts

CPU = "sys/devices/system/cpu"
THP = "sys/kernel/mm/transparent_hugepage"
OWN_PID = 77

# user nice system idle iowait irq softirq steal guest guest_nice
STAT = (
    "cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"
)


def stat(*, user: int = 0, idle: int = 10_000, steal: int = 0) -> str:
    """/proc/stat of two CPUs, in ticks."""
    return STAT.format(user=user, idle=idle, steal=steal)


def process(name: str, ticks: int, *, started: int = 5, parent: int = 1) -> str:
    """A /proc/PID/stat."""
    return f"1 ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 0 0 0\n"


def mounts(line: str) -> str:
    """A /proc/self/mountinfo with one cgroup hierarchy."""
    return f"22 1 0:20 / /proc rw - proc proc rw\n{line}\n"


V2 = mounts("31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw")
V1 = mounts("32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct")

HEALTHY: dict[str, str] = {
    "proc/cpuinfo": "processor : 0\nflags : fpu avx2\n",
    "proc/loadavg": "0.01 0.02 0.00 1/100 200\n",
    "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    "proc/self/cgroup": "0::/user.slice/session\n",
    "proc/self/mountinfo": V2,
    "proc/self/personality": "00000000\n",
    "proc/self/status": "Name:\tx\nCapEff:\t0000000000000000\n",
    "proc/stat": stat(),
    "proc/2/stat": process("kthreadd", 0),
    "proc/77/stat": process("corebound", 10),
    "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 8388604 0 -2\n",
    "proc/vmstat": "pswpin 0\npswpout 0\n",
    "proc/irq/24/smp_affinity_list": "0-1\n",
    "proc/irq/24/eth0/present": "\n",
    "proc/irq/25/smp_affinity_list": "1\n",
    "proc/irq/25/nvme0q1/present": "\n",
    # Nobody handles this one, so it never comes.
    "proc/irq/26/smp_affinity_list": "0-3\n",
    "proc/irq/26/node": "0\n",
    "proc/sys/kernel/numa_balancing": "0\n",
    "proc/sys/kernel/perf_event_paranoid": "1\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "proc/sys/kernel/sched_autogroup_enabled": "0\n",
    "proc/sys/vm/swappiness": "1\n",
    f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "0\n",
    f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "0\n",
    f"{CPU}/cpufreq/boost": "0\n",
    f"{CPU}/cpufreq/policy0/scaling_governor": "performance\n",
    f"{CPU}/cpufreq/policy0/scaling_available_governors": "schedutil performance\n",
    f"{CPU}/cpufreq/policy1/scaling_governor": "performance\n",
    f"{CPU}/cpufreq/policy1/scaling_available_governors": "schedutil performance\n",
    f"{CPU}/isolated": "\n",
    f"{CPU}/smt/active": "0\n",
    f"{CPU}/smt/control": "off\n",
    "sys/fs/cgroup/user.slice/cpu.max": "max 100000\n",
    "sys/kernel/mm/ksm/run": "0\n",
    f"{THP}/enabled": "always [madvise] never\n",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never\n",
}
# Half a second later: 50 ticks of each of the two CPUs, all of them idle.
LATER = {"proc/stat": stat(idle=10_100)}


class Clockwork:
    """A tree that becomes another when it is told to wait."""

    def __init__(self, now: Mapping[str, str], later: Mapping[str, str]) -> None:
        self._tree, self._next = Texts(now), Texts(later)

    def wait(self) -> None:
        self._tree = self._next

    def read(self, path: str) -> str | None:
        return self._tree.read(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self._tree.names(path)


def examined(
    files: Mapping[str, str | None] | None = None,
    *,
    later: Mapping[str, str] | None = None,
    host: Topology | None = None,
    no_host: bool = False,
    sudo: bool = False,
    tools: frozenset[str] | None = PROGRAMS,
    environments: Mapping[str, bool] | None = None,
) -> dict[str, JudgedCheck]:
    """What the checks say by name: of the healthy machine with some files replaced or gone."""
    changed = {**HEALTHY, **(files or {})}
    now = {path: text for path, text in changed.items() if text is not None}
    # What was gone stays gone.
    then = {path: text for path, text in LATER.items() if path in now}
    tree = Clockwork(now, {**now, **then, **(later or {})})
    judged = examine(
        tree,
        topology=None if no_host else host or a_host(),
        wait=tree.wait,
        pid=OWN_PID,
        sudo=sudo,
        tools=tools,
        environments={"numpy": True} if environments is None else environments,
    )
    return {one.host_check.check: one for one in judged}
