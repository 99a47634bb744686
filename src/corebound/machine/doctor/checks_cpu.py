"""Checks of the processor: clock, shared cores, interrupts, CPU time limits."""

from __future__ import annotations

from collections.abc import Iterator

from corebound.machine.cgroups import quotas
from corebound.machine.doctor.check import Change, HostFacts, JudgedCheck, Subject
from corebound.machine.sysfs import alternatives, cpus, numbers_in_order, text_of
from corebound.machine.topology import cpu_list
from corebound.units import significant

_CPUS = "sys/devices/system/cpu"
_STEADY = "performance"

_GOVERNOR = Subject(
    check="governor",
    group="processor",
    why="the clock follows the load: short steps and idle pauses run slower than long work",
)
_TURBO = Subject(
    check="turbo",
    group="processor",
    why="the clock depends on heat and on how many cores are busy, so few threads look"
    " better beside many than they are",
)
_HEAT = Subject(
    check="thermal throttling",
    group="processor",
    why="heat slows the cores, the later launches more than the earlier ones",
)
_SMT = Subject(
    check="SMT",
    group="processor",
    why="two CPUs share one core: whatever runs on a measured CPU's sibling slows it",
)


def check_processor(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check governor, turbo, thermal throttling and SMT."""
    yield _governor(seen)
    yield _turbo(seen)
    yield _heat(seen)
    yield _smt(seen)


def _governor(seen: HostFacts) -> JudgedCheck:
    folder = f"{_CPUS}/cpufreq"
    policies = [
        f"{folder}/policy{number}" for number in numbers_in_order(seen.tree, folder, "policy")
    ]
    governors = {
        policy: governor
        for policy in policies
        if (governor := text_of(seen.tree, f"{policy}/scaling_governor"))
    }
    if not governors:
        return _GOVERNOR.unavailable("no cpufreq here")
    value = alternatives(governors.values())
    others = {policy: one for policy, one in governors.items() if one != _STEADY}
    if not others:
        return _GOVERNOR.ok(value)
    offered = [
        (text_of(seen.tree, f"{policy}/scaling_available_governors") or "").split()
        for policy in others
    ]
    if not all(_STEADY in each for each in offered):
        return _GOVERNOR.warning(
            value, fix=f"the driver offers no `{_STEADY}`: load the module cpufreq_{_STEADY}"
        )
    return _GOVERNOR.mendable(
        value,
        [
            Change(path=f"{policy}/scaling_governor", prior=one, value=_STEADY)
            for policy, one in others.items()
        ],
    )


def _turbo(seen: HostFacts) -> JudgedCheck:
    """Check turbo. Intel's file is 1 if turbo is off; the generic file is 1 if it is on."""
    switches = ((f"{_CPUS}/intel_pstate/no_turbo", "0", "1"), (f"{_CPUS}/cpufreq/boost", "1", "0"))
    for path, on, off in switches:
        text = text_of(seen.tree, path)
        if text == on:
            return _TURBO.mendable("on", [Change(path=path, prior=on, value=off)])
        if text == off:
            return _TURBO.ok("off")
        if text is not None:
            return _TURBO.unreadable(text)
    return _TURBO.unavailable("no switch of turbo here")


def _heat(seen: HostFacts) -> JudgedCheck:
    before, after = seen.before.throttles, seen.after.throttles
    if before is None or after is None:
        return _HEAT.unavailable("no throttle counters here")
    fix = "let it cool, clean or improve its cooling, or switch turbo off"
    if after > before:
        return _HEAT.warning(f"slowing down now, {after} times since start", fix=fix)
    if after:
        return _HEAT.warning(f"{after} times since the machine started", fix=fix)
    return _HEAT.ok("never since the machine started")


def _smt(seen: HostFacts) -> JudgedCheck:
    active = text_of(seen.tree, f"{_CPUS}/smt/active")
    control = text_of(seen.tree, f"{_CPUS}/smt/control")
    shown = None if seen.topology is None else seen.topology.has_smt
    if active not in {"0", "1"} and shown is None:
        return _SMT.unavailable("neither smt/active nor a topology here")
    # If the kernel is too old to report it, use the topology.
    on = active == "1" if active in {"0", "1"} else bool(shown)
    if not on:
        guest = " hypervisor" in (seen.tree.read("proc/cpuinfo") or "")
        return _SMT.ok("none is shown (a hypervisor may hide it)" if guest else "off")
    if control != "on":
        return _SMT.warning("on", fix="boot with `nosmt`, or switch it off in the firmware")
    path = f"/{_CPUS}/smt/control"
    return _SMT.warning("on", fix=f"echo off > {path}", undo=f"echo on > {path}")


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
    why="the scheduler spreads no threads over isolated CPUs: unless each thread is bound,"
    " all of them share one; and isolated CPUs that we may not use help nobody",
)
_AFFINITY = Subject(
    check="IRQ affinity",
    group="CPUs",
    why="a device's interrupt stops whatever its CPU measures",
)
_BALANCE = Subject(
    check="irqbalance",
    group="CPUs",
    why="it moves interrupts from CPU to CPU while launches are compared",
)


def check_interrupts(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check CPU isolation, interrupt affinity and irqbalance."""
    yield _isolated(seen)
    yield _affinity(seen)
    yield _irqbalance(seen)


def _kept(seen: HostFacts) -> frozenset[int] | None:
    """The CPUs isolated at boot or by cgroups; None if the host shows neither."""
    lists = (
        cpus(seen.tree, f"{_CPUS}/isolated"),
        cpus(seen.tree, "sys/fs/cgroup/cpuset.cpus.isolated"),
    )
    known = [found for found in lists if found is not None]
    return frozenset().union(*known) if known else None


def _allowed(seen: HostFacts) -> frozenset[int]:
    return frozenset(cpu.id for cpu in seen.topology.allowed) if seen.topology else frozenset()


def _online(seen: HostFacts) -> frozenset[int]:
    return frozenset(cpu.id for cpu in seen.topology.cpus) if seen.topology else frozenset()


def _isolated(seen: HostFacts) -> JudgedCheck:
    isolated = _kept(seen)
    if isolated is None or seen.topology is None:
        return _ISOLATED.unavailable("no list of isolated CPUs here")
    allowed = _allowed(seen)
    ticking = cpus(seen.tree, f"{_CPUS}/nohz_full")
    value = f"{cpu_list(isolated)} isolated" if isolated else "none isolated"
    if ticking:
        value += f", {cpu_list(ticking)} without ticks"
    value += f"; ours are {cpu_list(allowed)}"
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
            " and keep the others off with cpusets",
        )
    return _ISOLATED.ok(value)


def _affinity(seen: HostFacts) -> JudgedCheck:
    found = {
        path: (text, may)
        for number in numbers_in_order(seen.tree, _IRQS, "")
        if _has_handler(seen, number)
        and (text := text_of(seen.tree, path := f"{_IRQS}/{number}/smp_affinity_list"))
        and (may := cpus(seen.tree, path))
    }
    if not found or seen.topology is None:
        return _AFFINITY.unavailable("no affinity of interrupts here")
    allowed, isolated = _allowed(seen), _kept(seen) or frozenset()
    measured = isolated & allowed or allowed
    spare = _online(seen) - measured - isolated
    inside = {path: text for path, (text, may) in found.items() if may & measured}
    value = f"{len(inside)} of {len(found)} on CPUs {cpu_list(measured)}"
    if not inside:
        return _AFFINITY.ok(value)
    if not spare:
        return _AFFINITY.ok(f"{value}; none is spared")
    to = cpu_list(spare)
    return _AFFINITY.mendable(
        value, [Change(path=path, prior=text, value=to) for path, text in inside.items()]
    )


def _has_handler(seen: HostFacts, number: int) -> bool:
    """Whether a device uses the interrupt: its folder then has one named after the handler."""
    return not _IRQ_FILES.issuperset(seen.tree.names(f"{_IRQS}/{number}"))


def _irqbalance(seen: HostFacts) -> JudgedCheck:
    names = {process.name for process in seen.after.processes}
    if "irqbalance" in names:
        return _BALANCE.warning(
            "running", fix="systemctl stop irqbalance", undo="systemctl start irqbalance"
        )
    # The kernel thread `kthreadd` is visible whenever the host's processes are.
    if "kthreadd" not in names:
        return _BALANCE.unavailable("the host's processes are not shown here")
    return _BALANCE.ok("not running")


_QUOTA = Subject(
    check="CPU quota",
    group="CPUs",
    why="once its share of a period is used up the kernel stops every thread until the next,"
    " so times jump by up to a period",
)


def check_limits(seen: HostFacts) -> Iterator[JudgedCheck]:
    """Check the tightest CPU-time quota that applies to us."""
    found = quotas(seen.tree)
    if found is None:
        yield _QUOTA.unavailable("no cgroup with CPU time is mounted here")
        return
    if not found:
        yield _QUOTA.ok("none")
        return
    tightest = min(found, key=lambda quota: quota.cpus)
    throttled = "" if tightest.throttled is None else f", stopped {tightest.throttled} times so far"
    yield _QUOTA.warning(
        f"{significant(tightest.cpus)} CPUs in /{tightest.folder}{throttled}",
        fix="; ".join(quota.lift for quota in found),
        undo="; ".join(quota.again for quota in found),
    )
