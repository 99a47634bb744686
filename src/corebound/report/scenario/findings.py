"""Diagnosis findings of a scenario: likely causes and fixes, for the page and for export."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.wording import Label, Text, Tone, and_more, coded, label
from corebound.diagnosis.evidence import Finding
from corebound.diagnosis.evidence import Tone as Strength

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
    fix: Text
    cells: tuple[Label, ...]
    more: str
    of_first: bool


def finding_rows(found: Sequence[Finding]) -> tuple[FindingRow, ...]:
    """Findings as rows for the page."""
    return tuple(_row(one) for one in found)


def _row(one: Finding) -> FindingRow:
    tone, sign, meaning = _SIGNS[one.tone]
    return FindingRow(
        tone=tone,
        sign=sign,
        meaning=meaning,
        what=coded(one.what),
        evidence=one.evidence,
        fix=coded(one.fix),
        cells=tuple(label(cell) for cell in one.cells[:_MOST_CELLS]),
        more=and_more(len(one.cells) - _MOST_CELLS),
        of_first=one.of_first,
    )
