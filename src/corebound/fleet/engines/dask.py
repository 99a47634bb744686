"""Dask: one task for each shard, on the worker of its host and no other."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from distributed import Client, Future, Nanny, Scheduler, Security, SpecCluster
from distributed.deploy import ssh
from distributed.worker import get_worker

from corebound.errors import HostError
from corebound.fleet import agent
from corebound.fleet.engines import JobState
from corebound.fleet.file import Dask, FleetFile, HostEntry
from corebound.fleet.folder import RecordFile, ShardReport
from corebound.fleet.plan import Assignment
from corebound.machine.identity import MACHINE_ID_VARIABLE, machine_id

# A worker of a host announces this resource, so that it gets one shard at a time.
RESOURCE = "host"
_WORKER = "dask worker ADDRESS --name HOST --nworkers 1 --nthreads 1 --resources host=1"
_CONNECT_S = 30
_ANSWER_S = 60


def connect(fleet: FleetFile, hosts: Sequence[str], _files: Path) -> DaskEngine:
    """Connect to the scheduler of a fleet, or start one.

    Raises:
        HostError: It cannot be reached.
    """
    section = fleet.dask or Dask(local=True)
    cluster: Any = None
    try:
        if section.local:
            cluster = _cluster({host: _local_worker(host) for host in hosts})
        elif section.ssh:
            cluster = _cluster({host: _ssh_worker(host) for host in hosts})
        client = Client(
            cluster or section.scheduler,
            timeout=_CONNECT_S,
            security=_security(section),
            set_as_default=False,
        )
        if cluster is not None:
            client.wait_for_workers(len(hosts), timeout=_CONNECT_S)
    except (OSError, TimeoutError, ValueError, RuntimeError, ImportError) as error:
        if cluster is not None:
            cluster.close()
        if section.ssh:
            raise HostError(
                what=f"a host cannot be reached over SSH: {error}.",
                where=", ".join(hosts),
                fix="Try `ssh HOST true`, and set address, user and key in ~/.ssh/config.",
            ) from error
        raise HostError(
            what=f"the Dask scheduler cannot be reached: {error}.",
            where=section.scheduler or "dask",
            fix="Start it with `dask scheduler`, and check the address.",
        ) from error
    return DaskEngine(client, cluster)


def _local_worker(host: str) -> dict[str, Any]:
    """A worker on this machine, with an identity of its own."""
    options = {
        "name": host,
        "nthreads": 1,
        "resources": {RESOURCE: 1},
        "silence_logs": logging.ERROR,
        "env": {MACHINE_ID_VARIABLE: f"{machine_id()}-{host}"},
    }
    return {"cls": Nanny, "options": options}


def _ssh_worker(host: str) -> dict[str, Any]:
    """A worker on a host; ~/.ssh/config says how to reach it."""
    own = {"name": host, "nthreads": 1, "resources": {RESOURCE: 1}}
    return {
        "cls": ssh.Worker,
        "options": {"address": host, "connect_options": {}, "kwargs": own},
    }


def _cluster(workers: Mapping[str, Mapping[str, Any]]) -> SpecCluster:
    """Workers by the names of their hosts, and a scheduler here.

    Dask's own SSHCluster starts the scheduler over SSH too, and does not name its workers.
    """
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "port": 0}}
    return SpecCluster(scheduler=scheduler, workers=workers, silence_logs=logging.ERROR)


def _security(section: Dask) -> Security | None:
    if section.tls is None:
        return None
    folder = Path(section.tls)
    return Security(
        require_encryption=True,
        tls_ca_file=str(folder / "ca.pem"),
        tls_client_cert=str(folder / "cert.pem"),
        tls_client_key=str(folder / "key.pem"),
    )


def _carry_out(assignment: bytes, host: str, bundle: bytes | None, again: bool) -> bytes:  # noqa: FBT001
    """The task. A worker has its host's name; Dask's own names are addresses and numbers."""
    name = str(get_worker().name)
    is_named = "://" not in name and not name.isdecimal()
    return agent.carry_out(assignment, host=name if is_named else host, bundle=bundle, again=again)


class DaskEngine:
    """Tasks on the workers of one scheduler. They end with the client, but agents do not."""

    outlives_us = False
    one_at_a_time = True

    def __init__(self, client: Client, cluster: Any) -> None:
        """Take a connected client, and the cluster that we have started, if any."""
        self._client = client
        self._cluster = cluster
        # The future and the worker's address of each job.
        self._jobs: dict[str, tuple[Future, str]] = {}

    def select(self, entry: HostEntry) -> Sequence[str]:
        """Dask selects no hosts: each is named."""
        return () if entry.name is None else (entry.name,)

    def absent(self, hosts: Sequence[str]) -> Mapping[str, str]:
        """The hosts without exactly one worker that takes one shard at a time."""
        workers = self._workers()
        reasons = {host: _unfit(host, _matching(host, workers), workers) for host in hosts}
        return {host: reason for host, reason in reasons.items() if reason is not None}

    def _workers(self) -> Mapping[str, Mapping[str, Any]]:
        """The workers, by address."""
        workers: Mapping[str, Mapping[str, Any]] = self._client.scheduler_info(n_workers=-1)[
            "workers"
        ]
        return workers

    def submit(
        self, assignments: Sequence[Assignment], *, again: bool
    ) -> Iterator[tuple[str, str]]:
        """Submit one task for each shard, pinned to its host's worker."""
        workers = self._workers()
        for task in assignments:
            (address,) = _matching(task.host, workers)
            encoded = msgspec.json.encode(task)
            future = self._client.submit(
                _carry_out,
                encoded,
                task.host,
                self._bundle_for(address, task, encoded),
                again,
                key=f"corebound-{task.shard}-{os.urandom(4).hex()}",
                workers=[address],
                # A shard is a question about one host.
                allow_other_workers=False,
                pure=False,
                retries=0,
                resources={RESOURCE: 1},
            )
            self._jobs[future.key] = future, address
            yield task.shard, future.key

    def _bundle_for(self, address: str, task: Assignment, encoded: bytes) -> bytes | None:
        """The bundle, if the worker's host has neither the commit nor a path to it."""
        needed = self._client.run(agent.needs_bundle, encoded, workers=[address])
        return Path(task.bundle).read_bytes() if needed.get(address) else None

    def poll(self, jobs: Mapping[str, tuple[Assignment, str]]) -> Mapping[str, JobState]:
        """The state of tasks; a task whose worker has gone is lost, not waited for."""
        workers = self._workers()
        return {shard: self._state(job, workers) for shard, (_, job) in jobs.items()}

    def _state(self, job: str, workers: Mapping[str, Any]) -> JobState:
        if job not in self._jobs:
            return JobState(state="lost", reason="the command that waited for it ended")
        future, address = self._jobs[job]
        if future.status == "finished":
            report = msgspec.json.decode(future.result(), type=ShardReport)
            self._forget(job)
            return JobState(state="ended", report=report)
        if future.status in {"error", "cancelled"}:
            error = future.exception() if future.status == "error" else None
            self._forget(job)
            reason = f"{type(error).__name__}: {error}" if error else "Dask dropped the task"
            return JobState(state="lost", reason=reason)
        if address not in workers:
            self._forget(job)
            return JobState(state="lost", reason=f"the worker at {address} is gone")
        return JobState(state="running")

    def _forget(self, job: str) -> None:
        future, _ = self._jobs.pop(job)
        with suppress(OSError, RuntimeError):
            future.cancel()

    def cancel(self, jobs: Mapping[str, tuple[Assignment, str]]) -> None:
        """Stop the agents' runs: cancelling a task does not end what it has started."""
        workers = self._workers()
        for task, job in jobs.values():
            for address in _matching(task.host, workers):
                self._client.run(agent.stop, msgspec.json.encode(task), workers=[address])
            if job in self._jobs:
                self._forget(job)

    def read(self, host: str, record: RecordFile) -> bytes | None:
        """A file of records, in pieces, from the worker of its host."""
        addresses = _matching(host, self._workers())
        data = b""
        while addresses and len(data) < record.size_bytes:
            pieces = self._client.run(
                agent.read_chunk, record.path, len(data), workers=addresses[:1], on_error="return"
            )
            piece = pieces.get(addresses[0])
            if not isinstance(piece, bytes) or not piece:
                return None
            data += piece
        return data if addresses else None

    def close(self) -> None:
        """Disconnect, and end the cluster that we have started."""
        with suppress(OSError, TimeoutError):
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _matching(host: str, workers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The addresses of a host's workers: by their name, else by the host's address."""
    named = [address for address, worker in workers.items() if str(worker["name"]) == host]
    if named:
        return named
    addresses = {host}
    with suppress(OSError):
        addresses.add(socket.gethostbyname(host))
    return [address for address, worker in workers.items() if worker.get("host") in addresses]


def _unfit(
    host: str, addresses: Sequence[str], workers: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """Why a host can start nothing; None if it can."""
    if not addresses:
        return f"no worker of {host} is connected: `{_WORKER}`"
    if len(addresses) > 1:
        return f"{host} has {len(addresses)} workers, and must have one: `{_WORKER}`"
    if not workers[addresses[0]].get("resources", {}).get(RESOURCE):
        return f"the worker of {host} does not announce the resource `{RESOURCE}`: `{_WORKER}`"
    return None
