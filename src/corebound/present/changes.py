"""Table rows of changes: single changes, and groups with one cause."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.change_history import (
    ChangeHistory,
    _recovered,
    change_sizes,
    commit_range,
    recovered_amount,
    remaining_change,
)
from corebound.analysis.commands import CommandLine, between_command
from corebound.analysis.triage import group_overlapping
from corebound.analysis.wording import Label, Tone, VerdictWord, and_more, day, display_unit
from corebound.records.history import HistoryPoint, Series
from corebound.stats.history.regressions import Change
from corebound.text import web_address
from corebound.units import significant

# The address part of a commit at forges that can also compare commits.
_COMMIT = "/commit/"
_STATUS_TONES: dict[str, Tone] = {"open": "bad", "fixed": "good"}
# While a change with one of these is new, it is called so, as its commit is.
_OPEN_OR_KEPT = {"open", "kept"}
# Words for a status that differ from it.
_STATUS_WORDS = {"accepted": "acknowledged"}


class CommitRange(Struct, frozen=True, kw_only=True):
    """The commits after one point of a series, up to another.

    Attributes:
        name: As a git range; empty if unknown.
        subject: Of the last commit, which is the first that is surely after a change; empty if
            unknown.
        link: The address of all these commits, else of the last one; empty if unknown.
    """

    name: str
    subject: str
    link: str

    @classmethod
    def of(cls, series: Series, last_good: HistoryPoint, first_bad: HistoryPoint) -> CommitRange:
        """The commits that may have changed a series."""
        return cls(
            name=commit_range(last_good, first_bad),
            subject=first_bad.commit.subject if first_bad.commit else "",
            link=_range_link(series, last_good, first_bad),
        )


def commit_link(series: Series, point: HistoryPoint) -> str:
    """The address of a point's commit; empty if unknown."""
    url = _commit_url(series)
    return f"{url}{point.commit.sha}" if url and point.commit else ""


def _commit_url(series: Series) -> str:
    """The prefix of addresses of commits; empty if unknown. An import may be from anybody."""
    return web_address(series.commit_url) or ""


def _range_link(series: Series, last_good: HistoryPoint, first_bad: HistoryPoint) -> str:
    """The address of all commits after one point up to another, if the forge has such a page.

    GitHub, GitLab and Forgejo have comparison pages beside their commit pages. For other forges the
    result is the address of the last commit. Empty if no address is known.
    """
    end, good, bad = commit_link(series, first_bad), last_good.commit, first_bad.commit
    url = _commit_url(series)
    if good is None or bad is None or not url.endswith(_COMMIT):
        return end
    return f"{url.removesuffix(_COMMIT)}/compare/{good.sha}...{bad.sha}"


class RecoveryNote(Struct, frozen=True, kw_only=True):
    """What reverted a change, fully or partly.

    Attributes:
        text: How much was recovered, when, and in how many change points.
        commits: Those of the last of these change points.
        remaining: The level since then relative to before the change; empty if they are equal.
    """

    text: str
    commits: CommitRange
    remaining: str


def recovery_note(changes: Sequence[Change]) -> RecoveryNote | None:
    """What reverted several changes, if one change point may have reverted all of them.

    Args:
        changes: At least one, the largest first.
    """
    between = [
        change.recovered_between for change in changes if change.recovered_between is not None
    ]
    first = changes[0].change_point.recovery
    if first is None or len(between) < len(changes) or len({*map(_recovered, changes)}) > 1:
        return None
    good = max((good for good, _ in between), key=lambda point: point.at)
    bad = min((bad for _, bad in between), key=lambda point: point.at)
    if good.at >= bad.at:
        return None
    series = changes[0].series
    return RecoveryNote(
        text=f"{recovered_amount(changes[0])} {day(series.points.moments[first.at].at)}",
        commits=CommitRange.of(series, good, bad),
        remaining=remaining_change(changes),
    )


def levels_text(change: Change) -> str:
    """The levels before and after a change, in one unit."""
    before, after = (
        change.change_point.before,
        change.change_point.before * change.change_point.ratio,
    )
    length, unit = display_unit(change.series, [before, after])
    return f"{significant(before / length)} to {significant(after / length)} {unit}".strip()


# The CSV has all of them.
_MOST_LISTED = 20


class ChangeGroup(Struct, frozen=True, kw_only=True):
    """Changes of one scenario on one host, in one direction, that may come from one commit.

    Attributes:
        changes: At least one, the largest first.
        history: All histories and decisions.
        number: Its mark in the chart above; 0 if it has none.
    """

    changes: tuple[Change, ...]
    history: ChangeHistory
    number: int = 0

    @classmethod
    def of(cls, changes: Sequence[Change], history: ChangeHistory) -> ChangeGroup:
        """One of the groups of `group_changes`."""
        largest_first = sorted(
            changes, key=lambda change: (-abs(change.change_point.ratio - 1), change.id)
        )
        return cls(changes=tuple(largest_first), history=history)

    @property
    def change(self) -> Change:
        """The largest of them."""
        return self.changes[0]

    @property
    def cells(self) -> str:
        """Their number, in words; empty if there is only one."""
        return f"{len(self.changes):,} series" if len(self.changes) > 1 else ""

    @property
    def each(self) -> tuple[ChangeGroup, ...]:
        """Each of the largest."""
        return tuple(
            ChangeGroup(changes=(change,), history=self.history)
            for change in self.changes[:_MOST_LISTED]
        )

    @property
    def more(self) -> str:
        """The number of further ones, in words; empty if there are none."""
        return and_more(len(self.changes) - _MOST_LISTED)

    @property
    def size(self) -> VerdictWord:
        """Size and direction, from the smallest to the largest."""
        return change_sizes(self.changes)

    @property
    def status(self) -> VerdictWord:
        """The status with a tone.

        It is new, open, acknowledged, fixed, recovered, retired, kept, not clear or not confirmed.
        """
        status = self.history.status(self.change)
        is_new = status in _OPEN_OR_KEPT and self.history.is_news(self.change)
        return VerdictWord(
            tone=_STATUS_TONES.get(status, "plain"),
            sign="",
            word="new" if is_new else _STATUS_WORDS.get(status, status),
        )

    @property
    def because(self) -> str:
        """The reason for the decision; empty without a decision."""
        return self.history.because(self.change)

    @property
    def answer(self) -> str:
        """The result of a re-run; empty without one."""
        return self.history.answer(self.change)

    @property
    def label(self) -> Label:
        """The cell of the largest."""
        return self.history.label(self.change.series)

    @property
    def location(self) -> str:
        """The host, and the project if it was imported."""
        series = self.change.series
        return f"{series.project}, {series.host_name}" if series.project else series.host_name

    @property
    def commits(self) -> CommitRange:
        """Those that all may have come in."""
        return CommitRange.of(self.change.series, *self._between)

    @property
    def recovery(self) -> RecoveryNote | None:
        """What reverted all of them; None if nothing did."""
        return recovery_note(self.changes)

    @property
    def command(self) -> CommandLine | None:
        """The command that reproduces them, if asv measured both commits; None if unknown."""
        return between_command([change.series for change in self.changes], *self._between)

    @property
    def _between(self) -> tuple[HistoryPoint, HistoryPoint]:
        """The points before and after all of them."""
        return (
            max((change.last_good for change in self.changes), key=_moment),
            min((change.first_bad for change in self.changes), key=_moment),
        )


def _moment(point: HistoryPoint) -> str:
    return point.at


def group_changes(
    changes: Sequence[Change], history: ChangeHistory
) -> tuple[tuple[Change, ...], ...]:
    """Group changes that may come from one commit.

    Changes of one scenario, host, direction and status are grouped if their ranges share a moment.
    The range that ends first defines a group, which includes all changes that began before its end.

    Args:
        changes: Changes; groups and their members keep this order.
        history: All histories and decisions.
    """
    alike: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        series = change.series
        key = (
            series.project, series.host, series.scenario, series.unit,
            change.is_regression, change.change_point.status, history.status(change),
            history.because(change), history.answer(change).partition(":")[0],
        )  # fmt: skip
        alike.setdefault(key, []).append(change)
    order = {change.id: index for index, change in enumerate(changes)}
    groups = [
        tuple(sorted(group, key=lambda change: order[change.id]))
        for changes in alike.values()
        for group in group_overlapping(changes)
    ]
    return tuple(sorted(groups, key=lambda group: order[group[0].id]))
