"""What is verified of a server launch: binding, counters and the load generator."""

import contextlib
import functools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from corebound.launch import perf
from corebound.launch.launch import LaunchResult
from corebound.launch.perf import CounterSupport
from corebound.launch.supervisor_client import Supervision
from corebound.machine.procfs import processes_below
from corebound.serving.own_server import DeclaredServer
from corebound.serving.served_model import ServedModel
from corebound.serving.session import ServingSpec
from support import needs
from support.servers import Serve, make_scratch, server_launcher

pytestmark = [pytest.mark.frameworks, needs.java]


class Misled:
    """A server whose PATH begins with another folder than it was given."""

    def __init__(self, server: DeclaredServer, first: Path) -> None:
        self._server, self._first = server, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def write(self, folder: Path) -> dict[str, str]:
        needs = self._server.write(folder)
        return needs | {"PATH": f"{self._first}:{needs['PATH']}"}


def broken(program: str, folder: Path) -> Callable[[ServingSpec], ServingSpec]:
    """An order whose server finds, before any other, a program of this name that fails.

    It leaves a file `asked` in the folder.
    """
    first = folder / "bin"
    first.mkdir()
    arguments = f"#!/bin/sh\ntouch {folder}/asked\nexit 1\n"
    (first / program).write_text(arguments, encoding="utf-8")
    (first / program).chmod(0o755)

    def change(order: ServingSpec) -> ServingSpec:
        def server(model: ServedModel, reports: Path) -> Any:
            return Misled(order.server(model, reports), first)

        return replace(order, server=server)

    return change


@needs.two_cpus
def test_a_launcher_that_binds_nothing_is_detected(served: Serve, tmp_path: Path) -> None:
    # TorchServe asks the `python` of PATH whether there is a launcher (pytorch/serve#3049).
    outcome = served(binding="launcher", change=broken("python", tmp_path))

    assert outcome.status == "invalid"
    assert any("its slot is" in one for one in outcome.evidence)
    assert "`python` first on its PATH" in (outcome.fix or "")
    # What each worker really got is there.
    every = tuple(sorted(os.sched_getaffinity(0)))
    assert {thread.allowed[0] for worker in outcome.workers for thread in worker.threads} == {every}


@needs.two_cpus
def test_without_numactl_the_launcher_binds_workers_with_taskset(
    served: Serve, tmp_path: Path
) -> None:
    # As in a container that forbids set_mempolicy.
    outcome = served(binding="launcher", change=broken("numactl", tmp_path))

    assert (outcome.status, outcome.evidence) == ("ok", ())
    assert (tmp_path / "asked").exists()
    assert len({worker.threads[0].allowed for worker in outcome.workers}) == 2


def listening(pid: int) -> Iterator[str]:
    """The addresses on which a process takes connections, as the kernel writes them (proc(5))."""
    with contextlib.suppress(OSError):
        open_files = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
        for table in ("tcp", "tcp6"):
            for line in Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]:
                _, local, _, state, *_, inode = line.split()[:10]
                if state == "0A" and f"socket:[{inode}]" in open_files:
                    yield local.rpartition(":")[0]


# 127.0.0.1, and the same as Java has it, mapped into IPv6.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


class Watched(Struct, frozen=True, kw_only=True):
    """A launch with which nothing is wrong, and where its processes took connections."""

    outcome: LaunchResult
    addresses: frozenset[str]


@functools.cache
def watched(server: str) -> Watched:
    """Launched once for all tests."""
    addresses: set[str] = set()
    others = processes_below(os.getpid()).keys()

    def look() -> None:
        for pid in processes_below(os.getpid()).keys() - others:
            addresses.update(listening(pid))

    counting = perf.detect_counters()
    if server == "torchserve":
        # A software event, which every kernel counts, in the place of a processor's.
        counting = CounterSupport(events=("task-clock",) if shutil.which("perf") else ())
    scratch = make_scratch()
    with Supervision(scratch) as supervision:
        outcome = server_launcher(scratch, supervision)(
            server=server,
            threads=1,
            tick=look,
            change=lambda order: replace(order, counting=counting),
        )
    return Watched(outcome=outcome, addresses=frozenset(addresses))


@pytest.mark.parametrize("server", ["torchserve", "litserve", "fastapi"])
def test_every_server_runs_with_the_requested_threads_and_listens_on_loopback_only(
    server: str,
) -> None:
    outcome, addresses = watched(server).outcome, watched(server).addresses

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    assert outcome.served is not None
    answered = outcome.served.answered
    assert answered.ok + sum(answered.errors.values()) == 40
    assert outcome.served.cpu_ns > 0
    assert [worker.threads_used for worker in outcome.workers] == [1, 1]
    assert {worker.environment["OMP_NUM_THREADS"] for worker in outcome.workers} == {"1"}
    assert addresses
    assert addresses <= LOOPBACK


@pytest.mark.quick
def test_host_samples_and_counters_are_recorded() -> None:
    outcome, offer = watched("litserve").outcome, perf.detect_counters()

    assert outcome.host is not None
    assert outcome.host.windows
    assert outcome.counters is not None
    assert outcome.counters.task_clock_ns
    if not offer.events:
        assert outcome.counters.source == "proc"
        assert outcome.counters.unavailable["hardware counters"]


@needs.perf
def test_perf_counts_the_tree_and_each_worker_and_leaves_no_process() -> None:
    outcome = watched("torchserve").outcome

    assert (outcome.status, outcome.leftover_processes) == ("ok", ())
    assert outcome.counters is not None
    assert (outcome.counters.source, outcome.counters.unavailable) == ("perf", {})
    counted = [worker.counters for worker in outcome.workers]
    assert [one.source for one in counted if one is not None] == ["perf", "perf"]


def test_without_java_the_launch_fails_and_says_how_to_install_it(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")

    outcome = served()

    assert outcome.status == "failed"
    assert "needs Java" in (outcome.reason or "")
    assert "default-jre-headless" in (outcome.fix or "")
