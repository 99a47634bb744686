"""Fleets of three hosts on this machine: a Dask scheduler, or slurmctld with three slurmd.

Each host has a machine id and a host lock of its own. Timings mean nothing here, because the
hosts share the CPUs: tests assert what is delivered, recorded and collected.
"""

from __future__ import annotations

import os
import re
import signal
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

HOSTS = ("n1", "n2", "n3")
# Slow enough to be killed in the middle; it leaves the environment that it has had.
STEPS = """\
import json, os, pathlib, time

def setup():
    pathlib.Path(__file__).with_name("environment.json").write_text(json.dumps(dict(os.environ)))
    return lambda: time.sleep(0.01)
"""
TIMEOUT_S = 60


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
    """A Dask scheduler and one worker for each host, as processes."""

    def __init__(self, folder: Path) -> None:
        self._daemons = Daemons(folder)
        self._folder = folder
        self._start_scheduler("0")
        until(self._listens, "the start of the scheduler")
        for host in HOSTS:
            self.start_worker(host)

    def _start_scheduler(self, port: str) -> None:
        self._daemons.start(
            "scheduler", *self._dask("scheduler"), "--host", "127.0.0.1", "--port", port,
            "--no-dashboard",
        )  # fmt: skip

    def _dask(self, command: str) -> tuple[str, ...]:
        return sys.executable, "-m", "dask", command

    def _listens(self) -> bool:
        found = re.search(r"Scheduler at:\s+(tcp://127.0.0.1:\d+)", self._daemons.log("scheduler"))
        self.address = found[1] if found else ""
        return bool(found)

    def start_worker(self, host: str) -> None:
        """Start the worker of a host, which has a machine id and a lock of its own."""
        self._daemons.start(
            host, *self._dask("worker"), self.address, "--name", host, "--nworkers", "1",
            "--nthreads", "1", "--resources", "host=1", "--no-dashboard",
            "--local-directory", str(self._folder / f"dask-{host}"),
            COREBOUND_MACHINE_ID=host, COREBOUND_HOST_LOCK=f"{self._folder}-{host}",
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

    def close(self) -> None:
        """End all processes."""
        self._daemons.close()


@pytest.fixture
def dask_fleet(tmp_path: Path) -> Iterator[DaskFleet]:
    """Three workers of a Dask scheduler."""
    folder = tmp_path / "engine"
    folder.mkdir()
    fleet = DaskFleet(folder)
    yield fleet
    fleet.close()
