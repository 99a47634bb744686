"""die_with_parent: a command ends with the process that started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corebound.launch import die_with_parent
from support.commands import is_running, until

pytestmark = pytest.mark.quick

PARENT = """\
import subprocess, sys
from corebound.launch import die_with_parent

process = subprocess.Popen(die_with_parent.wrap(("sleep", "900")))
print(process.pid, flush=True)
process.wait()
"""


def test_the_wrapper_becomes_the_command_with_its_arguments_and_exit_code() -> None:
    completed = subprocess.run(
        die_with_parent.wrap(("sh", "-c", 'echo "$0"; exit 7', "a b")),
        capture_output=True,
        check=False,
    )

    assert (completed.returncode, completed.stdout) == (7, b"a b\n")


def test_a_missing_program_is_reported_as_a_shell_does() -> None:
    completed = subprocess.run(
        die_with_parent.wrap(("no-such-program",)), capture_output=True, check=False
    )

    assert completed.returncode == 127
    assert completed.stderr == b"no-such-program: No such file or directory\n"


def test_the_command_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen((sys.executable, "-c", PARENT), stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"))
        starter.send_signal(signal.SIGKILL)

    until(lambda: not is_running(pid))


def test_without_a_parent_the_command_does_not_start() -> None:
    arguments = list(die_with_parent.wrap(("echo", "late")))
    arguments[arguments.index(str(os.getpid()))] = "1"

    completed = subprocess.run(arguments, capture_output=True, check=False)

    assert (completed.returncode, completed.stdout) == (143, b"")
