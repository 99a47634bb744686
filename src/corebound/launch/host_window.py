"""What happened between two looks at a host; nothing is read here."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from corebound.launch.host_text import Ticks
from corebound.launch.processes import Used
from corebound.model.telemetry import GpuUse, HostWindow

# Waiting is known of threads that were seen; where they account for less than this share
# of the CPU time, too many came and went between two looks.
_SEEN_SHARE = 0.9
# Unless all that was not seen is less than this of a CPU: whoever competes for one gets a
# good part of it, so these hardly waited. A launch that sleeps is not accused for a helper.
_UNSEEN_CPUS = 0.01


class Threads(Struct, frozen=True, kw_only=True):
    """The threads that are being watched: what they used and waited since they began.

    What was not counted is None.
    """

    ran_ns: int
    waited_ns: int
    voluntary: int | None = None
    involuntary: int | None = None
    migrations: int | None = None


def together(each: Sequence[Threads | None]) -> Threads | None:
    """The threads of several watches; what is unknown of any is unknown of all."""
    known = [one for one in each if one is not None]
    if not known or len(known) < len(each):
        return None
    return Threads(
        ran_ns=sum(one.ran_ns for one in known),
        waited_ns=sum(one.waited_ns for one in known),
        voluntary=_sum([one.voluntary for one in known]),
        involuntary=_sum([one.involuntary for one in known]),
        migrations=_sum([one.migrations for one in known]),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


class Look(Struct, frozen=True, kw_only=True):
    """All counts at one moment, each since it began.

    Attributes:
        at_ns: When.
        ticks: Of the launch's CPUs.
        tick_ns: How long one is.
        launch: Of the launch's processes; own_ns: CPU time of corebound's on these CPUs.
        threads: Of the threads that are watched.
        suspended_ns: How long the launch was suspended.
        pressure_us: CPU, memory and I/O, in this order.
        throttled: Periods and nanoseconds of each cgroup above the launch.
        frequency_hz, node_bytes, gpus: As in `HostWindow`.
    """

    at_ns: int
    ticks: Ticks | None
    tick_ns: int
    launch: Used
    own_ns: int
    threads: Threads | None
    suspended_ns: int
    pressure_us: tuple[int | None, ...]
    throttled: tuple[tuple[int, int] | None, ...]
    frequency_hz: int | None = None
    node_bytes: dict[int, int] = field(default_factory=dict)
    gpus: tuple[GpuUse, ...] = ()


def window(before: Look, now: Look, *, origin_ns: int, cpus: int) -> HostWindow:
    """The stretch between two looks.

    Args:
        before: The look that opens it.
        now: The look that closes it.
        origin_ns: The moment that its times count from.
        cpus: How many CPUs the launch was given.
    """
    pressure = [
        _since(earlier, later)
        for earlier, later in zip(before.pressure_us, now.pressure_us, strict=True)
    ]
    cpu, memory, io = (None if one is None else one * 1000 for one in pressure)
    periods, throttled_ns = _most_throttled(before, now)
    return HostWindow(
        from_ms=(before.at_ns - origin_ns) // 1_000_000,
        to_ms=(now.at_ns - origin_ns) // 1_000_000,
        steal_ns=_steal_ns(before, now),
        foreign_ns=_foreign_ns(before, now, cpus),
        rested_ns=_rested_ns(before, now),
        waited_ns=_waited_ns(before, now),
        throttled_ns=throttled_ns,
        throttled_periods=periods,
        suspended_ns=_since(before.suspended_ns, now.suspended_ns),
        cpu_pressure_ns=cpu,
        memory_pressure_ns=memory,
        io_pressure_ns=io,
        frequency_hz=now.frequency_hz,
        minor_faults=_since(before.launch.minor_faults, now.launch.minor_faults),
        major_faults=_since(before.launch.major_faults, now.launch.major_faults),
        ran_ns=_since(before.launch.cpu_ns, now.launch.cpu_ns),
        user_ns=_since(before.launch.user_ns, now.launch.user_ns),
        system_ns=_since(before.launch.system_ns, now.launch.system_ns),
        rss_bytes=now.launch.rss_bytes,
        node_bytes=now.node_bytes,
        gpus=now.gpus,
        **_of_threads(before.threads, now.threads),
    )


def _since(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else max(0, now - before)


def _of_threads(before: Threads | None, now: Threads | None) -> dict[str, int | None]:
    names = ("voluntary", "involuntary", "migrations")
    if before is None or now is None:
        return dict.fromkeys(names)
    return {name: _since(getattr(before, name), getattr(now, name)) for name in names}


def _foreign_ns(before: Look, now: Look, cpus: int) -> int | None:
    """What the CPUs did beside the launch, corebound, interrupts and resting.

    From what the CPUs did not rest, not from their user and system time: idle time
    is measured, while time at work may be guessed from where timer ticks fell.
    """
    rested, stolen = _rested_ns(before, now), _steal_ns(before, now)
    if rested is None or stolen is None:
        return None
    known = now.launch.cpu_ns - before.launch.cpu_ns + now.own_ns - before.own_ns
    return max(0, (now.at_ns - before.at_ns) * cpus - rested - stolen - known)


def _rested_ns(before: Look, now: Look) -> int | None:
    if before.ticks is None or now.ticks is None:
        return None
    return max(0, now.ticks.resting - before.ticks.resting) * now.tick_ns


def _steal_ns(before: Look, now: Look) -> int | None:
    if before.ticks is None or now.ticks is None:
        return None
    return max(0, now.ticks.steal - before.ticks.steal) * now.tick_ns


def _waited_ns(before: Look, now: Look) -> int | None:
    if before.threads is None or now.threads is None:
        return None
    ran_ns = now.launch.cpu_ns - before.launch.cpu_ns
    unseen_ns = ran_ns - (now.threads.ran_ns - before.threads.ran_ns)
    if unseen_ns > max((1 - _SEEN_SHARE) * ran_ns, _UNSEEN_CPUS * (now.at_ns - before.at_ns)):
        return None
    return max(0, now.threads.waited_ns - before.threads.waited_ns)


def _most_throttled(before: Look, now: Look) -> tuple[int | None, int | None]:
    """Of the cgroup that stopped threads longest: periods and nanoseconds."""
    each = [
        (later[1] - earlier[1], later[0] - earlier[0])
        for earlier, later in zip(before.throttled, now.throttled, strict=True)
        if earlier is not None and later is not None
    ]
    if not each:
        return None, None
    throttled_ns, periods = max(each)
    return periods, throttled_ns
