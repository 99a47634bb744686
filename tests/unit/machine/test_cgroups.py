"""Specifies how CPU-time quotas and memory limits of cgroups are read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.machine.cgroups import (
    CpuGroup,
    available_memory_bytes,
    cpu_group,
    quota_cpus,
    quotas,
)
from support.machine_trees import HEALTHY, V1, ChangingTree, MemoryTree, mountinfo

GROUP = "sys/fs/cgroup/user.slice/cpu.max"
SESSION = "sys/fs/cgroup/user.slice/session/cpu.max"


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, None),
        ({GROUP: "max 100000\n"}, None),
        ({GROUP: "150000 100000\n"}, 1.5),
        # The tightest of all above us counts.
        ({GROUP: "400000 100000\n", SESSION: "50000 100000\n"}, 0.5),
        ({"proc/self/mountinfo": ""}, None),
    ],
)
def test_the_tightest_quota_limits_the_cpu_time(files: dict[str, str], cpus: float | None) -> None:
    now = {path: text for path, text in {**HEALTHY, **files}.items() if text is not None}

    assert quota_cpus(ChangingTree(now, now)) == cpus


V1_GROUP = "sys/fs/cgroup/cpu,cpuacct/docker"
# A container of half a CPU below a limit of two, and a process in a group of its own without one.
NESTED_V1 = {
    "proc/self/mountinfo": V1,
    "proc/self/cgroup": "4:cpu,cpuacct:/docker/ab\n3:cpuset:/docker\n0::/\n",
    "proc/7/cgroup": "4:cpu,cpuacct:/docker/ab/launch\n0::/\n",
    f"{V1_GROUP}/cpu.cfs_quota_us": "200000\n",
    f"{V1_GROUP}/cpu.cfs_period_us": "100000\n",
    f"{V1_GROUP}/ab/cpu.cfs_quota_us": "25000\n",
    f"{V1_GROUP}/ab/cpu.cfs_period_us": "50000\n",
    f"{V1_GROUP}/ab/launch/cpu.cfs_quota_us": "-1\n",
    f"{V1_GROUP}/ab/launch/cpu.cfs_period_us": "100000\n",
}


def test_a_process_has_the_quotas_of_its_whole_path() -> None:
    tree = MemoryTree(NESTED_V1)

    of_process = quotas(tree, process="7")

    assert of_process is not None
    assert [(quota.cpus, quota.period_us) for quota in of_process] == [(0.5, 50_000), (2, 100_000)]
    assert quota_cpus(tree) == 0.5


@given(
    st.lists(
        st.none() | st.tuples(st.integers(1_000, 9_900_000), st.integers(1_000, 1_000_000)),
        max_size=5,
    )
)
def test_the_smallest_of_nested_quotas_counts_however_deep(
    limits: list[tuple[int, int] | None],
) -> None:
    path, files = "", dict(HEALTHY)
    for depth, limit in enumerate(limits):
        path += f"/level{depth}"
        text = "max 100000" if limit is None else f"{limit[0]} {limit[1]}"
        files[f"sys/fs/cgroup{path}/cpu.max"] = f"{text}\n"
    files["proc/self/cgroup"] = f"0::{path or '/'}\n"

    expected = min((limit[0] / limit[1] for limit in limits if limit is not None), default=None)

    assert quota_cpus(MemoryTree(files)) == expected


def test_the_group_that_limits_cpu_time_is_that_of_the_hierarchy_with_the_controller() -> None:
    v2 = mountinfo("31 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw")
    files = {
        "proc/self/cgroup": "4:cpu,cpuacct:/docker\n0::/user\n",
        "proc/self/mountinfo": v2,
        "sys/fs/cgroup/unified/user/cgroup.controllers": "memory\n",
    }

    assert cpu_group(MemoryTree(files)) is None
    both = files | {"proc/self/mountinfo": v2 + V1}
    assert cpu_group(MemoryTree(both)) == CpuGroup(folder=V1_GROUP, is_v2=False)
    of_v2 = both | {"sys/fs/cgroup/unified/user/cgroup.controllers": "cpuset cpu memory\n"}
    assert cpu_group(MemoryTree(of_v2)) == CpuGroup(folder="sys/fs/cgroup/unified/user", is_v2=True)


MIB = 1 << 20
MEMINFO = {"proc/meminfo": "MemTotal: 9999999 kB\nMemAvailable: 4096 kB\n"}


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({"proc/meminfo": ""}, math.inf),
        (MEMINFO, 4 * MIB),
        ({**MEMINFO, "sys/fs/cgroup/user.slice/memory.max": "max\n"}, 4 * MIB),
        (
            {
                **MEMINFO,
                "sys/fs/cgroup/user.slice/memory.max": f"{8 * MIB}\n",
                "sys/fs/cgroup/user.slice/memory.current": f"{7 * MIB}\n",
                "sys/fs/cgroup/user.slice/memory.stat": f"anon 1\ninactive_file {MIB}\n",
            },
            2 * MIB,
        ),
    ],
)
def test_available_memory_is_the_least_of_host_and_limits(
    files: dict[str, str], available: float
) -> None:
    now = {**HEALTHY, **files}

    assert available_memory_bytes(ChangingTree(now, now)) == available
