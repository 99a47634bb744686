"""What a reader of a scenario must not miss: traps, lost launches, what was skipped."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.model.record import Launch
from corebound.report.view.evidence import disturbed, left_out
from corebound.report.view.figure import figure_of
from corebound.report.view.page import Flag
from corebound.report.view.study import CellStudy, Study
from corebound.report.view.undone import Undone
from corebound.report.view.words import (
    axis_value,
    count,
    full_name,
    time_text,
    times_slower,
    within,
)
from corebound.units import duration

# A setting this much slower than the baseline is a trap that readers must see.
_TRAP_RATIO = 0.5


def flags(study: Study, checks_passed: int, checks: int) -> tuple[Flag, ...]:
    """What a reader must not miss, below the verdict.

    Args:
        study: The scenario.
        checks_passed: How many fairness checks passed.
        checks: How many could be judged.
    """
    raised = [
        _trap(study),
        uncommitted((study,)),
        _ended_early(study),
        _disturbed(study),
        _left_out(study),
        _lost(study),
        _unsettled(study),
        _skipped(study),
    ]
    if checks:
        all_passed = checks_passed == checks
        raised.append(
            Flag(
                tone="good" if all_passed else "warn",
                sign="✓" if all_passed else "!",
                title=f"{checks_passed} of {checks} fairness checks passed",
                detail="each evaluated from the records",
                link="#fairness",
            )
        )
    return tuple(flag for flag in raised if flag is not None)


def uncommitted(studies: Sequence[Study]) -> Flag | None:
    """That the project under test was measured with changes that are not committed."""
    found = {
        snapshot.name
        for study in studies
        if (snapshot := study.run.snapshot_in({one.cell.environment for one in study.cells}))
    }
    if not found:
        return None
    return Flag.warning(
        title=f"Measured with uncommitted changes: {', '.join(sorted(found))}",
        detail="not part of the history",
    )


def _trap(study: Study) -> Flag | None:
    if not study.ranked:
        return None
    cell, comparison = study.ranked[-1].cell, study.ranked[-1].comparison
    if comparison.verdict != "slower" or comparison.speedup_ratio > _TRAP_RATIO:
        return None
    return Flag(
        tone="bad",
        sign="▼",
        title=f"{times_slower(comparison.speedup_ratio)}: {full_name(cell.cell)}",
        detail=_waiting(cell),
        link="#settings",
    )


def _waiting(cell: CellStudy) -> str:
    summary = cell.summary
    interval = summary.interval
    where = f" {within(interval.low, interval.high, time_text)}" if interval else ""
    each = f"{time_text(summary.median_ns)}{where} {figure_of((cell,)).each}"
    if summary.cpu_median_ns is None:
        return each
    return f"{each}, {duration(summary.cpu_median_ns)} of CPU time"


def _ended_early(study: Study) -> Flag | None:
    left = study.undone
    if left is None:
        return None
    return Flag.warning(
        title=f"The run ended early{budget_words(left)}",
        detail=left.says,
        link="#cells",
    )


def budget_words(left: Undone) -> str:
    """The time that a run was given, where that is why it ended; else empty."""
    return f" (--budget\N{NO-BREAK SPACE}{left.budget})" if left.budget else ""


def _disturbed(study: Study) -> Flag | None:
    hit = [(cell, launch) for cell in study.cells for launch in disturbed(cell)]
    if not hit:
        return None
    total = sum(len(cell.summary.launches) for cell in study.cells)
    are, its = ("was", "its") if len(hit) == 1 else ("were", "their")
    return Flag.warning(
        title=f"{count(len(hit), 'launch', 'launches')} in the figures {are} disturbed",
        detail=f"of {total}, by {_causes(hit)} for most of {its} time: {_cells_of(hit)}",
        link="#launches",
    )


def _left_out(study: Study) -> Flag | None:
    hit = [(cell, launch) for cell in study.cells for launch in left_out(cell)]
    if not hit:
        return None
    total = sum(cell.summary.count("ok") for cell in study.cells)
    return Flag.warning(
        title=f"{count(len(hit), 'disturbed launch', 'disturbed launches')} left out",
        detail=f"of {total}, by {_causes(hit)}: {_cells_of(hit)}",
        link="#launches",
    )


def _causes(hit: Sequence[tuple[CellStudy, Launch]]) -> str:
    each = (one.disturbance.by for _, one in hit if one.disturbance)
    return " and ".join(dict.fromkeys(cause for by in each for cause in by))


def _cells_of(hit: Sequence[tuple[CellStudy, Launch]]) -> str:
    named = list(dict.fromkeys(full_name(cell.cell) for cell, _ in hit))
    more = f" and {count(len(named) - 1, 'more cell')}" if len(named) > 1 else ""
    return f"{named[0]}{more}"


def _lost(study: Study) -> Flag | None:
    said = lost_words([study])
    if not said:
        return None
    total = sum(cell.summary.attempts - cell.summary.count("skipped") for cell in study.cells)
    return Flag.warning(
        title=said, detail=f"of {total}; none of them is in any figure", link="#launches"
    )


def lost_words(studies: Sequence[Study]) -> str:
    """How many launches came to nothing, by what became of them; empty where none did."""
    counts = {
        status: sum(cell.summary.count(status) for study in studies for cell in study.cells)
        for status in ("invalid", "failed", "timed-out")
    }
    said = ", ".join(f"{number} {status}" for status, number in counts.items() if number)
    noun = "launch" if sum(counts.values()) == 1 else "launches"
    return said and f"{said} {noun}"


def _unsettled(study: Study) -> Flag | None:
    unsettled = sum(cell.summary.unsettled for cell in study.cells)
    if not unsettled:
        return None
    total = sum(len(cell.summary.launches) for cell in study.cells)
    return Flag.warning(
        title=f"{count(unsettled, 'launch', 'launches')} never became steady",
        detail=f"of {total}; counted, because leaving them out would flatter",
        link="#launches",
    )


def _skipped(study: Study) -> Flag | None:
    skipped = [cell.cell for cell in study.cells if cell.summary.count("skipped")]
    if not skipped:
        return None
    return Flag(
        tone="plain",
        sign="–",
        title=f"{count(len(skipped), 'cell')} skipped",
        detail=f"this host cannot hold {refused_names(study)}",
        link="#skipped" if any(cell.is_measured for cell in study.cells) else "#launches",
    )


def refused_names(study: Study) -> str:
    """What this host cannot hold: the values that only skipped cells have, or else the cells."""
    skipped = [one.cell for one in study.cells if one.summary.count("skipped")]
    aside = {cell.key for cell in skipped}
    fitting = [cell for cell in study.planned if cell.key not in aside]
    for axis, _ in skipped[0].axes:
        values = {dict(cell.axes).get(axis) for cell in skipped}
        if fitting and values.isdisjoint(dict(cell.axes).get(axis) for cell in fitting):
            return _first_of([axis_value(cell, axis) for cell in skipped])
    return _first_of([full_name(cell) for cell in skipped])


def _first_of(names: list[str]) -> str:
    named = list(dict.fromkeys(names))
    return named[0] if len(named) == 1 else f"{named[0]} and {len(named) - 1} more"
