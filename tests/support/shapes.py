"""Odd machines, each the least that shows one oddity of a real one, as files."""

from __future__ import annotations

from support.trees import a_tree, mask

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"


def _half(cpu: int) -> range:
    return range(4) if cpu < 4 else range(4, 8)


def _pair(cpu: int) -> tuple[int, int]:
    return (cpu // 2 * 2, cpu // 2 * 2 + 1)


def _without_topology(*cpus: int) -> dict[str, str]:
    """What takes the topology of some CPUs away, as the kernel does when they go offline."""
    names = ("physical_package_id", "core_id", "thread_siblings", "core_siblings")
    return {f"{_CPU}/cpu{cpu}/topology/{name}": "" for cpu in cpus for name in names}


def _cgroup(mount: str, kind: str, options: str, group: str) -> dict[str, str]:
    return {
        "proc/mounts": f"proc /proc proc rw 0 0\nnone {mount} {kind} {options} 0 0\n",
        "proc/self/cpuset": f"{group}\n",
    }


_TWO_NODES = {0: range(4), 1: range(4, 8)}

SHAPES: dict[str, dict[str, str]] = {
    "masks only, no `online` file": a_tree(),
    "an offline CPU known by its own file": a_tree(
        extra={**_without_topology(2), f"{_CPU}/cpu2/online": "0\n", f"{_CPU}/cpu1/online": "1\n"}
    ),
    "an offline CPU known by its missing topology": a_tree(
        cpus=range(8), siblings=_pair, extra=_without_topology(3, 4)
    ),
    "CPU 0 offline, its node without CPUs": a_tree(
        cpus=range(8),
        online="4-7",
        nodes=_TWO_NODES,
        extra=_without_topology(0, 1, 2, 3),
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
        extra={f"{_CPU}/cpu{cpu}/topology/die_id": f"{cpu // 4}\n" for cpu in range(8)}
        | {f"{_CPU}/cpu{cpu}/topology/die_cpus": f"{mask(_half(cpu))}\n" for cpu in range(8)},
    ),
    "numbers that are all -1": a_tree(
        cpus=range(8), package=lambda _: -1, core=lambda _: -1, siblings=_pair, in_package=_half
    ),
    "books whose sockets have the same numbers": a_tree(
        cpus=range(8),
        package=lambda cpu: cpu % 4 // 2,
        core=lambda cpu: cpu,
        in_package=_pair,
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
        extra={f"{_CPU}/cpu{cpu}/cache/index0/size": "0K\n" for cpu in range(8)}
        | {
            f"{_CPU}/cpu{cpu}/cache/index1/{name}": f"{value}\n"
            for cpu in range(8)
            for name, value in (
                ("level", 2),
                ("type", "Unified"),
                ("size", "1024K"),
                ("shared_cpu_map", mask(_half(cpu))),
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
        cpus=range(8),
        nodes={0: range(4), 1: range(4, 8), 2: (), 3: ()},
        memory_kb={1: 0, 3: 0},
    ),
    "a node that has gone": a_tree(
        cpus=range(8), nodes={0: range(4), 2: range(4, 8)}, extra={f"{_NODE}/online": "0,2\n"}
    ),
    "texts that end in NUL": a_tree(
        cpus=range(8),
        nodes=_TWO_NODES,
        extra={
            f"{_NODE}/node0/cpulist": "0-3\n\0",
            f"{_NODE}/node1/cpulist": "4-7\n\0",
            f"{_NODE}/node1/cpumap": "000000f0\n\0",
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
