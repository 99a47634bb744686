"""Apply the rules to the cells of a scenario, or to a service, and list the findings."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from corebound.diagnosis import gpu, host, placement, processor, threads, validity, workload
from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding, FindingTone
from corebound.diagnosis.service import PROCESS_RULES, SERVICE_RULES
from corebound.diagnosis.service_evidence import Certainty, ServiceEvidence, ServiceFinding
from corebound.diagnosis.subject import Subject
from corebound.machine.topology import Topology
from corebound.records.service_use import ProcessUse

Rule = Callable[[CellEvidence, Evidence], Finding | None]

# What goes wrong in launches and in services alike.
SHARED_RULES: tuple[Callable[[Subject, Evidence], Finding | None], ...] = (
    threads.more_threads_than_cpus,
    threads.processes_with_all_threads,
    placement.smt_siblings_shared,
    placement.threads_migrate,
    placement.memory_remote,
    placement.workers_overlap,
    host.throttled,
    host.foreign_load,
    host.steal,
)
RULES: tuple[Rule, ...] = (
    *SHARED_RULES,
    threads.one_cpu_default_threads,
    threads.bound_after_start,
    threads.dispatch_threads,
    processor.remote_loads,
    processor.memory_bound,
    processor.core_bound,
    workload.random_numbers,
    workload.operator_dominates,
    workload.data_starves_step,
    *gpu.RULES,
    workload.loaders,
    workload.checkpoint_share,
    workload.slower_blas,
    workload.memory_returned,
    validity.not_as_asked,
    validity.leftover_processes,
    validity.generator_bound,
    validity.never_steady,
)

# Enough for a reader at once; the findings left out are the weakest.
MOST = 6

_SURENESS: dict[Certainty, int] = {"certain": 0, "likely": 1, "possible": 2}
_STRENGTH: dict[FindingTone, int] = {"bad": 0, "warn": 1, "plain": 2}


def diagnose(evidence: Evidence, *, most: int = MOST) -> tuple[Finding, ...]:
    """Find the likely causes of slow cells in a scenario.

    Args:
        evidence: The scenario's cells.
        most: The maximum number of findings.

    Returns:
        One finding per rule, strongest first. It describes the worst cell and lists all
        affected cells.
    """
    findings = [merged for rule in RULES if (merged := _merged(rule, evidence)) is not None]
    return tuple(sorted(findings, key=_order)[:most])


def diagnose_service(service: ServiceEvidence, topology: Topology) -> tuple[ServiceFinding, ...]:
    """Find the likely causes of a slow service; none if it is idle.

    Args:
        topology: Its host. The CPUs that its cgroup excludes are not allowed.

    Returns:
        The findings, most certain first.
    """
    if service.is_idle:
        return ()
    context = Evidence(cells=(), topology=topology, margin=0.0, adaptive=False)
    found = [
        *(rule(service, context) for rule in SHARED_RULES),
        *(rule(service, context) for rule in SERVICE_RULES),
        *(finding for rule in PROCESS_RULES for finding in _by_line(rule, service, context)),
    ]
    findings = [finding for finding in found if isinstance(finding, ServiceFinding)]
    return tuple(
        sorted(findings, key=lambda finding: (_SURENESS[finding.certainty], *_order(finding)))
    )


def _by_line(
    rule: Callable[[ProcessUse, ServiceEvidence, Evidence], Finding | None],
    service: ServiceEvidence,
    context: Evidence,
) -> Iterator[ServiceFinding]:
    """A rule's findings about processes: one for each line to set, of the busiest process."""
    found = [rule(process, service, context) for process in service.active]
    by_line: dict[str, list[ServiceFinding]] = {}
    for finding in found:
        if isinstance(finding, ServiceFinding):
            by_line.setdefault(finding.line, []).append(finding)
    for line, (first, *others) in by_line.items():
        pids = (*first.pids, *(pid for other in others for pid in other.pids))
        listed = " ".join(map(str, pids))
        whole = f"for pid in {listed}; do {line}; done" if others and "$pid" in line else line
        whole = whole if others else line.replace("$pid", listed)
        fix = first.fix.replace(line, whole) if line else first.fix
        yield replace(first, pids=pids, line=whole, fix=fix)


def _merged(rule: Rule, evidence: Evidence) -> Finding | None:
    """Combine a rule's findings in all cells into one."""
    findings = [finding for cell in evidence.cells if (finding := rule(cell, evidence)) is not None]
    if not findings:
        return None
    findings.sort(key=_order)
    worst = findings[0]
    return replace(
        worst,
        cells=tuple(cell for finding in findings for cell in finding.cells),
        of_first=any(
            (finding.what, finding.evidence) != (worst.what, worst.evidence) for finding in findings
        ),
    )


def _order(finding: Finding) -> tuple[int, float]:
    return _STRENGTH[finding.tone], -finding.times_ratio
