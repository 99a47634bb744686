"""Checks of the processor: clock, shared cores, interrupts, CPU time limits."""

import re
from collections.abc import Iterable

from corebound.machine.cgroups import quotas
from corebound.machine.doctor.check import (
    Check,
    Finding,
    Setting,
    fixable,
    ok,
    unavailable,
    warning,
)
from corebound.machine.doctor.host_facts import HostFacts
from corebound.machine.doctor.result import SettingChange, command, printable
from corebound.machine.sysfs import numbered_entries, read_cpu_list, read_text
from corebound.machine.topology import Cpu, cpu_list
from corebound.units import significant

_CPUS = "sys/devices/system/cpu"
_STEADY = "performance"


def _governor(facts: HostFacts) -> Finding:
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
        return unavailable("this host has no cpufreq")
    value = ", ".join(map(printable, sorted(set(governors.values()))))
    unsteady = {policy: name for policy, name in governors.items() if name != _STEADY}
    if not unsteady:
        return ok(value)
    offered = [
        (read_text(facts.tree, f"{policy}/scaling_available_governors") or "").split()
        for policy in unsteady
    ]
    if not all(_STEADY in names for names in offered):
        return warning(
            value, fix=f"the driver offers no `{_STEADY}`: load the module cpufreq_{_STEADY}"
        )
    return fixable(
        value,
        [
            SettingChange(path=f"{policy}/scaling_governor", prior=name, value=_STEADY)
            for policy, name in unsteady.items()
        ],
    )


def _turbo(facts: HostFacts) -> Finding:
    """Check turbo. Intel's file is 1 if turbo is off; the generic file is 1 if it is on."""
    path, on, off = f"{_CPUS}/intel_pstate/no_turbo", "0", "1"
    if read_text(facts.tree, path) is None:
        path, on, off = f"{_CPUS}/cpufreq/boost", "1", "0"
    missing = "this host has no switch for turbo"
    meanings = {on: ("on", True), off: ("off", False)}
    return Setting(path=path, missing=missing, meanings=meanings, wanted=off)(facts)


def _throttling(facts: HostFacts) -> Finding:
    before, after = facts.before.throttles, facts.after.throttles
    if before is None or after is None:
        return unavailable("this host has no throttle counters")
    fix = "let it cool down, improve its cooling, or switch turbo off"
    if after > before:
        return warning(f"now, {after} times since the machine started", fix=fix)
    if after:
        return warning(f"{after} times since the machine started", fix=fix)
    return ok("never since the machine started")


def _smt(facts: HostFacts) -> Finding:
    active = read_text(facts.tree, f"{_CPUS}/smt/active")
    control = read_text(facts.tree, f"{_CPUS}/smt/control")
    has_smt = None if facts.topology is None else facts.topology.has_smt
    if active not in {"0", "1"} and has_smt is None:
        return unavailable("this host shows neither smt/active nor a topology")
    # If the kernel is too old to report it, use the topology.
    is_on = active == "1" if active in {"0", "1"} else bool(has_smt)
    if not is_on:
        is_guest = " hypervisor" in (facts.tree.read("proc/cpuinfo") or "")
        return ok("not visible (a hypervisor may hide it)" if is_guest else "off")
    if control != "on":
        return warning("on", fix="boot with `nosmt`, or switch it off in the firmware")
    path = f"/{_CPUS}/smt/control"
    return warning("on", fix=f"echo off > {path}", undo=f"echo on > {path}")


def _topology(facts: HostFacts) -> Finding:
    """Check whether the machine's files agree about its CPUs and nodes."""
    if facts.topology is None:
        return unavailable("this host shows no CPUs")
    if not facts.topology.notes:
        return ok("consistent")
    fix = "measure outside the container, or mount the host's own /sys there"
    return warning(" ".join(facts.topology.notes), fix=fix)


_IRQS = "proc/irq"
_IRQ_FILE = re.compile(r"affinity_hint|(effective|smp)_affinity(_list)?|node|spurious")


def _isolated(facts: HostFacts) -> frozenset[int] | None:
    """The CPUs isolated at boot or by cgroups; None if the host shows neither."""
    lists = (
        read_cpu_list(facts.tree, f"{_CPUS}/isolated"),
        read_cpu_list(facts.tree, "sys/fs/cgroup/cpuset.cpus.isolated"),
    )
    available = [cpus for cpus in lists if cpus is not None]
    return frozenset().union(*available) if available else None


def _ids(cpus: Iterable[Cpu]) -> frozenset[int]:
    return frozenset(cpu.id for cpu in cpus)


def _isolation(facts: HostFacts) -> Finding:
    isolated = _isolated(facts)
    if isolated is None or facts.topology is None:
        return unavailable("this host has no list of isolated CPUs")
    allowed = _ids(facts.topology.allowed)
    tickless = read_cpu_list(facts.tree, f"{_CPUS}/nohz_full")
    value = f"{cpu_list(isolated)} isolated" if isolated else "none isolated"
    if tickless:
        value += f", {cpu_list(tickless)} without ticks"
    value += f"; allowed: {cpu_list(allowed)}"
    if isolated and not isolated & allowed:
        return warning(
            value,
            fix=f"taskset -c {cpu_list(isolated)} corebound run …",
            undo="corebound run … (without taskset)",
        )
    if len(isolated & allowed) > 1:
        return warning(
            value,
            fix="set `backend: openmp`, which binds each thread; or boot without isolcpus="
            " and keep other programs off these CPUs with cpusets",
        )
    return ok(value)


def _affinity(facts: HostFacts) -> Finding:
    affinities = {
        path: (text, cpus)
        for number in numbered_entries(facts.tree, _IRQS, "")
        # If a device uses the interrupt, its folder has one named after the handler.
        if not all(map(_IRQ_FILE.fullmatch, facts.tree.names(f"{_IRQS}/{number}")))
        and (text := read_text(facts.tree, path := f"{_IRQS}/{number}/smp_affinity_list"))
        and (cpus := read_cpu_list(facts.tree, path))
    }
    if not affinities or facts.topology is None:
        return unavailable("this host shows no interrupt affinity")
    allowed, isolated = _ids(facts.topology.allowed), _isolated(facts) or frozenset()
    measured = isolated & allowed or allowed
    spare = _ids(facts.topology.cpus) - measured - isolated
    overlapping = {path: text for path, (text, cpus) in affinities.items() if cpus & measured}
    value = f"{len(overlapping)} of {len(affinities)} on CPUs {cpu_list(measured)}"
    if not overlapping:
        return ok(value)
    if not spare:
        return ok(f"{value}; there are no other CPUs")
    target = cpu_list(spare)
    return fixable(
        value,
        [SettingChange(path=path, prior=text, value=target) for path, text in overlapping.items()],
    )


def _irqbalance(facts: HostFacts) -> Finding:
    names = {process.name for process in facts.after.processes}
    if "irqbalance" in names:
        return warning(
            "running", fix="systemctl stop irqbalance", undo="systemctl start irqbalance"
        )
    # The kernel thread `kthreadd` is visible whenever the host's processes are.
    if "kthreadd" not in names:
        return unavailable("the host's processes are not visible here")
    return ok("not running")


def _quota(facts: HostFacts) -> Finding:
    """Check the tightest CPU-time quota that applies to us."""
    applicable = quotas(facts.tree)
    tightest, unknown = applicable.tightest, applicable.unknown
    if tightest is None:
        return ok("none") if unknown is None else unavailable(unknown)
    done = tightest.throttling
    throttled = f", throttled {done.throttled_periods} times" if done else ""
    return warning(
        f"{significant(tightest.cpus)} CPUs in /{tightest.folder}{throttled}",
        fix="; ".join(command([(quota.file, quota.unlimited)]) for quota in applicable.known),
        undo="; ".join(command([(quota.file, quota.value)]) for quota in applicable.known),
    )


CHECKS = (
    Check(
        "governor",
        "processor",
        _governor,
        "the clock follows the load, so short steps and steps after a pause run slower",
    ),
    Check(
        "turbo",
        "processor",
        _turbo,
        "the clock depends on heat and on the number of busy cores, which makes runs with few"
        " threads look too fast",
    ),
    Check(
        "thermal throttling",
        "processor",
        _throttling,
        "heat slows the cores, and later launches more than earlier ones",
    ),
    Check(
        "SMT",
        "processor",
        _smt,
        "two CPUs share one core: any work on a measured CPU's sibling slows it down",
    ),
    Check(
        "topology",
        "processor",
        _topology,
        "a binding may share other cores, caches or nodes than its name says",
    ),
    Check(
        "isolated CPUs",
        "CPUs",
        _isolation,
        "the scheduler does not spread threads over isolated CPUs, so threads that are not bound"
        " share one CPU; isolated CPUs outside the allowed set are unused",
    ),
    Check(
        "IRQ affinity",
        "CPUs",
        _affinity,
        "a device's interrupt stops the work that its CPU is measuring",
    ),
    Check(
        "irqbalance",
        "CPUs",
        _irqbalance,
        "it moves interrupts from CPU to CPU while launches are compared",
    ),
    Check(
        "CPU quota",
        "CPUs",
        _quota,
        "once a period's quota is used up, the kernel stops every thread until the next period,"
        " so times jump by up to a period; `threads: quota` starts as many threads as it allows",
    ),
)
