"""Assembles a scenario's page from its sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.analysis.change_history import EMPTY_HISTORY, ChangeHistory
from corebound.analysis.noise_floor import calibration_for
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import day, plain
from corebound.diagnosis.evidence import Finding
from corebound.records.calibration import Calibration
from corebound.report.elements import Head, Hero
from corebound.report.pages.claims import ClaimRow, claim_rows
from corebound.report.scenario.cells import CellTable, ComparisonTable, cell_table, comparison_table
from corebound.report.scenario.history import ScenarioHistory, scenario_history
from corebound.report.scenario.launches import (
    LaunchRow,
    LaunchVariation,
    Warmup,
    launch_counts,
    launch_rows,
    launch_variation,
    warmup,
)
from corebound.report.scenario.operators import Operators, operators
from corebound.report.scenario.provenance import Provenance, provenance
from corebound.report.scenario.scaling import Scaling, scaling
from corebound.report.scenario.serving import Serving, serving
from corebound.report.scenario.threads import (
    CpuAffinity,
    ThreadActivity,
    cpu_affinities,
    thread_activity,
)
from corebound.report.scenario.verdict import hero
from corebound.report.urls import host_file, run_file


class ScenarioPage(Struct, frozen=True, kw_only=True):
    """The content of a scenario's page; sections without data are None or empty."""

    head: Head
    name: str
    run: str
    host: str
    hero: Hero
    comparisons: ComparisonTable | None
    findings: tuple[Finding, ...]
    serving: Serving | None
    thread_activity: ThreadActivity | None
    history: ScenarioHistory | None
    operators: Operators | None
    scaling: Scaling | None
    cpu_affinities: tuple[CpuAffinity, ...]
    variation: LaunchVariation | None
    warmup: Warmup | None
    cells: CellTable
    claims: tuple[ClaimRow, ...]
    launches: tuple[LaunchRow, ...]
    launch_counts: str
    provenance: Provenance


def scenario_page(
    study: ScenarioResult,
    *,
    findings: Sequence[Finding],
    now: str,
    records_file: str,
    traces: Mapping[str, str] | None = None,
    known: ChangeHistory = EMPTY_HISTORY,
    calibrations: Sequence[Calibration] = (),
) -> ScenarioPage:
    """Build a scenario's page.

    Args:
        study: The scenario's result in the run to show.
        findings: Its diagnosis findings.
        now: ISO timestamp of the page.
        records_file: The run's record file, as a path from the records' folder.
        traces: For each launch whose trace is in the site, its address from the page.
        known: The histories.
        calibrations: Calibrations of any host and scenario.
    """
    origin = provenance(study, records_file=records_file)
    judged = [check for check in origin.checks if check.passed is not None]
    noise = calibration_for(calibrations, study.run, study.source)
    top = hero(study, sum(check.passed is True for check in judged), len(judged), noise)
    return ScenarioPage(
        head=Head(
            title=f"{study.scenario.title}: {plain(top.verdict)}",
            description=plain(top.support),
            root="../",
            here=study.scenario.title,
            made=made(study.run.corebound, now),
        ),
        name=study.scenario.name,
        run=run_file(study.run),
        host=host_file(study.run.host.id),
        hero=top,
        comparisons=comparison_table(study),
        findings=tuple(findings),
        serving=serving(study),
        thread_activity=thread_activity(study),
        history=scenario_history(study, known),
        operators=operators(study, traces=traces or {}),
        scaling=scaling(study),
        cpu_affinities=cpu_affinities(study),
        variation=launch_variation(study),
        warmup=warmup(study),
        cells=cell_table(study),
        claims=claim_rows(study),
        launches=launch_rows(study),
        launch_counts=launch_counts(study),
        provenance=origin,
    )


def made(version: str, now: str) -> str:
    """The line at the bottom of a page."""
    return f"Measured with corebound {version}; page made {day(now)}."
