"""A service to inspect: its program, how it is started, and what is wrong with it.

Quotas, CPU sets, weights and memory limits are those of cgroup v1, which needs root.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from corebound.launch import environments

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
_CGROUPS = Path("/sys/fs/cgroup")
_BASE = f"inspect-services-{os.getpid()}"
# Joins groups, then becomes the program.
_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1"; shift; done; shift; exec "$@"'
_BUSY = "while True: pass"
_SETTLE_S = 1.5
_START_LIMIT_S = 180  # TorchServe on a busy host


class Service(Struct, frozen=True, kw_only=True):
    """A service.

    Attributes:
        name: Its name in the tables.
        command: What to start; `{python}`, `{programs}`, `{port}` and the five after it
            (`{port1}`), `{folder}`, `{pool}` and `{NAME}`, the folder of the environment NAME,
            are replaced.
        environment: The environment of `{python}`.
        needs: Programs without which it is skipped.
        variables: Environment variables, besides PATH and HOME.
        prefix: A command before the command, such as nice.
        quota: CPUs that its group may use; parent_quota: those of the group above it.
        weight: The weight of its group (`cpu.shares`).
        cpuset: The CPUs of its group.
        memory_mib: The memory limit of its group.
        moved_to: CPUs to which its threads are bound after the start.
        autogroup_nice: The nice value of its autogroup.
        neighbours: Other busy programs.
        beside: Where those are: on the host, in its group, or in a group beside it.
        path: What to request from its port; empty for a service without one.
        body: The body of a request; connections, pause_s: how a client sends them.
        is_counted: Whether the program counts its steps, or its client answers.
        expects: Findings of which one is right; empty if nothing is wrong.
        also: Other findings that are true.
        cure: Fields to replace to heal it.
    """

    name: str
    command: tuple[str, ...]
    environment: str = "host"
    needs: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    prefix: tuple[str, ...] = ()
    quota: float | None = None
    parent_quota: float | None = None
    weight: int | None = None
    cpuset: str | None = None
    memory_mib: int | None = None
    moved_to: str | None = None
    autogroup_nice: int | None = None
    neighbours: int = 0
    beside: Literal["host", "group", "groups"] = "host"
    path: str = ""
    body: str = ""
    connections: int = 2
    pause_s: float = 0.0
    is_counted: bool = True
    expects: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    cure: Mapping[str, object] = {}

    def missing(self) -> str | None:
        """Why it cannot run here; None if it can."""
        if lacking := [name for name in self.needs if shutil.which(name) is None]:
            return f"{lacking[0]} is not installed"
        if not environments.python_of(self.environment, ROOT).exists():
            return f"`corebound environment make {self.environment}` has not run"
        return None


class NotStarted(Exception):
    """A service ended, or did nothing in time."""


class Running(Struct, kw_only=True):
    """A service that runs: the process to inspect, its folder, its port and its groups."""

    service: Service
    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    groups: _Groups

    @property
    def pid(self) -> int:
        """The process to inspect."""
        return self.process.pid

    def steps(self) -> int:
        """The steps or answers so far, of all processes."""
        counts = [file.read_bytes() for file in self.folder.glob("*.count")]
        return sum(struct.unpack("Q", count)[0] for count in counts if len(count) == 8)

    def cpu_s(self) -> float:
        """The CPU time so far, of all its processes."""
        return int((self.groups.own / "cpuacct.usage").read_text("ascii")) / 1e9

    def is_alive(self) -> bool:
        """Whether its first process has not ended."""
        return self.process.poll() is None

    def add_neighbours(self, number: int) -> None:
        """Start busy programs, each in a session and so in an autogroup of its own."""
        for _ in range(number):
            _start((sys.executable, "-c", _BUSY), self.groups.of_neighbours, self.folder)


class _Groups:
    """The groups of a service and its neighbours, in the hierarchies that it needs."""

    def __init__(self, service: Service) -> None:
        name = service.name
        self._made: list[Path] = []
        self.own = self._make("cpuacct", name, "service")
        self.of_others = [self._make("cpuacct", name, "others")]
        self.of_service = [self.own]
        self.of_neighbours = [*self.of_others]
        if _is_limited(service):
            outer, inner = self._make("cpu", name), self._make("cpu", name, "service")
            _set_quota(outer, service.parent_quota)
            _set_quota(inner, service.quota)
            if service.weight is not None:
                (inner / "cpu.shares").write_text(str(service.weight), "ascii")
            self.of_service.append(inner)
            if service.beside == "group":
                self.of_neighbours.append(inner)
            elif service.beside == "groups":
                self.of_neighbours.append(self._make("cpu", name, "others"))
        if service.cpuset is not None:
            group = self._make("cpuset", name)
            (group / "cpuset.cpus").write_text(service.cpuset, "ascii")
            self.of_service.append(group)
        if service.memory_mib is not None:
            group = self._make("memory", name)
            limit = service.memory_mib << 20
            (group / "memory.limit_in_bytes").write_text(str(limit), "ascii")
            self.of_service.append(group)

    def _make(self, controller: str, *names: str) -> Path:
        folder = _CGROUPS / controller
        for name in (_BASE, *names):
            folder /= name
            if not folder.exists():
                folder.mkdir()
                self._made.append(folder)
                if controller == "cpuset":
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        (folder / file).write_text((folder.parent / file).read_text())
        return folder

    def end(self) -> None:
        """Kill every process of these groups, and remove them."""
        for group in (self.own, *self.of_others):
            for _ in range(200):
                pids = (group / "cgroup.procs").read_text("ascii").split()
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                if not pids:
                    break
                time.sleep(0.02)
        for folder in reversed(self._made):
            for _ in range(50):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                    break
                time.sleep(0.02)


def _is_limited(service: Service) -> bool:
    limits = (service.quota, service.parent_quota, service.weight)
    return any(limit is not None for limit in limits) or service.beside != "host"


def _set_quota(group: Path, cpus: float | None) -> None:
    if cpus is not None:
        (group / "cpu.cfs_quota_us").write_text(str(round(cpus * 100_000)), "ascii")


@contextlib.contextmanager
def started(service: Service) -> Iterator[Running]:
    """Start a service and its client, wait until it works, and end all of it.

    Raises:
        NotStarted: It ended, or did nothing in time.
    """
    groups = _Groups(service)
    with tempfile.TemporaryDirectory(prefix="inspect-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), _free_port()
        folder.chmod(0o777)  # for services of other users
        try:
            command = _command(service, folder, port)
            process = _start(command, groups.of_service, folder, _variables(service, folder, port))
            running = Running(
                service=service, process=process, folder=folder, port=port, groups=groups
            )
            if service.path:
                _start(_client(service, port), groups.of_others, folder)
            _wait(running)
            _apply_late(running)
            running.add_neighbours(service.neighbours)
            time.sleep(_SETTLE_S)
            yield running
        finally:
            groups.end()


def _command(service: Service, folder: Path, port: int) -> list[str]:
    return [_filled(word, service, folder, port) for word in (*service.prefix, *service.command)]


def _filled(word: str, service: Service, folder: Path, port: int) -> str:
    python = environments.python_of(service.environment, ROOT)
    values = {"python": python, "programs": PROGRAMS, "port": port, "folder": folder}
    values |= {f"port{number}": port + number for number in range(1, 6)}
    if "{pool}" in word:
        values["pool"] = _pool()
    for name in environments.names(ROOT):
        if f"{{{name}}}" in word:
            values[name] = environments.python_of(name, ROOT).parents[1]
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _variables(service: Service, folder: Path, port: int) -> dict[str, str]:
    given = {
        name: _filled(value, service, folder, port) for name, value in service.variables.items()
    }
    return {"PATH": os.environ["PATH"], "HOME": str(folder), **given}


def _client(service: Service, port: int) -> tuple[str, ...]:
    command: tuple[str, ...] = (
        sys.executable,
        str(PROGRAMS / "client.py"),
        str(port),
        service.path,
    )
    command += ("--connections", str(service.connections), "--pause", str(service.pause_s))
    return (*command, "--body", service.body)


def _start(
    command: Sequence[str],
    groups: Sequence[Path],
    folder: Path,
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    files = [str(group / "cgroup.procs") for group in groups]
    with Path(folder, "log").open("ab") as log:
        return subprocess.Popen(
            ["/bin/sh", "-c", _JOIN, "sh", *files, "--", *command],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait(running: Running) -> None:
    deadline_s = time.monotonic() + _START_LIMIT_S
    while running.service.is_counted and running.steps() < 2:
        if time.monotonic() > deadline_s or not running.is_alive():
            log = Path(running.folder, "log").read_text("utf-8", "replace")
            raise NotStarted(f"did not start: {log[-600:]}")
        time.sleep(0.1)


def _apply_late(running: Running) -> None:
    service = running.service
    pids = (running.groups.own / "cgroup.procs").read_text("ascii").split()
    if service.moved_to is not None:
        for pid in pids:
            command = ("taskset", "-apc", service.moved_to, pid)
            subprocess.run(command, check=True, capture_output=True)
    if service.autogroup_nice is not None:
        for pid in pids:
            Path(f"/proc/{pid}/autogroup").write_text(str(service.autogroup_nice), "ascii")


@functools.cache
def _pool() -> Path:
    """The C program, compiled once."""
    program = Path(tempfile.mkdtemp(prefix="inspect-pool-"), "pool")
    program.parent.chmod(0o755)
    source = PROGRAMS / "pool.c"
    command = ("gcc", "-O2", "-pthread", "-o", str(program), str(source))
    subprocess.run(command, check=True)
    return program


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port
