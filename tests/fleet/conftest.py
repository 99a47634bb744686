"""Fleets of three hosts on this machine: a Dask scheduler, or slurmctld with three slurmd.

Each host has a machine id and a host lock of its own. Timings mean nothing here, because the
hosts share the CPUs: tests assert what is delivered, recorded and collected.
"""

import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from distributed import Client

from corebound.records import jsonl
from corebound.records.jsonl import Stored
from support import repositories
from support.commands import isolation
from support.needs import missing

HOSTS = ("n1", "n2", "n3")
# Slow enough to be killed in the middle; it leaves the environment that it has had.
STEPS = """\
import json, os, pathlib, time

def setup():
    pathlib.Path(__file__).with_name("environment.json").write_text(json.dumps(dict(os.environ)))
    return lambda: time.sleep(0.01)
"""
TIMEOUT_S = 120


def until(condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Wait for a condition of other processes."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {timeout_s:.0f} s"
        time.sleep(0.05)


def write_fleet(suite: Path, **document: Any) -> Path:
    """A fleet file beside the suite's scenarios; returns it."""
    written = {
        "schema": 1,
        "name": "lab",
        "hosts": list(HOSTS),
        "scenarios": ["scenarios/counting.yaml"],
        "launches": 2,
        "work": str(suite.parent / "work"),
        **document,
    }
    file = suite / "fleet.yaml"
    file.write_text(yaml.safe_dump(written, sort_keys=False))
    return file


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A committed suite of one scenario that takes under a second."""
    folder = tmp_path / "suite"
    folder.mkdir()
    repositories.counting_suite(
        folder,
        matrix={"binding": ["none"]},
        steps=STEPS,
        measure={"iterations": 20, "warmup": {"iterations": 2}, "relaunch_disturbed": 0},
    )
    return repositories.commit_all(folder)


def stored(suite: Path) -> list[Stored]:
    """All collected runs."""
    return [jsonl.read(file) for file in jsonl.files(suite / "reports" / "records")]


def launches_on(suite: Path, host: str) -> int:
    """The launches that a host has recorded so far."""
    files = suite.parent.glob(f"work/*/{host}/*/records/*/*.jsonl")
    return sum(file.read_bytes().count(b"\n") - 1 for file in files)


def check_each_host_measured_once(suite: Path, launches: int = 2) -> None:
    """Each host has its own run, and every launch is there exactly once."""
    runs = stored(suite)
    assert len({run.run.host.id for run in runs}) == len(HOSTS)
    assert [len(run.launches) for run in runs] == [launches] * len(HOSTS)
    assert all(len({launch.id for launch in run.launches}) == launches for run in runs)
    assert not [fault for run in runs for fault in run.faults]


class Daemons:
    """Processes of an engine, by name; each can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start a daemon; its output is in a file of its name."""
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, **isolation(self._folder), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[name] = process
        return process

    def log(self, name: str) -> str:
        """What a daemon has said."""
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def is_running(self, name: str) -> bool:
        """Whether a daemon was started and has not ended."""
        return name in self._processes and self._processes[name].poll() is None

    def kill(self, name: str) -> None:
        """Kill a daemon by force, with all that it has started in its group."""
        process = self._processes.pop(name)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End all daemons."""
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


class DaskFleet:
    """A Dask scheduler and one worker for each host, as processes.

    With `tls`, a folder with certificates, they talk encrypted only.
    """

    def __init__(
        self, folder: Path, tls: Path | None = None, hosts: tuple[str, ...] = HOSTS
    ) -> None:
        self._daemons = Daemons(folder)
        self._folder = folder
        self._tls = tls
        self._unusual: set[str] = set()
        self._start_scheduler("0")
        until(self._listens, "the start of the scheduler")
        for host in hosts:
            self.start_worker(host)

    def _start_scheduler(self, port: str) -> None:
        self._daemons.start(
            "scheduler", *self._dask("scheduler"), "--host", self._host, "--port", port,
            "--no-dashboard",
        )  # fmt: skip

    @property
    def _host(self) -> str:
        return "127.0.0.1" if self._tls is None else "tls://127.0.0.1"

    def _dask(self, command: str) -> tuple[str, ...]:
        certificates = () if self._tls is None else (
            "--tls-ca-file", f"{self._tls}/ca.pem", "--tls-cert", f"{self._tls}/cert.pem",
            "--tls-key", f"{self._tls}/key.pem",
        )  # fmt: skip
        return sys.executable, "-m", "dask", command, *certificates

    def _listens(self) -> bool:
        found = re.search(
            r"Scheduler at:\s+(t(?:cp|ls)://127.0.0.1:\d+)", self._daemons.log("scheduler")
        )
        self.address = found[1] if found else ""
        return bool(found)

    def start_worker(self, host: str, **environment: str) -> None:
        """Start the worker of a host, which has a machine id and a lock of its own."""
        self._unusual = self._unusual - {host} | ({host} if environment else set())
        self._daemons.start(
            host, *self._dask("worker"), self.address, "--name", host, "--nworkers", "1",
            "--nthreads", "1", "--resources", "host=1", "--no-dashboard",
            "--local-directory", str(self._folder / f"dask-{host}"),
            COREBOUND_MACHINE_ID=host, COREBOUND_HOST_LOCK=f"{self._folder}-{host}", **environment,
        )  # fmt: skip

    def workers(self) -> set[str]:
        """The names of the connected workers."""
        with Client(self.address, set_as_default=False) as client:
            return {
                worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()
            }

    def variable_of(self, host: str, name: str) -> str | None:
        """A variable of a worker's own environment."""
        with Client(self.address, set_as_default=False) as client:
            values = client.run(lambda: os.environ.get(name))
            workers = client.scheduler_info(n_workers=-1)["workers"]
            value: str | None = next(values[one] for one in values if workers[one]["name"] == host)
            return value

    def kill(self, name: str) -> None:
        """Kill the worker of a host, or the scheduler, by force."""
        self._daemons.kill(name)

    def restart_scheduler(self) -> None:
        """Kill the scheduler by force; start it again, and the workers, which end without it."""
        self._daemons.kill("scheduler")
        self._start_scheduler(self.address.rpartition(":")[2])
        for host in HOSTS:
            self._daemons.kill(host)
            self.start_worker(host)

    def restore(self) -> None:
        """Start the workers that ended or have another environment; wait until all are there."""
        for host in HOSTS:
            if host in self._unusual:
                self._daemons.kill(host)
            if not self._daemons.is_running(host):
                self.start_worker(host)
        until(lambda: self.workers() == set(HOSTS), "the connection of all workers")

    def close(self) -> None:
        """End all processes."""
        self._daemons.close()


@pytest.fixture(scope="session")
def started_dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskFleet]:
    """Three workers of a Dask scheduler, which take seconds to start."""
    fleet = DaskFleet(tmp_path_factory.mktemp("dask"))
    yield fleet
    fleet.close()


@pytest.fixture
def dask_fleet(started_dask: DaskFleet) -> DaskFleet:
    """The same for all tests, with all its workers."""
    started_dask.restore()
    return started_dask


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """A folder with a certificate that is its own authority, and its key."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    shutil.copy(folder / "cert.pem", folder / "ca.pem")
    return folder


@pytest.fixture
def tls_fleet(tmp_path: Path, certificates: Path) -> Iterator[DaskFleet]:
    """A worker and a Dask scheduler that talk encrypted only."""
    folder = tmp_path / "engine"
    folder.mkdir()
    fleet = DaskFleet(folder, certificates, hosts=HOSTS[:1])
    yield fleet
    fleet.close()


SSHD_CONF = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
SetEnv COREBOUND_HOST_LOCK={folder} TMPDIR={folder}
"""
SSH_CONF = """\
Host n1
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/user
  UserKnownHostsFile {folder}/known
"""


@pytest.fixture
def ssh_home(tmp_path: Path) -> Iterator[Path]:
    """A home folder whose SSH configuration leads `n1` to an sshd of this test."""
    sshd = _program("sshd")
    folder = tmp_path / "ssh"
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    folder.mkdir()
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for key in ("host", "user"):
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        subprocess.run(command, cwd=folder, check=True)
    settings = {"folder": folder, "port": _free_ports(1), "user": getpass.getuser()}
    kind, host_key, *_ = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{settings['port']} {kind} {host_key}\n")
    (folder / "sshd.conf").write_text(SSHD_CONF.format(**settings))
    (home / ".ssh" / "config").write_text(SSH_CONF.format(**settings))
    daemons = Daemons(folder)
    daemons.start("sshd", sshd, "-D", "-e", "-f", str(folder / "sshd.conf"))
    until(lambda: "listening" in daemons.log("sshd"), "the start of sshd")
    yield home
    daemons.close()


SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog={folder}/prolog
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 \
RealMemory=1000 Feature=genoa
PartitionName=all Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
"""
# The nodes are one machine, which no cluster has.
PROLOG = """\
#!/bin/sh
echo "export COREBOUND_MACHINE_ID=$SLURMD_NODENAME"
echo "export COREBOUND_HOST_LOCK={folder}-$SLURMD_NODENAME"
echo "export OMP_NUM_THREADS=1"
"""


class SlurmFleet:
    """slurmctld and three slurmd, with a munge of their own."""

    def __init__(self, folder: Path) -> None:
        self._daemons = Daemons(folder)
        self._folder = folder
        self.conf = folder / "slurm.conf"
        port = _free_ports(4)
        settings = {
            "folder": folder,
            "host": socket.gethostname().partition(".")[0],
            "user": getpass.getuser(),
            "port": port,
            "first": port + 1,
            "last": port + 3,
        }
        (folder / "state").mkdir()
        self.conf.write_text(SLURM_CONF.format(**settings))
        (folder / "prolog").write_text(PROLOG.format(**settings))
        (folder / "prolog").chmod(0o755)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self._daemons.start(
            "munged", _program("munged"), "--foreground", "--force", f"--key-file={key}",
            f"--socket={folder}/munge.socket", f"--pid-file={folder}/munge.pid",
            f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed",
        )  # fmt: skip
        until((folder / "munge.socket").exists, "the start of munged")
        self.start_controller()
        for host in HOSTS:
            self.start_node(host)

    def restore(self) -> None:
        """Cancel all jobs, start what has ended, and wait until all nodes are idle."""
        self.cancel_all()
        for host in HOSTS:
            if not self._daemons.is_running(host):
                self.start_node(host)

        def is_idle() -> bool:
            self.return_drained_nodes()
            return self.nodes("idle") == set(HOSTS)

        until(is_idle, "the registration of the nodes")

    def start_controller(self) -> None:
        """Start slurmctld, with the state that it had."""
        self._daemons.start("slurmctld", _program("slurmctld"), "-D", SLURM_CONF=str(self.conf))

    def start_node(self, host: str) -> None:
        """Start the slurmd of a node."""
        self._daemons.start(host, _program("slurmd"), "-D", "-N", host, SLURM_CONF=str(self.conf))

    def nodes(self, state: str) -> set[str]:
        """The nodes in a state."""
        command = ("sinfo", "--Node", "--noheader", "--states", state, "--format", "%N")
        completed = subprocess.run(
            command,
            env={**os.environ, "SLURM_CONF": str(self.conf)},
            capture_output=True,
            text=True,
            check=False,
        )
        return set(completed.stdout.split())

    def return_drained_nodes(self) -> None:
        """Do what an operator does after a controller that forgot a job drained the job's node."""
        for host in self.nodes("drain"):
            command = (_program("scontrol"), "update", f"NodeName={host}", "State=RESUME")
            environment = {**os.environ, "SLURM_CONF": str(self.conf)}
            subprocess.run(command, env=environment, check=False, capture_output=True)

    def kill(self, name: str) -> None:
        """Kill slurmctld, or the slurmd of a node, by force; jobs of the node go on."""
        self._daemons.kill(name)

    def kill_agent(self, host: str) -> None:
        """Kill the agent of a node by force, if there is one."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (
                    b"submitit.core._submit" in (process / "cmdline").read_bytes()
                    and f"SLURMD_NODENAME={host}\0".encode() in (process / "environ").read_bytes()
                    and str(self._folder).encode() in (process / "environ").read_bytes()
                ):
                    os.kill(int(process.name), signal.SIGKILL)

    def cancel_all(self) -> None:
        """Cancel all jobs."""
        command = ("scancel", "--user", getpass.getuser())
        environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        subprocess.run(command, env=environment, check=False, capture_output=True)

    def close(self) -> None:
        """Cancel all jobs and end the daemons."""
        self.cancel_all()
        until(lambda: not self.nodes("alloc,completing"), "the end of all jobs")
        self._daemons.close()


def _program(name: str) -> str:
    """A daemon, which may not be on the PATH of a user."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return found or missing(f"{name} is not installed: scripts/debian-packages fleet")


def libfaketime() -> str:
    """The library that gives a process another time of day."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    return str(found[0]) if found else missing("libfaketime: scripts/debian-packages fleet")


def _free_ports(count: int) -> int:
    """The first of some consecutive ports that nothing listens on, nor another pytest process."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    for first in range(17_000 + 1000 * process, 30_000, 10):
        with contextlib.ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no free ports")


@pytest.fixture(scope="session")
def started_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmFleet]:
    """Three nodes of Slurm, which take seconds to register."""
    fleet = SlurmFleet(tmp_path_factory.mktemp("slurm"))
    yield fleet
    fleet.close()


@pytest.fixture
def slurm_fleet(started_slurm: SlurmFleet, monkeypatch: pytest.MonkeyPatch) -> SlurmFleet:
    """The same for all tests, idle; its commands are configured in this process's environment."""
    monkeypatch.setenv("SLURM_CONF", str(started_slurm.conf))
    started_slurm.restore()
    return started_slurm
