"""The result of `corebound tune` as plain data, for `--json` and for the page's download."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corebound.analysis.serialize import ratio_interval_pair
from corebound.analysis.tuning import Confirmed, TuneResult
from corebound.analysis.tuning_proofs import Proof
from corebound.analysis.tuning_text import headline, names, not_tried, same_as_others
from corebound.scenario.cell import cell_identity


def tune_document(result: TuneResult, files: Sequence[Proof]) -> dict[str, Any]:
    """Everything that the terminal and the page show of a race, for scripts."""
    race = result.standing.race
    recommended = result.recommended
    return {
        "run": result.run.id,
        "objective": result.tuning.objective,
        "load": dict(result.tuning.load),
        "advice": result.advice,
        "recommended": recommended.key if recommended is not None else None,
        "default": result.contest.default,
        "settings": dict(recommended.axes) if recommended is not None else None,
        "headline": headline(result),
        "margin": result.tuning.rule.margin,
        "confidence": 1 - result.tuning.rule.error,
        "race": {
            "ending": race.ending,
            "blocks": race.blocks,
            "faster_at_most": race.faster_at_most if math.isfinite(race.faster_at_most) else None,
            "remaining": list(race.remaining),
            "dropped": [
                {
                    **cell_identity(str(result.source.document["name"]), one.key),
                    "block": one.block,
                    "by": one.by,
                    "ratio": one.ratio[0] if one.ratio else None,
                    "least_ratio": one.ratio[1] if one.ratio else None,
                    "reason": one.reason,
                }
                for one in race.dropped
            ],
        },
        "ties": list(result.standing.finalists.ties) if result.standing.finalists else [],
        "finalists": finalists_document(result),
        "not_tried": [
            {"name": name, "reason": reason}
            for name, reason in (*not_tried(result), *same_as_others(result))
        ],
        "files": _files(files),
    }


def finalists_document(result: TuneResult) -> list[dict[str, Any]]:
    """The finalists with their fresh launches, the winner first."""
    known = names(result)
    return [_finalist(one, known) for one in result.confirmed]


def _finalist(one: Confirmed, known: dict[str, str]) -> dict[str, Any]:
    comparison = one.comparison
    return {
        **cell_identity(one.cell.scenario, one.cell.key),
        "name": known[one.cell.key],
        "attempts": one.summary.attempts,
        "launches": len(one.summary.launches),
        "value_ns": one.summary.median_ns,
        "winner_speedup_ratio": comparison.speedup_ratio if comparison else None,
        "winner_speedup_interval": ratio_interval_pair(comparison.interval) if comparison else None,
        "verdict": comparison.verdict if comparison else None,
    }


def _files(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    return [
        {
            "kind": proof.artefact.kind,
            "file": proof.artefact.file,
            "text": proof.artefact.text,
            "note": proof.artefact.note,
            "state": proof.state,
            "evidence": proof.evidence,
            "speedup_ratio": proof.comparison.speedup_ratio if proof.comparison else None,
        }
        for proof in proofs
    ]
