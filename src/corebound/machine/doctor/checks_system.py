"""Checks of the system: kernel settings, memory, load, tools and environments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine import procfs
from corebound.machine.doctor.host_facts import HostFacts, Process
from corebound.machine.doctor.result import CheckResult, SettingChange, Subject, printable
from corebound.machine.procfs import CpuTicks
from corebound.machine.sysfs import (
    Tree,
    numbered_entries,
    parse_integer,
    read_integer,
    read_text,
    selected,
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
    why="every launch gets the same memory layout, so its effect biases every result instead of"
    " averaging out",
)
_GROUPS = Subject(
    check="autogroup",
    group="kernel",
    why="each session gets an equal share of the CPUs, so `nice` does not keep another"
    " session's work away from a launch",
)
_COUNTERS = Subject(
    check="perf_event_paranoid",
    group="kernel",
    why="without privileges, `perf stat` counts nothing in the kernel, such as context"
    " switches, or nothing at all",
)


def check_kernel(facts: HostFacts) -> Iterator[CheckResult]:
    """Check address-space layout, autogroup and performance counters."""
    yield _layout(facts)
    yield _autogroup(facts)
    yield _counters(facts)


def _layout(facts: HostFacts) -> CheckResult:
    result = _ASLR.setting(
        facts.tree,
        _LAYOUT,
        {"0": "off", "1": "on, without the heap", "2": "on"},
        disturbing={"0", "1"},
        recommended="2",
        missing="this host has no kernel.randomize_va_space",
    )
    personality = _hexadecimal(facts.tree.read("proc/self/personality")) or 0
    if result.host_check.state == "ok" and personality & _NO_RANDOMIZE:
        return _ASLR.warning(
            "off for this shell and the programs it starts",
            fix="start corebound without `setarch -R`, outside a debugger",
        )
    return result


def _hexadecimal(text: str | None) -> int | None:
    match = re.fullmatch(r"[0-9a-f]{1,16}", (text or "").strip())
    return int(match[0], 16) if match else None


def _autogroup(facts: HostFacts) -> CheckResult:
    return _GROUPS.setting(
        facts.tree,
        _AUTOGROUP,
        {"0": "off", "1": "on"},
        disturbing={"1"},
        recommended="0",
        missing="this kernel has no autogroup",
    )


def _counters(facts: HostFacts) -> CheckResult:
    text = read_text(facts.tree, _PARANOID)
    if text is None:
        return _COUNTERS.unavailable("this kernel has no performance counters")
    level = parse_integer(text)
    if level is None:
        return _COUNTERS.unreadable(text)
    if level <= 1:
        return _COUNTERS.ok(text)
    if _is_privileged(facts.tree) and not facts.sudo:
        return _COUNTERS.ok(f"{text}, ignored: running with privileges")
    return _COUNTERS.fixable(text, [SettingChange(path=_PARANOID, prior=text, value="1")])


def _is_privileged(tree: Tree) -> bool:
    status = (tree.read("proc/self/status") or "").encode()
    capabilities = _hexadecimal((procfs.line_value(status, b"CapEff") or b"").decode())
    return capabilities is not None and bool(capabilities & (_SYS_ADMIN | _PERFMON))


_THP_FOLDER = "sys/kernel/mm/transparent_hugepage"
_SWAPPINESS = "proc/sys/vm/swappiness"
_KSM_RUN = "sys/kernel/mm/ksm/run"
_BALANCING = "proc/sys/kernel/numa_balancing"
# 1 keeps a process's own pages in memory as long as the page cache can be dropped instead.
_LEAST_SWAPPY = "1"
_MOST_SWAPPY = 10

_SIZE = Subject(check="memory", group="memory", why="scenarios may need more memory than that")
_SWAP = Subject(
    check="swap",
    group="memory",
    why="memory was short: each page that a launch reads back from disk costs milliseconds",
)
_SWAPPY = Subject(
    check="swappiness",
    group="memory",
    why="the kernel swaps out pages of idle processes to keep files in memory",
)
_THP = Subject(
    check="THP",
    group="memory",
    why="with `always`, the first process gets the huge pages and others are merged later,"
    " so equal launches differ",
)
_DEFRAG = Subject(
    check="THP defrag",
    group="memory",
    why="with `always`, a thread that touches new memory waits while the kernel compacts memory",
)
_KSM = Subject(
    check="KSM",
    group="memory",
    why="a kernel thread merges equal pages, and writing to a merged page copies it again",
)
_NUMA = Subject(
    check="NUMA balancing",
    group="memory",
    why="the kernel unmaps pages to see which node uses them, then moves pages and threads",
)


def check_memory(facts: HostFacts) -> Iterator[CheckResult]:
    """Check size, swap, huge pages, page merging and NUMA balancing."""
    yield _size(facts)
    yield _swap(facts)
    yield _swappiness(facts)
    yield _huge_pages(facts, "enabled", _THP)
    yield _huge_pages(facts, "defrag", _DEFRAG)
    yield _merging(facts)
    yield _balancing(facts)


def _size(facts: HostFacts) -> CheckResult:
    if facts.topology is None or facts.topology.memory_bytes is None:
        return _SIZE.unavailable("this host does not show its memory")
    total, note = size(facts.topology.memory_bytes), facts.topology.memory_note
    return _SIZE.ok(f"{total}. {note}" if note else total)


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


def _swap(facts: HostFacts) -> CheckResult:
    swaps = _swaps(facts)
    if swaps is None:
        return _SWAP.unavailable("this host shows no /proc/swaps")
    total, used = swaps
    if not total:
        return _SWAP.ok("none")
    value = f"{size(used << 10)} of {size(total << 10)} used"
    before, after = facts.before.swapped_pages, facts.after.swapped_pages
    if before is not None and after is not None and after > before:
        value += f", {after - before} pages moved during the check"
    elif not used:
        return _SWAP.ok(value)
    return _SWAP.warning(value, fix="swapoff -a", undo="swapon -a")


def _swappiness(facts: HostFacts) -> CheckResult:
    text = read_text(facts.tree, _SWAPPINESS)
    if text is None:
        return _SWAPPY.unavailable("this host has no vm.swappiness")
    swappiness = parse_integer(text)
    if swappiness is None:
        return _SWAPPY.unreadable(text)
    swaps = _swaps(facts)
    if swaps is not None and not swaps[0]:
        return _SWAPPY.ok(f"{swappiness}, without swap")
    if swappiness <= _MOST_SWAPPY:
        return _SWAPPY.ok(str(swappiness))
    return _SWAPPY.fixable(
        str(swappiness), [SettingChange(path=_SWAPPINESS, prior=text, value=_LEAST_SWAPPY)]
    )


def _huge_pages(facts: HostFacts, file: str, subject: Subject) -> CheckResult:
    path = f"{_THP_FOLDER}/{file}"
    text = read_text(facts.tree, path)
    if text is None:
        return subject.unavailable("this kernel has no transparent huge pages")
    value = selected(text)
    if value not in {"always", "defer", "defer+madvise", "madvise", "never"}:
        return subject.unreadable(text)
    is_unused = (
        file == "defrag"
        and selected(read_text(facts.tree, f"{_THP_FOLDER}/enabled") or "") == "never"
    )
    if value != "always" or is_unused:
        return subject.ok(value)
    return subject.fixable(value, [SettingChange(path=path, prior=value, value="madvise")])


def _merging(facts: HostFacts) -> CheckResult:
    return _KSM.setting(
        facts.tree,
        _KSM_RUN,
        {"0": "off", "1": "on", "2": "off"},
        disturbing={"1"},
        recommended="0",
        missing="this kernel has no KSM",
    )


def _balancing(facts: HostFacts) -> CheckResult:
    mode = read_integer(facts.tree, _BALANCING)
    if mode is None:
        return _NUMA.unavailable("this host has no kernel.numa_balancing")
    nodes = (
        len(facts.topology.nodes)
        if facts.topology
        else len(numbered_entries(facts.tree, "sys/devices/system/node", "node"))
    )
    if mode == 0:
        return _NUMA.ok("off")
    if nodes < 2:
        return _NUMA.ok("on, no effect with one node")
    return _NUMA.fixable(
        f"on, {nodes} nodes", [SettingChange(path=_BALANCING, prior=str(mode), value="0")]
    )


# Half a CPU over a minute is more than an idle machine uses.
_MOST_LOAD = 0.5
# Shares of one CPU; an idle desktop stays well below.
_MOST_FOREIGN = 0.10
_MOST_STEAL = 0.01
# Percentage of the last ten seconds in which some task had to wait.
_MOST_WAITING = {"cpu": 5.0, "memory": 1.0, "io": 5.0}
_NAMED = 3
_KERNEL_BUSY = "find what keeps the kernel busy: top"
# The fix in records, where process ids may have been reused.
_DURABLE_FIX = "measure when these processes have ended"

_LOAD = Subject(
    check="load",
    group="load",
    why="other programs take CPUs, caches and memory bandwidth from the launches",
)
_FOREIGN = Subject(
    check="busy processes",
    group="load",
    why="they take CPUs, caches and memory bandwidth from the launches",
)
_STEAL = Subject(
    check="steal",
    group="load",
    why="the hypervisor gives CPU time to other guests, which lengthens wall times",
)
_PRESSURE = {
    kind: Subject(check=f"{kind} pressure", group="load", why=why)
    for kind, why in (
        ("cpu", "runnable threads wait for a CPU, and so will those of a launch"),
        ("memory", "memory is short: launches wait until pages are freed or read again"),
        ("io", "the disk is busy: reads and writes of a launch wait"),
    )
}


def check_load(facts: HostFacts) -> Iterator[CheckResult]:
    """Check load average, other processes, steal time and pressure."""
    yield _load(facts)
    yield _foreign(facts)
    yield _steal(facts)
    yield _pressure(facts, "cpu")
    yield _pressure(facts, "memory")
    yield _pressure(facts, "io")


def _load(facts: HostFacts) -> CheckResult:
    text = facts.tree.read("proc/loadavg") or ""
    match = re.match(r"([0-9]{1,9}\.[0-9]{1,9}) ", text)
    if match is None:
        return _LOAD.unreadable(text) if text else _LOAD.unavailable("no /proc/loadavg")
    value = f"{match[1]} over the last minute"
    if float(match[1]) > _MOST_LOAD:
        return _LOAD.warning(value, fix="wait until it is low: uptime")
    return _LOAD.ok(value)


def _foreign(facts: HostFacts) -> CheckResult:
    before, after = facts.before.ticks, facts.after.ticks
    if before is None or after is None or after.total <= before.total:
        return _FOREIGN.unavailable("this host does not count CPU time")
    ticks_per_cpu = (after.total - before.total) / after.cpus
    used = _used_ticks(facts)
    own = sum(ticks for process, ticks in used if process.pid == facts.pid)
    busy = _busy_ticks(after) - _busy_ticks(before)
    share = max(0.0, (busy - own) / ticks_per_cpu)
    value = f"{percent(share, 0)} of a CPU"
    if share <= _MOST_FOREIGN:
        return _FOREIGN.ok(value)
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
        return _FOREIGN.warning(
            f"{value}, by no visible process", fix="run this on the host itself: top"
        )
    rows = [(printable(process.name), process.pid, percent(part, 0)) for process, part in busiest]
    with_pids = f"{value}: {', '.join(f'{name} ({pid}) {part}' for name, pid, part in rows)}"
    without_pids = f"{value}: {', '.join(f'{name} {part}' for name, _, part in rows)}"
    pids = " ".join(str(process.pid) for process, _ in busiest if not process.is_kernel_thread)
    fix, durable_fix = _KERNEL_BUSY, _KERNEL_BUSY
    if pids:
        fix, durable_fix = f"measure when they have ended: ps -o pid,user,args {pids}", _DURABLE_FIX
    result = _FOREIGN.warning(with_pids, fix=fix)
    return replace(result, durable=_FOREIGN.warning(without_pids, fix=durable_fix).host_check)


def _busy_ticks(ticks: CpuTicks) -> int:
    return ticks.busy + ticks.interrupts


def _used_ticks(facts: HostFacts) -> list[tuple[Process, int]]:
    """The ticks that each process used between the two snapshots."""
    first = {(process.pid, process.started): process.ticks for process in facts.before.processes}
    return [
        (process, max(0, process.ticks - first.get((process.pid, process.started), 0)))
        for process in facts.after.processes
    ]


def _steal(facts: HostFacts) -> CheckResult:
    before, after = facts.before.ticks, facts.after.ticks
    if before is None or after is None or after.total <= before.total:
        return _STEAL.unavailable("this host does not count CPU time")
    now = max(0, after.steal - before.steal) / (after.total - before.total)
    since_start = after.steal / after.total
    value = f"{percent(now)} now, {percent(since_start)} since the machine started"
    if max(now, since_start) > _MOST_STEAL:
        return _STEAL.warning(
            value, fix="get dedicated CPUs, or measure when the other guests are idle"
        )
    return _STEAL.ok(value)


def _pressure(facts: HostFacts, kind: Literal["cpu", "memory", "io"]) -> CheckResult:
    subject = _PRESSURE[kind]
    text = facts.tree.read(f"proc/pressure/{kind}")
    if not text:
        return subject.unavailable(f"this host has no /proc/pressure/{kind} (boot with psi=1)")
    pressure = procfs.pressure(text.encode(errors="replace"))
    if pressure is None:
        return subject.unreadable(text)
    value = f"{significant(pressure.last_10s_percent)} % of the last 10 s"
    if pressure.last_10s_percent <= _MOST_WAITING[kind]:
        return subject.ok(value)
    return subject.warning(value, fix="wait, or stop the cause: top, iotop, vmstat 1")


class _Tool(Struct, frozen=True, kw_only=True):
    """A tool: a program of it, its Debian package, and the consequence if it is missing."""

    name: str
    program: str
    package: str
    without: str


_TOOLS = (
    _Tool(
        name="taskset",
        program="taskset",
        package="util-linux",
        without="cells that bind threads to CPUs are skipped",
    ),
    _Tool(
        name="numactl",
        program="numactl",
        package="numactl",
        without="cells that bind memory to nodes are skipped",
    ),
    _Tool(
        name="perf",
        program="perf",
        package="linux-perf",
        without="no hardware counters explain why a configuration is slower",
    ),
    _Tool(
        name="java",
        program="java",
        package="default-jre-headless",
        without="cells that use TorchServe are skipped",
    ),
    _Tool(
        name="ab",
        program="ab",
        package="apache2-utils",
        without="cells with `client: ab` cannot run",
    ),
    _Tool(
        name="hwloc",
        program="hwloc-calc",
        package="hwloc",
        without="the topology cannot be verified independently",
    ),
)
PROGRAMS = frozenset(tool.program for tool in _TOOLS)

_ENVIRONMENTS = Subject(
    check="environments",
    group="environments",
    why="cells whose environment has not been made are skipped",
)


def check_tools(facts: HostFacts) -> Iterator[CheckResult]:
    """Check the tools, then the environments."""
    for tool in _TOOLS:
        yield _tool(tool, facts.tools, facts.needed)
    yield _made_environments(facts)


def _tool(
    tool: _Tool, programs: frozenset[str] | None, needed: frozenset[str] | None
) -> CheckResult:
    subject = Subject(check=tool.name, group="tools", why=tool.without)
    if programs is None:
        return subject.unavailable("not checked")
    if tool.program in programs:
        return subject.ok("found")
    if needed is not None and tool.program not in needed:
        return subject.unavailable("missing, but no scenario here needs it")
    return subject.warning(
        "missing",
        fix=f"apt-get install {tool.package}",
        undo=f"apt-get remove {tool.package}",
    )


def _made_environments(facts: HostFacts) -> CheckResult:
    environments = facts.environments
    if environments is None:
        return _ENVIRONMENTS.unavailable("not checked")
    if not environments:
        return _ENVIRONMENTS.ok("no scenario here needs one")
    missing = [name for name, is_made in environments.items() if not is_made]
    if not missing:
        return _ENVIRONMENTS.ok(f"{len(environments)} of {len(environments)} made")
    return _ENVIRONMENTS.warning(
        f"{len(environments) - len(missing)} of {len(environments)} made;"
        f" missing: {', '.join(missing)}",
        fix=f"corebound environment make {' '.join(missing)}",
    )
