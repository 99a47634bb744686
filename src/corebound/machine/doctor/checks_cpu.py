"""Checks of the processor: clock, shared cores, interrupts, CPU time limits."""

from __future__ import annotations

from collections.abc import Iterator

from corebound.machine.cgroups import quotas
from corebound.machine.doctor.host_facts import HostFacts
from corebound.machine.doctor.result import (
    CheckResult,
    SettingChange,
    Subject,
    command,
    printable,
)
from corebound.machine.sysfs import numbered_entries, read_cpu_list, read_text
from corebound.machine.topology import cpu_list
from corebound.units import significant

_CPUS = "sys/devices/system/cpu"
_STEADY = "performance"

_GOVERNOR = Subject(
    check="governor",
    group="processor",
    why="the clock follows the load, so short steps and steps after a pause run slower",
)
_TURBO = Subject(
    check="turbo",
    group="processor",
    why="the clock depends on heat and on the number of busy cores, which makes runs with few"
    " threads look too fast",
)
_THROTTLING = Subject(
    check="thermal throttling",
    group="processor",
    why="heat slows the cores, and later launches more than earlier ones",
)
_SMT = Subject(
    check="SMT",
    group="processor",
    why="two CPUs share one core: any work on a measured CPU's sibling slows it down",
)


def check_processor(facts: HostFacts) -> Iterator[CheckResult]:
    """Check governor, turbo, thermal throttling and SMT."""
    yield _governor(facts)
    yield _turbo(facts)
    yield _throttling(facts)
    yield _smt(facts)


def _governor(facts: HostFacts) -> CheckResult:
    folder = f"{_CPUS}/cpufreq"
    policies = [
        f"{folder}/policy{number}" for number in numbered_entries(facts.tree, folder, "policy")
    ]
    governors = {
        policy: governor
        for policy in policies
        if (governor := read_text(facts.tree, f"{policy}/scaling_governor"))
    }
    if not governors:
        return _GOVERNOR.unavailable("this host has no cpufreq")
    value = ", ".join(map(printable, sorted(set(governors.values()))))
    unsteady = {policy: name for policy, name in governors.items() if name != _STEADY}
    if not unsteady:
        return _GOVERNOR.ok(value)
    offered = [
        (read_text(facts.tree, f"{policy}/scaling_available_governors") or "").split()
        for policy in unsteady
    ]
    if not all(_STEADY in names for names in offered):
        return _GOVERNOR.warning(
            value, fix=f"the driver offers no `{_STEADY}`: load the module cpufreq_{_STEADY}"
        )
    return _GOVERNOR.fixable(
        value,
        [
            SettingChange(path=f"{policy}/scaling_governor", prior=name, value=_STEADY)
            for policy, name in unsteady.items()
        ],
    )


def _turbo(facts: HostFacts) -> CheckResult:
    """Check turbo. Intel's file is 1 if turbo is off; the generic file is 1 if it is on."""
    switches = ((f"{_CPUS}/intel_pstate/no_turbo", "0", "1"), (f"{_CPUS}/cpufreq/boost", "1", "0"))
    path, on, off = next(
        (switch for switch in switches if read_text(facts.tree, switch[0]) is not None),
        switches[-1],
    )
    return _TURBO.setting(
        facts.tree,
        path,
        {on: "on", off: "off"},
        disturbing={on},
        recommended=off,
        missing="this host has no switch for turbo",
    )


def _throttling(facts: HostFacts) -> CheckResult:
    before, after = facts.before.throttles, facts.after.throttles
    if before is None or after is None:
        return _THROTTLING.unavailable("this host has no throttle counters")
    fix = "let it cool down, improve its cooling, or switch turbo off"
    if after > before:
        return _THROTTLING.warning(f"now, {after} times since the machine started", fix=fix)
    if after:
        return _THROTTLING.warning(f"{after} times since the machine started", fix=fix)
    return _THROTTLING.ok("never since the machine started")


def _smt(facts: HostFacts) -> CheckResult:
    active = read_text(facts.tree, f"{_CPUS}/smt/active")
    control = read_text(facts.tree, f"{_CPUS}/smt/control")
    has_smt = None if facts.topology is None else facts.topology.has_smt
    if active not in {"0", "1"} and has_smt is None:
        return _SMT.unavailable("this host shows neither smt/active nor a topology")
    # If the kernel is too old to report it, use the topology.
    is_on = active == "1" if active in {"0", "1"} else bool(has_smt)
    if not is_on:
        is_guest = " hypervisor" in (facts.tree.read("proc/cpuinfo") or "")
        return _SMT.ok("not visible (a hypervisor may hide it)" if is_guest else "off")
    if control != "on":
        return _SMT.warning("on", fix="boot with `nosmt`, or switch it off in the firmware")
    path = f"/{_CPUS}/smt/control"
    return _SMT.warning("on", fix=f"echo off > {path}", undo=f"echo on > {path}")


_TOPOLOGY = Subject(
    check="topology",
    group="processor",
    why="a binding may share other cores, caches or nodes than its name says",
)


def check_topology(facts: HostFacts) -> Iterator[CheckResult]:
    """Check whether the machine's files agree about its CPUs and nodes."""
    if facts.topology is not None and facts.topology.notes:
        fix = "measure outside the container, or mount the host's own /sys there"
        yield _TOPOLOGY.warning(" ".join(facts.topology.notes), fix=fix)
    elif facts.topology is not None:
        yield _TOPOLOGY.ok("consistent")
    else:
        yield _TOPOLOGY.unavailable("this host shows no CPUs")


_IRQS = "proc/irq"
_IRQ_FILES = frozenset(
    {
        "affinity_hint",
        "effective_affinity",
        "effective_affinity_list",
        "node",
        "smp_affinity",
        "smp_affinity_list",
        "spurious",
    }
)

_ISOLATED = Subject(
    check="isolated CPUs",
    group="CPUs",
    why="the scheduler does not spread threads over isolated CPUs, so threads that are not bound"
    " share one CPU; isolated CPUs outside the allowed set are unused",
)
_AFFINITY = Subject(
    check="IRQ affinity",
    group="CPUs",
    why="a device's interrupt stops the work that its CPU is measuring",
)
_IRQBALANCE = Subject(
    check="irqbalance",
    group="CPUs",
    why="it moves interrupts from CPU to CPU while launches are compared",
)


def check_interrupts(facts: HostFacts) -> Iterator[CheckResult]:
    """Check CPU isolation, interrupt affinity and irqbalance."""
    yield _isolation(facts)
    yield _affinity(facts)
    yield _irqbalance(facts)


def _isolated(facts: HostFacts) -> frozenset[int] | None:
    """The CPUs isolated at boot or by cgroups; None if the host shows neither."""
    lists = (
        read_cpu_list(facts.tree, f"{_CPUS}/isolated"),
        read_cpu_list(facts.tree, "sys/fs/cgroup/cpuset.cpus.isolated"),
    )
    available = [cpus for cpus in lists if cpus is not None]
    return frozenset().union(*available) if available else None


def _allowed(facts: HostFacts) -> frozenset[int]:
    return frozenset(cpu.id for cpu in facts.topology.allowed) if facts.topology else frozenset()


def _online(facts: HostFacts) -> frozenset[int]:
    return frozenset(cpu.id for cpu in facts.topology.cpus) if facts.topology else frozenset()


def _isolation(facts: HostFacts) -> CheckResult:
    isolated = _isolated(facts)
    if isolated is None or facts.topology is None:
        return _ISOLATED.unavailable("this host has no list of isolated CPUs")
    allowed = _allowed(facts)
    tickless = read_cpu_list(facts.tree, f"{_CPUS}/nohz_full")
    value = f"{cpu_list(isolated)} isolated" if isolated else "none isolated"
    if tickless:
        value += f", {cpu_list(tickless)} without ticks"
    value += f"; allowed: {cpu_list(allowed)}"
    if isolated and not isolated & allowed:
        return _ISOLATED.warning(
            value,
            fix=f"taskset -c {cpu_list(isolated)} corebound run …",
            undo="corebound run … (without taskset)",
        )
    if len(isolated & allowed) > 1:
        return _ISOLATED.warning(
            value,
            fix="set `backend: openmp`, which binds each thread; or boot without isolcpus="
            " and keep other programs off these CPUs with cpusets",
        )
    return _ISOLATED.ok(value)


def _affinity(facts: HostFacts) -> CheckResult:
    affinities = {
        path: (text, cpus)
        for number in numbered_entries(facts.tree, _IRQS, "")
        if _has_handler(facts, number)
        and (text := read_text(facts.tree, path := f"{_IRQS}/{number}/smp_affinity_list"))
        and (cpus := read_cpu_list(facts.tree, path))
    }
    if not affinities or facts.topology is None:
        return _AFFINITY.unavailable("this host shows no interrupt affinity")
    allowed, isolated = _allowed(facts), _isolated(facts) or frozenset()
    measured = isolated & allowed or allowed
    spare = _online(facts) - measured - isolated
    overlapping = {path: text for path, (text, cpus) in affinities.items() if cpus & measured}
    value = f"{len(overlapping)} of {len(affinities)} on CPUs {cpu_list(measured)}"
    if not overlapping:
        return _AFFINITY.ok(value)
    if not spare:
        return _AFFINITY.ok(f"{value}; there are no other CPUs")
    target = cpu_list(spare)
    return _AFFINITY.fixable(
        value,
        [SettingChange(path=path, prior=text, value=target) for path, text in overlapping.items()],
    )


def _has_handler(facts: HostFacts, number: int) -> bool:
    """Whether a device uses the interrupt: its folder then has one named after the handler."""
    return not _IRQ_FILES.issuperset(facts.tree.names(f"{_IRQS}/{number}"))


def _irqbalance(facts: HostFacts) -> CheckResult:
    names = {process.name for process in facts.after.processes}
    if "irqbalance" in names:
        return _IRQBALANCE.warning(
            "running", fix="systemctl stop irqbalance", undo="systemctl start irqbalance"
        )
    # The kernel thread `kthreadd` is visible whenever the host's processes are.
    if "kthreadd" not in names:
        return _IRQBALANCE.unavailable("the host's processes are not visible here")
    return _IRQBALANCE.ok("not running")


_QUOTA = Subject(
    check="CPU quota",
    group="CPUs",
    why="once a period's quota is used up, the kernel stops every thread until the next period,"
    " so times jump by up to a period; `threads: quota` starts as many threads as it allows",
)


def check_quota(facts: HostFacts) -> Iterator[CheckResult]:
    """Check the tightest CPU-time quota that applies to us."""
    applicable = quotas(facts.tree)
    tightest = applicable.tightest
    if tightest is None:
        unknown = applicable.unknown
        yield _QUOTA.ok("none") if unknown is None else _QUOTA.unavailable(unknown)
        return
    throttled = "" if tightest.throttled is None else f", throttled {tightest.throttled} times"
    yield _QUOTA.warning(
        f"{significant(tightest.cpus)} CPUs in /{tightest.folder}{throttled}",
        fix="; ".join(command([(quota.file, quota.unlimited)]) for quota in applicable.known),
        undo="; ".join(command([(quota.file, quota.value)]) for quota in applicable.known),
    )
