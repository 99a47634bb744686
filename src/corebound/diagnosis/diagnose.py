"""Apply all rules to all cells of a scenario and list the findings, strongest first."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from corebound.diagnosis import gpu, host, placement, processor, threads, validity, workload
from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding, FindingTone

Rule = Callable[[CellEvidence, Evidence], Finding | None]

RULES: tuple[Rule, ...] = (
    threads.more_threads_than_cpus,
    threads.one_cpu_default_threads,
    threads.processes_with_all_threads,
    threads.bound_after_start,
    threads.dispatch_threads,
    placement.smt_siblings_shared,
    placement.threads_migrate,
    placement.memory_remote,
    placement.workers_overlap,
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
    host.throttled,
    host.foreign_load,
    host.steal,
    validity.not_as_asked,
    validity.leftover_processes,
    validity.generator_bound,
    validity.never_steady,
)

# Enough for a reader at once; the findings left out are the weakest.
MOST = 6

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
