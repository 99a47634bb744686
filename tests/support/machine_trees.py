"""Machines as file trees: saved ones from their archives, synthetic ones from arguments.

Also unusual topologies, and a healthy machine for `corebound doctor`.
"""

import posixpath
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from corebound.machine.doctor.checks_system import PROGRAMS
from corebound.machine.doctor.examine import examine
from corebound.machine.doctor.host_facts import HostFacts, take_snapshot
from corebound.machine.doctor.result import CheckResult, HostCheck
from corebound.machine.topology import Topology
from support.build import a_host
from support.paths import DATA

ARCHIVES = DATA / "topologies"

# What a saved tree holds besides is devices, none of which say where CPUs sit.
_RELEVANT = (
    "sys/devices/system/cpu/",
    "sys/devices/system/node/",
    "sys/devices/cpu_",
    "sys/fs/cgroup/",
    "proc/",
    "cgroup/",
    "dev/cpuset/",
)


def saved_machines() -> tuple[str, ...]:
    """The names of all saved machines."""
    return tuple(sorted(path.name.removesuffix(".tar.bz2") for path in ARCHIVES.glob("*.bz2")))


def machine_files(machine: str) -> dict[str, bytes]:
    """The files of a saved machine that matter here, by path below its root."""
    files = {}
    policies = {}
    with tarfile.open(ARCHIVES / f"{machine}.tar.bz2") as archive:
        for member in archive:
            path = "/".join(PurePosixPath(member.name).parts[1:])
            if member.issym() and path.endswith("/cpufreq"):
                policies[path] = posixpath.normpath(f"{path}/../{member.linkname}")
            elif member.isfile() and path.startswith(_RELEVANT):
                opened = archive.extractfile(member)
                assert opened is not None
                files[path] = opened.read()
    for link, policy in policies.items():
        for path in [path for path in files if path.startswith(f"{policy}/")]:
            files[link + path.removeprefix(policy)] = files[path]
    return files


def write_files(files: Mapping[str, bytes], root: Path) -> Path:
    """Write a machine's files below a directory, and return that."""
    made = set()
    for path, data in files.items():
        file = root / path
        if file.parent not in made:
            file.parent.mkdir(parents=True, exist_ok=True)
            made.add(file.parent)
        file.write_bytes(data)
    return root


class MemoryTree:
    """A tree held in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self._names: dict[str, set[str]] = {}
        for path in files:
            parts = PurePosixPath(path).parts
            for depth, name in enumerate(parts):
                self._names.setdefault("/".join(parts[:depth]), set()).add(name)

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(self._names.get(path, ()))


def memory_tree(files: Mapping[str, bytes]) -> MemoryTree:
    """A saved machine's files as a tree."""
    return MemoryTree(
        {path: data.decode("utf-8", errors="replace") for path, data in files.items()}
    )


def cpu_mask(cpus: Iterable[int]) -> str:
    """The kernel's mask of CPUs, groups of 32 bits."""
    bits = sum(1 << cpu for cpu in set(cpus))
    groups: list[str] = []
    while bits or not groups:
        groups.append(f"{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(groups))


Sharing = Callable[[int], Iterable[int]]


def a_tree(
    *,
    cpus: Iterable[int] = range(4),
    online: str | None = None,
    package: Callable[[int], int] = lambda _: 0,
    core: Callable[[int], int] = lambda cpu: cpu,
    siblings: Sharing = lambda cpu: (cpu,),
    in_package: Sharing | None = None,
    cache: Sharing | None = None,
    nodes: Mapping[int, Iterable[int]] | None = None,
    memory_kb: Mapping[int, int] | None = None,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A `/sys` of an old kernel, masks only: four cores of one package unless told otherwise.

    `extra` adds files or replaces them; an empty text there takes a file away.
    """
    all_cpus = tuple(cpus)
    base = "sys/devices/system/cpu"
    files = {} if online is None else {f"{base}/online": f"{online}\n"}
    for cpu in all_cpus:
        folder = f"{base}/cpu{cpu}"
        files[f"{folder}/topology/physical_package_id"] = f"{package(cpu)}\n"
        files[f"{folder}/topology/core_id"] = f"{core(cpu)}\n"
        files[f"{folder}/topology/thread_siblings"] = f"{cpu_mask(siblings(cpu))}\n"
        inside = in_package(cpu) if in_package else all_cpus
        files[f"{folder}/topology/core_siblings"] = f"{cpu_mask(inside)}\n"
        if cache:
            files[f"{folder}/cache/index0/level"] = "3\n"
            files[f"{folder}/cache/index0/type"] = "Unified\n"
            files[f"{folder}/cache/index0/size"] = "8192K\n"
            files[f"{folder}/cache/index0/shared_cpu_map"] = f"{cpu_mask(cache(cpu))}\n"
    for node, on in (nodes or {}).items():
        folder = f"sys/devices/system/node/node{node}"
        files[f"{folder}/cpumap"] = f"{cpu_mask(on)}\n"
        kb = (memory_kb or {}).get(node, 1 << 20)
        files[f"{folder}/meminfo"] = f"Node {node} MemTotal:       {kb} kB\n"
    files.update(extra or {})
    return {path: text for path, text in files.items() if text}


CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def _half(cpu: int) -> range:
    return range(4) if cpu < 4 else range(4, 8)


def _pair(cpu: int) -> tuple[int, int]:
    return (cpu // 2 * 2, cpu // 2 * 2 + 1)


def without_topology(*cpus: int) -> dict[str, str]:
    """What takes the topology of some CPUs away, as the kernel does when they go offline."""
    names = ("physical_package_id", "core_id", "thread_siblings", "core_siblings")
    return {f"{CPU}/cpu{cpu}/topology/{name}": "" for cpu in cpus for name in names}


def _cgroup(mount: str, kind: str, options: str, group: str) -> dict[str, str]:
    return {
        "proc/mounts": f"proc /proc proc rw 0 0\nnone {mount} {kind} {options} 0 0\n",
        "proc/self/cpuset": f"{group}\n",
    }


_TWO_NODES = {0: range(4), 1: range(4, 8)}

UNUSUAL_MACHINES: dict[str, dict[str, str]] = {
    "masks only, no `online` file": a_tree(),
    "an offline CPU known by its own file": a_tree(
        extra={**without_topology(2), f"{CPU}/cpu2/online": "0\n", f"{CPU}/cpu1/online": "1\n"}
    ),
    "an offline CPU known by its missing topology": a_tree(
        cpus=range(8), siblings=_pair, extra=without_topology(3, 4)
    ),
    "CPU 0 offline, its node without CPUs": a_tree(
        cpus=range(8), online="4-7", nodes=_TWO_NODES, extra=without_topology(0, 1, 2, 3)
    ),
    "CPU numbers with gaps": a_tree(cpus=(0, 4, 8, 12), online="0,4,8,12"),
    "more than 64 CPUs": a_tree(
        cpus=range(80),
        online="0-79",
        siblings=lambda cpu: (cpu % 40, cpu % 40 + 40),
        cache=lambda cpu: [cpu % 40 // 20 * 20 + n + s for n in range(20) for s in (0, 40)],
    ),
    "core numbers that repeat in each cluster": a_tree(
        cpus=range(8), core=lambda cpu: cpu % 2, online="0-7"
    ),
    "core numbers that repeat in each die": a_tree(
        cpus=range(8),
        core=lambda cpu: cpu % 4,
        extra={f"{CPU}/cpu{cpu}/topology/die_id": f"{cpu // 4}\n" for cpu in range(8)}
        | {f"{CPU}/cpu{cpu}/topology/die_cpus": f"{cpu_mask(_half(cpu))}\n" for cpu in range(8)},
    ),
    "numbers that are all -1": a_tree(
        cpus=range(8), package=lambda _: -1, core=lambda _: -1, siblings=_pair, in_package=_half
    ),
    "books whose sockets have the same numbers": a_tree(
        cpus=range(8), package=lambda cpu: cpu % 4 // 2, core=lambda cpu: cpu, in_package=_pair
    ),
    "siblings with different core numbers": a_tree(cpus=range(8), siblings=_pair),
    "siblings in AMD compute units": a_tree(
        cpus=range(8),
        siblings=_pair,
        extra={
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\n\n",
            "proc/hwloc-nofile-info": "Architecture: x86_64\n",
        },
    ),
    "package lists that stop at the node": a_tree(
        cpus=range(8), in_package=_half, nodes=_TWO_NODES
    ),
    "an L3 of no size": a_tree(
        cpus=range(8),
        siblings=_pair,
        core=lambda cpu: cpu // 2,
        cache=lambda _: range(8),
        extra={f"{CPU}/cpu{cpu}/cache/index0/size": "0K\n" for cpu in range(8)}
        | {
            f"{CPU}/cpu{cpu}/cache/index1/{name}": f"{value}\n"
            for cpu in range(8)
            for name, value in (
                ("level", 2),
                ("type", "Unified"),
                ("size", "1024K"),
                ("shared_cpu_map", cpu_mask(_half(cpu))),
            )
        }
        | {
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
            "model\t\t: 87\n\n",
            "proc/hwloc-nofile-info": "Architecture: x86_64\n",
        },
    ),
    "a cache whose map is empty": a_tree(
        siblings=_pair, core=lambda cpu: cpu // 2, cache=lambda _: ()
    ),
    "node numbers with gaps and two digits": a_tree(
        cpus=range(8), nodes={0: (0, 1), 8: (2, 3), 10: (4, 5), 252: (6, 7)}
    ),
    "nodes without CPUs and without memory": a_tree(
        cpus=range(8), nodes={0: range(4), 1: range(4, 8), 2: (), 3: ()}, memory_kb={1: 0, 3: 0}
    ),
    "a node that has gone": a_tree(
        cpus=range(8), nodes={0: range(4), 2: range(4, 8)}, extra={f"{NODE}/online": "0,2\n"}
    ),
    "texts that end in NUL": a_tree(
        cpus=range(8),
        nodes=_TWO_NODES,
        extra={
            f"{NODE}/node0/cpulist": "0-3\n\0",
            f"{NODE}/node1/cpulist": "4-7\n\0",
            f"{NODE}/node1/cpumap": "000000f0\n\0",
        },
    ),
    "a cpuset of its own file system": a_tree(
        cpus=range(8),
        nodes=_TWO_NODES,
        extra={
            **_cgroup("/dev/cpuset", "cpuset", "rw", "/batch"),
            "dev/cpuset/batch/cpus": "1,4-6\n",
            "dev/cpuset/batch/mems": "1\n",
        },
    ),
    "a cgroup v1 cpuset, mounted elsewhere": a_tree(
        cpus=range(8),
        nodes=_TWO_NODES,
        extra={
            **_cgroup("/cgroup/cpuset", "cgroup", "rw,relatime,cpuset", "/job/step"),
            "cgroup/cpuset/job/step/cpuset.cpus": "0-2\n",
            "cgroup/cpuset/job/step/cpuset.mems": "0\n",
        },
    ),
    "a cgroup v1 cpuset without prefix": a_tree(
        cpus=range(8),
        extra={
            **_cgroup("/dev/cpuset", "cgroup", "rw,cpuset,noprefix", "/top"),
            "dev/cpuset/top/cpus": "3-4\n",
            "dev/cpuset/top/mems": "0\n",
        },
    ),
    "a cgroup v2 cpuset": a_tree(
        cpus=range(8),
        nodes=_TWO_NODES,
        extra={
            **_cgroup("/sys/fs/cgroup", "cgroup2", "rw,nsdelegate", "/user.slice/a.scope"),
            "sys/fs/cgroup/cgroup.controllers": "cpu cpuset memory\n",
            "sys/fs/cgroup/cpuset.cpus.effective": "0-7\n",
            "sys/fs/cgroup/user.slice/a.scope/cpuset.cpus.effective": "4-5\n",
            "sys/fs/cgroup/user.slice/a.scope/cpuset.mems.effective": "1\n",
        },
    ),
    "cgroups v1 and v2 at once": a_tree(
        cpus=range(8),
        extra={
            "proc/mounts": "none /sys/fs/cgroup tmpfs rw 0 0\n"
            "none /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
            "none /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
            "none /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n",
            "proc/self/cgroup": "3:cpuset:/box\n2:cpu:/other\n0::/else\n",
            "sys/fs/cgroup/unified/cgroup.controllers": "memory\n",
            "sys/fs/cgroup/cpuset/cpuset.cpus": "0-7\n",
            "sys/fs/cgroup/cpuset/cpuset.mems": "0\n",
            "sys/fs/cgroup/cpuset/box/cpuset.cpus": "2,5\n",
            "sys/fs/cgroup/cpuset/box/cpuset.mems": "0\n",
        },
    ),
}

THP = "sys/kernel/mm/transparent_hugepage"
OWN_PID = 77

# user nice system idle iowait irq softirq steal guest guest_nice
STAT = (
    "cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"
)


def proc_stat(*, user: int = 0, idle: int = 10_000, steal: int = 0) -> str:
    """/proc/stat of two CPUs, in ticks."""
    return STAT.format(user=user, idle=idle, steal=steal)


def pid_stat(name: str, ticks: int, *, started: int = 5, parent: int = 1) -> str:
    """A /proc/PID/stat."""
    return f"1 ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 0 0 0\n"


def mountinfo(line: str) -> str:
    """A /proc/self/mountinfo with one cgroup hierarchy."""
    return f"22 1 0:20 / /proc rw - proc proc rw\n{line}\n"


V2 = mountinfo("31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw")
V1 = mountinfo("32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct")

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
    "proc/stat": proc_stat(),
    "proc/2/stat": pid_stat("kthreadd", 0),
    "proc/77/stat": pid_stat("corebound", 10),
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
LATER = {"proc/stat": proc_stat(idle=10_100)}


class ChangingTree:
    """A tree that becomes another when it is told to wait."""

    def __init__(self, now: Mapping[str, str], later: Mapping[str, str]) -> None:
        self._tree, self._next = MemoryTree(now), MemoryTree(later)

    def wait(self) -> None:
        self._tree = self._next

    def read(self, path: str) -> str | None:
        return self._tree.read(path)

    def names(self, path: str) -> tuple[str, ...]:
        return self._tree.names(path)


def check_results(
    files: Mapping[str, str | None] | None = None,
    *,
    later: Mapping[str, str] | None = None,
    host: Topology | None = None,
    no_host: bool = False,
    sudo: bool = False,
    tools: frozenset[str] | None = PROGRAMS,
    needed: frozenset[str] | None = None,
    environments: Mapping[str, bool] | None = None,
) -> dict[str, CheckResult]:
    """What the checks say by name: of the healthy machine with some files replaced or gone."""
    changed = {**HEALTHY, **(files or {})}
    now = {path: text for path, text in changed.items() if text is not None}
    # What was gone stays gone.
    then = {path: text for path, text in LATER.items() if path in now}
    tree = ChangingTree(now, {**now, **then, **(later or {})})
    before = take_snapshot(tree)
    tree.wait()
    facts = HostFacts(
        tree=tree,
        topology=None if no_host else host or a_host(),
        before=before,
        after=take_snapshot(tree),
        pid=OWN_PID,
        sudo=sudo,
        tools=tools,
        needed=needed,
        environments={"numpy": True} if environments is None else environments,
    )
    return {one.host_check.check: one for one in examine(facts)}


def checks_of_a_busy_laptop() -> tuple[HostCheck, ...]:
    """The checks of a laptop with a browser open, most of which are warnings."""
    found = check_results(
        {
            "proc/200/stat": pid_stat("browser", 100),
            "proc/loadavg": "2.31 1.10 0.90 3/900 4000\n",
            "proc/pressure/cpu": None,
            "proc/sys/vm/swappiness": "60\n",
            f"{CPU}/cpufreq/boost": "1\n",
            f"{CPU}/cpufreq/policy0/scaling_governor": "schedutil\n",
            f"{CPU}/cpufreq/policy1/scaling_governor": "schedutil\n",
            f"{CPU}/smt/active": "1\n",
            f"{CPU}/smt/control": "on\n",
            f"{THP}/enabled": "[always] madvise never\n",
        },
        later={
            "proc/stat": proc_stat(user=45, idle=10_055),
            "proc/200/stat": pid_stat("browser", 140),
        },
        host=a_host(nodes=2, cpus_per_core=2),
        tools=frozenset({"taskset", "hwloc-calc"}),
        environments={"numpy": True, "pytorch": False},
    )
    return tuple(one.host_check for one in found.values())
