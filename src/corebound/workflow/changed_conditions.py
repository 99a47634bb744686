"""In what this host and its environments differ from those of a recorded run."""

from corebound import __version__
from corebound.machine import discovery, identity
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell, is_project
from corebound.units import cpu_quota


def host_differences(before: Run) -> tuple[str, ...]:
    """The properties in which this host differs from the recorded one."""
    topology = discovery.live_topology()
    here, then = identity.host(topology), before.host
    differences = []
    if here.id != then.id:
        differences.append(f"the host is {here.name} ({here.id}), but was {then.name} ({then.id})")
    elif [cpu.id for cpu in topology.allowed] != [cpu.id for cpu in then.topology.allowed]:
        differences.append("the allowed CPUs differ")
    elif topology.cpu_quota != then.topology.cpu_quota:
        limits = (cpu_quota(each.cpu_quota) for each in (topology, then.topology))
        differences.append("the host's CPU quota is {}, but was {}".format(*limits))
    if here.kernel != then.kernel:
        differences.append(f"the kernel is {here.kernel}, but was {then.kernel}")
    if __version__ != before.corebound:
        differences.append(f"corebound is {__version__}, but was {before.corebound}")
    return tuple(differences)


def environment_differences(cell: Cell, before: Run, now: Run) -> tuple[str, ...]:
    """The properties in which the cell's environment differs from the recorded one."""
    here, then = (run.lock_of(cell.environment) for run in (now, before))
    if then is None:
        return ()
    if here is None:
        fix = f"run `corebound environment make {cell.environment}`"
        if is_project(cell.environment):
            fix = "see the messages above"
        return (f"the environment {cell.environment} does not exist: {fix}",)
    differences = []
    if here.python != then.python:
        differences.append(f"Python is {here.python}, but was {then.python}")
    changed = sorted(set(here.packages) ^ set(then.packages))
    if changed:
        listed = ", ".join(
            f"{'+' if package in here.packages else '−'}{package}" for package in changed[:8]
        ) + (", …" if len(changed) > 8 else "")
        differences.append(f"the packages of the environment {cell.environment} differ: {listed}")
    return tuple(differences)
