"""What else is using the machine.

Source: proc(5); Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from corebound.host.checkup.judged import Judged, Seen, Subject
from corebound.host.checkup.moment import Process
from corebound.host.checkup.reading import shown
from corebound.units import percent, significant

# Half a CPU's work over a minute is more than a resting machine does.
_MOST_LOAD = 0.5
# Of one CPU; a resting desktop stays well below.
_MOST_FOREIGN = 0.10
_MOST_STEAL = 0.01
# Percent of the last ten seconds in which something had to wait.
_MOST_WAITING = {"cpu": 5.0, "memory": 1.0, "io": 5.0}
_NAMED = 3
_KERNEL_BUSY = "see what keeps the kernel busy: top"
# When an id may be another process's.
_MEND_LATER = "end or pause what keeps CPUs busy; `corebound doctor` says how"

_LOAD = Subject(
    check="load",
    group="load",
    why="whatever else is running takes CPUs, caches and memory bandwidth from the launches",
)
_FOREIGN = Subject(
    check="busy processes",
    group="load",
    why="they take CPUs, caches and memory bandwidth from the launches",
)
_STEAL = Subject(
    check="steal",
    group="load",
    why="the hypervisor gives our CPUs to other guests, and wall time grows unseen",
)
_PRESSURE = {
    kind: Subject(check=f"{kind} pressure", group="load", why=why)
    for kind, why in (
        ("cpu", "threads that could run wait for a CPU, and so will those of a launch"),
        ("memory", "memory is short: launches wait for pages to be freed or read again"),
        ("io", "the disk is busy: whatever a launch reads or writes waits"),
    )
}


def judge(seen: Seen) -> Iterator[Judged]:
    """Load, foreign processes, steal, pressure."""
    yield _load(seen)
    yield _foreign(seen)
    yield _steal(seen)
    yield _pressure(seen, "cpu")
    yield _pressure(seen, "memory")
    yield _pressure(seen, "io")


def _load(seen: Seen) -> Judged:
    text = seen.tree.read("proc/loadavg") or ""
    found = re.match(r"([0-9]{1,9}\.[0-9]{1,9}) ", text)
    if found is None:
        return _LOAD.unreadable(text) if text else _LOAD.unavailable("no proc/loadavg here")
    value = f"{found[1]} over the last minute"
    if float(found[1]) > _MOST_LOAD:
        return _LOAD.warning(value, mend="wait until it has fallen: uptime")
    return _LOAD.ok(value)


def _foreign(seen: Seen) -> Judged:
    before, after = seen.before.ticks, seen.after.ticks
    if before is None or after is None or after.total <= before.total:
        return _FOREIGN.unavailable("no count of CPU time here")
    each = (after.total - before.total) / after.cpus
    used = _used(seen)
    own = sum(ticks for process, ticks in used if process.pid == seen.pid)
    share = max(0.0, (after.busy - before.busy - own) / each)
    others = [(process, ticks / each) for process, ticks in used if process.pid != seen.pid]
    others.sort(key=lambda one: (-one[1], one[0].pid))
    # What cannot be named, interrupts and other containers, counts all the same.
    top = [(process, part) for process, part in others if part >= _MOST_FOREIGN / 2][:_NAMED]
    value = f"{percent(share, 0)} of a CPU"
    if share <= _MOST_FOREIGN:
        return _FOREIGN.ok(value)
    if not top:
        return _FOREIGN.warning(
            f"{value}, by nothing that is shown here", mend="look on the host itself: top"
        )
    named = [(shown(one.name), one.pid, percent(part, 0)) for one, part in top]
    now = f"{value}: {', '.join(f'{name} ({pid}) {part}' for name, pid, part in named)}"
    then = f"{value}: {', '.join(f'{name} {part}' for name, _, part in named)}"
    pids = " ".join(str(process.pid) for process, _ in top if not process.kernel)
    mend, undo, later = _KERNEL_BUSY, None, _KERNEL_BUSY
    if pids:
        mend, undo, later = f"kill -STOP {pids}", f"kill -CONT {pids}", _MEND_LATER
    judged = _FOREIGN.warning(now, mend=mend, undo=undo)
    return replace(judged, later=_FOREIGN.warning(then, mend=later).host_check)


def _used(seen: Seen) -> list[tuple[Process, int]]:
    """The ticks that each process used between the looks."""
    first = {(process.pid, process.started): process.ticks for process in seen.before.processes}
    return [
        (process, max(0, process.ticks - first.get((process.pid, process.started), 0)))
        for process in seen.after.processes
    ]


def _steal(seen: Seen) -> Judged:
    before, after = seen.before.ticks, seen.after.ticks
    if before is None or after is None or after.total <= before.total:
        return _STEAL.unavailable("no count of CPU time here")
    now = max(0, after.steal - before.steal) / (after.total - before.total)
    ever = after.steal / after.total
    value = f"{percent(now)} now, {percent(ever)} since the machine started"
    if max(now, ever) > _MOST_STEAL:
        return _STEAL.warning(
            value, mend="ask for CPUs of one's own, or measure when the neighbours rest"
        )
    return _STEAL.ok(value)


def _pressure(seen: Seen, kind: Literal["cpu", "memory", "io"]) -> Judged:
    subject = _PRESSURE[kind]
    text = seen.tree.read(f"proc/pressure/{kind}")
    if not text:
        return subject.unavailable(f"no proc/pressure/{kind} here (boot with psi=1)")
    found = re.search(r"^some avg10=([0-9]{1,3}\.[0-9]{1,6}) ", text, re.MULTILINE)
    if found is None:
        return subject.unreadable(text)
    waiting = float(found[1])
    value = f"{significant(waiting)} % of the last 10 s"
    if waiting <= _MOST_WAITING[kind]:
        return subject.ok(value)
    return subject.warning(value, mend="wait, or stop what causes it: top, iotop, vmstat 1")
