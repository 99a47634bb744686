"""The clock of the cores, and what shares them.

Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst,
Documentation/ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

from collections.abc import Iterator

from corebound.host.checkup.judged import Change, Judged, Seen, Subject
from corebound.host.checkup.reading import alternatives, content, numbered

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


def judge(seen: Seen) -> Iterator[Judged]:
    """Governor, turbo, heat, SMT."""
    yield _governor(seen)
    yield _turbo(seen)
    yield _heat(seen)
    yield _smt(seen)


def _governor(seen: Seen) -> Judged:
    folder = f"{_CPUS}/cpufreq"
    policies = [f"{folder}/policy{number}" for number in numbered(seen.tree, folder, "policy")]
    governors = {
        policy: governor
        for policy in policies
        if (governor := content(seen.tree, f"{policy}/scaling_governor"))
    }
    if not governors:
        return _GOVERNOR.unavailable("no cpufreq here")
    value = alternatives(governors.values())
    others = {policy: one for policy, one in governors.items() if one != _STEADY}
    if not others:
        return _GOVERNOR.ok(value)
    offered = [
        (content(seen.tree, f"{policy}/scaling_available_governors") or "").split()
        for policy in others
    ]
    if not all(_STEADY in each for each in offered):
        return _GOVERNOR.warning(
            value, mend=f"the driver offers no `{_STEADY}`: load the module cpufreq_{_STEADY}"
        )
    return _GOVERNOR.mendable(
        value,
        [
            Change(path=f"{policy}/scaling_governor", prior=one, value=_STEADY)
            for policy, one in others.items()
        ],
    )


def _turbo(seen: Seen) -> Judged:
    """Intel's switch says 1 where turbo is off, the general one where it is on."""
    switches = ((f"{_CPUS}/intel_pstate/no_turbo", "0", "1"), (f"{_CPUS}/cpufreq/boost", "1", "0"))
    for path, on, off in switches:
        text = content(seen.tree, path)
        if text == on:
            return _TURBO.mendable("on", [Change(path=path, prior=on, value=off)])
        if text == off:
            return _TURBO.ok("off")
        if text is not None:
            return _TURBO.unreadable(text)
    return _TURBO.unavailable("no switch of turbo here")


def _heat(seen: Seen) -> Judged:
    before, after = seen.before.throttles, seen.after.throttles
    if before is None or after is None:
        return _HEAT.unavailable("no throttle counters here")
    mend = "let it cool, clean or improve its cooling, or switch turbo off"
    if after > before:
        return _HEAT.warning(f"slowing down now, {after} times since start", mend=mend)
    if after:
        return _HEAT.warning(f"{after} times since the machine started", mend=mend)
    return _HEAT.ok("never since the machine started")


def _smt(seen: Seen) -> Judged:
    active = content(seen.tree, f"{_CPUS}/smt/active")
    control = content(seen.tree, f"{_CPUS}/smt/control")
    shown = None if seen.topology is None else seen.topology.has_smt
    if active not in {"0", "1"} and shown is None:
        return _SMT.unavailable("neither smt/active nor a topology here")
    # Where the kernel is too old to say, the topology does.
    on = active == "1" if active in {"0", "1"} else bool(shown)
    if not on:
        guest = " hypervisor" in (seen.tree.read("proc/cpuinfo") or "")
        return _SMT.ok("none is shown (a hypervisor may hide it)" if guest else "off")
    if control != "on":
        return _SMT.warning("on", mend="boot with `nosmt`, or switch it off in the firmware")
    path = f"/{_CPUS}/smt/control"
    return _SMT.warning("on", mend=f"echo off > {path}", undo=f"echo on > {path}")
