"""What a reader of the overview must not miss: claims, lost launches, runs that ended early."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.errors import Fault
from corebound.report.view.claims import judged
from corebound.report.view.damaged import damaged
from corebound.report.view.flags import budget_words, lost_words, uncommitted
from corebound.report.view.page import Flag
from corebound.report.view.study import Study
from corebound.report.view.words import count


def overview_flags(studies: Sequence[Study], faults: Sequence[Fault]) -> tuple[Flag, ...]:
    """What there is to know before the figures of all scenarios are believed.

    Args:
        studies: One a scenario.
        faults: What of the records could not be read.
    """
    raised = (
        damaged(faults),
        uncommitted(studies),
        _ended_early(studies),
        _claims(studies),
        _lost(studies),
    )
    return tuple(flag for flag in raised if flag is not None)


def _ended_early(studies: Sequence[Study]) -> Flag | None:
    cut = {study.run.id: study.undone for study in studies if study.undone is not None}
    if not cut:
        return None
    short = sum(study.undone is not None for study in studies)
    latest = max(studies, key=lambda study: (study.run.started_at, study.run.id)).run.id
    # Only the latest run can go on.
    more = "; corebound run --resume goes on with it" if {*cut} == {latest} else ""
    return Flag.warning(
        title=f"The run ended early{budget_words(*cut.values())}"
        if len(cut) == 1
        else f"{len(cut)} runs ended early",
        detail=f"{short} of {count(len(studies), 'scenario')} cut short{more}",
    )


def _lost(studies: Sequence[Study]) -> Flag | None:
    said = lost_words(studies)
    if not said:
        return None
    sound = sum(cell.summary.count("ok") for study in studies for cell in study.cells)
    return Flag.warning(title=said, detail=f"beside {sound:,} that count")


def _claims(studies: Sequence[Study]) -> Flag | None:
    """How many of the published claims that could be decided here hold here."""
    found = [one.judgement for study in studies for one in judged(study)]
    if not found:
        return None
    held, failed = found.count("reproduces"), found.count("does not")
    tried = held + failed
    left = len(found) - tried
    return Flag(
        tone="good" if held and not failed else "plain",
        sign="✓" if held and not failed else "–",
        title=f"Published claims that reproduce here: {held} of {tried}"
        if tried
        else "No published claim could be decided here",
        detail=f"{left} undecided, or not for this host" if left else "of those decided",
        link="claims.html",
    )
