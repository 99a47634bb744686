"""Specifies how a launch gets a cgroup with a CPU quota, on recorded trees of both versions.

tests/integration/test_cpu_quota.py has a real one.
"""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import LaunchError
from corebound.launch import cpu_quota
from corebound.launch.cpu_quota import QuotaMeter, limited, quota_support, remove_abandoned
from corebound.machine.cgroups import QuotaSupport
from support.fake_cgroups import FakeCgroups, below, words
from support.known import known
from support.machine_trees import V1, ChangingTree
from support.texts import in_order

V1_GROUP = "sys/fs/cgroup/cpu,cpuacct"
ON_V1 = {"proc/self/mountinfo": V1, "proc/self/cgroup": "4:cpu,cpuacct:/\n0::/\n"}


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


def test_cgroup_v1_gets_quota_and_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = recorded(tmp_path, ON_V1, V1_GROUP)
    monkeypatch.setattr(cpu_quota, "_write", lambda file, text: file.write_text(text))

    with limited(1.5, root=tmp_path) as limit:
        folder = known(limit.procs).parent
        assert folder.parent == group
        assert (folder / "cpu.cfs_quota_us").read_text() == "150000"
        assert (folder / "cpu.cfs_period_us").read_text() == "100000"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCgroups:
    return FakeCgroups(tmp_path, monkeypatch)


# What was run in the booted machine by hand, and where corebound's process is: see tests/numa.
NESTED: dict[str, tuple[str, dict[str, str]]] = {
    "in a group that has the controller": ("leaf", {"": "cpu"}),
    "below a group that does not pass it on": ("api/0a1b", {"": "cpu memory"}),
    "below a root that does not pass it on": ("api/0a1b", {}),
    "below three of them": ("api/0a1c/x/y", {"": "cpu"}),
    "below a group that passes memory on": ("pm/x", {"": "cpu memory", "pm": "memory"}),
    "with a controller from its parent": ("dg/s", {"": "cpu", "dg": "cpu"}),
}


@pytest.mark.parametrize(("path", "enabled"), NESTED.values(), ids=NESTED.keys())
def test_a_nested_group_gets_the_controller_for_the_launch_only(
    fake: FakeCgroups, path: str, enabled: dict[str, str]
) -> None:
    own = fake.enter(path)
    for parent, controllers in enabled.items():
        fake.enable(parent, controllers)
    before = fake.enabled()

    with limited(0.5, root=fake.root) as limit:
        folder = known(limit.procs).parent
        assert folder.parent == own
        assert words(folder / "cpu.max") == ["50000", "100000"]
        assert words(folder / "cgroup.type") == ["threaded"]
        assert limit.cpus == 0.5

    assert fake.enabled() == before
    assert below(own) == []


def test_at_the_root_the_launch_gets_a_group_below_it(fake: FakeCgroups) -> None:
    fake.enter(".", shown="/")

    with limited(0.5, root=fake.root) as limit:
        assert known(limit.procs).parent.parent == fake.mount
        assert words(known(limit.procs).parent / "cgroup.type") == ["domain"]
    assert fake.enabled() == set()


@pytest.mark.parametrize("is_parent_refused", [False, True])
def test_where_the_kernel_refuses_the_controller_the_nearest_group_above_is_used(
    fake: FakeCgroups, *, is_parent_refused: bool
) -> None:
    if is_parent_refused:
        fake.group("bp", processes=True)
        own, above = fake.enter("bp/x"), fake.mount
    else:
        own = with_busy_child(fake)
        above = own.parent

    with limited(0.5, root=fake.root) as limit:
        assert known(limit.procs).parent.parent == above
        assert words(known(limit.procs).parent / "cpu.max") == ["50000", "100000"]
    assert fake.enabled() == set()
    assert below(above) == [own.parent if is_parent_refused else own]


def with_busy_child(fake: FakeCgroups) -> Path:
    own = fake.enter("parent/mix")
    fake.group("parent/mix/child", processes=True)
    return own


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("memory.max", "2097152000"),
        ("memory.high", "1000"),
        ("memory.swap.max", "0"),
        ("cpuset.cpus", "0-1"),
        ("cpuset.mems", "0"),
        ("pids.max", "100"),
        ("cpu.max", "200000 100000"),
        ("io.max", "8:0 rbps=1000 wbps=max riops=max wiops=max"),
    ],
)
@pytest.mark.parametrize("level", ["parent/mix", "parent"])
def test_no_launch_is_moved_out_of_a_limit(
    fake: FakeCgroups, level: str, file: str, text: str
) -> None:
    own = with_busy_child(fake)
    fake.refused[own.parent] = errno.EACCES
    fake.enable("", "cpu memory")
    (fake.mount / level / file).write_text(text)

    support = quota_support(root=fake.root)

    assert support.tool is None
    assert "EACCES" in support.reason or "EBUSY" in support.reason
    assert str(fake.mount / level / file) in support.reason
    assert not list(fake.mount.glob("**/corebound-*"))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        *(("memory.max", "max"), ("pids.max", "max"), ("cpuset.cpus", ""), ("io.max", "")),
        ("cpu.max", "max 100000"),
    ],
)
def test_what_is_unlimited_keeps_no_launch(fake: FakeCgroups, file: str, text: str) -> None:
    own = with_busy_child(fake)
    (own / file).write_text(text)

    assert quota_support(root=fake.root).tool == "cgroup"


def test_a_group_that_cannot_be_seen_may_have_limits(fake: FakeCgroups) -> None:
    own = fake.enter("parent/gone")
    shutil.rmtree(own)

    support = quota_support(root=fake.root)

    assert support.tool is None
    assert str(own) in support.reason


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL])
def test_a_refusal_names_its_file_and_errno(fake: FakeCgroups, number: int) -> None:
    own = fake.enter("dg/s")
    for folder in (own, own.parent, fake.mount):
        fake.refused[folder] = number

    support = quota_support(root=fake.root)

    assert support.tool is None
    assert support.reason.startswith(f"{fake.mount}/cgroup.subtree_control: ")
    assert errno.errorcode[number] in support.reason
    assert support.fix
    with pytest.raises(LaunchError, match="subtree_control"), limited(0.5, root=fake.root):
        pass


@pytest.mark.parametrize("may_make", [False, True])
def test_a_refusal_names_the_parent_or_the_file_without_the_controller(
    fake: FakeCgroups, *, may_make: bool
) -> None:
    if may_make:
        fake.enter(".", root="/api/ns4", shown="/api/ns4")
        (fake.mount / "cgroup.controllers").write_text("")
        named = fake.mount / "cgroup.controllers"
    else:
        named = fake.enter("leaf")
        for path in ("", "leaf"):
            fake.enable(path, "cpu")
        fake.refused.update({named: errno.EACCES, fake.mount: errno.EACCES})

    support = quota_support(root=fake.root)

    assert support.tool is None
    assert support.reason.startswith(f"{named}: ")


@pytest.mark.parametrize(
    ("root", "shown"), [("/..", "/"), ("/../..", "/"), ("/", "/../ns6b"), ("/..", "/../x")]
)
def test_a_launch_never_leaves_limits_that_no_mount_shows(
    fake: FakeCgroups, monkeypatch: pytest.MonkeyPatch, root: str, shown: str
) -> None:
    fake.enter("box", root=root, shown=shown)
    fake.enable("", "cpu")
    # A scope of systemd would leave them too.
    with_systemd(fake.root, monkeypatch)

    support = quota_support(root=fake.root)

    assert support.tool is None
    assert "/proc/self/mountinfo" in support.reason
    assert not list(fake.mount.glob("**/corebound-*"))
    with pytest.raises(LaunchError, match="mountinfo"), limited(0.5, root=fake.root):
        pass


def test_a_kernel_without_quotas_says_so(fake: FakeCgroups) -> None:
    fake.enter("leaf")
    fake.has_quotas = False

    support = quota_support(root=fake.root)

    assert (support.tool, "ENOENT" in support.reason) == (None, True)
    assert fake.enabled() == set()
    assert not list(fake.mount.glob("**/corebound-*"))


def test_another_process_keeps_the_controller_that_it_needs(fake: FakeCgroups) -> None:
    own = fake.enter("api/0a1b")
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(limited(0.5, root=fake.root))
        fake.enter("api/0a1c")
        limit = second.enter_context(limited(0.2, root=fake.root))

        first.close()

        assert words(known(limit.procs).parent / "cpu.max") == ["20000", "100000"]
        assert str(own.relative_to(fake.mount)) not in fake.enabled()
    # The last one takes back what the first had enabled.
    assert fake.enabled() == set()


def test_what_an_administrator_enabled_stays(fake: FakeCgroups) -> None:
    fake.enter("api/0a1b")
    for path in ("", "api", "api/0a1b"):
        fake.enable(path, "cpu")

    with limited(0.5, root=fake.root):
        pass

    assert fake.enabled() == {".", "api", "api/0a1b"}


def test_what_a_killed_process_left_is_removed(fake: FakeCgroups) -> None:
    own = fake.enter("api/0a1b")
    # A killed process no longer holds its locks, and undoes nothing.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_quota, "_remove", lambda _: None)
        patch.setattr(cpu_quota, "_disable_controller", lambda *_: None)
        with limited(0.5, root=fake.root):
            pass
    assert len(below(own)) == 1
    assert fake.enabled() == {".", "api", "api/0a1b"}

    remove_abandoned(root=fake.root)

    assert below(own) == []
    assert fake.enabled() == set()


def test_the_quota_of_another_program_keeps_the_controller(fake: FakeCgroups) -> None:
    own = fake.enter("api/0a1b")
    other = fake.group("api/other")

    with limited(0.5, root=fake.root):
        (other / "cpu.max").write_text("30000 100000")

    assert words(other / "cpu.max") == ["30000", "100000"]
    assert own.name not in fake.enabled()


def test_a_refused_quota_leaves_no_cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = recorded(tmp_path, ON_V1, V1_GROUP)

    def refuse(file: Path, _: str) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(cpu_quota, "_write", refuse)

    assert in_order(quota_support(root=tmp_path).reason, "cpu.cfs_period_us: ", "(EACCES)")
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


@pytest.fixture
def refusing(fake: FakeCgroups) -> FakeCgroups:
    """A machine where nobody may make a cgroup."""
    fake.enter(".", shown="/")
    fake.refused[fake.mount] = errno.EACCES
    return fake


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
    return folder


def test_where_no_cgroup_can_be_made_systemd_starts_the_worker_in_a_scope(
    refusing: FakeCgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = with_systemd(refusing.root, monkeypatch)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")

    assert quota_support(root=root) == QuotaSupport(tool="systemd-run")
    with limited(1.5, root=root) as limit:
        assert limit.procs is None
        assert limit.prefix[0] == "systemd-run"
        assert limit.prefix[-1] == "--"
        assert {"--scope", "CPUQuota=150%"} < set(limit.prefix)
        assert limit.env["XDG_RUNTIME_DIR"] == "/run/user/7"


def test_a_systemd_that_refuses_is_named_in_the_reason(
    refusing: FakeCgroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = with_systemd(refusing.root, monkeypatch, wrapper="false")

    support = quota_support(root=root)

    assert support.tool is None
    assert "EACCES" in support.reason
    assert support.reason.endswith("; systemd-run: exit code 1")


@given(st.floats(0.01, 65_536))
def test_systemd_gets_a_percentage_that_it_reads_and_the_launch_is_compared_with_it(
    cpus: float,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_quota, "_SYSTEMD", Path("/"))
        patch.setattr(shutil, "which", lambda _: "/bin/systemd-run")
        limit = cpu_quota._scope(cpus, cpu_quota._Refused("", ""))

    assert limit is not None
    (percentage,) = [word for word in limit.prefix if word.startswith("CPUQuota=")]
    number = known(re.fullmatch(r"CPUQuota=([0-9]+(?:\.[0-9]{1,2})?)%", percentage))
    assert limit.cpus == float(number[1]) / 100 >= 0.01
    assert abs(limit.cpus - cpus) <= 0.00005 + 1e-9


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

    use = known(metered(OF_LAUNCH, OF_LAUNCH | later).use)

    assert (use.cpus, use.period_us) == (0.5, 100_000)
    assert (use.periods, use.throttled_periods, use.throttled_ns) == (20, 15, 92)
    assert use.throttled_share == 0.75


def test_a_worker_that_left_its_cgroup_has_no_quota() -> None:
    left = {"proc/8/cgroup": "4:cpu,cpuacct:/\n"}

    assert metered(OF_LAUNCH, OF_LAUNCH | left).use is None
