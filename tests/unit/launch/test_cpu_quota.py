"""Specifies how a launch gets a cgroup with a CPU quota, on recorded trees of both versions.

tests/integration/test_cpu_quota.py has a real one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from corebound.errors import LaunchError
from corebound.launch import cpu_quota
from corebound.launch.cpu_quota import QuotaMeter, limited, quota_support, remove_abandoned
from corebound.planning.models import QuotaSupport
from support.machine_trees import V1, V2, ChangingTree

V1_GROUP = "sys/fs/cgroup/cpu,cpuacct"
V2_GROUP = "sys/fs/cgroup/session"
ON_V1 = {"proc/self/mountinfo": V1, "proc/self/cgroup": "4:cpu,cpuacct:/\n0::/\n"}
ON_V2 = {
    "proc/self/mountinfo": V2,
    "proc/self/cgroup": "0::/session\n",
    f"{V2_GROUP}/cgroup.controllers": "cpu pids\n",
    f"{V2_GROUP}/cgroup.subtree_control": "pids\n",
}


def recorded(root: Path, files: Mapping[str, str], group: str) -> Path:
    """A machine's files, and our cgroup on it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / group).mkdir(parents=True, exist_ok=True)
    return root / group


@pytest.fixture(autouse=True)
def _no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_quota, "_SYSTEMD", Path("/nonexistent"))


def test_a_cell_without_a_quota_gets_no_cgroup(tmp_path: Path) -> None:
    group = recorded(tmp_path, ON_V1, V1_GROUP)

    with limited(None, root=tmp_path) as limit:
        assert (limit.procs, limit.prefix) == (None, ())
        assert list(group.iterdir()) == []


def test_cgroup_v1_gets_quota_and_period(tmp_path: Path) -> None:
    group = recorded(tmp_path, ON_V1, V1_GROUP)

    with limited(1.5, root=tmp_path) as limit:
        assert limit.procs is not None
        folder = limit.procs.parent
        assert folder.parent == group
        assert (folder / "cpu.cfs_quota_us").read_text() == "150000"
        assert (folder / "cpu.cfs_period_us").read_text() == "100000"


def test_cgroup_v2_gets_the_controller_from_our_group(tmp_path: Path) -> None:
    group = recorded(tmp_path, ON_V2, V2_GROUP)

    with limited(0.5, root=tmp_path) as limit:
        assert limit.procs is not None
        assert limit.procs.parent.parent == group
        assert (limit.procs.parent / "cpu.max").read_text() == "50000 100000"
        assert (group / "cgroup.subtree_control").read_text() == "+cpu"
        # The kernel's files go with the folder.
        (limit.procs.parent / "cpu.max").unlink()
    assert not any(path.is_dir() for path in group.iterdir())
    assert (group / "cgroup.subtree_control").read_text() == "-cpu"


def test_a_host_without_the_controller_says_so(tmp_path: Path) -> None:
    recorded(tmp_path, {"proc/self/mountinfo": "", "proc/self/cgroup": "0::/\n"}, "sys")

    support = quota_support(root=tmp_path)

    assert support == QuotaSupport(tool=None, reason="no cgroup with the CPU controller is mounted")
    with (
        pytest.raises(LaunchError, match=r"cpu_quota: 0\.5.*no cgroup"),
        limited(0.5, root=tmp_path),
    ):
        pass


def test_a_refused_quota_leaves_no_cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = recorded(tmp_path, ON_V1, V1_GROUP)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "cpu.cfs_quota_us")

    monkeypatch.setattr(cpu_quota, "_write_quota", refuse)

    assert quota_support(root=tmp_path).reason == "cpu.cfs_quota_us: Permission denied"
    assert list(group.iterdir()) == []


def test_only_cgroups_of_ended_processes_are_removed(tmp_path: Path) -> None:
    group = recorded(tmp_path, ON_V1, V1_GROUP)
    abandoned, in_use, other = (
        group / name for name in ("corebound-0123abcd", "corebound-00000000", "docker")
    )
    for folder in (abandoned, in_use, other):
        folder.mkdir()
    descriptor = os.open(in_use, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    remove_abandoned(root=tmp_path)

    os.close(descriptor)
    assert {folder.name for folder in group.iterdir()} == {"corebound-00000000", "docker"}


SYSTEMD_RUN = """\
#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec {wrapper} "$@"
"""


def with_systemd(folder: Path, monkeypatch: pytest.MonkeyPatch, *, wrapper: str = "") -> Path:
    """A machine where only systemd can limit CPU time; a wrapper may refuse to."""
    program = folder / "bin" / "systemd-run"
    program.parent.mkdir()
    program.write_text(SYSTEMD_RUN.format(wrapper=wrapper))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(cpu_quota, "_SYSTEMD", folder)
    recorded(folder, {"proc/self/mountinfo": "", "proc/self/cgroup": "0::/\n"}, "sys")
    return folder


def test_where_no_cgroup_can_be_made_systemd_starts_the_worker_in_a_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = with_systemd(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")

    assert quota_support(root=root) == QuotaSupport(tool="systemd-run")
    with limited(1.5, root=root) as limit:
        assert limit.procs is None
        assert limit.prefix[0] == "systemd-run"
        assert limit.prefix[-1] == "--"
        assert {"--scope", "CPUQuota=150%"} < set(limit.prefix)
        assert limit.env["XDG_RUNTIME_DIR"] == "/run/user/7"


def test_a_systemd_that_refuses_is_named_in_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = with_systemd(tmp_path, monkeypatch, wrapper="false")

    support = quota_support(root=root)

    assert support.tool is None
    assert support.reason.endswith("is mounted; systemd-run: exit code 1")


def metered(before: Mapping[str, str], after: Mapping[str, str]) -> QuotaMeter:
    tree = ChangingTree(before, after)
    meter = QuotaMeter((7, 8), tree)
    meter.start()
    tree.wait()
    meter.stop()
    return meter


OF_LAUNCH = {
    **ON_V1,
    "proc/7/cgroup": "4:cpu,cpuacct:/corebound-1\n",
    "proc/8/cgroup": "4:cpu,cpuacct:/corebound-1\n",
    f"{V1_GROUP}/corebound-1/cpu.cfs_quota_us": "50000\n",
    f"{V1_GROUP}/corebound-1/cpu.cfs_period_us": "100000\n",
    f"{V1_GROUP}/corebound-1/cpu.stat": "nr_periods 5\nnr_throttled 1\nthrottled_time 7\n",
}


def test_what_the_quota_did_is_counted_from_start_to_stop() -> None:
    later = {
        f"{V1_GROUP}/corebound-1/cpu.stat": "nr_periods 25\nnr_throttled 16\nthrottled_time 99\n"
    }

    use = metered(OF_LAUNCH, OF_LAUNCH | later).use

    assert use is not None
    assert (use.cpus, use.period_us) == (0.5, 100_000)
    assert (use.periods, use.throttled_periods, use.throttled_ns) == (20, 15, 92)
    assert use.throttled_share == 0.75


def test_a_worker_that_left_its_cgroup_has_no_quota() -> None:
    left = {"proc/8/cgroup": "4:cpu,cpuacct:/\n"}

    assert metered(OF_LAUNCH, OF_LAUNCH | left).use is None
