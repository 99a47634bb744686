"""Examines a host: runs every check, in the order they are shown."""

from corebound.machine.doctor import checks_cpu, checks_system
from corebound.machine.doctor.host_facts import HostFacts
from corebound.machine.doctor.result import CheckResult

CHECKS = (*checks_cpu.CHECKS, *checks_system.CHECKS)


def examine(facts: HostFacts) -> tuple[CheckResult, ...]:
    """Run all checks; change nothing."""
    return tuple(check.result(facts) for check in CHECKS)
