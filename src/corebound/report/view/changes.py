"""A change as a row: how large, since when, between which commits, and how to see it again."""

from __future__ import annotations

from dataclasses import dataclass

from corebound.model.points import Point
from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.chronicle import Chronicle, size_interval, size_word
from corebound.report.view.command import CommandLine, between_command
from corebound.report.view.page import Label, Tone, VerdictWord
from corebound.report.view.series_figure import display_unit
from corebound.report.view.words import day
from corebound.stats.regressions import Change
from corebound.units import significant

# How the address of a commit ends at forges that compare commits too.
_COMMIT = "/commit/"
_STATUS_TONES: dict[str, Tone] = {"open": "bad", "fixed": "good"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A change.

    Attributes:
        id: Stays itself from night to night.
        number: Of its mark in the chart above; 0 of one without.
        size, interval: How large and which way, with 95 % interval in the same unit.
        levels: The level before and after.
        status: open, accepted, fixed, recovered, kept or not clear, with a tone.
        because: Why it was decided so; empty where nobody did.
        title: What was measured: the scenario or benchmark.
        label: The cell.
        where: The host, and the project where it was imported.
        since: The day of the first night, by an even bet.
        commits: The range of commits it came in; empty where none is known.
        subject: Of the first commit that is surely after it.
        link: Where the range can be seen, else that commit; empty where that is not known.
        command: What measures it again, where asv did at both its commits; None where that is
            not known.
        address: Where its series is shown, from the page.
    """

    id: str
    number: int
    size: VerdictWord
    interval: str
    levels: str
    status: VerdictWord
    because: str
    title: str
    label: Label
    where: str
    since: str
    commits: str
    subject: str
    link: str
    command: CommandLine | None
    address: str


def change_row(change: Change, known: Chronicle, *, root: str, number: int = 0) -> ChangeRow:
    """A change as a row.

    Args:
        change: The change.
        known: What else is known.
        root: Relative path from the page to the site's top.
        number: Of its mark in a chart.
    """
    series = change.series
    status = known.status(change) if change.clear else "not clear"
    where = series.host_name if series.project is None else f"{series.project}, {series.host_name}"
    return ChangeRow(
        id=change.id,
        number=number,
        size=size_word(change),
        interval=size_interval(change),
        levels=levels_text(change),
        status=VerdictWord(tone=_STATUS_TONES.get(status, "plain"), sign="", word=status),
        because=known.reasons.get(change.id, ""),
        title=series.title,
        label=known.label(series),
        where=where,
        since=day(change.since),
        commits=commit_range(change.last_good, change.first_bad),
        subject=change.first_bad.commit.subject if change.first_bad.commit else "",
        link=range_link(series, change.last_good, change.first_bad),
        command=between_command((series,), change.last_good, change.first_bad),
        address=f"{root}{series_place(series)}",
    )


def levels_text(change: Change) -> str:
    """The level before a change and after it, in one unit."""
    before, after = change.step.before, change.step.before * change.step.ratio
    length, unit = display_unit(change.series, [before, after])
    return f"{significant(before / length)} to {significant(after / length)} {unit}".strip()


def commit_link(series: Series, point: Point) -> str:
    """Where the commit of a point can be seen; empty where that is not known."""
    if series.commit_url is None or point.commit is None:
        return ""
    return f"{series.commit_url}{point.commit.sha}"


def range_link(series: Series, last_good: Point, first_bad: Point) -> str:
    """Where all commits after one point up to another can be seen, where the forge shows that.

    GitHub, GitLab and Forgejo compare commits beside where they show one; else the last one's
    place. Empty where none is known.
    """
    end, good, bad = commit_link(series, first_bad), last_good.commit, first_bad.commit
    url = series.commit_url or ""
    if good is None or bad is None or not url.endswith(_COMMIT):
        return end
    return f"{url.removesuffix(_COMMIT)}/compare/{good.sha}...{bad.sha}"


def commit_range(last_good: Point, first_bad: Point) -> str:
    """The commits that a change came in, as git takes a range; empty where they are not known.

    >>> from build import a_point
    >>> commit_range(a_point(day=1), a_point(day=17))
    '0000000000..0000000000'
    >>> commit_range(a_point(day=1, commit=None), a_point(day=2, commit=None))
    ''
    """
    good, bad = last_good.commit, first_bad.commit
    if bad is None:
        return ""
    if good is None:
        return f"up to {bad.sha[:10]}"
    return f"{good.sha[:10]}..{bad.sha[:10]}"
