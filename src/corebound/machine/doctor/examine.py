"""Examines a host: takes two snapshots and runs every check, in the order they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from corebound.machine.doctor import checks_cpu, checks_system
from corebound.machine.doctor.host_facts import HostFacts, take_snapshot
from corebound.machine.doctor.result import CheckResult
from corebound.machine.sysfs import Tree
from corebound.machine.topology import Topology

# Long enough that one tick (10 ms) of a CPU is 2 %.
SNAPSHOT_INTERVAL_S = 0.5

CHECKS: tuple[Callable[[HostFacts], Iterator[CheckResult]], ...] = (
    checks_cpu.check_processor,
    checks_cpu.check_topology,
    checks_cpu.check_interrupts,
    checks_cpu.check_quota,
    checks_system.check_load,
    checks_system.check_memory,
    checks_system.check_kernel,
    checks_system.check_tools,
)


def examine(
    tree: Tree,
    *,
    topology: Topology | None,
    wait: Callable[[], None],
    pid: int,
    sudo: bool = False,
    tools: frozenset[str] | None = None,
    needed: frozenset[str] | None = None,
    environments: Mapping[str, bool] | None = None,
) -> tuple[CheckResult, ...]:
    """Take two snapshots of a host and run all checks; change nothing.

    Args:
        tree: The host's files.
        topology: The host's topology; None if it shows no CPUs.
        wait: Called between the two snapshots.
        pid: Our own process.
        sudo: Whether the checks run under sudo, so that another user than root will measure.
        tools: The programs of `checks_system.PROGRAMS` that exist; None if not checked.
        needed: The programs that are missed if they do not exist; None: all.
        environments: Whether each environment has been made; None if not checked.
    """
    before = take_snapshot(tree)
    wait()
    facts = HostFacts(
        tree=tree,
        topology=topology,
        before=before,
        after=take_snapshot(tree),
        pid=pid,
        sudo=sudo,
        tools=tools,
        needed=needed,
        environments=environments,
    )
    return tuple(result for check in CHECKS for result in check(facts))
