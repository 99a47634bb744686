"""Limits the CPU time of a launch as a container does, and reads what the limit did.

A launch with a quota runs in a cgroup of its own below corebound's, of cgroup v1 or v2. Each
worker moves into it before it becomes the workload's program. If corebound may not make a cgroup,
`systemd-run` starts the worker in a scope with the quota.

In cgroup v2, the CPU controller is enabled on the way from the nearest cgroup that has it down to
corebound's own. Where the kernel refuses that, the launch's cgroup is made below an ancestor, if
it leaves no limit of corebound's there.

The supervisor removes the cgroup with the launch's processes, even if the runner is killed. A
process locks the cgroups that it makes, as in `launch.scratch`, so an unlocked cgroup was left by
a process that was killed together with its supervisor. Where corebound enables the controller it
marks the cgroup, and whoever needs it shares a lock on it: the last one disables it.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.errors import LaunchError
from corebound.machine import cgroups
from corebound.machine.cgroups import QuotaSupport
from corebound.machine.sysfs import LIVE, Files, Tree
from corebound.records.telemetry import QuotaUse
from corebound.units import systemd_quota

# The kernel's default, and that of Docker and Kubernetes.
PERIOD_US = 100_000
# The smallest quota that the kernel accepts, 1 ms of a period. It is within any quota above it.
_LEAST_CPUS = 0.01
_ROOT = Path("/")
_PREFIX = "corebound-"
_NAME = re.compile(rf"{_PREFIX}[0-9a-f]{{8}}")
# Marks a cgroup in which corebound has enabled the controller: an extended attribute, Linux 5.7.
_MARK = "user.corebound.cpu"
_WAITS_S = (0.01,) * 100
# How long systemd may take to make a scope.
_PATIENCE_S = 10.0
# It exists while systemd runs, as in sd_booted(3).
_SYSTEMD = Path("/run/systemd/system")
# What systemd-run needs in order to reach the user's manager.
_BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
# What limits the processes of a cgroup v2; `max` or nothing is no limit.
_LIMITS = (
    *("cpu.max", "cpuset.cpus", "cpuset.mems", "io.max", "pids.max"),
    *("memory.high", "memory.max", "memory.swap.max"),
)
_PERMISSION = (
    "Run corebound as the host's root, or in a cgroup that is delegated to you, for example with"
    " `systemd-run --user --scope --property Delegate=yes`."
)
_OCCUPIED = (
    "Start corebound in a new cgroup directly below the root of the hierarchy: `mkdir"
    " /sys/fs/cgroup/NAME && echo $$ > /sys/fs/cgroup/NAME/cgroup.procs`."
)
_HIDDEN = (
    "Mount cgroups in corebound's own namespace (`mount -t cgroup2 cgroup2 /sys/fs/cgroup`, or"
    " `-t cgroup -o cpu`), or start corebound outside of its cgroup namespace."
)
_FIXES = {
    None: "Write `+cpu` to the cgroup.subtree_control of the cgroup above, outside of this"
    " container; at the root of the hierarchy, use a kernel with the CPU controller.",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "Make the cgroup file system writable: `mount -o remount,rw /sys/fs/cgroup`, or"
    " `docker run --privileged`.",
    errno.ENOENT: "Use a kernel with CPU bandwidth control (CONFIG_CFS_BANDWIDTH).",
}


class _Refused(Exception):
    """No cgroup with a quota can be made.

    Attributes:
        reason: Why, with the file and the kernel's errno, in words.
        fix: How to fix it, in a sentence.
        is_hidden: Whether corebound's own cgroup, and so what limits it, is unknown.
    """

    def __init__(self, reason: str, fix: str, *, is_hidden: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.fix, self.is_hidden = reason, fix, is_hidden


class Limit(Struct, frozen=True, kw_only=True):
    """How a worker gets its CPU quota.

    Attributes:
        cpus: The quota, as the kernel or systemd can hold it, in CPUs; None: no quota.
        procs: The file that the worker writes itself to, to move into the cgroup; None if
            `prefix` makes one.
        prefix: The arguments to put in front of the worker's.
    """

    cpus: float | None = None
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
            folder = _made(cpus, root, stack)
            limit = Limit(cpus=_quota_us(cpus) / PERIOD_US, procs=folder / "cgroup.procs")
        except _Refused as refusal:
            if (limit := _scope(cpus, refusal)) is None:
                raise LaunchError(
                    what=f"`cpu_quota: {cpus:g}` cannot be set: {refusal.reason}.",
                    where="cgroup",
                    fix=refusal.fix,
                ) from refusal
        yield limit


def quota_support(*, root: Path = _ROOT) -> QuotaSupport:
    """How a CPU quota can be set on this host, found out by setting one."""
    try:
        with contextlib.ExitStack() as stack:
            _made(_LEAST_CPUS, root, stack)
    except _Refused as refusal:
        limit = _scope(1, refusal)
        if limit is None:
            return QuotaSupport(tool=None, reason=refusal.reason, fix=refusal.fix)
        if (fault := _fault_of_scope(limit)) is None:
            return QuotaSupport(tool="systemd-run")
        reason = f"{refusal.reason}; systemd-run: {fault}"
        return QuotaSupport(tool=None, reason=reason, fix=refusal.fix)
    return QuotaSupport()


def remove_abandoned(*, root: Path = _ROOT) -> None:
    """Remove what killed processes left in our cgroup and those above: cgroups, the controller."""
    group = cgroups.cpu_group(Files(root))
    for parent in (root / folder for folder in (group.folders if group else ())):
        with contextlib.suppress(OSError):
            for folder in [path for path in parent.iterdir() if _NAME.fullmatch(path.name)]:
                # Another process's is locked; one with processes cannot be removed.
                with contextlib.suppress(OSError), _locked(folder):
                    folder.rmdir()
            if _is_marked(parent):
                with _locked(parent, fcntl.LOCK_SH) as lock:
                    _disable_controller(parent, lock)


def _made(cpus: float, root: Path, stack: contextlib.ExitStack) -> Path:
    """Make and lock a cgroup with a quota, which the stack removes; returns its folder.

    Raises:
        _Refused: it cannot be made, or the kernel refuses the quota.
    """
    group = cgroups.cpu_group(Files(root))
    if group is None:
        raise _Refused(str(cgroups.hidden_group(Files(root))), _HIDDEN, is_hidden=True)
    folders = [root / folder for folder in group.folders]
    refused: list[OSError] = []
    beyond = ""
    for depth, parent in enumerate(folders if group.is_v2 else folders[:1]):
        with contextlib.ExitStack() as attempt:
            try:
                folder = _made_below(folders[depth:], cpus, attempt, is_v2=group.is_v2)
            except OSError as error:
                refused.append(error)
            else:
                stack.enter_context(attempt.pop_all())
                return folder
        # A cgroup further up would leave this one's limits.
        if limits := _limits(parent):
            beyond = f"; a cgroup further up would leave the limit in {limits[0]}"
            break
    number = refused[0].errno
    code = f" ({errno.errorcode.get(number, number)})" if number else ""
    reason = f"{refused[0].filename}: {refused[0].strerror}{code}{beyond}"
    raise _Refused(reason, _FIXES.get(number, _OCCUPIED)) from refused[0]


def _made_below(
    folders: Sequence[Path], cpus: float, stack: contextlib.ExitStack, *, is_v2: bool
) -> Path:
    """Make a cgroup with a quota below the first of a cgroup and its ancestors.

    Raises:
        OSError: the kernel refuses it. It names the file.
    """
    parent = folders[0]
    if is_v2:
        _enable_controller(folders, stack)
    folder = _new_folder(parent, stack)
    if not is_v2:
        _write(folder / "cpu.cfs_period_us", str(PERIOD_US))
        _write(folder / "cpu.cfs_quota_us", str(_quota_us(cpus)))
        return folder
    if _words(folder / "cgroup.type") == ["domain", "invalid"]:
        _write(folder / "cgroup.type", "threaded")
    _write(folder / "cpu.max", f"{_quota_us(cpus)} {PERIOD_US}")
    # Whoever moves a process needs this right, also for what is their own.
    if not os.access(parent / "cgroup.procs", os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(parent / "cgroup.procs"))
    return folder


def _quota_us(cpus: float) -> int:
    return round(cpus * PERIOD_US)


def _limits(folder: Path) -> list[Path]:
    """The files by which a cgroup v2 limits its processes; itself if that cannot be seen."""
    try:
        files = sorted(file for file in folder.iterdir() if file.name in _LIMITS)
        return [file for file in files if _words(file)[:1] not in ([], ["max"])]
    except OSError:
        return [folder]


def _words(file: Path) -> list[str]:
    return file.read_text().split()


def _write(file: Path, text: str) -> None:
    """Write to a file of the kernel's, which exists already.

    Raises:
        OSError: the kernel refuses it. Other than Python's own, it always names the file.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


def _new_folder(parent: Path, stack: contextlib.ExitStack) -> Path:
    while True:
        folder = parent / f"{_PREFIX}{secrets.token_hex(4)}"
        try:
            folder.mkdir()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(parent)) from error
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


def _enable_controller(folders: Sequence[Path], stack: contextlib.ExitStack) -> None:
    """Give the children of a cgroup v2 the CPU controller, until the stack takes it away.

    A cgroup with processes may give only controllers that handle single threads, such as this
    one. Its children must then be threaded.

    Args:
        folders: The cgroup, then all its ancestors. Those that have the controller already may
            have it for another process only.
        stack: Disables it where corebound enabled it, unless another process needs it then.

    Raises:
        OSError: the last has no controller to give, or the kernel refuses it.

    Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "Threads".
    """
    if "cpu" not in _words(available := folders[-1] / "cgroup.controllers"):
        raise OSError(None, "has no `cpu`", str(available))
    for folder in reversed(folders):
        lock = stack.enter_context(_locked(folder, fcntl.LOCK_SH))
        control = folder / "cgroup.subtree_control"
        if "cpu" not in _words(control):
            _write(control, "+cpu")
            with contextlib.suppress(OSError):  # as far as the kernel can
                os.setxattr(folder, _MARK, b"1")
        elif not _is_marked(folder):
            continue
        stack.callback(_disable_controller, folder, lock)


def _is_marked(folder: Path) -> bool:
    try:
        return bool(os.getxattr(folder, _MARK))
    except OSError:
        return False


def _disable_controller(folder: Path, lock: int) -> None:
    """Undo that, unless another process needs it: it shares the lock, or has set a quota here."""
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        children = [path / "cpu.max" for path in folder.iterdir() if path.is_dir()]
        if all(_words(file)[:1] == ["max"] for file in children if file.exists()):
            _write(folder / "cgroup.subtree_control", "-cpu")
            os.removexattr(folder, _MARK)


@contextlib.contextmanager
def _locked(folder: Path, operation: int = fcntl.LOCK_EX) -> Iterator[int]:
    """Lock a cgroup, as far as its file system can; yields the descriptor.

    Raises:
        BlockingIOError: another process has locked it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Whoever disables the controller keeps others out for a moment only.
        for wait_s in (*_WAITS_S, None) if operation == fcntl.LOCK_SH else (None,):
            try:
                fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if wait_s is None:
                    raise BlockingIOError(error.errno, error.strerror, str(folder)) from error
                time.sleep(wait_s)
        yield descriptor
    finally:
        os.close(descriptor)


def _scope(cpus: float, refusal: _Refused) -> Limit | None:
    """What starts a program in a scope of systemd with a quota; None without systemd.

    A scope is elsewhere in the tree. None too if it could leave limits that nobody sees.
    """
    is_root = os.geteuid() == 0
    if refusal.is_hidden or shutil.which("systemd-run") is None or not _SYSTEMD.is_dir():
        return None
    percentage = systemd_quota(cpus)
    return Limit(
        cpus=float(percentage.removesuffix("%")) / 100,
        prefix=(
            "systemd-run",
            *(() if is_root else ("--user",)),
            *("--scope", "--quiet", "--collect"),
            *("--property", f"CPUQuota={percentage}"),
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
        """Prepare to read."""
        self.use: QuotaUse | None = None
        self._pids, self._tree = tuple(pids), tree
        self._quota: cgroups.Quota | None = None

    def start(self) -> None:
        """Read the counters when the workers start to measure."""
        self._quota = self._weakest()

    def stop(self) -> None:
        """Read them again at the end, and the quota too: a worker may have left its cgroup."""
        if self._quota is not None and (last := self._weakest()) is not None:
            use = use_since(self._quota, self._tree)
            self.use = replace(use, cpus=max(use.cpus, last.cpus))

    def _weakest(self) -> cgroups.Quota | None:
        """The quota of the worker that is limited least; None if one of them has none."""
        smallest = [cgroups.quotas(self._tree, process=str(pid)).tightest for pid in self._pids]
        known = [quota for quota in smallest if quota is not None]
        if not known or len(known) < len(smallest):
            return None
        return max(known, key=lambda each: each.cpus)


def use_since(quota: cgroups.Quota, tree: Tree) -> QuotaUse:
    """What a quota did since it was read; the counts are None if the kernel shows none."""
    before, now = quota.throttling, cgroups.throttling(tree.read(f"{quota.folder}/cpu.stat") or "")
    counts: dict[str, int | None] = dict.fromkeys(cgroups.Throttling._fields)
    if before and now:
        increases = (max(0, new - old) for old, new in zip(before, now, strict=True))
        counts = dict(zip(cgroups.Throttling._fields, increases, strict=True))
    return QuotaUse(cpus=quota.cpus, period_us=quota.period_us, **counts)
