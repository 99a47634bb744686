"""Hardware counters of a launch, by `perf stat` beside it (docs/adr, "perf stat from outside")."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct, field

from corebound.errors import LaunchError
from corebound.launch import perf_csv
from corebound.launch.gpu_use import UNUSED, GpuWatch
from corebound.launch.supervise import Supervision

_PLAIN = ("cycles", "instructions", "LLC-load-misses", "node-load-misses")
# Where the kernel names these, it can count them; the slots have to lead their group.
_GROUP = ("slots", *perf_csv.LEVEL_1, perf_csv.MEMORY_BOUND)
_PMUS = ("cpu", "cpu_core")
_DEVICES = Path("/sys/bus/event_source/devices")

# How long perf may take to attach, and to write what it counted. It takes some 30 ms, with
# many threads more.
PATIENCE_S = 2.0
_ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


class Offer(Struct, frozen=True, kw_only=True):
    """What this host can count of a launch.

    Attributes:
        events: As `perf stat -e` takes them; a group is one of them. Empty: nothing.
        unavailable: What cannot be counted, and why.
        gpus: Looks at its GPUs meanwhile.
    """

    events: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    gpus: GpuWatch = UNUSED


def offer() -> Offer:
    """Try which counters there are, on a command that does nothing."""
    if shutil.which("perf") is None:
        return Offer(unavailable={"hardware counters": "perf is not installed"})
    groups = [group for pmu in _PMUS if (group := _group(pmu))]
    tried = [*_PLAIN, *groups]
    command = ("perf", "stat", "-x,", *_asked(tried), "--", "true")
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            timeout=PATIENCE_S,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Offer(unavailable={"hardware counters": f"perf could not be run: {error}"})
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it ended without a word"])[0]
        return Offer(unavailable={"hardware counters": f"perf: {said}"})
    return offered(tried, perf_csv.parse(done.stderr))


def offered(tried: Collection[str], counts: Mapping[str, perf_csv.Count]) -> Offer:
    """Of the events that were tried those that this host supports."""
    missing = {
        event: "not supported by this host"
        for one in tried
        for event in _names(one)
        if event not in counts or counts[event].reason == "not supported"
    }
    events = tuple(one for one in tried if not any(name in missing for name in _names(one)))
    if not events:
        return Offer(unavailable={"hardware counters": "not supported by this host"})
    return Offer(events=events, unavailable=missing)


def _names(one: str) -> tuple[str, ...]:
    parts = one.strip("{}").split(",")
    return tuple(part.split("/")[1] if "/" in part else part for part in parts)


def _group(pmu: str) -> str | None:
    named = [name for name in _GROUP if (_DEVICES / pmu / "events" / name).exists()]
    if not set(named) >= {"slots", *perf_csv.LEVEL_1}:
        return None
    return "{" + ",".join(f"{pmu}/{name}/" for name in named) + "}"


def _asked(events: Collection[str]) -> tuple[str, ...]:
    return tuple(word for event in events for word in ("-e", event))


class Perf:
    """One `perf stat` that is attached to processes; says why where it cannot be."""

    def __init__(self, events: Collection[str], supervision: Supervision, scratch: Path) -> None:
        self._events = tuple(events)
        self._supervision = supervision
        self._out, self._said = scratch / "perf.csv", scratch / "perf.log"
        self._fifos = (scratch / "perf.control", scratch / "perf.ack")
        self._pid: int | None = None
        self._control = self._ack = -1
        self.reason: str | None = None

    def start(self, pids: Collection[int]) -> None:
        """Attach to processes and what they will start; nothing is counted yet."""
        for fifo in self._fifos:
            os.mkfifo(fifo)
        self._control, self._ack = (os.open(fifo, os.O_RDWR | os.O_CLOEXEC) for fifo in self._fifos)
        # A session of its own, below the supervisor: whatever happens, it goes with the launch.
        with self._said.open("wb") as said, Path(os.devnull).open("r+b") as nothing:
            descriptors = (said.fileno(), nothing.fileno(), nothing.fileno())
            try:
                self._pid = self._supervision.spawn(
                    (
                        *("perf", "stat", "-x,", "-o", str(self._out), "--delay=-1"),
                        *("--control", f"fifo:{self._fifos[0]},{self._fifos[1]}"),
                        *_asked(self._events),
                        *("-p", ",".join(map(str, sorted(pids)))),
                    ),
                    env=_ENVIRONMENT,
                    cwd=self._out.parent,
                    descriptors=descriptors,
                )
            except LaunchError as error:
                self.reason = error.what

    def count(self) -> None:
        """Count from here."""
        self._tell("enable")

    def stop(self) -> None:
        """Count no more."""
        self._tell("disable")

    def close(self) -> dict[str, perf_csv.Count]:
        """End it; what it counted by event, empty with a `reason` where that is nothing."""
        if self._pid is not None:
            self._end(self._pid)
        for descriptor in (self._control, self._ack):
            if descriptor >= 0:
                os.close(descriptor)
        self._pid, self._control, self._ack = None, -1, -1
        if self.reason is not None:
            return {}
        with contextlib.suppress(OSError):
            return perf_csv.parse(self._out.read_text(encoding="utf-8", errors="replace"))
        self.reason = "perf wrote nothing"
        return {}

    def _tell(self, word: str) -> None:
        """Tell perf something, and wait until it has done it."""
        if self.reason is not None or self._pid is None:
            return
        os.write(self._control, f"{word}\n".encode())
        give_up_s = time.monotonic() + PATIENCE_S
        while not select.select([self._ack], [], [], 0.01)[0]:
            if self._supervision.exit_code(self._pid) is not None:
                self.reason = f"perf: {self._last_words()}"
                return
            if time.monotonic() > give_up_s:
                self.reason = "perf did not answer"
                return
        os.read(self._ack, 64)

    def _end(self, pid: int) -> None:
        for sign in (signal.SIGINT, signal.SIGKILL):
            give_up_s = time.monotonic() + PATIENCE_S
            if self._supervision.exit_code(pid) is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sign)
            while self._supervision.exit_code(pid) is None and time.monotonic() < give_up_s:
                select.select([self._supervision], [], [], 0.01)

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._said.read_text(encoding="utf-8", errors="replace").split("\n")
            return next((line.strip() for line in lines if line.strip()), "it ended without a word")
        return "it ended without a word"
