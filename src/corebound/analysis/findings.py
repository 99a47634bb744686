"""The findings of diagnosis for a scenario."""

from __future__ import annotations

from corebound.analysis.operator_profiles import profiled
from corebound.analysis.scenario_result import ScenarioResult
from corebound.diagnosis.diagnose import diagnose
from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding


def findings(study: ScenarioResult) -> tuple[Finding, ...]:
    """Diagnose a scenario; findings are ordered by strength."""
    profiles = {one.cell.key: one.profile for one in profiled(study) if not one.disturbed}
    return diagnose(
        Evidence(
            cells=tuple(
                CellEvidence(
                    cell=one.cell,
                    launches=one.launches,
                    summary=one.summary,
                    profile=profiles.get(one.cell.key),
                )
                for one in study.cells
            ),
            topology=study.run.host.topology,
            margin=study.measure.margin,
            adaptive=study.measure.launches.follow_spread,
        )
    )
