"""Collects a launch's hardware counters with `perf stat`, and parses its output."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.errors import LaunchError
from corebound.launch.host_sampler import NO_GPUS, GpuSampler
from corebound.launch.supervisor_client import Supervision
from corebound.records.launch_record import ThreadEvidence
from corebound.records.telemetry import Counters, HostOverTime, sum_known

# Events of the top-down method, counted in pipeline slots. The kernel lists them if the
# processor supports them: on Intel, level 1 since Ice Lake and level 2 since Sapphire Rapids.
LEVEL_1 = {
    "topdown-retiring": "retiring",
    "topdown-bad-spec": "bad_speculation",
    "topdown-fe-bound": "frontend_bound",
    "topdown-be-bound": "backend_bound",
}
MEMORY_BOUND = "topdown-mem-bound"

FIELDS = {
    "cycles": "cycles",
    "instructions": "instructions",
    "LLC-load-misses": "llc_misses",
    "node-load-misses": "remote_loads",
}


# If the other core types counted this share of the time, a core type without the event adds
# an error no larger than the difference between two launches.
_NEARLY_ALL = 0.99


class Count(Struct, frozen=True, kw_only=True):
    """The count of one event.

    Attributes:
        value: The count, scaled by perf to the whole time; None if there is none, with a
            `reason`.
        running_share: The share of the time in which the event was really counted.
        reason: `not supported` by this host, or `not counted` although supported.
        by_pmu: If several core types counted the event, the unscaled count of each PMU.
    """

    value: float | None
    running_share: float
    reason: str | None = None
    by_pmu: Mapping[str, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Count]:
    r"""Parse perf's CSV output into counts by event name without modifiers.

    Lines without an event are ignored. Lines of one event on several PMUs become one count.

    >>> found = parse("# started\n\n10,,cycles:u,500,50.00,,\n<not supported>,,slots,0,100.00,,\n")
    >>> found["cycles"].value, found["cycles"].running_share
    (10.0, 0.5)
    >>> found["slots"].reason
    'not supported'
    """
    counts: dict[str, dict[str, Count]] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if line.startswith("#") or len(fields) < 5 or not fields[2]:
            continue
        try:
            value = None if fields[0].startswith("<") else float(fields[0])
            running_share = float(fields[4]) / 100
        except ValueError:
            continue  # a metric, or a perf version with another output format
        reason = fields[0].strip("<>") if value is None else None
        pmu, event = _parts(fields[2])
        counts.setdefault(event, {})[pmu] = Count(
            value=value, running_share=running_share, reason=reason
        )
    return {event: _combine_pmus(by_pmu) for event, by_pmu in counts.items()}


def _parts(event: str) -> tuple[str, str]:
    """The PMU and event: `cpu_core/topdown-retiring/u` is `topdown-retiring` on `cpu_core`."""
    pmu, name = event.split("/")[:2] if event.count("/") >= 2 else ("", event)
    return pmu, name.partition(":")[0]


def _combine_pmus(by_pmu: Mapping[str, Count]) -> Count:
    """Combine one event's counts on the PMUs of several core types.

    The unscaled counts are added and scaled to the whole time, by the share of it in which any
    PMU counted. A PMU that counted nothing belongs to cores on which the launch did not run.
    If a PMU does not support the event, the sum is unknown, unless the other PMUs counted
    nearly all the time.
    """
    if len(by_pmu) == 1:
        return next(iter(by_pmu.values()))
    unscaled = {
        pmu: count.value * count.running_share
        for pmu, count in by_pmu.items()
        if count.value is not None and count.running_share > 0
    }
    running_share = sum(by_pmu[pmu].running_share for pmu in unscaled)
    reasons = {count.reason for count in by_pmu.values()}
    unsupported = [pmu for pmu, count in by_pmu.items() if count.reason == "not supported"]
    if not unscaled:
        reason = "not supported" if reasons == {"not supported"} else "not counted"
        return Count(value=None, running_share=0.0, reason=reason)
    if unsupported and running_share < _NEARLY_ALL:
        reason = f"not supported on {', '.join(unsupported)}"
        return Count(value=None, running_share=running_share, reason=reason)
    return Count(
        value=sum(unscaled.values()) / running_share,
        running_share=min(1.0, running_share),
        by_pmu=unscaled,
    )


def total_counts(counts_of_each: Sequence[Mapping[str, Count]]) -> dict[str, Count]:
    """Add up the counts of several `perf stat` processes; at least one is required.

    A count missing from any of them is missing from the sum, with the same reason.

    >>> one = {"cycles": Count(value=10.0, running_share=1.0)}
    >>> two = {"cycles": Count(value=5.0, running_share=0.5)}
    >>> total_counts([one, two])["cycles"].value
    15.0
    """
    absent = Count(value=None, running_share=0.0, reason="not counted")
    totals = {}
    for event in dict.fromkeys(event for counts in counts_of_each for event in counts):
        parts = [counts.get(event, absent) for counts in counts_of_each]
        values = [part.value for part in parts if part.value is not None]
        totals[event] = Count(
            value=sum(values) if len(values) == len(parts) else None,
            running_share=min(part.running_share for part in parts),
            reason=next((part.reason for part in parts if part.reason is not None), None),
            by_pmu={
                pmu: sum(part.by_pmu.get(pmu, 0.0) for part in parts)
                for pmu in dict.fromkeys(pmu for part in parts for pmu in part.by_pmu)
            },
        )
    return totals


def counter_fields(counts: Mapping[str, Count]) -> dict[str, Any]:
    """The fields of `records.telemetry.Counters` that come from events, and `unavailable`."""
    available = {name: count for name, count in counts.items() if count.value is not None}
    fields: dict[str, Any] = {
        field: round(available[event].value or 0)
        for event, field in FIELDS.items()
        if event in available
    }
    if "cycles" in available:
        fields["cycles_by_pmu"] = {
            pmu: round(value) for pmu, value in available["cycles"].by_pmu.items()
        }
    fields["slots"] = slot_shares({name: count.value or 0.0 for name, count in available.items()})
    if available:
        fields["running_share"] = min(count.running_share for count in available.values())
    fields["unavailable"] = {
        event: count.reason for event, count in counts.items() if count.reason is not None
    }
    return fields


def slot_shares(counts: Mapping[str, float]) -> dict[str, float]:
    """Shares of all pipeline slots; empty unless every level-1 event was counted.

    The level-1 events add up to all slots. Back-end bound slots are memory bound; the rest
    of them is core bound (Yasin, A Top-Down Method for Performance Analysis and Counters
    Architecture, ISPASS 2014).

    >>> slot_shares({"topdown-retiring": 50, "topdown-bad-spec": 5, "topdown-fe-bound": 5,
    ...        "topdown-be-bound": 40, "topdown-mem-bound": 30})["core_bound"]
    0.1
    """
    total = sum(counts.get(event, 0.0) for event in LEVEL_1)
    if not total or any(event not in counts for event in LEVEL_1):
        return {}
    shares = {name: counts[event] / total for event, name in LEVEL_1.items()}
    if MEMORY_BOUND in counts:
        shares["memory_bound"] = counts[MEMORY_BOUND] / total
        shares["core_bound"] = max(0.0, counts["topdown-be-bound"] - counts[MEMORY_BOUND]) / total
    return shares


_EVENTS = ("cycles", "instructions", "LLC-load-misses", "node-load-misses")
# The kernel can count those of these events that it lists. `slots` must lead the group.
_GROUP = ("slots", *LEVEL_1, MEMORY_BOUND)
_PMUS = ("cpu", "cpu_core")
_DEVICES = Path("/sys/bus/event_source/devices")

# How long perf may take to attach, and to write its counts. It takes about 30 ms, and more
# with many threads.
PATIENCE_S = 2.0
_ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


_NO_MESSAGE = "it ended without a message"


class CounterSupport(Struct, frozen=True, kw_only=True):
    """The counters that this host can collect for a launch.

    Attributes:
        events: Arguments of `perf stat -e`; a group is one argument. Empty if none.
        unavailable: The counters that are unavailable, each with the reason.
    """

    events: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    gpus: GpuSampler = NO_GPUS


def detect_counters() -> CounterSupport:
    """Determine the available counters by running `perf stat` on a command that does nothing."""
    if shutil.which("perf") is None:
        return CounterSupport(unavailable={"hardware counters": "perf is not installed"})
    groups = [group for pmu in _PMUS if (group := _group(pmu))]
    events = [*_EVENTS, *groups]
    command = ("perf", "stat", "-x,", *_event_arguments(events), "--", "true")
    try:
        process = subprocess.run(
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
        return CounterSupport(unavailable={"hardware counters": f"perf could not be run: {error}"})
    if process.returncode != 0:
        message = (process.stderr.strip().splitlines() or [_NO_MESSAGE])[0]
        return CounterSupport(unavailable={"hardware counters": f"perf: {message}"})
    return supported_counters(events, parse(process.stderr))


def supported_counters(candidates: Collection[str], counts: Mapping[str, Count]) -> CounterSupport:
    """The events among those tried that this host supports."""
    unsupported = {
        event: "not supported by this host"
        for event_group in candidates
        for event in _event_names(event_group)
        if event not in counts or counts[event].reason == "not supported"
    }
    events = tuple(
        event_group
        for event_group in candidates
        if not any(name in unsupported for name in _event_names(event_group))
    )
    if not events:
        return CounterSupport(unavailable={"hardware counters": "not supported by this host"})
    return CounterSupport(events=events, unavailable=unsupported)


def _event_names(event_group: str) -> tuple[str, ...]:
    parts = event_group.strip("{}").split(",")
    return tuple(part.split("/")[1] if "/" in part else part for part in parts)


def _group(pmu: str) -> str | None:
    events = [name for name in _GROUP if (_DEVICES / pmu / "events" / name).exists()]
    if not set(events) >= {"slots", *LEVEL_1}:
        return None
    return "{" + ",".join(f"{pmu}/{name}/" for name in events) + "}"


def _event_arguments(events: Collection[str]) -> tuple[str, ...]:
    return tuple(argument for event in events for argument in ("-e", event))


class Perf:
    """One `perf stat` process attached to processes; `reason` holds why it failed, if it did."""

    def __init__(self, events: Collection[str], supervision: Supervision, scratch: Path) -> None:
        self._events = tuple(events)
        self._supervision = supervision
        self._out, self._log = scratch / "perf.csv", scratch / "perf.log"
        self._fifos = (scratch / "perf.control", scratch / "perf.ack")
        self._pid: int | None = None
        self._control = self._ack = -1
        self.reason: str | None = None

    def start(self, pids: Collection[int]) -> None:
        """Attach to processes and their future children; counting does not start yet."""
        for fifo in self._fifos:
            os.mkfifo(fifo)
        self._control, self._ack = (os.open(fifo, os.O_RDWR | os.O_CLOEXEC) for fifo in self._fifos)
        # Started by the supervisor, which ends it together with the launch in any case.
        with self._log.open("wb") as log, Path(os.devnull).open("r+b") as devnull:
            descriptors = (log.fileno(), devnull.fileno(), devnull.fileno())
            try:
                self._pid = self._supervision.spawn(
                    (
                        *("perf", "stat", "-x,", "-o", str(self._out), "--delay=-1"),
                        *("--control", f"fifo:{self._fifos[0]},{self._fifos[1]}"),
                        *_event_arguments(self._events),
                        *("-p", ",".join(map(str, sorted(pids)))),
                    ),
                    env=_ENVIRONMENT,
                    cwd=self._out.parent,
                    descriptors=descriptors,
                )
            except LaunchError as error:
                self.reason = error.what

    def start_counting(self) -> None:
        """Start counting."""
        self._tell("enable")

    def stop_counting(self) -> None:
        """Stop counting."""
        self._tell("disable")

    def close(self) -> dict[str, Count]:
        """End perf; returns the counts by event, or nothing and sets `reason` on failure."""
        if self._pid is not None:
            self._end(self._pid)
        for descriptor in (self._control, self._ack):
            if descriptor >= 0:
                os.close(descriptor)
        self._pid, self._control, self._ack = None, -1, -1
        if self.reason is not None:
            return {}
        with contextlib.suppress(OSError):
            return parse(self._out.read_text(encoding="utf-8", errors="replace"))
        self.reason = "perf wrote nothing"
        return {}

    def _tell(self, control: str) -> None:
        """Send perf a control command, and wait for its acknowledgement."""
        if self.reason is not None or self._pid is None:
            return
        os.write(self._control, f"{control}\n".encode())
        deadline_s = time.monotonic() + PATIENCE_S
        while not select.select([self._ack], [], [], 0.01)[0]:
            if self._supervision.exit_code(self._pid) is not None:
                self.reason = f"perf: {self._last_message()}"
                return
            if time.monotonic() > deadline_s:
                self.reason = "perf did not answer"
                return
        os.read(self._ack, 64)

    def _end(self, pid: int) -> None:
        for number in (signal.SIGINT, signal.SIGKILL):
            deadline_s = time.monotonic() + PATIENCE_S
            if self._supervision.exit_code(pid) is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            while self._supervision.exit_code(pid) is None and time.monotonic() < deadline_s:
                select.select([self._supervision], [], [], 0.01)

    def _last_message(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
            return next(
                (line.strip() for line in lines if line.strip()), "it ended without a message"
            )
        return "it ended without a message"


class LaunchCounters(Struct, frozen=True, kw_only=True):
    """All counts of one launch.

    Attributes:
        whole: The counts of all its processes.
        workers: The hardware counts of each worker and its children; empty if there are
            none, in which case `whole` has the reason.
    """

    whole: Counters
    workers: tuple[Counters, ...] = ()


def collect_counters(
    support: CounterSupport,
    each: Sequence[Mapping[str, Count]],
    threads: Sequence[Sequence[ThreadEvidence]],
    host: HostOverTime | None,
    reason: str | None = None,
) -> LaunchCounters:
    """Combine the counts of the kernel and of the hardware.

    Args:
        each: What perf counted: one per worker, then one for the launch's other processes; empty
            if it was not attached.
        threads: The observations of each worker's threads.
        host: The observations of the host, which include the page faults.
        reason: Why a perf counted nothing; None if all did.
    """
    every_thread = [thread for worker_threads in threads for thread in worker_threads]
    minor = host.total("minor_faults") if host else None
    launch_counters = replace(_kernel_counters(every_thread, support), faults=minor)
    if reason is not None:
        unavailable = {**support.unavailable, "hardware counters": reason}
        return LaunchCounters(whole=replace(launch_counters, unavailable=unavailable))
    if not each:
        return LaunchCounters(whole=launch_counters)
    fields = counter_fields(total_counts(each))
    fields["unavailable"] = {**support.unavailable, **fields["unavailable"]}
    return LaunchCounters(
        whole=replace(launch_counters, source="perf", **fields),
        workers=tuple(
            replace(
                _kernel_counters(worker_threads, support), source="perf", **counter_fields(counts)
            )
            for worker_threads, counts in zip(threads, each[: len(threads)], strict=True)
        ),
    )


def _kernel_counters(threads: Sequence[ThreadEvidence], support: CounterSupport) -> Counters:
    return Counters(
        source="proc",
        task_clock_ns=sum_known(thread.run_ns for thread in threads),
        switches=sum_known(
            part for thread in threads for part in (thread.voluntary, thread.involuntary)
        ),
        migrations=sum_known(thread.migrations for thread in threads),
        unavailable=dict(support.unavailable),
    )
