"""What is shown while a command runs: a clock, and the warnings before a run."""

from __future__ import annotations

import pytest

from corebound.cli.output.progress import clock, warning_lines
from corebound.machine.doctor.result import HostCheck
from support.build import a_host
from support.machine_trees import CPU, THP, check_results, pid_stat, proc_stat


@pytest.mark.parametrize(
    ("length_s", "shown"), [(0, "0:00"), (65, "1:05"), (599.6, "10:00"), (7205, "2:00:05")]
)
def test_a_duration_is_shown_like_a_clock(length_s: float, shown: str) -> None:
    assert clock(length_s) == shown


def checks_of_a_busy_laptop() -> tuple[HostCheck, ...]:
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


def test_each_warning_before_a_run_is_one_line() -> None:
    lines = warning_lines(checks_of_a_busy_laptop())

    assert lines[:2] == ("warning: governor: schedutil", "warning: turbo: on")
    assert all(line.startswith("warning: ") and len(line) <= 80 for line in lines)
