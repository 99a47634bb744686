"""Diagnosis findings of a scenario: likely causes and fixes, for the page and for export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import Label, Text, Tone, and_more, coded, label
from corebound.diagnosis.diagnose import diagnose
from corebound.diagnosis.evidence import CellEvidence, Evidence, Finding
from corebound.diagnosis.evidence import Tone as Strength
from corebound.report.scenario.operators import profiled

# The number of cells to name for a finding, worst first.
_MOST_CELLS = 4

_SIGNS: dict[Strength, tuple[Tone, str, str]] = {
    # strength: (tone, sign, meaning for screen readers)
    "bad": ("bad", "▼", "costs time"),
    "warn": ("warn", "!", "to mind"),
    "plain": ("plain", "·", "to know"),
}


class FindingRow(Struct, frozen=True, kw_only=True):
    """One finding; `more` counts the cells that are not named.

    `of_first`: whether its values are those of the first cell, and the others have their own.
    """

    tone: Tone
    sign: str
    meaning: str
    what: Text
    evidence: tuple[str, ...]
    remedy: Text
    cells: tuple[Label, ...]
    more: str
    of_first: bool


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


def finding_rows(found: Sequence[Finding]) -> tuple[FindingRow, ...]:
    """Findings as rows for the page."""
    return tuple(_row(one) for one in found)


def findings_data(found: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as plain data, with cells by their keys."""
    return [
        {
            **to_builtins(replace(one, cells=())),
            "cells": [cell.key for cell in one.cells],
        }
        for one in found
    ]


def _row(one: Finding) -> FindingRow:
    tone, sign, meaning = _SIGNS[one.tone]
    return FindingRow(
        tone=tone,
        sign=sign,
        meaning=meaning,
        what=coded(one.what),
        evidence=one.evidence,
        remedy=coded(one.remedy),
        cells=tuple(label(cell) for cell in one.cells[:_MOST_CELLS]),
        more=and_more(len(one.cells) - _MOST_CELLS),
        of_first=one.of_first,
    )
