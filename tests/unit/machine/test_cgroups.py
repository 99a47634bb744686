"""Specifies how CPU-time quotas of cgroups are read."""

from __future__ import annotations

import math

import pytest

from corebound.machine.cgroups import cpus_worth
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
