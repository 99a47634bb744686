"""Run every check, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from corebound.machine.doctor import checks_cpu, checks_system, checks_tools
from corebound.machine.doctor.check import HostFacts, JudgedCheck
from corebound.machine.doctor.snapshot import take
from corebound.machine.sysfs import Tree
from corebound.machine.topology import Topology

# Long enough that one tick (10 ms) of a CPU is 2 %.
BETWEEN_LOOKS_S = 0.5

_JUDGES: tuple[Callable[[HostFacts], Iterator[JudgedCheck]], ...] = (
    checks_cpu.check_processor,
    checks_cpu.check_interrupts,
    checks_cpu.check_limits,
    checks_system.check_load,
    checks_system.check_memory,
    checks_system.check_kernel,
    checks_tools.check_tools,
)


def examine(
    tree: Tree,
    *,
    topology: Topology | None,
    wait: Callable[[], None],
    pid: int,
    sudo: bool = False,
    tools: frozenset[str] | None = None,
    environments: Mapping[str, bool] | None = None,
) -> tuple[JudgedCheck, ...]:
    """Take two snapshots of a host and run all checks; change nothing.

    Args:
        tree: The host's files.
        topology: The host's topology; None if it shows no CPUs.
        wait: Called between the two snapshots.
        pid: Our own process.
        sudo: Whether the checks run under sudo, so that another user than root will measure.
        tools: The programs of `checks_tools.PROGRAMS` that were found; None if not looked for.
        environments: Whether each environment has been made; None if not looked for.
    """
    before = take(tree)
    wait()
    seen = HostFacts(
        tree=tree,
        topology=topology,
        before=before,
        after=take(tree),
        pid=pid,
        sudo=sudo,
        tools=tools,
        environments=environments,
    )
    return tuple(judged for judge in _JUDGES for judged in judge(seen))
