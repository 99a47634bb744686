"""`corebound inspect` on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import corebound
from corebound.errors import HostError, InputError
from support import needs

# Four processes that compute, all of them on the first CPU.
_BOUND = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(4):
    if os.fork() == 0:
        while True:
            pass
print("ready", flush=True)
os.wait()
"""
_MANY_THREADS = """
import threading, time
for _ in range(2000):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
"""
_LISTENING = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
time.sleep(1000)
"""


@contextmanager
def running(code: str) -> Iterator[tuple[int, str]]:
    """A Python program: its process id, and its first line of output."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@needs.two_cpus
def test_workers_on_one_cpu_are_found_with_their_processes() -> None:
    with running(_BOUND) as (pid, _):
        found = corebound.inspect(pid, seconds=2)

    finding = next(one for one in found if one.rule == "workers-overlap")
    assert len(finding.pids) == 4
    assert pid not in finding.pids
    assert found.exit_code == 1


def test_a_service_is_found_by_its_port_and_may_be_idle() -> None:
    with running(_LISTENING) as (pid, port):
        found = corebound.inspect(port=int(port), seconds=1)

    assert found.state == "idle"
    assert [one["pid"] for one in found.document["processes"]] == [pid]


def test_thousands_of_threads_are_counted_at_little_cost() -> None:
    with running(_MANY_THREADS) as (pid, _):
        document = corebound.inspect(pid, seconds=5).document

    assert document["processes"][0]["threads"] == 2001
    # CPU time, so that other programs do not matter; 5,000 threads over 30 s stay below 2 %.
    assert document["cost"]["cpu_share"] < 0.1


def test_a_service_that_has_ended_cannot_be_inspected() -> None:
    with running("print('ready', flush=True)") as (pid, _):
        pass

    with pytest.raises((InputError, HostError)):
        corebound.inspect(pid, seconds=1)
