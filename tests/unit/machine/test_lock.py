"""Specifies who holds the host lock, and how others wait for it."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from corebound.errors import HostError
from corebound.machine import lock


@pytest.fixture(autouse=True)
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the lock of the host that the tests run on."""
    monkeypatch.setenv(lock.LOCK_VARIABLE, str(tmp_path))


def take() -> None:
    with lock.host_lock():
        pass


@pytest.mark.parametrize("other", ["", "/nowhere"])
def test_the_lock_does_not_depend_on_tmpdir(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    with lock.host_lock():
        monkeypatch.setenv("TMPDIR", other)

        assert lock.is_held()
        with pytest.raises(HostError, match="is measuring"):
            take()


def test_a_refusal_names_the_process_that_holds_the_lock() -> None:
    with lock.host_lock(), pytest.raises(HostError) as refused:
        take()

    assert f"process {os.getpid()} of " in refused.value.what
    assert "python" in refused.value.what
    assert refused.value.exit_code == 3


def test_the_lock_is_free_once_its_holder_ends() -> None:
    take()

    assert not lock.is_held()
    take()


def test_a_waiting_process_names_the_holder_and_continues_when_it_ends() -> None:
    holder, told = ExitStack(), []
    holder.enter_context(lock.host_lock())

    def waiting(name: str) -> None:
        told.append(name)
        holder.close()

    with lock.host_lock(wait_s=3600, waiting=waiting):
        assert lock.is_held()

    assert len(told) == 1
    assert f"process {os.getpid()}" in told[0]


def test_a_holder_that_does_not_listen_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _s: None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as squatter:
        squatter.bind(f"\0{lock._name()}")

        with pytest.raises(HostError, match="cannot be seen"):
            take()


@contextmanager
def a_shell(name: str) -> Iterator[int]:
    """A process that has become a shell called so, which lives until the end of the block."""
    (told, tell), (ended, end) = os.pipe(), os.pipe()
    child = os.posix_spawn(
        "/bin/sh",
        [name, "-c", "echo; read line"],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, ended, 0), (os.POSIX_SPAWN_DUP2, tell, 1)],
    )
    os.read(told, 1)
    try:
        yield child
    finally:
        os.close(end)
        os.waitpid(child, 0)
        for descriptor in (told, tell, ended):
            os.close(descriptor)


def test_a_child_that_becomes_another_program_does_not_keep_the_lock() -> None:
    with ExitStack() as stack:
        with lock.host_lock():
            stack.enter_context(a_shell("sh"))
        take()


def test_a_command_line_is_shown_on_one_line_without_escape_sequences() -> None:
    with a_shell("sh\x1b[2J\n::error::") as child:
        described = lock.describe_process(child)

    assert described.startswith(f"process {child} of ")
    assert "sh [2J ::error::" in described
    assert described.isprintable()


def test_a_process_that_has_ended_is_shown_by_its_id() -> None:
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)

    assert lock.describe_process(child) == f"process {child}"
