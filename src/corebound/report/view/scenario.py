"""A scenario's page, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.diagnosis.finding import Finding
from corebound.model.calibration import Calibration
from corebound.report.view.addresses import host_file, run_file
from corebound.report.view.chronicle import EMPTY, Chronicle
from corebound.report.view.claims import ClaimRow, claim_rows
from corebound.report.view.findings import FindingRow, finding_rows
from corebound.report.view.intervals import IntervalTable, interval_table
from corebound.report.view.launch_dots import LaunchDots, launch_dots
from corebound.report.view.noise import calibration_for
from corebound.report.view.operators import Operators, operators
from corebound.report.view.page import Head, Hero
from corebound.report.view.placed import Placed, placed
from corebound.report.view.provenance import Provenance, provenance
from corebound.report.view.scaling import Scaling, scaling
from corebound.report.view.scenario_history import ScenarioHistory, scenario_history
from corebound.report.view.serving import Serving, serving
from corebound.report.view.study import Study
from corebound.report.view.tables import (
    CellTable,
    LaunchRow,
    cell_table,
    launch_rows,
    launches_summary,
)
from corebound.report.view.verdict import hero
from corebound.report.view.warmup import Warmup, warmup
from corebound.report.view.why import Why, why
from corebound.report.view.words import day, plain


class ScenarioPage(Struct, frozen=True, kw_only=True):
    """Everything on a scenario's page; sections without evidence are None or empty."""

    head: Head
    name: str
    run: str
    host: str
    hero: Hero
    intervals: IntervalTable | None
    findings: tuple[FindingRow, ...]
    serving: Serving | None
    why: Why | None
    history: ScenarioHistory | None
    operators: Operators | None
    scaling: Scaling | None
    placed: tuple[Placed, ...]
    dots: LaunchDots | None
    warmup: Warmup | None
    cells: CellTable
    claims: tuple[ClaimRow, ...]
    launches: tuple[LaunchRow, ...]
    launches_summary: str
    provenance: Provenance


def scenario_page(
    study: Study,
    *,
    found: Sequence[Finding],
    now: str,
    records_file: str,
    traces: Mapping[str, str] | None = None,
    known: Chronicle = EMPTY,
    calibrations: Sequence[Calibration] = (),
) -> ScenarioPage:
    """Everything on a scenario's page.

    Args:
        study: The scenario in the run to show.
        found: What stands out in it.
        now: ISO moment the page is made.
        records_file: Where the run is kept, as a path from the records' folder.
        traces: For launches whose trace is in the site, its address from the page.
        known: The histories.
        calibrations: Of any host and scenario.
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
        intervals=interval_table(study),
        findings=finding_rows(found),
        serving=serving(study),
        why=why(study),
        history=scenario_history(study, known),
        operators=operators(study, traces=traces or {}),
        scaling=scaling(study),
        placed=placed(study),
        dots=launch_dots(study),
        warmup=warmup(study),
        cells=cell_table(study),
        claims=claim_rows(study),
        launches=launch_rows(study),
        launches_summary=launches_summary(study),
        provenance=origin,
    )


def made(version: str, now: str) -> str:
    """The line at a page's foot."""
    return f"Measured with corebound {version}; page made {day(now)}."
