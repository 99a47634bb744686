"""Which CPUs are kept for measuring, and who may interrupt them.

Source: Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full),
Documentation/core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from corebound.host.checkup.judged import Change, Judged, Seen, Subject
from corebound.host.checkup.reading import content, cpus, numbered
from corebound.model.topology import cpu_list

_CPUS = "sys/devices/system/cpu"
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


def judge(seen: Seen) -> Iterator[Judged]:
    """Isolation, interrupts, irqbalance."""
    yield _isolated(seen)
    yield _affinity(seen)
    yield _irqbalance(seen)


def _kept(seen: Seen) -> frozenset[int] | None:
    """The CPUs that were isolated, at boot or by cgroups; None where none of it is shown."""
    lists = (
        cpus(seen.tree, f"{_CPUS}/isolated"),
        cpus(seen.tree, "sys/fs/cgroup/cpuset.cpus.isolated"),
    )
    known = [found for found in lists if found is not None]
    return frozenset().union(*known) if known else None


def _allowed(seen: Seen) -> frozenset[int]:
    return frozenset(cpu.id for cpu in seen.topology.allowed) if seen.topology else frozenset()


def _online(seen: Seen) -> frozenset[int]:
    return frozenset(cpu.id for cpu in seen.topology.cpus) if seen.topology else frozenset()


def _isolated(seen: Seen) -> Judged:
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
            mend=f"taskset -c {cpu_list(isolated)} corebound run …",
            undo="corebound run … (without taskset)",
        )
    if len(isolated & allowed) > 1:
        return _ISOLATED.warning(
            value,
            mend="set `backend: openmp`, which binds each thread; or boot without isolcpus="
            " and keep the others off with cpusets",
        )
    return _ISOLATED.ok(value)


def _affinity(seen: Seen) -> Judged:
    found = {
        path: (text, may)
        for number in numbered(seen.tree, _IRQS, "")
        if _has_handler(seen, number)
        and (text := content(seen.tree, path := f"{_IRQS}/{number}/smp_affinity_list"))
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


def _has_handler(seen: Seen, number: int) -> bool:
    """Whether a device uses it: its folder then holds one by the handler's name."""
    return not _IRQ_FILES.issuperset(seen.tree.names(f"{_IRQS}/{number}"))


def _irqbalance(seen: Seen) -> Judged:
    names = {process.name for process in seen.after.processes}
    if "irqbalance" in names:
        return _BALANCE.warning(
            "running", mend="systemctl stop irqbalance", undo="systemctl start irqbalance"
        )
    # The kernel's own first thread is seen wherever the host's processes are.
    if "kthreadd" not in names:
        return _BALANCE.unavailable("the host's processes are not shown here")
    return _BALANCE.ok("not running")
