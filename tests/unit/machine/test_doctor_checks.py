"""Specifies when each check of `corebound doctor` is ok, a warning or unavailable."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.machine.doctor.checks_system import PROGRAMS
from corebound.machine.doctor.result import SettingChange, command
from support.build import a_host
from support.machine_trees import (
    CPU,
    HEALTHY,
    LATER,
    THP,
    V1,
    V2,
    check_results,
    mountinfo,
    pid_stat,
    proc_stat,
)
from support.texts import in_order, numbers_in

POLICY = f"{CPU}/cpufreq/policy{{}}/scaling_governor"
GROUP = "sys/fs/cgroup/user.slice/cpu.max"
V1_FOLDER = "sys/fs/cgroup/cpu,cpuacct"


def test_a_healthy_machine_has_nothing_to_fix() -> None:
    assert {name: one.host_check.state for name, one in check_results().items()} == dict.fromkeys(
        check_results(), "ok"
    )


@pytest.mark.parametrize(
    ("check", "files", "value"),
    [
        ("governor", {POLICY.format(0): "powersave\n"}, "performance, powersave"),
        ("turbo", {f"{CPU}/cpufreq/boost": "1\n"}, "on"),
        # Intel's own switch comes first, and says 0 where turbo is on.
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "0\n"}, "on"),
        (
            "thermal throttling",
            {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3\n"},
            "3 times since the machine started",
        ),
        ("SMT", {f"{CPU}/smt/active": "1\n", f"{CPU}/smt/control": "on\n"}, "on"),
        ("load", {"proc/loadavg": "1.50 0.1 0.1 2/9 9\n"}, "1.50 over the last minute"),
        (
            "cpu pressure",
            {"proc/pressure/cpu": "some avg10=12.50 avg60=1.00 avg300=1.00 total=1\n"},
            "12.5 % of the last 10 s",
        ),
        (
            "memory pressure",
            {"proc/pressure/memory": "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\n"},
            "1.50 % of the last 10 s",
        ),
        (
            "io pressure",
            {"proc/pressure/io": "some avg10=50.00 avg60=0.00 avg300=0.00 total=1\n"},
            "50.0 % of the last 10 s",
        ),
        (
            "swap",
            {"proc/swaps": "Filename Type Size Used Priority\n/a swap file 2048 1024 -2\n"},
            "1.0 MiB of 2.0 MiB used",
        ),
        ("swappiness", {"proc/sys/vm/swappiness": "60\n"}, "60"),
        ("THP", {f"{THP}/enabled": "[always] madvise never\n"}, "always"),
        ("THP defrag", {f"{THP}/defrag": "[always] defer defer+madvise madvise never\n"}, "always"),
        ("KSM", {"sys/kernel/mm/ksm/run": "1\n"}, "on"),
        ("ASLR", {"proc/sys/kernel/randomize_va_space": "0\n"}, "off"),
        ("ASLR", {"proc/sys/kernel/randomize_va_space": "1\n"}, "on, without the heap"),
        ("ASLR", {"proc/self/personality": "00040000\n"}, "off for this shell"),
        ("autogroup", {"proc/sys/kernel/sched_autogroup_enabled": "1\n"}, "on"),
        ("perf_event_paranoid", {"proc/sys/kernel/perf_event_paranoid": "2\n"}, "2"),
        ("irqbalance", {"proc/90/stat": pid_stat("irqbalance", 1)}, "running"),
    ],
)
def test_a_disturbing_setting_is_a_warning_with_a_reason_and_a_fix(
    check: str, files: dict[str, str | None], value: str
) -> None:
    found = check_results(files)

    assert found[check].host_check.state == "warning"
    assert found[check].host_check.value.startswith(value)
    assert found[check].host_check.why
    assert found[check].host_check.fix
    others = {name for name, one in found.items() if one.host_check.state != "ok"}
    assert others == {check}


@pytest.mark.parametrize(
    ("check", "gone"),
    [
        ("governor", [POLICY.format(0), POLICY.format(1)]),
        ("turbo", [f"{CPU}/cpufreq/boost"]),
        (
            "thermal throttling",
            [
                f"{CPU}/cpu0/thermal_throttle/core_throttle_count",
                f"{CPU}/cpu0/thermal_throttle/package_throttle_count",
            ],
        ),
        ("isolated CPUs", [f"{CPU}/isolated"]),
        ("IRQ affinity", [f"proc/irq/{irq}/smp_affinity_list" for irq in (24, 25)]),
        ("irqbalance", ["proc/2/stat"]),
        ("CPU quota", ["proc/self/mountinfo"]),
        ("CPU quota", ["proc/self/cgroup"]),
        ("load", ["proc/loadavg"]),
        ("busy processes", ["proc/stat"]),
        ("steal", ["proc/stat"]),
        ("cpu pressure", ["proc/pressure/cpu"]),
        ("memory pressure", ["proc/pressure/memory"]),
        ("io pressure", ["proc/pressure/io"]),
        ("swap", ["proc/swaps"]),
        ("swappiness", ["proc/sys/vm/swappiness"]),
        ("THP", [f"{THP}/enabled"]),
        ("THP defrag", [f"{THP}/defrag"]),
        ("KSM", ["sys/kernel/mm/ksm/run"]),
        ("NUMA balancing", ["proc/sys/kernel/numa_balancing"]),
        ("ASLR", ["proc/sys/kernel/randomize_va_space"]),
        ("autogroup", ["proc/sys/kernel/sched_autogroup_enabled"]),
        ("perf_event_paranoid", ["proc/sys/kernel/perf_event_paranoid"]),
    ],
)
def test_a_missing_file_is_unavailable_not_ok(check: str, gone: list[str]) -> None:
    seen = check_results(dict.fromkeys(gone))[check].host_check

    assert seen.state == "unavailable"
    assert seen.value
    assert seen.fix is None


@pytest.mark.parametrize(
    ("check", "path"),
    [
        ("turbo", f"{CPU}/cpufreq/boost"),
        ("isolated CPUs", f"{CPU}/isolated"),
        ("load", "proc/loadavg"),
        ("cpu pressure", "proc/pressure/cpu"),
        ("busy processes", "proc/stat"),
        ("swap", "proc/swaps"),
        ("swappiness", "proc/sys/vm/swappiness"),
        ("THP", f"{THP}/enabled"),
        ("KSM", "sys/kernel/mm/ksm/run"),
        ("NUMA balancing", "proc/sys/kernel/numa_balancing"),
        ("ASLR", "proc/sys/kernel/randomize_va_space"),
        ("autogroup", "proc/sys/kernel/sched_autogroup_enabled"),
        ("perf_event_paranoid", "proc/sys/kernel/perf_event_paranoid"),
    ],
)
def test_unexpected_content_is_unavailable(check: str, path: str) -> None:
    seen = check_results({path: "mañana \x1b[2J\n"}, later={path: "mañana \x1b[2J\n"})[
        check
    ].host_check

    assert seen.state == "unavailable"
    assert seen.value.isprintable()


def test_a_machine_without_files_has_only_unavailable_checks() -> None:
    found = check_results(dict.fromkeys(HEALTHY), no_host=True, tools=None)

    states = {name: one.host_check.state for name, one in found.items()}
    assert states.pop("environments") == "ok"
    assert set(states.values()) == {"unavailable"}


# A busy machine may take long over one example.
@given(
    files=st.dictionaries(
        st.sampled_from(sorted(HEALTHY)),
        st.one_of(st.none(), st.text(), st.from_regex(r"[a-z0-9 ,:/()\[\]\n-]{0,80}")),
    ),
    later=st.dictionaries(st.sampled_from(sorted(LATER)), st.text()),
)
def test_every_check_is_printable_for_any_file_content(
    files: dict[str, str | None], later: dict[str, str]
) -> None:
    found = check_results(files, later=later)

    assert set(found) == set(check_results())
    for one in found.values():
        assert one.host_check.value.isprintable()
        assert all(change.prior != change.value for change in one.changes)


def test_a_driver_without_the_performance_governor_is_not_told_to_use_it() -> None:
    found = check_results(
        {
            POLICY.format(0): "powersave\n",
            f"{CPU}/cpufreq/policy0/scaling_available_governors": "powersave\n",
        }
    )["governor"]

    assert "offers no `performance`" in (found.host_check.fix or "")
    assert not found.changes


def test_throttling_now_differs_from_throttling_in_the_past() -> None:
    path = f"{CPU}/cpu0/thermal_throttle/core_throttle_count"

    found = check_results({path: "3\n"}, later={path: "4\n"})["thermal throttling"].host_check

    assert in_order(found.value, "now", "4 times")


def test_smt_by_topology_and_numa_balancing_matter_only_where_there_are_several() -> None:
    old = {f"{CPU}/smt/active": None, f"{CPU}/smt/control": None}
    balanced = {"proc/sys/kernel/numa_balancing": "1\n"}

    assert check_results(old)["SMT"].host_check.state == "ok"
    smt = check_results(old, host=a_host(cpus_per_core=2))["SMT"].host_check
    assert (smt.state, smt.value) == ("warning", "on")
    assert check_results(balanced)["NUMA balancing"].host_check.state == "ok"
    found = check_results(balanced, host=a_host(nodes=2))["NUMA balancing"]
    assert found.host_check.value == "on, 2 nodes"
    assert found.changes == (
        SettingChange(path="proc/sys/kernel/numa_balancing", prior="1", value="0"),
    )


def test_the_scheduler_does_not_spread_threads_over_several_isolated_cpus() -> None:
    several = check_results({f"{CPU}/isolated": "0-1\n"})["isolated CPUs"].host_check
    single = check_results({f"{CPU}/isolated": "1\n", f"{CPU}/nohz_full": "1\n"})["isolated CPUs"]

    assert several.state == "warning"
    assert single.host_check.state == "ok"
    assert in_order(single.host_check.value, "1 isolated", "1 without ticks", "allowed: 0-1")


def test_interrupts_move_to_cpus_that_are_not_measured() -> None:
    found = check_results(host=a_host(cores_per_node=4, allowed=frozenset({1, 2})))["IRQ affinity"]

    assert found.host_check.value == "2 of 2 on CPUs 1-2"
    assert found.changes == (
        SettingChange(path="proc/irq/24/smp_affinity_list", prior="0-1", value="0,3"),
        SettingChange(path="proc/irq/25/smp_affinity_list", prior="1", value="0,3"),
    )
    undo = ["echo 0-1 > /proc/irq/24/smp_affinity_list", "echo 1 > /proc/irq/25/smp_affinity_list"]
    assert (found.host_check.undo or "").split("; ") == undo


def test_interrupts_on_other_cpus_are_ok_and_never_sent_to_isolated_ones() -> None:
    elsewhere, here = (
        a_host(cores_per_node=4, allowed=frozenset(cpus)) for cpus in ((2, 3), (0, 1))
    )

    assert check_results(host=elsewhere)["IRQ affinity"].host_check.state == "ok"
    found = check_results({f"{CPU}/isolated": "2\n"}, host=here)["IRQ affinity"]
    assert {change.value for change in found.changes} == {"3"}


@pytest.mark.parametrize(
    ("files", "value", "fix", "undo"),
    [
        (
            {
                GROUP: "150000 100000\n",
                "sys/fs/cgroup/user.slice/cpu.stat": "nr_periods 9\nnr_throttled 7\n"
                "throttled_usec 5\n",
            },
            "1.50 CPUs in /sys/fs/cgroup/user.slice, throttled 7 times",
            f"echo max > /{GROUP}",
            f"echo '150000 100000' > /{GROUP}",
        ),
        # A container that sees no more than its own group, which is not the hierarchy's root.
        (
            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"},
            "0.500 CPUs in /sys/fs/cgroup",
            "echo max > /sys/fs/cgroup/cpu.max",
            "echo '50000 100000' > /sys/fs/cgroup/cpu.max",
        ),
        (
            {
                "proc/self/mountinfo": V1,
                "proc/self/cgroup": "4:memory:/other\n3:cpu,cpuacct:/docker/ab\n",
                f"{V1_FOLDER}/docker/cpu.cfs_quota_us": "200000\n",
                f"{V1_FOLDER}/docker/cpu.cfs_period_us": "100000\n",
                f"{V1_FOLDER}/docker/ab/cpu.cfs_quota_us": "-1\n",
                f"{V1_FOLDER}/docker/ab/cpu.cfs_period_us": "100000\n",
            },
            "2.00 CPUs in /sys/fs/cgroup/cpu,cpuacct/docker",
            f"echo -1 > /{V1_FOLDER}/docker/cpu.cfs_quota_us",
            f"echo 200000 > /{V1_FOLDER}/docker/cpu.cfs_quota_us",
        ),
        # Without a namespace a container still mounts no more than its own group.
        (
            {
                "proc/self/mountinfo": mountinfo(
                    "32 31 0:29 /docker/ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"
                ),
                "proc/self/cgroup": "3:cpu:/docker/ab\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            "1.00 CPUs in /sys/fs/cgroup/cpu",
            "echo -1 > /sys/fs/cgroup/cpu/cpu.cfs_quota_us",
            "echo 100000 > /sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        ),
    ],
)
def test_a_quota_of_any_parent_group_is_found(
    files: dict[str, str | None], value: str, fix: str, undo: str
) -> None:
    found = check_results(files)["CPU quota"].host_check

    assert (found.state, found.value) == ("warning", value)
    assert (found.fix, found.undo) == (fix, undo)


def test_a_group_outside_the_mount_has_an_unknown_quota() -> None:
    files = {
        "proc/self/mountinfo": V2,
        "proc/self/cgroup": "0::/../other\n",
        "sys/fs/cgroup/cpu.max": "100000 100000\n",
    }

    found = check_results(files)["CPU quota"].host_check
    assert found.state == "unavailable"
    assert "/../other" in found.value


def test_busy_processes_are_named_with_their_share_of_a_cpu() -> None:
    # 50 ticks went by on each of two CPUs: 40 of them are 80 % of one, 15 are 30 %.
    found = check_results(
        {"proc/200/stat": pid_stat("a (b) c", 100), "proc/201/stat": pid_stat("nap", 9)},
        later={
            "proc/stat": proc_stat(user=55, idle=10_045),
            "proc/200/stat": pid_stat("a (b) c", 140),
            "proc/202/stat": pid_stat("new\x1b", 15, started=999),
        },
    )["busy processes"].host_check

    assert in_order(found.value, "110 %", ": a (b) c (200) 80 %", ", new? (202) 30 %")
    assert in_order(found.fix, "ps -o pid,user,args", "200 202")
    assert found.undo is None


def test_a_record_contains_no_process_ids() -> None:
    judged = check_results(
        {"proc/30/stat": pid_stat("kswapd0", 0, parent=2)},
        later={
            "proc/stat": proc_stat(user=55, idle=10_045),
            "proc/30/stat": pid_stat("kswapd0", 40, parent=2),
            "proc/202/stat": pid_stat("x (12) 3", 15, started=999),
        },
    )
    found = judged["busy processes"].recorded

    assert in_order(found.value, "110 %", ": kswapd0 80 %", ", x (12) 3 30 %")
    assert (found.fix is None, numbers_in(found.fix)) == (False, [])
    assert found.undo is None
    # What says nothing of the moment alone is kept as it was said.
    assert judged["swappiness"].recorded is judged["swappiness"].host_check


HALF_BUSY = {"proc/stat": proc_stat(user=50, idle=10_050)}
KSWAPD = [{"proc/30/stat": pid_stat("kswapd0", ticks, parent=2)} for ticks in (0, 40)]


@pytest.mark.parametrize(
    ("before", "later", "state", "facts", "fix"),
    [
        # Corebound itself is no foreign process, and load without a visible one counts.
        ({}, HALF_BUSY | {"proc/77/stat": pid_stat("corebound", 60)}, "ok", ("0 % of a CPU",), ()),
        ({}, HALF_BUSY, "warning", ("100 %", "no visible process"), ()),
        # A kernel thread is named but cannot be stopped.
        (
            KSWAPD[0], {"proc/stat": proc_stat(user=40, idle=10_060)} | KSWAPD[1],
            "warning", ("80 %", "kswapd0 (30) 80 %"), ("kernel", "top"),
        ),
    ],
)  # fmt: skip
def test_whose_load_it_is(
    before: dict[str, str | None],
    later: dict[str, str],
    state: str,
    facts: tuple[str, ...],
    fix: tuple[str, ...],
) -> None:
    found = check_results(before, later=later)["busy processes"].host_check

    assert found.state == state
    assert in_order(found.value, *facts)
    assert in_order(found.fix, *fix)
    assert found.undo is None


def test_steal_is_checked_now_and_since_the_start() -> None:
    # 5 of 100 ticks; 5 of 10,100 since the start.
    now = check_results(later={"proc/stat": proc_stat(idle=10_095, steal=5)})["steal"].host_check
    # 1,000 of 11,000 then, and of 11,100 now.
    ever = check_results(
        {"proc/stat": proc_stat(steal=1_000)},
        later={"proc/stat": proc_stat(idle=10_100, steal=1_000)},
    )["steal"].host_check

    assert (now.state, numbers_in(now.value)) == ("warning", [5.0, 0.0])
    assert (ever.state, numbers_in(ever.value)) == ("warning", [0.0, 9.0])


def test_swapping_during_the_check_is_detected() -> None:
    found = check_results(later={"proc/vmstat": "pswpin 0\npswpout 12\n"})["swap"].host_check

    assert in_order(found.value, "0 B of 8.0 GiB", "12 pages")


def test_privileged_users_ignore_perf_event_paranoid() -> None:
    files = {
        "proc/sys/kernel/perf_event_paranoid": "3\n",
        "proc/self/status": "CapEff:\t000001ffffffffff\n",
    }

    assert check_results(files)["perf_event_paranoid"].host_check.state == "ok"
    # Under sudo the doctor is privileged, and whoever measures is not.
    assert check_results(files, sudo=True)["perf_event_paranoid"].host_check.state == "warning"


def test_missing_tools_name_the_package_unless_no_scenario_needs_them() -> None:
    found = check_results(tools=PROGRAMS - {"numactl"})
    unneeded = check_results(tools=frozenset(), needed=frozenset({"numactl"}), environments={})

    numactl = found["numactl"].host_check
    assert (numactl.state, numactl.fix, numactl.undo) == (
        "warning", "apt-get install numactl", "apt-get remove numactl",
    )  # fmt: skip
    assert found["perf"].host_check.state == "ok"
    states = {name: unneeded[name].host_check.state for name in ("numactl", "java", "hwloc")}
    assert states == {"numactl": "warning", "java": "unavailable", "hwloc": "unavailable"}
    assert unneeded["environments"].host_check.state == "ok"


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ({"proc/sys/vm/swappiness": "1"}, "sysctl -w vm.swappiness=1"),
        ({f"{THP}/enabled": "madvise"}, f"echo madvise > /{THP}/enabled"),
        (
            {POLICY.format(number): "performance" for number in (0, 1, 2, 8)},
            f"echo performance | tee /{POLICY.format('{{0..2},8}')}",
        ),
        (
            {POLICY.format(0): "powersave", POLICY.format(1): "schedutil"},
            f"echo powersave > /{POLICY.format(0)}; echo schedutil > /{POLICY.format(1)}",
        ),
    ],
)
def test_commands_write_exactly_these_settings(values: Mapping[str, str], written: str) -> None:
    assert command(values.items()) == written


def test_a_contradictory_topology_and_memory_that_does_not_add_up_are_named() -> None:
    host = replace(a_host(), notes=("No node lists CPUs 3.",), memory_note="The nodes have 4 GiB.")

    found = check_results(host=host)

    assert found["topology"].host_check.state == "warning"
    assert "CPUs 3" in found["topology"].host_check.value
    assert in_order(found["memory"].host_check.value, "8.0 GiB", "nodes have 4 GiB")
