"""Checks of the system: kernel settings, memory, and load from other programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from corebound.machine.doctor.check import Change, HostFacts, JudgedCheck, Subject
from corebound.machine.doctor.snapshot import Process
from corebound.machine.sysfs import (
    Tree,
    chosen,
    integer,
    integer_of,
    numbers_in_order,
    shown,
    text_of,
)
from corebound.units import percent, significant, size

_LAYOUT = "proc/sys/kernel/randomize_va_space"
_AUTOGROUP = "proc/sys/kernel/sched_autogroup_enabled"
_PARANOID = "proc/sys/kernel/perf_event_paranoid"
_NO_RANDOMIZE = 0x0040000  # ADDR_NO_RANDOMIZE, personality(2)
_SYS_ADMIN, _PERFMON = 1 << 21, 1 << 38  # capabilities(7)

_ASLR = Subject(
    check="ASLR",
    group="kernel",
    why="every launch gets the same layout of memory: its luck or bad luck is in every figure"
    " instead of in their spread",
)
_GROUPS = Subject(
    check="autogroup",
    group="kernel",
    why="each session gets an equal share of the CPUs: `nice` does not keep the work of"
    " another session from a launch",
)
_COUNTERS = Subject(
    check="perf_event_paranoid",
    group="kernel",
    why="without privileges `perf stat` counts nothing that happens in the kernel, such as"
    " context switches, or nothing at all",
)


def check_kernel(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check address-space layout, autogroup and performance counters."""
    yield _layout(seen)
    yield _autogroup(seen)
    yield _counters(seen)


def _layout(seen: HostFacts) -> JudgedCheck:
    text = text_of(seen.tree, _LAYOUT)
    if text is None:
        return _ASLR.unavailable("no kernel.randomize_va_space here")
    words = {"0": "off", "1": "on, without the heap", "2": "on"}
    if text not in words:
        return _ASLR.unreadable(text)
    if text != "2":
        return _ASLR.mendable(words[text], [Change(path=_LAYOUT, prior=text, value="2")])
    if (_hexadecimal(seen.tree.read("proc/self/personality")) or 0) & _NO_RANDOMIZE:
        return _ASLR.warning(
            "off for this shell and what it starts",
            fix="start corebound without `setarch -R`, outside a debugger",
        )
    return _ASLR.ok(words[text])


def _hexadecimal(text: str | None) -> int | None:
    found = re.fullmatch(r"[0-9a-f]{1,16}", (text or "").strip())
    return int(found[0], 16) if found else None


def _autogroup(seen: HostFacts) -> JudgedCheck:
    text = text_of(seen.tree, _AUTOGROUP)
    if text is None:
        return _GROUPS.unavailable("no autogroup here")
    if text not in {"0", "1"}:
        return _GROUPS.unreadable(text)
    if text == "0":
        return _GROUPS.ok("off")
    return _GROUPS.mendable("on", [Change(path=_AUTOGROUP, prior=text, value="0")])


def _counters(seen: HostFacts) -> JudgedCheck:
    text = text_of(seen.tree, _PARANOID)
    if text is None:
        return _COUNTERS.unavailable("no performance counters here")
    level = integer(text)
    if level is None:
        return _COUNTERS.unreadable(text)
    if level <= 1:
        return _COUNTERS.ok(text)
    if _privileged(seen.tree) and not seen.sudo:
        return _COUNTERS.ok(f"{text}, which does not bind us: we are privileged")
    return _COUNTERS.mendable(text, [Change(path=_PARANOID, prior=text, value="1")])


def _privileged(tree: Tree) -> bool:
    status = tree.read("proc/self/status") or ""
    found = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) & (_SYS_ADMIN | _PERFMON))


_THP_FOLDER = "sys/kernel/mm/transparent_hugepage"
_SWAPPINESS = "proc/sys/vm/swappiness"
_KSM_RUN = "sys/kernel/mm/ksm/run"
_BALANCING = "proc/sys/kernel/numa_balancing"
# 1 keeps a process's own pages in memory as long as the page cache can be dropped instead.
_LEAST_SWAPPY = "1"
_MOST_SWAPPY = 10

_SWAP = Subject(
    check="swap",
    group="memory",
    why="memory was short here: a page that a launch needs back from the disk costs milliseconds",
)
_SWAPPY = Subject(
    check="swappiness",
    group="memory",
    why="the kernel swaps out pages of resting processes to keep files in memory",
)
_THP = Subject(
    check="THP",
    group="memory",
    why="`always` gives huge pages to whoever gets there first and merges others later,"
    " so equal launches differ",
)
_DEFRAG = Subject(
    check="THP defrag",
    group="memory",
    why="`always` stops a thread that touches new memory while the kernel makes room",
)
_KSM = Subject(
    check="KSM",
    group="memory",
    why="a kernel thread compares and merges pages, and writing to one of them splits it again",
)
_NUMA = Subject(
    check="NUMA balancing",
    group="memory",
    why="the kernel unmaps pages to see who uses them, and moves them and threads between nodes",
)


def check_memory(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check swap, huge pages, page merging and NUMA balancing."""
    yield _swap(seen)
    yield _swappiness(seen)
    yield _huge_pages(seen, "enabled", _THP)
    yield _huge_pages(seen, "defrag", _DEFRAG)
    yield _merging(seen)
    yield _balancing(seen)


def _swaps(seen: HostFacts) -> tuple[int, int] | None:
    """Total size and use of swap in KiB; None if the host does not show it."""
    lines = (seen.tree.read("proc/swaps") or "").splitlines()
    if not lines or not lines[0].startswith("Filename"):
        return None
    total = used = 0
    for line in lines[1:]:
        # A swap file's name may contain spaces; the fields after it do not.
        found = re.search(r"\s([0-9]{1,18})\s+([0-9]{1,18})\s+-?[0-9]{1,6}\s*$", line)
        if found is None:
            return None
        total += int(found[1])
        used += int(found[2])
    return total, used


def _swap(seen: HostFacts) -> JudgedCheck:
    swaps = _swaps(seen)
    if swaps is None:
        return _SWAP.unavailable("no proc/swaps here")
    total, used = swaps
    if not total:
        return _SWAP.ok("there is none")
    value = f"{size(used << 10)} of {size(total << 10)} used"
    before, after = seen.before.swapped_pages, seen.after.swapped_pages
    if before is not None and after is not None and after > before:
        value += f", {after - before} pages moved just now"
    elif not used:
        return _SWAP.ok(value)
    return _SWAP.warning(value, fix="swapoff -a", undo="swapon -a")


def _swappiness(seen: HostFacts) -> JudgedCheck:
    text = text_of(seen.tree, _SWAPPINESS)
    if text is None:
        return _SWAPPY.unavailable("no vm.swappiness here")
    found = integer(text)
    if found is None:
        return _SWAPPY.unreadable(text)
    swaps = _swaps(seen)
    if swaps is not None and not swaps[0]:
        return _SWAPPY.ok(f"{found}, without swap")
    if found <= _MOST_SWAPPY:
        return _SWAPPY.ok(str(found))
    return _SWAPPY.mendable(str(found), [Change(path=_SWAPPINESS, prior=text, value=_LEAST_SWAPPY)])


def _huge_pages(seen: HostFacts, file: str, subject: Subject) -> JudgedCheck:
    path = f"{_THP_FOLDER}/{file}"
    text = text_of(seen.tree, path)
    if text is None:
        return subject.unavailable("no transparent huge pages here")
    now = chosen(text)
    if now not in {"always", "defer", "defer+madvise", "madvise", "never"}:
        return subject.unreadable(text)
    off = file == "defrag" and chosen(text_of(seen.tree, f"{_THP_FOLDER}/enabled") or "") == "never"
    if now != "always" or off:
        return subject.ok(now)
    return subject.mendable(now, [Change(path=path, prior=now, value="madvise")])


def _merging(seen: HostFacts) -> JudgedCheck:
    text = text_of(seen.tree, _KSM_RUN)
    if text is None:
        return _KSM.unavailable("no KSM here")
    if text not in {"0", "1", "2"}:
        return _KSM.unreadable(text)
    if text != "1":
        return _KSM.ok("off")
    return _KSM.mendable("on", [Change(path=_KSM_RUN, prior=text, value="0")])


def _balancing(seen: HostFacts) -> JudgedCheck:
    mode = integer_of(seen.tree, _BALANCING)
    if mode is None:
        return _NUMA.unavailable("no kernel.numa_balancing here")
    nodes = (
        len(seen.topology.nodes)
        if seen.topology
        else len(numbers_in_order(seen.tree, "sys/devices/system/node", "node"))
    )
    if mode == 0:
        return _NUMA.ok("off")
    if nodes < 2:
        return _NUMA.ok("on, without effect: one node")
    return _NUMA.mendable(
        f"on, {nodes} nodes", [Change(path=_BALANCING, prior=str(mode), value="0")]
    )


# Half a CPU over a minute is more than an idle machine uses.
_MOST_LOAD = 0.5
# Shares of one CPU; an idle desktop stays well below.
_MOST_FOREIGN = 0.10
_MOST_STEAL = 0.01
# Percentage of the last ten seconds in which some task had to wait.
_MOST_WAITING = {"cpu": 5.0, "memory": 1.0, "io": 5.0}
_NAMED = 3
_KERNEL_BUSY = "see what keeps the kernel busy: top"
# The fix in records, where process ids may have been reused.
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


def check_load(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check load average, other processes, steal time and pressure."""
    yield _load(seen)
    yield _foreign(seen)
    yield _steal(seen)
    yield _pressure(seen, "cpu")
    yield _pressure(seen, "memory")
    yield _pressure(seen, "io")


def _load(seen: HostFacts) -> JudgedCheck:
    text = seen.tree.read("proc/loadavg") or ""
    found = re.match(r"([0-9]{1,9}\.[0-9]{1,9}) ", text)
    if found is None:
        return _LOAD.unreadable(text) if text else _LOAD.unavailable("no proc/loadavg here")
    value = f"{found[1]} over the last minute"
    if float(found[1]) > _MOST_LOAD:
        return _LOAD.warning(value, fix="wait until it has fallen: uptime")
    return _LOAD.ok(value)


def _foreign(seen: HostFacts) -> JudgedCheck:
    before, after = seen.before.ticks, seen.after.ticks
    if before is None or after is None or after.total <= before.total:
        return _FOREIGN.unavailable("no count of CPU time here")
    each = (after.total - before.total) / after.cpus
    used = _used(seen)
    own = sum(ticks for process, ticks in used if process.pid == seen.pid)
    share = max(0.0, (after.busy - before.busy - own) / each)
    others = [(process, ticks / each) for process, ticks in used if process.pid != seen.pid]
    others.sort(key=lambda one: (-one[1], one[0].pid))
    # Load without a visible process, such as interrupts and other containers, also counts.
    top = [(process, part) for process, part in others if part >= _MOST_FOREIGN / 2][:_NAMED]
    value = f"{percent(share, 0)} of a CPU"
    if share <= _MOST_FOREIGN:
        return _FOREIGN.ok(value)
    if not top:
        return _FOREIGN.warning(
            f"{value}, by nothing that is shown here", fix="look on the host itself: top"
        )
    named = [(shown(one.name), one.pid, percent(part, 0)) for one, part in top]
    now = f"{value}: {', '.join(f'{name} ({pid}) {part}' for name, pid, part in named)}"
    then = f"{value}: {', '.join(f'{name} {part}' for name, _, part in named)}"
    pids = " ".join(str(process.pid) for process, _ in top if not process.kernel)
    fix, undo, later = _KERNEL_BUSY, None, _KERNEL_BUSY
    if pids:
        fix, undo, later = f"kill -STOP {pids}", f"kill -CONT {pids}", _MEND_LATER
    judged = _FOREIGN.warning(now, fix=fix, undo=undo)
    return replace(judged, later=_FOREIGN.warning(then, fix=later).host_check)


def _used(seen: HostFacts) -> list[tuple[Process, int]]:
    """The ticks that each process used between the two snapshots."""
    first = {(process.pid, process.started): process.ticks for process in seen.before.processes}
    return [
        (process, max(0, process.ticks - first.get((process.pid, process.started), 0)))
        for process in seen.after.processes
    ]


def _steal(seen: HostFacts) -> JudgedCheck:
    before, after = seen.before.ticks, seen.after.ticks
    if before is None or after is None or after.total <= before.total:
        return _STEAL.unavailable("no count of CPU time here")
    now = max(0, after.steal - before.steal) / (after.total - before.total)
    ever = after.steal / after.total
    value = f"{percent(now)} now, {percent(ever)} since the machine started"
    if max(now, ever) > _MOST_STEAL:
        return _STEAL.warning(
            value, fix="ask for CPUs of one's own, or measure when the neighbours rest"
        )
    return _STEAL.ok(value)


def _pressure(seen: HostFacts, kind: Literal["cpu", "memory", "io"]) -> JudgedCheck:
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
    return subject.warning(value, fix="wait, or stop what causes it: top, iotop, vmstat 1")
