"""Checks of the system: kernel settings, memory, load, tools and environments."""

import re
from collections.abc import Callable

from msgspec.structs import replace

from corebound.machine import procfs
from corebound.machine.doctor.check import (
    Check,
    Finding,
    Meaning,
    Setting,
    ok,
    unavailable,
    unreadable,
    warning,
)
from corebound.machine.doctor.host_facts import HostFacts, Process
from corebound.machine.doctor.result import printable
from corebound.machine.sysfs import Tree, numbered_entries, parse_integer, read_text, selected
from corebound.units import percent, significant, size

_NO_RANDOMIZE = 0x0040000  # ADDR_NO_RANDOMIZE, personality(2)
_SYS_ADMIN, _PERFMON = 1 << 21, 1 << 38  # capabilities(7)


_LAYOUT = Setting(
    path="proc/sys/kernel/randomize_va_space",
    missing="this host has no kernel.randomize_va_space",
    meanings={"0": ("off", True), "1": ("on, without the heap", True), "2": ("on", False)},
    wanted="2",
)


def _layout(facts: HostFacts) -> Finding:
    found = _LAYOUT(facts)
    personality = _hexadecimal(facts.tree.read("proc/self/personality")) or 0
    if found.state == "ok" and personality & _NO_RANDOMIZE:
        return warning(
            "off for this shell and the programs it starts",
            fix="start corebound without `setarch -R`, outside a debugger",
        )
    return found


def _hexadecimal(text: str | None) -> int | None:
    match = re.fullmatch(r"[0-9a-f]{1,16}", (text or "").strip())
    return int(match[0], 16) if match else None


def _counters(facts: HostFacts, value: str) -> Meaning | None:
    level = parse_integer(value)
    if level is None:
        return None
    if level > 1 and _is_privileged(facts.tree) and not facts.sudo:
        return f"{value}, ignored: running with privileges", False
    return value, level > 1


def _is_privileged(tree: Tree) -> bool:
    status = (tree.read("proc/self/status") or "").encode()
    capabilities = _hexadecimal((procfs.line_value(status, b"CapEff") or b"").decode())
    return capabilities is not None and bool(capabilities & (_SYS_ADMIN | _PERFMON))


_THP = "sys/kernel/mm/transparent_hugepage/enabled"
_NO_THP = "this kernel has no transparent huge pages"
_MOST_SWAPPY = 10


def _size(facts: HostFacts) -> Finding:
    if facts.topology is None or facts.topology.memory_bytes is None:
        return unavailable("this host does not show its memory")
    total, note = size(facts.topology.memory_bytes), facts.topology.memory_note
    return ok(f"{total}. {note}" if note else total)


def _swaps(facts: HostFacts) -> tuple[int, int] | None:
    """Total size and use of swap in KiB; None if the host does not show it."""
    lines = (facts.tree.read("proc/swaps") or "").splitlines()
    if not lines or not lines[0].startswith("Filename"):
        return None
    total = used = 0
    for line in lines[1:]:
        # A swap file's name may contain spaces; the fields after it do not.
        match = re.search(r"\s([0-9]{1,18})\s+([0-9]{1,18})\s+-?[0-9]{1,6}\s*$", line)
        if match is None:
            return None
        total += int(match[1])
        used += int(match[2])
    return total, used


def _swap(facts: HostFacts) -> Finding:
    swaps = _swaps(facts)
    if swaps is None:
        return unavailable("this host shows no /proc/swaps")
    total, used = swaps
    if not total:
        return ok("none")
    value = f"{size(used << 10)} of {size(total << 10)} used"
    before, after = facts.before.swapped_pages, facts.after.swapped_pages
    if before is not None and after is not None and after > before:
        value += f", {after - before} pages moved during the check"
    elif not used:
        return ok(value)
    return warning(value, fix="swapoff -a", undo="swapon -a")


def _swappiness(facts: HostFacts, value: str) -> Meaning | None:
    swappiness = parse_integer(value)
    if swappiness is None:
        return None
    swaps = _swaps(facts)
    if swaps is not None and not swaps[0]:
        return f"{swappiness}, without swap", False
    return str(swappiness), swappiness > _MOST_SWAPPY


_HUGE_PAGES = {
    mode: (mode, mode == "always")
    for mode in ("always", "defer", "defer+madvise", "madvise", "never")
}


def _defrag(facts: HostFacts, value: str) -> Meaning | None:
    is_unused = selected(read_text(facts.tree, _THP) or "") == "never"
    return (value, False) if is_unused and value in _HUGE_PAGES else _HUGE_PAGES.get(value)


def _balancing(facts: HostFacts, value: str) -> Meaning | None:
    mode = parse_integer(value)
    if mode is None:
        return None
    nodes = (
        len(facts.topology.nodes)
        if facts.topology
        else len(numbered_entries(facts.tree, "sys/devices/system/node", "node"))
    )
    if mode == 0:
        return "off", False
    return ("on, no effect with one node", False) if nodes < 2 else (f"on, {nodes} nodes", True)


# Half a CPU over a minute is more than an idle machine uses.
_MOST_LOAD = 0.5
# Shares of one CPU; an idle desktop stays well below.
_MOST_FOREIGN = 0.10
_MOST_STEAL = 0.01
_NAMED = 3
_KERNEL_BUSY = "find what keeps the kernel busy: top"
# The fix in records, where process ids may have been reused.
_DURABLE_FIX = "measure when these processes have ended"


def _load(facts: HostFacts) -> Finding:
    text = facts.tree.read("proc/loadavg") or ""
    match = re.match(r"([0-9]{1,9}\.[0-9]{1,9}) ", text)
    if match is None:
        return unreadable(text) if text else unavailable("no /proc/loadavg")
    value = f"{match[1]} over the last minute"
    if float(match[1]) > _MOST_LOAD:
        return warning(value, fix="wait until it is low: uptime")
    return ok(value)


def _foreign(facts: HostFacts) -> Finding:
    before, after = facts.before.ticks, facts.after.ticks
    if before is None or after is None or after.total <= before.total:
        return unavailable("this host does not count CPU time")
    ticks_per_cpu = (after.total - before.total) / after.cpus
    used = _used_ticks(facts)
    own = sum(ticks for process, ticks in used if process.pid == facts.pid)
    busy = after.busy + after.interrupts - before.busy - before.interrupts
    share = max(0.0, (busy - own) / ticks_per_cpu)
    value = f"{percent(share, 0)} of a CPU"
    if share <= _MOST_FOREIGN:
        return ok(value)
    shares = [(process, ticks / ticks_per_cpu) for process, ticks in used]
    # Load without a visible process, such as interrupts and other containers, also counts.
    busiest = sorted(
        (
            (process, share)
            for process, share in shares
            if process.pid != facts.pid and share >= _MOST_FOREIGN / 2
        ),
        key=lambda pair: (-pair[1], pair[0].pid),
    )[:_NAMED]
    if not busiest:
        return warning(f"{value}, by no visible process", fix="run this on the host itself: top")
    rows = [(printable(process.name), process.pid, percent(part, 0)) for process, part in busiest]
    with_pids = f"{value}: {', '.join(f'{name} ({pid}) {part}' for name, pid, part in rows)}"
    without_pids = f"{value}: {', '.join(f'{name} {part}' for name, _, part in rows)}"
    pids = " ".join(str(process.pid) for process, _ in busiest if not process.is_kernel_thread)
    fix, durable_fix = _KERNEL_BUSY, _KERNEL_BUSY
    if pids:
        fix, durable_fix = f"measure when they have ended: ps -o pid,user,args {pids}", _DURABLE_FIX
    return replace(warning(with_pids, fix=fix), durable=warning(without_pids, fix=durable_fix))


def _used_ticks(facts: HostFacts) -> list[tuple[Process, int]]:
    """The ticks that each process used between the two snapshots."""
    first = {(process.pid, process.started): process.ticks for process in facts.before.processes}
    return [
        (process, max(0, process.ticks - first.get((process.pid, process.started), 0)))
        for process in facts.after.processes
    ]


def _steal(facts: HostFacts) -> Finding:
    before, after = facts.before.ticks, facts.after.ticks
    if before is None or after is None or after.total <= before.total:
        return unavailable("this host does not count CPU time")
    now = max(0, after.steal - before.steal) / (after.total - before.total)
    since_start = after.steal / after.total
    value = f"{percent(now)} now, {percent(since_start)} since the machine started"
    if max(now, since_start) > _MOST_STEAL:
        return warning(value, fix="get dedicated CPUs, or measure when the other guests are idle")
    return ok(value)


def _pressure(kind: str, *, most: float) -> Callable[[HostFacts], Finding]:
    """Check the percentage of the last ten seconds in which some task had to wait."""

    def find(facts: HostFacts) -> Finding:
        text = facts.tree.read(f"proc/pressure/{kind}")
        if not text:
            return unavailable(f"this host has no /proc/pressure/{kind} (boot with psi=1)")
        pressure = procfs.pressure(text.encode(errors="replace"))
        if pressure is None:
            return unreadable(text)
        value = f"{significant(pressure.last_10s_percent)} % of the last 10 s"
        if pressure.last_10s_percent <= most:
            return ok(value)
        return warning(value, fix="wait, or stop the cause: top, iotop, vmstat 1")

    return find


# Each tool, a program of it, its Debian package, and the consequence if it is missing.
_TOOLS = (
    ("taskset", "taskset", "util-linux", "cells that bind threads to CPUs are skipped"),
    ("numactl", "numactl", "numactl", "cells that bind memory to nodes are skipped"),
    ("perf", "perf", "linux-perf", "no hardware counters explain why a configuration is slower"),
    ("java", "java", "default-jre-headless", "cells that use TorchServe are skipped"),
    ("ab", "ab", "apache2-utils", "cells with `client: ab` cannot run"),
    ("hwloc", "hwloc-calc", "hwloc", "the topology cannot be verified independently"),
)
PROGRAMS = frozenset(program for _, program, _, _ in _TOOLS)


def _tool(program: str, package: str) -> Callable[[HostFacts], Finding]:
    def find(facts: HostFacts) -> Finding:
        if facts.tools is None:
            return unavailable("not checked")
        if program in facts.tools:
            return ok("found")
        if facts.needed is not None and program not in facts.needed:
            return unavailable("missing, but no scenario here needs it")
        fix, undo = f"apt-get install {package}", f"apt-get remove {package}"
        return warning("missing", fix=fix, undo=undo)

    return find


def _made_environments(facts: HostFacts) -> Finding:
    environments = facts.environments
    if environments is None:
        return unavailable("not checked")
    if not environments:
        return ok("no scenario here needs one")
    missing = [name for name, is_made in environments.items() if not is_made]
    if not missing:
        return ok(f"{len(environments)} of {len(environments)} made")
    return warning(
        f"{len(environments) - len(missing)} of {len(environments)} made;"
        f" missing: {', '.join(missing)}",
        fix=f"corebound environment make {' '.join(missing)}",
    )


CHECKS = (
    Check(
        "load",
        "load",
        _load,
        "other programs take CPUs, caches and memory bandwidth from the launches",
    ),
    Check(
        "busy processes",
        "load",
        _foreign,
        "they take CPUs, caches and memory bandwidth from the launches",
    ),
    Check(
        "steal",
        "load",
        _steal,
        "the hypervisor gives CPU time to other guests, which lengthens wall times",
    ),
    Check(
        "cpu pressure",
        "load",
        _pressure("cpu", most=5.0),
        "runnable threads wait for a CPU, and so will those of a launch",
    ),
    Check(
        "memory pressure",
        "load",
        _pressure("memory", most=1.0),
        "memory is short: launches wait until pages are freed or read again",
    ),
    Check(
        "io pressure",
        "load",
        _pressure("io", most=5.0),
        "the disk is busy: reads and writes of a launch wait",
    ),
    Check("memory", "memory", _size, "scenarios may need more memory than that"),
    Check(
        "swap",
        "memory",
        _swap,
        "memory was short: each page that a launch reads back from disk costs milliseconds",
    ),
    Check(
        "swappiness",
        "memory",
        Setting(
            path="proc/sys/vm/swappiness",
            missing="this host has no vm.swappiness",
            meanings=_swappiness,
            # It keeps a process's own pages in memory while the page cache can be dropped instead.
            wanted="1",
        ),
        "the kernel swaps out pages of idle processes to keep files in memory",
    ),
    Check(
        "THP",
        "memory",
        Setting(path=_THP, missing=_NO_THP, meanings=_HUGE_PAGES, wanted="madvise"),
        "with `always`, the first process gets the huge pages and others are merged later,"
        " so equal launches differ",
    ),
    Check(
        "THP defrag",
        "memory",
        Setting(
            path="sys/kernel/mm/transparent_hugepage/defrag",
            missing=_NO_THP,
            meanings=_defrag,
            wanted="madvise",
        ),
        "with `always`, a thread that touches new memory waits while the kernel compacts memory",
    ),
    Check(
        "KSM",
        "memory",
        Setting(
            path="sys/kernel/mm/ksm/run",
            missing="this kernel has no KSM",
            meanings={"0": ("off", False), "1": ("on", True), "2": ("off", False)},
            wanted="0",
        ),
        "a kernel thread merges equal pages, and writing to a merged page copies it again",
    ),
    Check(
        "NUMA balancing",
        "memory",
        Setting(
            path="proc/sys/kernel/numa_balancing",
            missing="this host has no kernel.numa_balancing",
            meanings=_balancing,
            wanted="0",
        ),
        "the kernel unmaps pages to see which node uses them, then moves pages and threads",
    ),
    Check(
        "ASLR",
        "kernel",
        _layout,
        "every launch gets the same memory layout, so its effect biases every result instead of"
        " averaging out",
    ),
    Check(
        "autogroup",
        "kernel",
        Setting(
            path="proc/sys/kernel/sched_autogroup_enabled",
            missing="this kernel has no autogroup",
            meanings={"0": ("off", False), "1": ("on", True)},
            wanted="0",
        ),
        "each session gets an equal share of the CPUs, so `nice` does not keep another"
        " session's work away from a launch",
    ),
    Check(
        "perf_event_paranoid",
        "kernel",
        Setting(
            path="proc/sys/kernel/perf_event_paranoid",
            missing="this kernel has no performance counters",
            meanings=_counters,
            wanted="1",
        ),
        "without privileges, `perf stat` counts nothing in the kernel, such as context"
        " switches, or nothing at all",
    ),
    *(Check(name, "tools", _tool(program, of), why) for name, program, of, why in _TOOLS),
    Check(
        "environments",
        "environments",
        _made_environments,
        "cells whose environment has not been made are skipped",
    ),
)
