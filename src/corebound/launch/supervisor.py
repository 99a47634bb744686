"""The supervisor process: starts workers and leaves no process of a launch behind.

The supervisor is a separate process. It uses only the standard library and modules that
use nothing else. It is a child subreaper: orphaned processes of a launch become its
children, so once it has no children, no process of the launch is left. When the
runner ends for any reason, the socket between them closes. The supervisor then kills
all its descendants, removes the scratch directory and exits.

The protocol is JSON over a sequenced-packet socket:

- `{"do": "spawn", argv, env, cwd, cgroup, settings}`, sent with the descriptors for log,
  request and reply, is answered with `{"pid"}` or `{"error"}`. `cgroup` is the `cgroup.procs` of
  the cgroup that the worker starts in, or null. It is removed together with the launch's processes.
  `settings` are those of its process, by name: `thp` is what `set_huge_pages` sets in it.
- `{"do": "end", "grace_s"}` is answered with `{"ended": [names]}`.
- Each order has a number, `order`, which its answer repeats, because the runner may be
  interrupted before it receives an answer.
- `{"exited": pid, "code"}` reports a worker's exit without being requested.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from corebound.machine.procfs import processes_below

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_THP_DISABLE = 41
# Of Linux 6.18: regions for which a program asks for huge pages may still have them.
PR_THP_DISABLE_EXCEPT_ADVISED = 2

# A message holds the worker's whole argv and environment.
MOST_BYTES = 1 << 20

# The interval between checks for processes that have just been told to end.
PATIENCE_S = 0.005
# How long the kernel may take to empty a cgroup whose processes have ended.
CGROUP_PATIENCE_S = 1.0


def become_subreaper() -> None:
    """Make this process the parent of its orphaned descendants."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def set_huge_pages(mode: str) -> bool:
    """Set which transparent huge pages this process and those it becomes or starts may have.

    Args:
        mode: `never`; `madvise`: only where the program asks for them; `always`: those that the
            host's own mode allows.

    Returns:
        Whether the kernel can do that.

    Source: PR_SET_THP_DISABLE(2const).
    """
    flags = PR_THP_DISABLE_EXCEPT_ADVISED if mode == "madvise" else 0
    prctl = ctypes.CDLL(None).prctl
    return bool(prctl(PR_SET_THP_DISABLE, int(mode != "always"), flags, 0, 0) == 0)


# What sets each setting of a process, by the setting's name.
_SETTERS = {"thp": set_huge_pages}


class Supervisor:
    """The supervisor's main loop."""

    def __init__(self, channel: socket.socket, scratch: str) -> None:
        self._channel = channel
        self._scratch = scratch
        self._workers: set[int] = set()
        self._cgroups: set[str] = set()

    def serve(self) -> None:
        """Serve the runner until it closes the socket."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
        # The runner handles Ctrl-C, even when the signal reaches every process.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            while True:
                readable, _, _ = select.select([self._channel.fileno(), wake_read], [], [])
                if wake_read in readable:
                    os.read(wake_read, 4096)
                    self._reap()
                if self._channel.fileno() in readable and not self._answer():
                    return
        finally:
            self._end(grace_s=0.0)
            self._remove()

    def _remove(self) -> None:
        """Remove the scratch folder, and the link to it if it was given as a link."""
        shutil.rmtree(os.path.realpath(self._scratch), ignore_errors=True)
        with contextlib.suppress(OSError):  # it is not a link, or the runner has removed it
            os.unlink(self._scratch)

    def _answer(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, MOST_BYTES, 8)
        except OSError:
            return False
        if not data:
            return False
        order = json.loads(data)
        if order["do"] == "spawn":
            answer = self._spawn(order, descriptors)
        else:
            answer = {"ended": self._end(grace_s=order["grace_s"])}
        self._tell({**answer, "order": order["order"]})
        return True

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the runner has ended; the loop detects that
            self._channel.send(json.dumps(message).encode())

    def _spawn(self, order: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        if order["cgroup"] is not None:
            self._cgroups.add(os.path.dirname(order["cgroup"]))
        failed_read, failed_write = os.pipe()  # both close on exec
        pid = os.fork()
        if pid == 0:
            _exec_worker(order, descriptors, failed_write)
        os.close(failed_write)
        for descriptor in descriptors:
            os.close(descriptor)
        with os.fdopen(failed_read, "rb") as stream:
            failed = stream.read()
        if failed:
            os.waitpid(pid, 0)
            return {"error": failed.decode(errors="replace")}
        self._workers.add(pid)
        return {"pid": pid}

    def _reap(self) -> bool:
        """Reap every child that has ended; False once no children are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid in self._workers:
                self._workers.discard(pid)
                self._tell({"exited": pid, "code": os.waitstatus_to_exitcode(status)})

    def _end(self, *, grace_s: float) -> list[str]:
        """End all descendants, after `grace_s` by force; returns the names of those killed.

        Then remove the cgroups that they started in.
        """
        try:
            return self._end_processes(grace_s=grace_s)
        finally:
            self._remove_cgroups()

    def _end_processes(self, *, grace_s: float) -> list[str]:
        for _ in _until(time.monotonic() + grace_s):
            if not self._reap():
                return []
        killed: dict[int, str] = {}
        while self._reap():
            alive = processes_below(os.getpid())
            kill(alive)
            killed.update(alive)
        return sorted(killed.values())

    def _remove_cgroups(self) -> None:
        for folder in self._cgroups:
            for _ in _until(time.monotonic() + CGROUP_PATIENCE_S):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    break
                except OSError:
                    continue  # the kernel has not finished the end of a process in it
                break
        self._cgroups.clear()


def kill(alive: Iterable[int]) -> None:
    """Kill processes, and wait briefly for them to end."""
    # Stop them first: a process that keeps forking could otherwise outrun the kill.
    for blow in (signal.SIGSTOP, signal.SIGKILL):
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, blow)
    time.sleep(PATIENCE_S)


def _until(deadline_s: float) -> Iterator[None]:
    yield
    while time.monotonic() < deadline_s:
        time.sleep(PATIENCE_S)
        yield


def _exec_worker(order: dict[str, Any], descriptors: list[int], failed: int) -> None:
    """Turn this new child into the worker; never returns."""
    try:
        os.setsid()
        end_with_parent(signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if order["cgroup"] is not None:
            with open(order["cgroup"], "w", encoding="ascii") as procs:
                procs.write("0")  # this process
        for name, value in order["settings"].items():
            _SETTERS[name](value)
        # Move the descriptors out of the range 0 to 4, which is assigned below.
        failed, log, request, reply = (
            fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
            for descriptor in (failed, *descriptors)
        )
        nothing = os.open(os.devnull, os.O_RDONLY)
        for target, source in enumerate((nothing, log, log, request, reply)):
            os.dup2(source, target, inheritable=True)
        os.chdir(order["cwd"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        of = order["cgroup"] if error.filename == order["cgroup"] else order["argv"][0]
        os.write(failed, f"{of}: {error.strerror}".encode())
    finally:
        os._exit(127)


def lock_folder(folder: str) -> None:
    """Lock a folder for this process's lifetime, so that it is not removed as abandoned."""
    with contextlib.suppress(OSError):  # the runner removed it, or there are no locks
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)


def main() -> None:
    """Serve the runner on the socket whose descriptor is the first argument."""
    become_subreaper()
    channel = socket.socket(fileno=int(sys.argv[1]))
    lock_folder(sys.argv[2])
    Supervisor(channel, scratch=sys.argv[2]).serve()


if __name__ == "__main__":
    main()
