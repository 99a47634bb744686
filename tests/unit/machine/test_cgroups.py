"""Specifies how CPU-time quotas and memory limits of cgroups are read."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.machine.cgroups import (
    CpuGroup,
    Quotas,
    available_memory_bytes,
    cgroup_folders,
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

    assert of_process.unknown is None
    assert [(quota.cpus, quota.period_us) for quota in of_process.known] == [
        (0.5, 50_000),
        (2, 100_000),
    ]
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
    files = {"proc/self/cgroup": "4:cpu,cpuacct:/docker\n0::/user\n", "proc/self/mountinfo": v2}

    assert cpu_group(MemoryTree(files)) is None
    both = files | {"proc/self/mountinfo": v2 + V1}
    assert cpu_group(MemoryTree(both)) == CpuGroup(
        folders=(V1_GROUP, "sys/fs/cgroup/cpu,cpuacct"), is_v2=False
    )
    of_v2 = both | {"proc/self/cgroup": "4:memory:/docker\n0::/user\n"}
    assert cpu_group(MemoryTree(of_v2)) == CpuGroup(
        folders=("sys/fs/cgroup/unified/user", "sys/fs/cgroup/unified"), is_v2=True
    )


def within(path: str, *roots: str) -> MemoryTree:
    """A process in a cgroup v2, mounted once for each root; each cgroup shown has half a CPU."""
    mounts = "".join(
        f"3{number} 23 0:28 {root} /mnt/{number} rw - cgroup2 cgroup2 rw\n"
        for number, root in enumerate(roots)
    )
    folders = [f"mnt/{number}" for number in range(len(roots))]
    return MemoryTree(
        {"proc/self/cgroup": f"0::{path}\n", "proc/self/mountinfo": mounts}
        | {f"{folder}/cpu.max": "50000 100000\n" for folder in folders}
        | {f"{folder}/box/cpu.max": "50000 100000\n" for folder in folders}
    )


@pytest.mark.parametrize(
    ("path", "roots"),
    [
        ("/", ("/..",)),
        ("/box", ("/../..",)),
        ("/", ("/../box",)),
        ("/../box", ("/",)),
        ("/../../box", ("/../..",)),
        ("/a", ("/a/b",)),
        ("/ab", ("/a",)),
        ("/", ("/..", "/../..")),
    ],
)
def test_a_mount_that_does_not_show_our_cgroup_never_gives_the_quota_of_another(
    path: str, roots: tuple[str, ...]
) -> None:
    tree = within(path, *roots)

    assert cpu_group(tree) is None
    assert quotas(tree).known == ()
    assert path in str(quotas(tree).unknown)
    assert cgroup_folders(tree, "freezer") == ()


NAMES = st.sampled_from(["a", "b", "..", "corebound"])
PATHS = st.lists(NAMES, max_size=4).map(lambda names: "/" + "/".join(names))


@given(PATHS, PATHS)
def test_only_a_path_below_the_mounts_root_has_folders(path: str, root: str) -> None:
    group = cpu_group(within(path, root))

    is_shown = ".." not in f"{path}{root}" and f"{path}/".startswith(root.rstrip("/") + "/")
    assert (group is not None) == is_shown
    if group is not None:
        assert group.folders[0] == "mnt/0" + path.rstrip("/").removeprefix(root.rstrip("/"))
        assert group.folders[-1] == "mnt/0"


def test_a_mount_beside_one_that_hides_our_cgroup_shows_it() -> None:
    assert quota_cpus(within("/box", "/..", "/")) == 0.5


def test_a_mount_hides_the_one_below_it() -> None:
    old = "35 34 0:26 /.. /sys/fs/cgroup rw - cgroup2 cg rw\n"
    new = "36 35 0:26 / /sys/fs/cgroup rw - cgroup2 cg rw\n"
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}

    assert quota_cpus(MemoryTree({**files, "proc/self/mountinfo": old + new})) == 1.5
    assert quota_cpus(MemoryTree({**files, "proc/self/mountinfo": new + old})) is None


def of_cpu_max(text: str) -> Quotas:
    return quotas(MemoryTree({**HEALTHY, GROUP: text}))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("400000\n", 4.0),
        ("33330 100000\n", 0.3333),
        ("1000 1000000\n", 0.001),
        ("150000 100000\0\n", 1.5),
        ("max 100000\n", None),
    ],
)
def test_a_quota_of_cgroup_v2_is_read(text: str, cpus: float | None) -> None:
    found = of_cpu_max(text)

    assert [quota.cpus for quota in found.known] == ([] if cpus is None else [cpus])
    assert found.unknown is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n", "max", "max x", "max 0", "max -1", "-1", "-1 100000", "0 100000", "999 100000"),
        *("100000 0", "100000 999", "100000 1000001", "1e5 100000", "100000 100000 100000"),
        *("18446744073709551615 100000", f"{1 << 44} 100000", "9" * 5000, "MAX 100000", "½ 100000"),
    ],
)
def test_what_no_kernel_writes_is_an_unknown_quota(text: str) -> None:
    found = of_cpu_max(text)

    assert found.known == ()
    assert GROUP in str(found.unknown)
    assert len(str(found.unknown)) < 200


@given(
    st.lists(
        st.sampled_from(["max", "-1"])
        | st.integers(0, 10**8).map(str)
        | st.text(alphabet="max19 .\n-", max_size=4),
        max_size=3,
    ).map(" ".join)
)
def test_any_text_is_a_quota_or_none_or_unknown(text: str) -> None:
    found = of_cpu_max(text)

    number = r"[0-9]{1,18}"
    content = re.fullmatch(rf"\s*({number}|max(?=\s+\S))(?:\s+({number}))?\s*", text)
    quota, period = (content[1], content[2] or "100000") if content else ("0", "0")
    if not 1_000 <= int(period) <= 1_000_000 or (quota != "max" and int(quota) < 1_000):
        assert (found.known, bool(found.unknown)) == ((), True)
    elif quota == "max":
        assert found == Quotas(known=(), unknown=None)
    else:
        assert [each.cpus for each in found.known] == [int(quota) / int(period)]


def test_a_malformed_quota_leaves_those_of_other_cgroups_known() -> None:
    found = quotas(MemoryTree({**HEALTHY, GROUP: "what\n", SESSION: "50000 100000\n"}))

    assert [quota.cpus for quota in found.known] == [0.5]
    assert GROUP in str(found.unknown)


@pytest.mark.parametrize("text", ["", "-2", "0", "max", "99999999999999999999"])
def test_a_malformed_quota_of_cgroup_v1_is_unknown(text: str) -> None:
    file = f"{V1_GROUP}/ab/cpu.cfs_quota_us"

    found = quotas(MemoryTree({**NESTED_V1, file: text}))

    assert [quota.cpus for quota in found.known] == [2]
    assert file in str(found.unknown)


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
