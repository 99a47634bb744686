"""Limits the CPU time of a launch as a container does, and reads what the limit did.

A launch with a quota runs in a cgroup of its own below corebound's, of cgroup v1 or v2. Each
worker moves into it before it becomes the workload's program. If corebound may not make a cgroup,
`systemd-run` starts the worker in a scope with the quota.

The supervisor removes the cgroup with the launch's processes, even if the runner is killed. A
process locks the cgroups that it makes, as in `launch.scratch`, so an unlocked cgroup was left by
a process that was killed together with its supervisor.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from corebound.errors import LaunchError
from corebound.machine.cgroups import CpuGroup, Quota, Throttling, cpu_group, quotas, throttling
from corebound.machine.sysfs import LIVE, Files, Tree
from corebound.planning.models import QuotaSupport
from corebound.records.telemetry import QuotaUse

# The kernel's default, and that of Docker and Kubernetes.
PERIOD_US = 100_000
# The smallest quota that the kernel accepts, 1 ms of a period. It is within any quota above it.
_LEAST_CPUS = 0.01
_ROOT = Path("/")
_PREFIX = "corebound-"
_NAME = re.compile(rf"{_PREFIX}[0-9a-f]{{8}}")
# How long systemd may take to make a scope.
_PATIENCE_S = 10.0
# It exists while systemd runs, as in sd_booted(3).
_SYSTEMD = Path("/run/systemd/system")
# What systemd-run needs in order to reach the user's manager.
_BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


class Limit(Struct, frozen=True, kw_only=True):
    """How a worker gets its CPU quota.

    Attributes:
        procs: The file that the worker writes itself to, to move into the cgroup; None if
            `prefix` makes one.
        prefix: The arguments to put in front of the worker's.
        env: The variables that these need.
    """

    procs: Path | None = None
    prefix: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def limited(cpus: float | None, *, root: Path = _ROOT) -> Iterator[Limit]:
    """Make what limits a launch's CPU time, and remove it at the end.

    The supervisor removes it too, with the launch's processes.

    Args:
        cpus: The quota in CPUs; None is no limit.
        root: The folder that contains `proc/` and the mount points of cgroups.

    Raises:
        LaunchError: the quota cannot be set here.
    """
    if cpus is None:
        yield Limit()
        return
    with contextlib.ExitStack() as stack:
        limit: Limit | None
        try:
            limit = Limit(procs=_made(cpus, root, stack) / "cgroup.procs")
        except OSError as error:
            if (limit := _scope(cpus)) is None:
                raise LaunchError(
                    what=f"`cpu_quota: {cpus:g}` cannot be set: {_reason(error)}.",
                    where="cgroup",
                    fix="Run corebound as root, or where it may make cgroups.",
                ) from error
        yield limit


def quota_support(*, root: Path = _ROOT) -> QuotaSupport:
    """How a CPU quota can be set on this host, found out by setting one."""
    try:
        with contextlib.ExitStack() as stack:
            _made(_LEAST_CPUS, root, stack)
    except OSError as error:
        limit = _scope(1)
        if limit is None:
            return QuotaSupport(tool=None, reason=_reason(error))
        if (fault := _fault_of_scope(limit)) is None:
            return QuotaSupport(tool="systemd-run")
        return QuotaSupport(tool=None, reason=f"{_reason(error)}; systemd-run: {fault}")
    return QuotaSupport()


def remove_abandoned(*, root: Path = _ROOT) -> None:
    """Remove the cgroups that killed processes left below ours."""
    group = cpu_group(Files(root))
    if group is None:
        return
    try:
        folders = [path for path in (root / group.folder).iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return
    for folder in folders:
        # Another process's is locked; one with processes cannot be removed.
        with contextlib.suppress(OSError), _locked(folder):
            folder.rmdir()


def _made(cpus: float, root: Path, stack: contextlib.ExitStack) -> Path:
    """Make and lock a cgroup with a quota, which the stack removes; returns its folder.

    Raises:
        OSError: it cannot be made, or the kernel refuses the quota.
    """
    group = cpu_group(Files(root))
    if group is None:
        raise OSError("no cgroup with the CPU controller is mounted")
    parent = root / group.folder
    if group.is_v2:
        _enable_controller(parent, stack)
    folder = _new_folder(parent, stack)
    _write_quota(folder, group, cpus)
    return folder


def _new_folder(parent: Path, stack: contextlib.ExitStack) -> Path:
    while True:
        folder = parent / f"{_PREFIX}{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            stack.enter_context(_locked(folder))
        except (FileNotFoundError, BlockingIOError):
            continue  # another process is just removing it as abandoned
        if folder.exists():
            stack.callback(_remove, folder)
            return folder


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):  # the supervisor has removed it, or still has to
        folder.rmdir()


def _enable_controller(parent: Path, stack: contextlib.ExitStack) -> None:
    """Give the children of a cgroup v2 the CPU controller, until the stack takes it away.

    A cgroup with processes may do so only for controllers that handle single threads, such as
    this one. Its children must then be threaded.

    Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "Threads".
    """
    enabled = parent / "cgroup.subtree_control"
    if "cpu" not in enabled.read_text().split():
        enabled.write_text("+cpu")
        stack.callback(_disable_controller, parent)


def _disable_controller(parent: Path) -> None:
    """Undo that, unless another process has made a child meanwhile and needs it."""
    with contextlib.suppress(OSError):
        if not any(path.is_dir() for path in parent.iterdir()):
            (parent / "cgroup.subtree_control").write_text("-cpu")


def _write_quota(folder: Path, group: CpuGroup, cpus: float) -> None:
    quota_us = round(cpus * PERIOD_US)
    if not group.is_v2:
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
        return
    kind = folder / "cgroup.type"
    if kind.exists() and kind.read_text().strip() == "domain invalid":
        kind.write_text("threaded")
    (folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a cgroup, as far as its file system can.

    Raises:
        BlockingIOError: another process has locked it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    """Why a cgroup cannot be made, in words."""
    if error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _scope(cpus: float) -> Limit | None:
    """What starts a program in a scope of systemd with a quota; None without systemd."""
    is_root = os.geteuid() == 0
    if shutil.which("systemd-run") is None or not _SYSTEMD.is_dir():
        return None
    return Limit(
        prefix=(
            "systemd-run",
            *(() if is_root else ("--user",)),
            *("--scope", "--quiet", "--collect"),
            *("--property", f"CPUQuota={cpus * 100:g}%"),
            *("--property", f"CPUQuotaPeriodSec={PERIOD_US // 1000}ms"),
            "--",
        ),
        env={name: os.environ[name] for name in _BUS if name in os.environ},
    )


def _fault_of_scope(limit: Limit) -> str | None:
    """What systemd-run says if it cannot make a scope; None if it can."""
    try:
        completed = subprocess.run(
            (*limit.prefix, "true"),
            check=False,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if completed.returncode == 0:
        return None
    return completed.stderr.strip().rpartition("\n")[2] or f"exit code {completed.returncode}"


class QuotaMeter:
    """Reads the CPU quota of a launch's workers, and what it does while they are timed.

    Attributes:
        use: What was read, once stopped; None if no quota limits all of the workers.
    """

    def __init__(self, pids: Sequence[int], tree: Tree = LIVE) -> None:
        """Prepare to read.

        Args:
            pids: The workers' process ids.
            tree: The machine's files.
        """
        self.use: QuotaUse | None = None
        self._pids, self._tree = tuple(pids), tree
        self._quota: Quota | None = None
        self._before: Throttling | None = None

    def start(self) -> None:
        """Read the counters when the workers start to measure."""
        self._quota = self._weakest()
        self._before = self._counters()

    def stop(self) -> None:
        """Read them again at the end, and the quota too: a worker may have left its cgroup."""
        quota, before, now = self._quota, self._before, self._counters()
        if quota is None or (last := self._weakest()) is None:
            return
        self.use = QuotaUse(
            cpus=max(quota.cpus, last.cpus),
            period_us=quota.period_us,
            periods=now.periods - before.periods if now and before else None,
            throttled_periods=(
                now.throttled_periods - before.throttled_periods if now and before else None
            ),
            throttled_ns=now.throttled_ns - before.throttled_ns if now and before else None,
        )

    def _weakest(self) -> Quota | None:
        """The quota of the worker that is limited least; None if one of them has none."""
        smallest = [
            min(
                quotas(self._tree, process=str(pid)) or (), key=lambda each: each.cpus, default=None
            )
            for pid in self._pids
        ]
        known = [quota for quota in smallest if quota is not None]
        if not known or len(known) < len(smallest):
            return None
        return max(known, key=lambda each: each.cpus)

    def _counters(self) -> Throttling | None:
        if self._quota is None:
            return None
        return throttling(self._tree.read(f"{self._quota.folder}/cpu.stat") or "")
