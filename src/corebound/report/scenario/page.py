"""Assembles a scenario's page from its sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corebound.analysis.advice import advise
from corebound.analysis.claims import judge_claims
from corebound.analysis.fairness import checks
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import day, plain
from corebound.diagnosis.evidence import Finding
from corebound.report.elements import Head, Page, action_of
from corebound.report.inputs import PageContext
from corebound.report.scenario.configurations import configurations
from corebound.report.scenario.heat_map import heat_map
from corebound.report.scenario.history import memory_history, scenario_history
from corebound.report.scenario.launches import (
    launch_rows,
    trace_panels,
    typical_launches,
)
from corebound.report.scenario.operators import operators
from corebound.report.scenario.provenance import environment_facts
from corebound.report.scenario.scaling import scaling
from corebound.report.scenario.serving import serving
from corebound.report.scenario.sides import compared_sides
from corebound.report.scenario.threads import placed_cells, thread_activity
from corebound.report.scenario.verdict import hero
from corebound.scenario.compared_axis import compared_axis


def scenario_page(
    result: ScenarioResult,
    context: PageContext,
    *,
    findings: Sequence[Finding],
    records_file: str,
    traces: Mapping[str, str] | None = None,
) -> Page:
    """Build a scenario's page.

    Args:
        context: What the pages share.
        records_file: The run's record file, as a path from the records' folder.
        traces: For each launch whose trace is in the site, its address from the page.
    """
    shown = typical_launches(result)
    (advice,) = advise([result], context.races)
    fairness = checks(result)
    verdict_section = hero(result, fairness, context.calibrations)
    sides, axis = compared_sides(result), compared_axis(result.source.document)
    return Page(
        head=Head(
            title=f"{result.scenario.title}: {plain(verdict_section.verdict)}",
            description=plain(verdict_section.support),
            made=f"Measured with corebound {result.run.corebound}; page made {day(context.now)}.",
        ),
        result=result,
        hero=verdict_section,
        # That of a comparison of commits is the headline.
        advice=advice.says if advice.says != plain(verdict_section.verdict) else "",
        action=action_of(advice, prompt="Compare again" if sides else advice.prompt),
        sides=sides,
        heat_map=heat_map(result),
        configurations=configurations(result),
        findings=tuple(findings),
        serving=serving(result),
        thread_activity=thread_activity(result, shown),
        history=scenario_history(result, context.history),
        memory=memory_history(result, context.memory),
        operators=operators(result, traces=traces or {}),
        scaling=scaling(result),
        placements=() if axis == ("commit",) else placed_cells(result),
        traces=trace_panels(shown, result.measure.warmup),
        claims=judge_claims(result),
        launches=launch_rows(result),
        facts=environment_facts(result, records_file=records_file),
        checks=fairness,
    )
