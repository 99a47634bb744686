"""`corebound inspect` on real processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import corebound
from corebound.errors import HostError, InputError
from corebound.machine.procfs import process_stat
from support import commands, needs

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
# Workers that inherit a listening socket; their parent stays, or ends.
_FORKED_LISTENERS = """
import os, socket, time
listener = socket.create_server(("127.0.0.1", 0))
for _ in range(2):
    if os.fork() == 0:
        time.sleep(1000)
print(listener.getsockname()[1], flush=True)
time.sleep({0})
"""
_LOCKED = """
import threading
def count():
    while True:
        pass
for _ in range(3):
    threading.Thread(target=count, daemon=True).start()
print("ready", flush=True)
count()
"""
_HOSTILE = b"\xff\x1b[2J\nFORGED: \"'{x}\\"
_HOSTILE_NAME = """
import time
with open("/proc/self/comm", "wb") as file:
    file.write(b"\\xff\\x1b[1m\\n' ")
print("ready", flush=True)
while True:
    pass
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


@needs.two_cpus
def test_python_threads_that_take_turns_are_told_from_a_pool() -> None:
    with running(_LOCKED) as (pid, _):
        found = corebound.inspect(pid, seconds=4)

    # Beside other busy programs, the threads wait for a CPU as well as for the lock.
    rules = {one.rule for one in found}
    assert rules & {"interpreter-lock", "foreign-load", "steal"}
    assert not rules & {"more-threads-than-cpus", "processes-with-all-threads"}


@pytest.mark.parametrize(("stays_s", "processes"), [(1000, 3), (0, 2)])
def test_a_listener_that_was_forked_is_found_with_all_that_share_it(
    stays_s: int, processes: int
) -> None:
    with running(_FORKED_LISTENERS.format(stays_s)) as (pid, port):
        while stays_s == 0 and (stat := process_stat(pid)) and stat.state != "Z":
            time.sleep(0.01)
        document = corebound.inspect(port=int(port), seconds=1).document

    assert len(document["processes"]) == processes


def test_a_service_that_ends_meanwhile_cannot_be_seen() -> None:
    with (
        running("print(flush=True); import time; time.sleep(1)") as (pid, _),
        pytest.raises(HostError, match="ended while it was watched"),
    ):
        corebound.inspect(pid, seconds=3)


def test_a_watch_prints_a_line_of_json_for_each_look(tmp_path: Path) -> None:
    with running("print(flush=True); import time; time.sleep(1000)") as (pid, _):
        watch = commands.start(tmp_path, "inspect", str(pid), "--every", "1s", "--json")
        assert watch.stdout is not None
        looks = [json.loads(watch.stdout.readline()) for _ in range(2)]
        watch.send_signal(signal.SIGINT)
        watch.communicate()

    assert [look["processes"][0]["pid"] for look in looks] == [pid, pid]


def test_a_zombie_has_ended() -> None:
    with running("print('ready', flush=True)") as (pid, _):
        while (stat := process_stat(pid)) and stat.state != "Z":
            time.sleep(0.01)
        with pytest.raises(InputError, match="zombie"):
            corebound.inspect(pid, seconds=1)


def test_a_thread_of_the_kernel_is_no_service() -> None:
    kernel = process_stat(2)
    if kernel is None or not kernel.is_kernel:
        pytest.skip("this PID namespace has no threads of the kernel")

    with pytest.raises(InputError, match="part of the kernel"):
        corebound.inspect(2, seconds=1)


def test_a_name_that_only_its_own_command_line_has_matches_nothing(tmp_path: Path) -> None:
    with commands.start(tmp_path, "inspect", "--name", "no-other-program-has-this") as process:
        _, errors = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "no process has such a name" in errors


def test_hostile_names_stay_on_their_line_and_a_scenario_of_them_is_valid(tmp_path: Path) -> None:
    hostile = [_HOSTILE, b"-c", _HOSTILE_NAME.encode(), b"--token", _HOSTILE]
    with subprocess.Popen(hostile, executable=sys.executable, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        asked = ("inspect", str(process.pid), "--seconds", "1")
        text = commands.corebound(tmp_path, *asked, "--save", "saved.yaml")
        document = commands.corebound(tmp_path, *asked, "--json")
        process.kill()

    unsafe = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]|^\W*FORGED", re.MULTILINE)
    for completed in (text, document):
        assert completed.code in {0, 1}, completed.err
        assert not unsafe.search(completed.out)
    assert json.loads(document.out)["processes"][0]["pid"] == process.pid
    assert "FORGED" not in json.dumps(json.loads(document.out)["processes"][0]["command"][-1])
    for command in ("check", "plan"):
        assert commands.corebound(tmp_path, command, "saved.yaml").code == 0


@needs.root
def test_a_service_of_another_user_is_seen_by_root() -> None:
    busy = ("/bin/sh", "-c", "while :; do :; done")
    with subprocess.Popen(busy, user=65534, group=65534) as process:
        document = corebound.inspect(process.pid, seconds=1).document
        process.kill()

    assert document["processes"][0]["user"] == 65534
    assert document["unseen"] == []


@needs.root
def test_without_the_right_to_see_it_another_user_is_told_what_would_allow_it() -> None:
    with running("print(flush=True)\nwhile True: pass") as (pid, _):
        corebound.inspect(pid, seconds=1)  # imports what the other user might not read
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            found = corebound.inspect(pid, seconds=1)
            is_told = "variables" in found.unseen[0].what and "root" in found.unseen[0].fix
            os._exit(found.exit_code if is_told else 99)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert code in {1, 3}  # 1: other programs may keep it waiting


@needs.root
def test_a_service_in_a_pid_namespace_is_seen_from_the_host_with_both_ids() -> None:
    inside = ("unshare", "-pf", "--mount-proc", sys.executable, "-c", "while True: pass")
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    with subprocess.Popen(inside, stderr=subprocess.DEVNULL, process_group=0) as process:
        time.sleep(1)
        if process.poll() is not None:
            pytest.skip("this host allows no PID namespace")
        document = corebound.inspect(process.pid, seconds=1).document
        os.killpg(process.pid, signal.SIGKILL)

    (service,) = [one for one in document["processes"] if one["inner_pid"] is not None]
    assert service["inner_pid"] == 1
    assert service["parent"] == process.pid
