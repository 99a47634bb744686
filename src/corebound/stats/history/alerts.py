"""Decide which changes raise an alarm, given people's decisions and the results of re-runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterable, Sequence

from msgspec import Struct

from corebound.records.decisions import ChangeLocation, Confirmation, Decision, State
from corebound.stats.history.early_warnings import RERUN_EXPIRES_POINTS, is_final, raises_alarm
from corebound.stats.history.regressions import Change


class AssessedChange(Struct, frozen=True, kw_only=True):
    """A change with its state and whether it raises an alarm.

    Attributes:
        change: The change.
        id: The change's id; the decision's id if there is one.
        state: The state that was decided, else `open`.
        decision: The latest decision about it, or None.
        confirmation: The latest re-run that is still valid, or None.
        is_back: It was marked as fixed but is still present.
        alarm: Whether it is a new regression without a decision.
        has_ended: Its series is retired, with no recent points, and there is no decision about it.
    """

    change: Change
    id: str
    state: State
    decision: Decision | None
    confirmation: Confirmation | None
    is_back: bool
    alarm: bool
    has_ended: bool = False

    @property
    def is_new(self) -> bool:
        """Whether it is recent and its series is active, whatever was decided."""
        return self.change.change_point.status == "new" and not self.has_ended

    @property
    def is_open(self) -> bool:
        """Whether it is a regression that needs attention, with or without an alarm."""
        inconclusive = self.state == "open" and self.is_new
        return self.change.is_regression and (inconclusive or self.is_back)

    @property
    def is_gain(self) -> bool:
        """Whether it is a new, significant improvement without a decision."""
        return (
            not self.change.is_regression
            and self.change.clear
            and self.is_new
            and self.state == "open"
        )

    @property
    def is_inconclusive(self) -> bool:
        """Whether it is new and neither the detectors nor a re-run nor a decision settle it."""
        if self.change.is_regression:
            return self.is_open and not self.alarm
        return not self.change.clear and self.is_new and self.state == "open"


def assess_changes(
    changes: Iterable[Change],
    decisions: Sequence[Decision],
    confirmations: Sequence[Confirmation],
    *,
    retired: Container[str] = (),
) -> tuple[AssessedChange, ...]:
    """Combine each change with its decision and re-run result, in the given order.

    Args:
        changes: Changes and early warnings.
        decisions: People's decisions, in the order of the file; the last one counts.
        confirmations: Results of re-runs.
        retired: Ids of retired series, which have no recent points.
    """
    return tuple(
        _assess(change, decisions, confirmations, is_retired=change.series.id in retired)
        for change in changes
    )


def _assess(
    change: Change,
    decisions: Sequence[Decision],
    confirmations: Sequence[Confirmation],
    *,
    is_retired: bool,
) -> AssessedChange:
    decision = _decision(change, decisions)
    confirmation = _confirmation(change, confirmations)
    state: State = "open" if decision is None else decision.state
    is_back = decision is not None and _has_returned(change, decision)
    # Reopening a change asks for its alarm, even if its series is retired.
    has_ended = is_retired and decision is None
    needs_attention = is_back or (
        state == "open" and change.change_point.status == "new" and not has_ended
    )
    return AssessedChange(
        change=change,
        id=change.id if decision is None else decision.id,
        state=state,
        decision=decision,
        confirmation=confirmation,
        is_back=is_back,
        alarm=change.is_regression
        and needs_attention
        and raises_alarm(
            is_accepted=change.clear,
            answer=None if confirmation is None else confirmation.answer,
            is_commit_comparison=confirmation is not None and confirmation.both,
        ),
        has_ended=has_ended,
    )


def _decision(change: Change, decisions: Sequence[Decision]) -> Decision | None:
    matching = [
        decision
        for decision in decisions
        if decision.id == change.id or _overlaps(decision.location, change)
    ]
    return matching[-1] if matching else None


def _confirmation(change: Change, confirmations: Sequence[Confirmation]) -> Confirmation | None:
    """The latest re-run; a result that is not final expires after a few more points."""
    matching = [
        confirmation
        for confirmation in confirmations
        if confirmation.id == change.id or _overlaps(confirmation.location, change)
    ]
    latest = max(matching, key=lambda confirmation: confirmation.at, default=None)
    if latest is None or is_final(
        latest.answer,
        is_commit_comparison=latest.both,
        is_covered=latest.location.covers(change.location),
    ):
        return latest
    since = sum(
        point.value is not None and point.at > latest.last_point for point in change.series.points
    )
    return latest if since < RERUN_EXPIRES_POINTS else None


def _overlaps(location: ChangeLocation, change: Change) -> bool:
    return location.overlaps(change.location)


def _has_returned(change: Change, decision: Decision) -> bool:
    return decision.state == "fixed" and _is_present_since(change, decision.at)


def _is_present_since(change: Change, moment: str) -> bool:
    """Whether the points after a moment are closer to the bad level than to the good one."""
    points, change_point = change.series.points, change.change_point
    after = [
        math.log(point.value)
        for point in points[change_point.at :]
        if point.value is not None and point.at > moment
    ]
    before = [
        math.log(earlier.value)
        for earlier in points[: change_point.at]
        if earlier.value is not None
    ]
    if len(after) < RERUN_EXPIRES_POINTS or not before:
        return False
    # The series may have changed earlier: the good level is that of the points just before.
    good = statistics.median(before[-_LEVEL_POINTS:])
    shift = statistics.median(after) - good
    return shift / math.log(change_point.ratio) > _HALF


# The number of points that give the level just before a change point.
_LEVEL_POINTS = 20
_HALF = 0.5
