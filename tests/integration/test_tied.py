"""A command that ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from corebound.launch import die_with_parent
from support.commands import is_running

STARTS_ONE = """\
import subprocess, sys
from corebound.launch import die_with_parent

process = subprocess.Popen(die_with_parent.words(("sleep", "900")))
print(process.pid, flush=True)
process.wait()
"""


def becomes(pid: int, word: str) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(word.encode())


def test_it_becomes_the_command_with_its_words_and_exit_code() -> None:
    done = subprocess.run(
        die_with_parent.words(("sh", "-c", 'echo "$0"; exit 7', "a b")),
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (7, b"a b\n")


def test_a_program_that_is_not_there_is_said_as_a_shell_does() -> None:
    done = subprocess.run(
        die_with_parent.words(("no-such-program",)), capture_output=True, check=False
    )

    assert done.returncode == 127
    assert done.stderr == b"no-such-program: No such file or directory\n"


def test_whoever_started_it_is_killed_and_it_ends() -> None:
    with subprocess.Popen((sys.executable, "-c", STARTS_ONE), stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        deadline_s = time.monotonic() + 30
        while not becomes(pid, "sleep"):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        starter.send_signal(signal.SIGKILL)

    while is_running(pid):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_one_whose_starter_is_gone_already_does_nothing() -> None:
    words = list(die_with_parent.words(("echo", "late")))
    words[words.index(str(os.getpid()))] = "1"

    done = subprocess.run(words, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (143, b"")
