"""Table rows of changes: single changes, and groups with one cause."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import (
    ChangeHistory,
    _recovered,
    change_size,
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


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A change.

    Attributes:
        number: Its mark in the chart above; 0 if it has none.
        size: Size and direction.
        status: new, open, acknowledged, fixed, recovered, retired, kept, not clear or not
            confirmed, with a tone.
        because: The reason for the decision; empty without a decision.
        answer: The result of a re-run; empty without one.
        label: The cell.
        commits: Those it came in.
        recovery: What reverted it; None if nothing did.
        command: The command that reproduces it, if asv measured both commits; None if unknown.
    """

    change: Change
    number: int
    size: VerdictWord
    status: VerdictWord
    because: str
    answer: str
    label: Label
    commits: CommitRange
    recovery: RecoveryNote | None
    command: CommandLine | None

    @property
    def levels(self) -> str:
        """The level before and after."""
        return levels_text(self.change)

    @property
    def location(self) -> str:
        """The host, and the project if it was imported."""
        series = self.change.series
        return f"{series.project}, {series.host_name}" if series.project else series.host_name


def change_row(change: Change, history: ChangeHistory, *, number: int = 0) -> ChangeRow:
    """A change as a row.

    Args:
        change: The change.
        history: All histories and decisions.
        number: The number of its mark in a chart.
    """
    series = change.series
    status = history.status(change)
    return ChangeRow(
        change=change,
        number=number,
        size=change_size(change),
        status=VerdictWord(
            tone=_STATUS_TONES.get(status, "plain"),
            sign="",
            word="new"
            if status in _OPEN_OR_KEPT and history.is_news(change)
            else _STATUS_WORDS.get(status, status),
        ),
        because=history.because(change),
        answer=history.answer(change),
        label=history.label(series),
        commits=CommitRange.of(series, change.last_good, change.first_bad),
        recovery=recovery_note((change,)),
        command=between_command((series,), change.last_good, change.first_bad),
    )


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
        head: What they share. Its range of commits is the intersection of theirs, its size spans
            from the smallest to the largest, and its command measures all.
        cells: Their number, in words; empty if there is only one.
        rows: Each of them, the largest first; `more` is the number of further ones.
    """

    head: ChangeRow
    cells: str
    rows: tuple[ChangeRow, ...]
    more: str = ""


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


def change_group(changes: Sequence[Change], history: ChangeHistory) -> ChangeGroup:
    """One of the groups of `group_changes` as a row.

    Args:
        changes: Its changes, at least one.
        history: All histories and decisions.
    """
    largest_first = sorted(
        changes, key=lambda change: (-abs(change.change_point.ratio - 1), change.id)
    )
    rows = tuple(change_row(change, history) for change in largest_first[:_MOST_LISTED])
    if len(rows) == 1:
        return ChangeGroup(head=rows[0], cells="", rows=rows)
    good = max((change.last_good for change in changes), key=_moment)
    bad = min((change.first_bad for change in changes), key=_moment)
    head = replace(
        rows[0],
        size=change_sizes(largest_first),
        commits=CommitRange.of(largest_first[0].series, good, bad),
        recovery=recovery_note(largest_first),
        command=between_command([change.series for change in largest_first], good, bad),
    )
    return ChangeGroup(
        head=head,
        cells=f"{len(changes):,} series",
        rows=rows,
        more=and_more(len(changes) - len(rows)),
    )


def _moment(point: HistoryPoint) -> str:
    return point.at
