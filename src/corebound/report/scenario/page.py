"""Assembles a scenario's page from its sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.analysis.launch_metrics import launch_counts
from corebound.analysis.recommendation import advise
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import day, plain
from corebound.diagnosis.evidence import Finding
from corebound.report.elements import Action, Head, Hero, action_of
from corebound.report.inputs import PageContext
from corebound.report.pages.claims import ClaimRow, claim_rows
from corebound.report.scenario.configurations import Configurations, configurations
from corebound.report.scenario.heat_map import HeatMap, heat_map
from corebound.report.scenario.history import ScenarioHistory, scenario_history
from corebound.report.scenario.launches import (
    LaunchRow,
    Warmup,
    launch_rows,
    typical_launches,
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
from corebound.scenario.models import Scenario


class ScenarioPage(Struct, frozen=True, kw_only=True):
    """The content of a scenario's page; sections without data are None or empty."""

    head: Head
    scenario: Scenario
    name: str
    run: str
    host: str
    hero: Hero
    advice: str
    action: Action | None
    heat_map: HeatMap | None
    configurations: Configurations
    findings: tuple[Finding, ...]
    serving: Serving | None
    thread_activity: ThreadActivity | None
    history: ScenarioHistory | None
    operators: Operators | None
    scaling: Scaling | None
    cpu_affinities: tuple[CpuAffinity, ...]
    warmup: Warmup | None
    claims: tuple[ClaimRow, ...]
    launches: tuple[LaunchRow, ...]
    launch_counts: str
    provenance: Provenance


def scenario_page(
    result: ScenarioResult,
    context: PageContext,
    *,
    findings: Sequence[Finding],
    records_file: str,
    traces: Mapping[str, str] | None = None,
) -> ScenarioPage:
    """Build a scenario's page.

    Args:
        result: The scenario's result in the run to show.
        context: What the pages share.
        findings: Its diagnosis findings.
        records_file: The run's record file, as a path from the records' folder.
        traces: For each launch whose trace is in the site, its address from the page.
    """
    shown = typical_launches(result)
    table = configurations(result)
    (advice,) = advise([result], context.races)
    origin = provenance(result, records_file=records_file)
    evaluated = [check for check in origin.checks if check.passed is not None]
    verdict_section = hero(
        result,
        sum(check.passed is True for check in evaluated),
        len(evaluated),
        context.calibrations,
    )
    return ScenarioPage(
        head=Head(
            title=f"{result.scenario.title}: {plain(verdict_section.verdict)}",
            description=plain(verdict_section.support),
            made=f"Measured with corebound {result.run.corebound}; page made {day(context.now)}.",
        ),
        scenario=result.scenario,
        name=result.scenario.name,
        run=run_file(result.run),
        host=host_file(result.run.host.id),
        hero=verdict_section,
        # That of a comparison of commits is the headline.
        advice=advice.says if advice.says != plain(verdict_section.verdict) else "",
        action=action_of(advice, prompt=advice.says),
        heat_map=heat_map(result, table.anchors),
        configurations=table,
        findings=tuple(findings),
        serving=serving(result),
        thread_activity=thread_activity(result, shown),
        history=scenario_history(result, context.history),
        operators=operators(result, traces=traces or {}),
        scaling=scaling(result),
        cpu_affinities=cpu_affinities(result),
        warmup=warmup(result, shown),
        claims=claim_rows(result),
        launches=launch_rows(result),
        launch_counts=launch_counts(result.launches).says,
        provenance=origin,
    )
