"""Specifies how CPU-time quotas and memory limits of cgroups are read."""

from __future__ import annotations

import math

import pytest

from corebound.machine.cgroups import available_memory_bytes, cpus_worth
from support.machine_trees import HEALTHY, ChangingTree

GROUP = "sys/fs/cgroup/user.slice/cpu.max"
SESSION = "sys/fs/cgroup/user.slice/session/cpu.max"


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({}, math.inf),
        ({GROUP: "max 100000\n"}, math.inf),
        ({GROUP: "150000 100000\n"}, 1.5),
        # The tightest of all above us counts.
        ({GROUP: "400000 100000\n", SESSION: "50000 100000\n"}, 0.5),
        ({"proc/self/mountinfo": ""}, math.inf),
    ],
)
def test_the_tightest_quota_limits_the_cpu_time(files: dict[str, str], cpus: float) -> None:
    now = {path: text for path, text in {**HEALTHY, **files}.items() if text is not None}

    assert cpus_worth(ChangingTree(now, now)) == cpus


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
