"""What a result was measured with, and how long that takes."""

from collections import Counter

from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.throughput import factors
from corebound.analysis.wording import count, day, total_time
from corebound.machine.identity import Host
from corebound.machine.peak_flops import Peak
from corebound.machine.topology import Topology, cpu_list
from corebound.present.sections import Fact
from corebound.records.run_record import EnvironmentLock, Run
from corebound.scenario.compared_axis import compared_axis
from corebound.units import cpu_quota, significant, size


def environment_facts(result: ScenarioResult, *, records_file: str) -> tuple[Fact, ...]:
    """The environment that a scenario was measured in.

    Args:
        records_file: The run's record file, as a path from the records' folder.
    """
    return (
        *_run_facts(result, records_file),
        *host_facts(result.run),
        *_preflight_facts(result.run),
        *_environment_facts(result),
    )


def command_comment(result: ScenarioResult) -> str:
    """What the command for the page does, and how long it took here, as far as the run got."""
    is_compared = compared_axis(result.source.document) is not None
    what = f"measures {'the two sides' if is_compared else 'every configuration'}"
    spent_ns = sum(launch.duration_ns for launch in result.launches)
    if not spent_ns:
        return what
    spent = total_time(spent_ns)
    if result.incomplete is None:
        return f"{what} again; its launches took {spent} here"
    return f"{what}; the launches until the run ended took {spent} here"


def _run_facts(result: ScenarioResult, records_file: str) -> tuple[Fact, ...]:
    run = result.run
    facts = [Fact(term="Run", value=f"{run.id}, started {day(run.started_at)}")]
    if run.commit is not None:
        facts.append(Fact(term="Commit", value=run.commit.name, code=True))
        facts.append(Fact(term="Subject", value=run.commit.subject))
    launches = result.measure.launches
    launches_text = "launches of each configuration"
    if result.incomplete is not None:
        launches_text += " requested, the run ended early"
    settings = [
        _iterations(result),
        f"{launches.min} {launches_text}"
        if launches.min == launches.max
        else f"{launches.min} to {launches.max} {launches_text}",
        f"deadline {result.measure.timeout_s:g} s",
    ]
    if run.profile is not None:
        settings.insert(0, f"profile {run.profile}")
    facts += [
        Fact(term="Measured", value=", ".join(settings)),
        Fact(term="Corebound", value=f"{run.corebound}, seed {run.seed}"),
        Fact(term="Scenario", value=result.source.path, code=True),
        Fact(term="Its SHA-256", value=result.source.sha256[:16], code=True),
        Fact(term="Records", value=records_file, code=True),
    ]
    return tuple(facts)


def _iterations(result: ScenarioResult) -> str:
    """How many iterations its launches have; for a server, requests."""
    numbers = {
        len(worker.wall_ns)
        for cell in result.cells
        for launch in cell.launches
        for worker in launch.workers
        if worker.wall_ns
    }
    if result.measure.iterations == "auto" and len(numbers) > 1:
        return f"{min(numbers):,} to {count(max(numbers), 'iteration')} in each launch"
    is_open = result.measure.iterations == "auto" and bool(numbers)
    return count(max(numbers) if is_open else result.measure.requests, "iteration")


def host_facts(run: Run) -> tuple[Fact, ...]:
    """The machine of a run."""
    host = run.host
    memory = "unavailable" if host.memory_bytes is None else size(host.memory_bytes)
    if host.topology.memory_note is not None:
        memory += f". {host.topology.memory_note}"
    optional = {
        "Microcode": host.microcode or "",
        "Governor": ", ".join(host.governors or ()),
        "Memory speed": host.memory_speed or "",
        "Labels": ", ".join(f"{name}={value}" for name, value in run.labels.items()),
    }
    return (
        Fact(term="Host", value=host.name),
        Fact(term="CPU", value=host.cpu_model),
        Fact(term="Topology", value=topology_text(host.topology)),
        *(Fact(term="Topology is unreliable", value=note) for note in host.topology.notes),
        Fact(term="Memory", value=memory),
        Fact(term="GPUs", value=_gpus(host)),
        Fact(term="Computed peak", value=_peak(host)),
        Fact(term="Kernel", value=f"{host.kernel}, {host.os}"),
        *(Fact(term=term, value=value) for term, value in optional.items() if value),
    )


def _preflight_facts(run: Run) -> tuple[Fact, ...]:
    """The doctor's warnings from the start of the run, and what it could not check."""
    if run.preflight is None:
        return (Fact(term="Host's state", value="unavailable: not checked"),)
    warnings = [
        f"{check.check} {check.value}" for check in run.preflight if check.state == "warning"
    ]
    unavailable = [check.check for check in run.preflight if check.state == "unavailable"]
    facts = [Fact(term="Host's state", value="; ".join(warnings) or "no warnings")]
    if unavailable:
        facts.append(Fact(term="Not shown by the host", value=", ".join(unavailable)))
    return tuple(facts)


def _gpus(host: Host) -> str:
    """The GPUs, each model once with its number."""
    if host.gpus is None:
        return "unavailable: not checked"
    if not host.gpus:
        return "none usable with CUDA"
    models = Counter(gpu.name for gpu in host.gpus)
    return ", ".join(f"{number} × {name}" for name, number in models.items())


def _peak(host: Host) -> str:
    """The computed peak of all cores, its factors, and the assumptions behind it."""
    peak = host.peak
    if peak is None:
        return "unavailable: not checked"
    cores = len({cpu.core for cpu in host.topology.cpus})
    single = peak.flop_per_s(cores=cores, bits=32)
    double = peak.flop_per_s(cores=cores, bits=64)
    if single is None or double is None:
        return f"unavailable: {_missing_factor(peak)}"
    assumed = f"; it assumes that {', that '.join(peak.assumptions)}" if peak.assumptions else ""
    return (
        f"float32 {significant(single / 1e9)} GFLOP/s, float64 {significant(double / 1e9)} GFLOP/s:"
        f" {factors(peak, cores=cores, bits=32)}, for {peak.simd} on {peak.core}{assumed}"
    )


def _missing_factor(peak: Peak) -> str:
    if peak.simd_bits is None:
        return "the host does not report vector FMA instructions and their width"
    if peak.fma_units is None:
        core = f"{peak.core} with {peak.simd}" if peak.core else "this design of core"
        return f"the number of FMA units of {core} is unknown"
    return "the host does not report the clock rate"


def topology_text(topology: Topology) -> str:
    """A machine in a sentence: `2 cores, 4 CPUs (2 a core), 1 node, 32 MiB L3`."""
    cpus = topology.cpus
    cores = len({cpu.core for cpu in cpus})
    packages = len({cpu.core.package for cpu in cpus})
    parts = [count(packages, "socket"), count(cores, "core"), count(len(cpus), "CPU")]
    nodes = sum(1 for node in topology.nodes if node.cpus)
    if nodes:
        parts.append(count(nodes, "node"))
    for level in sorted({cache.level for cache in topology.caches}):
        caches = [cache for cache in topology.caches if cache.level == level]
        sizes = {cache.size_bytes for cache in caches}
        size_bytes = next(iter(sizes)) if len(sizes) == 1 else None
        each = (
            f"{len(caches)} × {size(size_bytes)}"
            if size_bytes is not None
            else count(len(caches), "cache")
        )
        parts.append(f"L{level} {each}")
    text = ", ".join(parts)
    text += "; SMT on" if topology.has_smt else "; no SMT seen"
    allowed = topology.allowed
    if len(allowed) < len(cpus):
        text += f"; allowed CPUs {cpu_list(cpu.id for cpu in allowed)}"
    if topology.cpu_quota is not None:
        text += f"; CPU quota of {cpu_quota(topology.cpu_quota)}"
    if topology.quota_unknown is not None:
        text += f"; CPU quota unknown ({topology.quota_unknown})"
    if topology.offline:
        text += f"; offline CPUs {cpu_list(topology.offline)}"
    return text


def _environment_facts(result: ScenarioResult) -> tuple[Fact, ...]:
    used = {cell.cell.environment for cell in result.cells}
    # The page of the run lists the packages.
    facts = [
        replace(fact, value=f"{fact.value}, {count(len(fact.more), 'package')}", more=())
        for lock in result.run.environments
        if lock.name in used
        for fact in [lock_fact(lock)]
    ]
    workers = [
        # With several environments, each version names its environment.
        (f"{launch.cell.environment}: " if len(used) > 1 else "", worker)
        for launch in result.launches
        if launch.status == "ok"
        for worker in launch.workers
    ]
    versions = {
        prefix + ", ".join(f"{name} {version}" for name, version in sorted(worker.versions.items()))
        for prefix, worker in workers
        if worker.versions
    }
    blas = {prefix + worker.blas for prefix, worker in workers if worker.blas}
    facts += [Fact(term="Libraries", value=text) for text in sorted(versions)]
    facts += [Fact(term="BLAS", value=text) for text in sorted(blas)]
    return tuple(facts)


def lock_fact(lock: EnvironmentLock) -> Fact:
    """The packages of an environment."""
    built = f", commit {lock.commit.name}" if lock.commit is not None else ""
    locked = f", requirements SHA-256 {lock.sha256[:16]}" if lock.sha256 else ""
    return Fact(
        term="Environment",
        value=f"{lock.name}{built}, Python {lock.python}{locked}",
        more=lock.packages,
    )
