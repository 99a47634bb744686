"""Decide which changes raise an alarm, given people's decisions and the results of re-runs."""

import math
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from corebound.records.decisions import Confirmation, Decision, State
from corebound.records.run_record import Commit
from corebound.scenario.cell import axes_of_key
from corebound.stats.history.early_warnings import RERUN_EXPIRES_POINTS, is_final, raises_alarm
from corebound.stats.history.regressions import Change
from corebound.stats.intervals import Ends, ratio_interval_pair

Status = Literal[
    "new", "open", "acknowledged", "fixed", "kept", "reverted", "retired",
    # These are not certain, and not decided.
    "not confirmed", "not significant", "early warning",
]  # fmt: skip
# The most urgent first.
STATUSES: tuple[Status, ...] = get_args(Status)


class HistoryChange(Struct, frozen=True, kw_only=True):
    """A lasting change of one series, or an early warning of one.

    Attributes:
        id: What `Results.decide` takes, and `corebound regressions --accept`: the id of the
            decision if there is one.
        state: The state that was decided, else `open`.
        decision: The latest decision about it, or None.
        confirmation: The latest re-run that is still valid, or None.
        is_back: It was marked as fixed but is still present.
        is_alarm: Whether it is a new regression without a decision.
        has_ended: Its series is retired, with no recent points, and there is no decision about it.
    """

    change: Change
    id: str
    state: State
    decision: Decision | None
    confirmation: Confirmation | None
    is_back: bool
    is_alarm: bool
    has_ended: bool = False

    def __repr__(self) -> str:
        """The change in a line: its series has too many points to print."""
        return (
            f"{self.id}: {self.scenario} [{self.cell}] on {self.host}, {self.ratio:.4g} times,"
            f" {self.status} since {self.since}"
        )

    @property
    def scenario(self) -> str:
        """The scenario, or the benchmark of an imported history."""
        return self.change.series.scenario

    @property
    def cell(self) -> str:
        """The configuration, such as `binding=none,threads=2`."""
        return self.change.series.cell

    @property
    def axes(self) -> Mapping[str, str]:
        """The same by axis; values are text."""
        return axes_of_key(self.cell)

    @property
    def project(self) -> str | None:
        """The project of an imported history."""
        return self.change.series.project

    @property
    def host(self) -> str:
        """The host's id."""
        return self.change.series.host

    @property
    def unit(self) -> str:
        """The unit of the values: `ns` for times."""
        return self.change.series.unit

    @property
    def ratio(self) -> float:
        """The value after the change over the value before."""
        return self.change.change_point.ratio

    @property
    def interval(self) -> Ends | None:
        """The 95 % confidence interval of `ratio`, (low, high); None if unknown."""
        return ratio_interval_pair(self.change.change_point.interval)

    @property
    def last_good(self) -> Commit | None:
        """The commit of the last point before it; None if that point has none."""
        return self.change.last_good.commit

    @property
    def first_bad(self) -> Commit | None:
        """The commit of the first point after it; None if that point has none."""
        return self.change.first_bad.commit

    @property
    def since(self) -> str:
        """When it most likely began, ISO 8601 in UTC."""
        return self.change.since

    @property
    def is_regression(self) -> bool:
        """Whether it got worse."""
        return self.change.is_regression

    @property
    def is_significant(self) -> bool:
        """Whether it is significant after correction for all series."""
        return self.change.clear

    @property
    def is_new(self) -> bool:
        """Whether it is recent and its series is active, whatever was decided."""
        return self.change.change_point.status == "new" and not self.has_ended

    @property
    def is_undecided(self) -> bool:
        """Whether it is a certain regression that is neither accepted nor fixed."""
        return self.is_regression and self.status in {"new", "open"}

    @property
    def is_open(self) -> bool:
        """Whether it is a regression that needs attention, with or without an alarm."""
        undecided = self.state == "open" and self.is_new
        return self.is_regression and (undecided or self.is_back)

    @property
    def is_gain(self) -> bool:
        """Whether it is a new, significant improvement without a decision."""
        return (
            not self.is_regression and self.is_significant and self.is_new and self.state == "open"
        )

    @property
    def is_inconclusive(self) -> bool:
        """Whether it is new and neither the detectors nor a re-run nor a decision settle it."""
        if self.is_regression:
            return self.is_open and not self.is_alarm
        return not self.is_significant and self.is_new and self.state == "open"

    @property
    def status(self) -> Status:
        """Its status everywhere; of a commit it is the most urgent one of its changes."""
        status: Status = "open" if self.is_regression else "kept"
        if self.state == "open" and not self.is_alarm:
            if not self.is_significant:
                return "early warning" if self.change.change_point.is_early else "not significant"
            if self.is_inconclusive:
                return "not confirmed"
        if self.is_alarm or self.is_gain:
            status = "new"
        elif self.state == "accepted":
            status = "acknowledged"
        elif self.is_back:
            status = "open"
        elif self.change.change_point.status == "recovered":
            status = "fixed" if self.is_regression else "reverted"
        elif self.state == "fixed":
            status = "fixed"
        elif self.has_ended:
            status = "retired"
        return status


def assess_changes(
    changes: Iterable[Change],
    decisions: Sequence[Decision],
    confirmations: Sequence[Confirmation],
    *,
    retired: Container[str] = (),
) -> tuple[HistoryChange, ...]:
    """Combine each change with its decision and re-run result, in the given order.

    Args:
        decisions: People's decisions, in the order of the file; the last one counts.
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
) -> HistoryChange:
    decision = _decision(change, decisions)
    confirmation = _confirmation(change, confirmations)
    state: State = "open" if decision is None else decision.state
    is_back = (
        decision is not None
        and decision.state == "fixed"
        and _is_present_since(change, decision.at)
    )
    # Reopening a change asks for its alarm, even if its series is retired.
    has_ended = is_retired and decision is None
    needs_attention = is_back or (
        state == "open" and change.change_point.status == "new" and not has_ended
    )
    return HistoryChange(
        change=change,
        id=change.id if decision is None else decision.id,
        state=state,
        decision=decision,
        confirmation=confirmation,
        is_back=is_back,
        is_alarm=change.is_regression
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
        if decision.id == change.id or decision.location.overlaps(change.location)
    ]
    return matching[-1] if matching else None


def _confirmation(change: Change, confirmations: Sequence[Confirmation]) -> Confirmation | None:
    """The latest re-run; a result that is not final expires after a few more points."""
    matching = [
        confirmation
        for confirmation in confirmations
        if confirmation.id == change.id or confirmation.location.overlaps(change.location)
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
