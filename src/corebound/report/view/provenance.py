"""How to get a result again, and what it was got on."""

from __future__ import annotations

from corebound.model.record import EnvironmentLock, Run
from corebound.model.topology import Topology, cpu_list
from corebound.report.view.command import reproduce_command
from corebound.report.view.fairness import checks
from corebound.report.view.page import Fact, Provenance
from corebound.report.view.study import Study
from corebound.report.view.words import count, day
from corebound.units import duration, size


def provenance(study: Study, *, records_file: str) -> Provenance:
    """The foot of a scenario's page.

    Args:
        study: The scenario.
        records_file: Where the run is kept, as a path from the records' folder.
    """
    measured_ns = sum(launch.duration_ns for launch in study.launches)
    return Provenance(
        command=reproduce_command(study, ()),
        comment=f"measures every cell again; its launches took {_long(measured_ns)} here",
        facts=(
            *_run_facts(study, records_file),
            *_host_facts(study.run),
            *_environment_facts(study),
        ),
        checks=checks(study),
    )


def _long(value_ns: int) -> str:
    """A duration that may be minutes."""
    minutes = value_ns / 60e9
    return duration(value_ns) if minutes < 2 else count(round(minutes), "minute")


def _run_facts(study: Study, records_file: str) -> tuple[Fact, ...]:
    run = study.run
    facts = [Fact(term="Run", value=f"{run.id}, started {day(run.started_at)}")]
    if run.commit is not None:
        dirty = ", with changes not committed" if run.commit.dirty else ""
        facts.append(Fact(term="Commit", value=f"{run.commit.sha[:10]}{dirty}", code=True))
        facts.append(Fact(term="Subject", value=run.commit.subject))
    launches = study.measure.launches
    settings = [
        count(study.measure.iterations, "iteration"),
        f"{launches.min} launches of each cell"
        if launches.min == launches.max
        else f"{launches.min} to {launches.max} launches of each cell",
        f"deadline {study.measure.timeout_s:g} s",
    ]
    if run.profile is not None:
        settings.insert(0, f"profile {run.profile}")
    facts += [
        Fact(term="Measured", value=", ".join(settings)),
        Fact(term="Corebound", value=f"{run.corebound}, seed {run.seed}"),
        Fact(term="Scenario", value=study.source.path, code=True),
        Fact(term="Its SHA-256", value=study.source.sha256[:16], code=True),
        Fact(term="Records", value=records_file, code=True),
    ]
    return tuple(facts)


def _host_facts(run: Run) -> tuple[Fact, ...]:
    host = run.host
    memory = "unavailable" if host.memory_bytes is None else size(host.memory_bytes)
    return (
        Fact(term="Host", value=host.name),
        Fact(term="CPU", value=host.cpu_model),
        Fact(term="Topology", value=topology_words(host.topology)),
        Fact(term="Memory", value=memory),
        Fact(term="Kernel", value=f"{host.kernel}, {host.os}"),
    )


def topology_words(topology: Topology) -> str:
    """A machine in a sentence: `2 cores, 4 CPUs (2 a core), 1 node, 32 MiB L3`."""
    cpus = topology.cpus
    cores = len({cpu.core for cpu in cpus})
    packages = len({cpu.core.package for cpu in cpus})
    parts = [count(packages, "socket"), count(cores, "core"), count(len(cpus), "CPU")]
    nodes = sum(1 for node in topology.nodes if node.cpus)
    if nodes:
        parts.append(count(nodes, "node"))
    for level in sorted({cache.level for cache in topology.caches}):
        found = [cache for cache in topology.caches if cache.level == level]
        sizes = {cache.size_bytes for cache in found}
        of = next(iter(sizes)) if len(sizes) == 1 else None
        each = f"{len(found)} × {size(of)}" if of is not None else count(len(found), "cache")
        parts.append(f"L{level} {each}")
    text = ", ".join(parts)
    text += "; SMT on" if topology.has_smt else "; no SMT seen"
    allowed = topology.allowed
    if len(allowed) < len(cpus):
        text += f"; allowed CPUs {cpu_list(cpu.id for cpu in allowed)}"
    if topology.offline:
        text += f"; offline CPUs {cpu_list(topology.offline)}"
    return text


def _environment_facts(study: Study) -> tuple[Fact, ...]:
    used = {cell.cell.environment for cell in study.cells}
    facts = [_lock_fact(lock) for lock in study.run.environments if lock.name in used]
    workers = [
        worker for launch in study.launches if launch.status == "ok" for worker in launch.workers
    ]
    versions = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in sorted(worker.versions.items()))
        for worker in workers
        if worker.versions
    )
    facts += [Fact(term="Libraries", value=said) for said in versions]
    facts += [
        Fact(term="BLAS", value=blas)
        for blas in dict.fromkeys(worker.blas for worker in workers if worker.blas)
    ]
    return tuple(facts)


def _lock_fact(lock: EnvironmentLock) -> Fact:
    locked = f", requirements SHA-256 {lock.sha256[:16]}" if lock.sha256 else ""
    return Fact(
        term="Environment",
        value=f"{lock.name}, Python {lock.python}{locked}",
        more=lock.packages,
    )
