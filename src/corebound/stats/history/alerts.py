"""Which changes alarm: after what people decided, and what re-runs said."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Iterable, Sequence

from msgspec import Struct

from corebound.records.decisions import ChangeLocation, Confirmation, Decision, State
from corebound.stats.history.early_warnings import ASK_AGAIN_NIGHTS, alarms, is_final
from corebound.stats.history.regressions import Change


class JudgedChange(Struct, frozen=True, kw_only=True):
    """A change, and what is to be told of it.

    Attributes:
        change: The change.
        id: What it is called: as the decision has it, where there is one.
        state: What was decided, else `open`.
        decision: The latest one about it, or None.
        confirmation: The latest re-run that still counts, or None.
        is_back: It was said to be fixed, and is there all the same.
        alarm: Whether it is a new regression that nobody has decided about.
        has_ended: Its series has had no point of late, and nobody has decided about it.
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
        """Whether it is news by itself, whatever was decided."""
        return self.change.step.status == "new" and not self.has_ended

    @property
    def is_open(self) -> bool:
        """Whether it is a regression that somebody should look at, alarm or not."""
        undecided = self.state == "open" and self.is_new
        return self.change.is_regression and (undecided or self.is_back)

    @property
    def is_gain(self) -> bool:
        """Whether it is a new change for the better that stands, and nobody decided about it."""
        return (
            not self.change.is_regression
            and self.change.clear
            and self.is_new
            and self.state == "open"
        )

    @property
    def is_undecided(self) -> bool:
        """Whether it is new, and neither the nights nor a re-run nor anybody say what it is."""
        if self.change.is_regression:
            return self.is_open and not self.alarm
        return not self.change.clear and self.is_new and self.state == "open"


def judged(
    found: Iterable[Change],
    decisions: Sequence[Decision],
    confirmations: Sequence[Confirmation],
    *,
    ended: Container[str] = (),
) -> tuple[JudgedChange, ...]:
    """Put together what is known of each change, in their order.

    Args:
        found: Changes, and suspicions.
        decisions: What people decided, in the order of the file: the last one counts.
        confirmations: What re-runs said.
        ended: Ids of the series that have had no point of late.
    """
    return tuple(
        _judged(change, decisions, confirmations, in_ended=change.series.id in ended)
        for change in found
    )


def _judged(
    change: Change,
    decisions: Sequence[Decision],
    confirmations: Sequence[Confirmation],
    *,
    in_ended: bool,
) -> JudgedChange:
    decision = _decision(change, decisions)
    confirmation = _confirmation(change, confirmations)
    state: State = "open" if decision is None else decision.state
    is_back = decision is not None and _is_back(change, decision)
    # Who reopens a change wants to hear of it, also where its series has ended.
    has_ended = in_ended and decision is None
    news = is_back or (state == "open" and change.step.status == "new" and not has_ended)
    return JudgedChange(
        change=change,
        id=change.id if decision is None else decision.id,
        state=state,
        decision=decision,
        confirmation=confirmation,
        is_back=is_back,
        alarm=change.is_regression
        and news
        and alarms(
            voted=change.clear,
            said=None if confirmation is None else confirmation.answer,
            both=confirmation is not None and confirmation.both,
        ),
        has_ended=has_ended,
    )


def _decision(change: Change, decisions: Sequence[Decision]) -> Decision | None:
    about = [one for one in decisions if one.id == change.id or _is_of(one.place, change)]
    return about[-1] if about else None


def _confirmation(change: Change, confirmations: Sequence[Confirmation]) -> Confirmation | None:
    """The latest; what is not final is forgotten when more nights may tell otherwise."""
    about = [one for one in confirmations if one.id == change.id or _is_of(one.place, change)]
    latest = max(about, key=lambda one: one.at, default=None)
    if latest is None or is_final(
        latest.answer, both=latest.both, covered=latest.place.covers(change.place)
    ):
        return latest
    since = sum(
        point.figure is not None and point.at > latest.seen for point in change.series.points
    )
    return latest if since < ASK_AGAIN_NIGHTS else None


def _is_of(place: ChangeLocation, change: Change) -> bool:
    return place.overlaps(change.place)


def _is_back(change: Change, decision: Decision) -> bool:
    return decision.state == "fixed" and _is_there_since(change, decision.at)


def _is_there_since(change: Change, moment: str) -> bool:
    """Whether the nights after a moment lie nearer to the bad level than to the good."""
    points, step = change.series.points, change.step
    after = [
        math.log(point.figure)
        for point in points[step.at :]
        if point.figure is not None and point.at > moment
    ]
    before = [math.log(one.figure) for one in points[: step.at] if one.figure is not None]
    if len(after) < ASK_AGAIN_NIGHTS or not before:
        return False
    # A series may have stepped before: the good level is that of the nights just before.
    good = statistics.median(before[-_LATELY:])
    moved = statistics.median(after) - good
    return moved / math.log(step.ratio) > _HALF


# Nights that say what the level just before a step was.
_LATELY = 20
_HALF = 0.5
