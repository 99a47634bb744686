"""Targets and options that try to break `corebound inspect`.

Each has the exit codes that are right. In every case there must be no traceback, no hang, valid
JSON, and no control character of foreign text.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.inspect_services.inspector import Answer, ask
from benchmarks.inspect_services.service import Running, Service, started

_SECONDS = 2
_SLEEP = ("sleep", "1000")
_FORKING = ("sh", "-c", "while :; do sleep 0.01 & /bin/true; done")
_MANY = ("sh", "-c", "for i in $(seq 500); do sleep 1000 & done; wait")
_EXEC = ("sh", "-c", "sleep 2; exec sleep 1000")
_STEPS = ("{python}", "{programs}/steps.py", "hashing-threads", "--threads", "2")


class Attempt(Struct, frozen=True, kw_only=True):
    """What to inspect, and the exit codes that are right.

    Attributes:
        name: Its name in the table.
        codes: The exit codes that are right.
        command: A service to start; None if there is none.
        arguments: The arguments, in which `{pid}` is the service's process.
        meanwhile: What happens to the service during the interval.
        before: What happens to it before; prefix: a command that runs the inspector.
    """

    name: str
    codes: frozenset[int]
    command: tuple[str, ...] | None = None
    arguments: tuple[str, ...] = ("{pid}",)
    meanwhile: Callable[[Running], object] | None = None
    before: Callable[[Running], object] | None = None
    prefix: tuple[str, ...] = ()


def _kill(running: Running) -> None:
    """End the process, and reap it."""
    running.process.kill()
    running.process.wait()


def _reuse(running: Running) -> None:
    """End the process, and give its id to another one."""
    _kill(running)
    for _ in range(100):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(running.pid - 1), "ascii")
        other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        if other.pid == running.pid:
            threading.Timer(_SECONDS + 2, other.kill).start()
            return
        other.kill()
        other.wait()
    raise RuntimeError("no process got the same id")


def _leave_zombie(running: Running) -> None:
    """End the process without reaping it."""
    running.process.kill()
    time.sleep(0.1)


_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
_BAD = frozenset({2})
_ANY = frozenset({0, 1, 3})

ATTEMPTS = (
    *(
        Attempt(name=f"PID {pid!r}", codes=_BAD, arguments=("--", pid))
        for pid in ("4194303", "0", "-1", "x", "9" * 40, "", "1.5", "٣")
    ),
    *(
        Attempt(name=" ".join(options), codes=_BAD, command=_SLEEP, arguments=options)
        for options in (
            ("--port", "1"),
            ("--port", "99999"),
            ("--port", "x"),
            ("--name", "no-such-program-anywhere"),
            ("--name", "["),
            ("--name", ""),
            ("--cgroup", "/no/such/group"),
            ("--cgroup", "../../etc"),
            ("{pid}", "--name", "sleep"),
            ("{pid}", "--every", "0s"),
            ("{pid}", "--every", "x"),
        )
    ),
    *(
        Attempt(
            name=f"--seconds {seconds}",
            codes=_BAD,
            command=_SLEEP,
            arguments=("{pid}", "--seconds", seconds),
        )
        for seconds in ("0", "-1", "nan", "inf", "1e9", "x")
    ),
    Attempt(name="no target", codes=_BAD, arguments=()),
    Attempt(name="a kernel thread", codes=_BAD, arguments=("2",)),
    Attempt(name="the first process", codes=_ANY, arguments=("1",)),
    Attempt(name="itself", codes=_ANY, arguments=(str(os.getpid()),)),
    Attempt(name="a zombie", codes=_BAD, command=_SLEEP, before=_leave_zombie),
    Attempt(name="it ends at once", codes=frozenset({2}), command=_SLEEP, before=_kill),
    Attempt(name="it ends meanwhile", codes=frozenset({3}), command=_STEPS, meanwhile=_kill),
    Attempt(
        name="another process gets its id", codes=frozenset({3}), command=_STEPS, meanwhile=_reuse
    ),
    Attempt(
        name="stopped",
        codes=frozenset({0, 3}),
        command=_SLEEP,
        before=lambda running: running.process.send_signal(signal.SIGSTOP),
    ),
    Attempt(name="children that end at once", codes=_ANY, command=_FORKING),
    Attempt(name="500 processes", codes=frozenset({0}), command=_MANY),
    Attempt(name="another program in the same process", codes=frozenset({0}), command=_EXEC),
    Attempt(
        name="5,000 threads",
        codes=frozenset({0}),
        command=("{pool}", "sleep", "5000", "{folder}"),
    ),
    Attempt(
        name="hostile names, as JSON", codes=_ANY, command=("{python}", "{programs}/hostile.py")
    ),
    Attempt(
        name="hostile names, as text",
        codes=_ANY,
        command=("{python}", "{programs}/hostile.py"),
        arguments=("{pid}", "--text"),
    ),
    Attempt(
        name="a service of nobody",
        codes=frozenset({0}),
        command=(*_NOBODY, "/usr/bin/python3", *_STEPS[1:2], "waiting-threads", "--pause", "0.5"),
    ),
    Attempt(name="as nobody, one of root", codes=_ANY, command=_STEPS, prefix=_NOBODY),
    Attempt(
        name="in its own PID namespace",
        codes=frozenset({0, 1}),  # it is busy, perhaps beside others
        command=("unshare", "-pf", "--mount-proc", *_STEPS),
    ),
    Attempt(
        name="from inside a PID namespace",
        codes=frozenset({0}),
        arguments=("1",),
        prefix=("unshare", "-pf", "--mount-proc"),
    ),
)


def run(corebound: str, patterns: Sequence[str]) -> None:
    """Try each, and print what was wrong."""
    good = 0
    attempts = [
        one for one in ATTEMPTS if any(fnmatch.fnmatch(one.name, pattern) for pattern in patterns)
    ]
    for attempt in attempts:
        answer, is_text = _attempt(corebound, attempt)
        faults = tuple(_faults(attempt, answer, is_text=is_text))
        good += not faults
        verdict = "; ".join(faults) or "right"
        print(f"{attempt.name:45} {answer.code:>4} {answer.took_s:6.1f} s  {verdict}", flush=True)
    print(f"\nhostile: {good} of {len(attempts)} right")


def _attempt(corebound: str, attempt: Attempt) -> tuple[Answer, bool]:
    with contextlib.ExitStack() as stack:
        arguments = [*attempt.arguments]
        if attempt.command is not None:
            service = Service(name="hostile", command=attempt.command, is_counted=False)
            running = stack.enter_context(started(service))
            arguments = [word.replace("{pid}", str(running.pid)) for word in arguments]
            if attempt.before:
                attempt.before(running)
            if attempt.meanwhile:
                timer = threading.Timer(2, attempt.meanwhile, (running,))
                timer.start()
                stack.callback(timer.join)
        is_text = "--text" in arguments
        arguments = [word for word in arguments if word != "--text"]
        options = [] if is_text else ["--json"]
        if "--seconds" not in arguments:
            options += ["--seconds", str(_SECONDS + 2 * bool(attempt.meanwhile))]
        command = [*attempt.prefix, corebound]
        return ask(command, [*options, *arguments], limit_s=60), is_text


def _faults(attempt: Attempt, answer: Answer, *, is_text: bool) -> Iterator[str]:
    if answer.code not in attempt.codes:
        yield f"exit code {answer.code}: {' '.join(answer.errors.split())[-160:]}"
    if "Traceback" in answer.errors + answer.text:
        yield "a traceback"
    if not is_text and not answer.document:
        yield "no JSON"
    for text in (answer.text, answer.errors):
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text):
            yield "a control character of foreign text"
        if is_text and re.search(r"^\W*FORGED", text, re.MULTILINE):
            yield "a forged line"
