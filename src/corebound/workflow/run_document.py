"""The result of a run as plain data, and what its output on a terminal needs beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import to_builtins

from corebound.analysis.noise_floor import calibration_for, noise_at
from corebound.analysis.scenario_result import CellResult, ScenarioResult, findings
from corebound.analysis.serialize import cell_document, findings_document
from corebound.records import documents
from corebound.records.calibration import Calibration, Noise
from corebound.records.launch_record import Kind
from corebound.stats.multiplicity import suite_findings
from corebound.workflow.execute import RunResult


def environments_of(result: RunResult) -> set[str]:
    """The names of the environments that launches ran in."""
    return {launch.cell.environment for launch in result.launches}


def calibrations_of(result: RunResult) -> tuple[Calibration, ...]:
    """The calibrations in the records that hold the run."""
    return documents.read_calibrations(result.file.parent.parent)[0]


def launches_by_status(result: RunResult, kind: Kind) -> dict[str, int]:
    """The number of launches of a kind by status."""
    return dict(Counter(launch.status for launch in result.launches if launch.kind == kind))


def differing_cells(results: Iterable[ScenarioResult]) -> frozenset[str]:
    """The ids of cells that differ from their baseline, after correction across the whole run."""
    cells = [cell for result in results for cell in result.cells]
    significant = suite_findings([cell.comparison for cell in cells])
    return frozenset(
        cell.cell.id
        for cell, is_significant in zip(cells, significant, strict=True)
        if is_significant
    )


def run_document(result: RunResult) -> dict[str, Any]:
    """Everything that `corebound run` prints of its result, for scripts."""
    results = tuple(result.scenario_results())
    differing, calibrations = differing_cells(results), calibrations_of(result)
    snapshot = result.run.snapshot_in(environments_of(result))
    return {
        "run": result.run.id,
        "records": str(result.file),
        "ending": result.ending,
        "commit": to_builtins(result.run.commit),
        "snapshot": snapshot.name if snapshot is not None else None,
        "launches": launches_by_status(result, "measure"),
        "profiles": launches_by_status(result, "profile"),
        "cells": [
            cell_document(
                cell,
                result.run.host,
                is_finding=cell.cell.id in differing,
                noise=_noise(
                    cell, calibration_for(calibrations, scenario_result.run, scenario_result.source)
                ),
            )
            for scenario_result in results
            for cell in scenario_result.cells
        ],
        "findings": [
            {"scenario": scenario_result.scenario.name, **finding}
            for scenario_result in results
            for finding in findings_document(findings(scenario_result))
        ],
    }


def _noise(cell: CellResult, calibration: Calibration | None) -> Noise | None:
    if calibration is None or cell.comparison is None:
        return None
    return noise_at(calibration, len(cell.summary.launches))
