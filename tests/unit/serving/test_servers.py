"""Specifies how servers are configured, and how lines travel over a child's pipes."""

import os
import subprocess
from pathlib import Path

import pytest

from corebound.launch import thread_sampler
from corebound.launch.thread_sampler import ThreadSampler
from corebound.launch.worker_connection import Pipes
from corebound.serving.processes import ServerWorker
from corebound.serving.served_model import ServedModel
from corebound.serving.servers import BuiltInServer, TorchServe, find_java
from corebound.worker import protocol


def a_program(file: Path) -> Path:
    file.parent.mkdir(parents=True)
    file.write_text("#!/bin/sh\n", encoding="ascii")
    file.chmod(0o755)
    return file


def test_java_of_java_home_comes_before_that_of_path(tmp_path: Path) -> None:
    of_home = a_program(tmp_path / "home" / "bin" / "java")
    of_path = a_program(tmp_path / "path" / "java")
    variables = {"PATH": str(of_path.parent), "JAVA_HOME": str(tmp_path / "home")}

    assert find_java(variables) == str(of_home)
    assert find_java({"PATH": variables["PATH"]}) == str(of_path)


def settings_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What TorchServe finds in its configuration."""
    monkeypatch.setenv("JAVA_HOME", str(a_program(tmp_path / "java" / "bin" / "java").parents[1]))
    folder = tmp_path / "work"
    folder.mkdir()
    python = tmp_path / "environment" / "bin" / "python"
    model = ServedModel(folder=tmp_path)
    model.jpeg.touch()
    server = TorchServe(model, workers=2, pinned=None, python=python, reports=tmp_path)
    told = server.write(folder)
    assert told["PATH"].split(os.pathsep)[0] == str(python.parent)
    lines = (folder / "config.properties").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_torchserve_needs_no_token_and_listens_on_loopback_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, monkeypatch)

    assert ("disable_token_authorization", "true") in settings.items()
    addresses = [value for name, value in settings.items() if name.endswith("_address")]
    assert len(addresses) == 3
    assert all(address.startswith("http://127.0.0.1:") for address in addresses)


def test_every_interface_has_its_own_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(tmp_path, monkeypatch)

    ports = [
        value.rpartition(":")[2]
        for name, value in settings.items()
        if name.endswith(("_address", "_port"))
    ]
    assert len(set(ports)) == len(ports) == 5


def test_workers_are_the_live_processes_that_have_reported(tmp_path: Path) -> None:
    model = ServedModel(folder=tmp_path)
    server = BuiltInServer("fastapi", model, body=model.jpeg, reports=tmp_path, workers=2)
    (tmp_path / f"{os.getpid()}.json").touch()
    ended = subprocess.Popen(("true",))
    ended.wait()
    (tmp_path / f"{ended.pid}.json").touch()

    alive = ServerWorker(id=str(os.getpid()), pid=os.getpid(), ready=True)
    assert server.workers() == (alive,)


def test_lines_arrive_complete_in_any_pieces() -> None:
    pipes = Pipes()
    theirs = os.dup(pipes.child_ends[1])
    pipes.close_child_ends()

    os.write(theirs, b"one\ntw")
    first = list(pipes.lines())
    os.write(theirs, b"o\n")
    second = list(pipes.lines())
    os.close(theirs)
    last = list(pipes.lines())

    assert (first, second, last, pipes.open) == ([b"one"], [b"two"], [], False)
    pipes.close()


def test_sending_to_an_ended_process_fails() -> None:
    pipes = Pipes()
    pipes.close_child_ends()

    assert not pipes.send(protocol.GO)
    pipes.close()


@pytest.mark.parametrize(("seconds", "pause_s"), [(1, 0.01), (100, 0.25), (4000, 10.0)])
def test_long_launches_are_sampled_less_often(
    seconds: int, pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = 10**12
    monkeypatch.setattr("time.monotonic_ns", lambda: now_ns)
    watch = ThreadSampler(os.getpid())
    watch.start()
    now_ns += seconds * 10**9

    # Looking costs nothing yet; 400 looks in the time that has gone.
    assert watch.pause_s == pytest.approx(
        max(thread_sampler.SHORTEST_S, seconds / thread_sampler.TARGET_SAMPLES)
    )
    assert watch.pause_s >= pause_s
