"""A change as a row: how large, since when, between which commits, and how to see it again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.model.points import Point
from corebound.model.series import Series
from corebound.report.view.addresses import series_place
from corebound.report.view.chronicle import Chronicle, size_interval, size_word, sizes_word
from corebound.report.view.command import CommandLine, between_command
from corebound.report.view.page import Label, Tone, VerdictWord
from corebound.report.view.series_figure import display_unit
from corebound.report.view.words import day
from corebound.stats.regressions import Change
from corebound.units import significant

# How the address of a commit ends at forges that compare commits too.
_COMMIT = "/commit/"
_ALL, _PART, _MORE = "undone", "partly undone", "more than undone"
_STATUS_TONES: dict[str, Tone] = {"open": "bad", "fixed": "good"}


class RecoveryNote(Struct, frozen=True, kw_only=True):
    """What took a change back, all of it or in part.

    Attributes:
        says: How far, when, and in how many steps.
        commits, subject, link: As those of a `ChangeRow`, of the last of these steps.
        left: How the level is since then against that before the change; empty where they
            are the same.
    """

    says: str
    commits: str
    subject: str
    link: str
    left: str


class ChangeRow(Struct, frozen=True, kw_only=True):
    """A change.

    Attributes:
        id: Stays itself from night to night.
        number: Of its mark in the chart above; 0 of one without.
        size, interval: How large and which way, with 95 % interval in the same unit.
        levels: The level before and after.
        status: open, accepted, fixed, recovered, ended, kept, not clear or not confirmed, with
            a tone.
        because: Why it was decided so; empty where nobody did.
        answer: What a re-run said of it; empty where none did.
        title: What was measured: the scenario or benchmark.
        label: The cell.
        where: The host, and the project where it was imported.
        since: The day of the first night, by an even bet.
        commits: The range of commits it came in; empty where none is known.
        subject: Of the first commit that is surely after it.
        link: Where the range can be seen, else that commit; empty where that is not known.
        recovery: What took it back; None where nothing did.
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
    answer: str
    title: str
    label: Label
    where: str
    since: str
    commits: str
    subject: str
    link: str
    recovery: RecoveryNote | None
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
    status = known.status(change)
    where = series.host_name if series.project is None else f"{series.project}, {series.host_name}"
    return ChangeRow(
        id=change.id,
        number=number,
        size=size_word(change),
        interval=size_interval(change),
        levels=levels_text(change),
        status=VerdictWord(tone=_STATUS_TONES.get(status, "plain"), sign="", word=status),
        because=known.because(change),
        answer=known.answer(change),
        title=series.title,
        label=known.label(series),
        where=where,
        since=day(change.since),
        commits=commit_range(change.last_good, change.first_bad),
        subject=change.first_bad.commit.subject if change.first_bad.commit else "",
        link=range_link(series, change.last_good, change.first_bad),
        recovery=recovery_note((change,)),
        command=between_command((series,), change.last_good, change.first_bad),
        address=f"{root}{series_place(series)}",
    )


def recovery_note(found: Sequence[Change]) -> RecoveryNote | None:
    """What took several changes back, where one step can have done it to all of them alike.

    Args:
        found: At least one, the largest first.
    """
    between = [one.back_between for one in found if one.back_between is not None]
    first = found[0].step.recovery
    if first is None or len(between) < len(found) or len({*map(_recovered, found)}) > 1:
        return None
    good = max((good for good, _ in between), key=lambda point: point.at)
    bad = min((bad for _, bad in between), key=lambda point: point.at)
    if good.at >= bad.at:
        return None
    series = found[0].series
    return RecoveryNote(
        says=f"{recovery_words(found[0])} {day(series.points.moments[first.at].at)}",
        commits=commit_range(good, bad),
        subject=bad.commit.subject if bad.commit else "",
        link=range_link(series, good, bad),
        left=left_words(found),
    )


def recovery_words(change: Change) -> str:
    """How much of a change was taken back, and by how many steps: `partly undone`.

    Args:
        change: One that later steps took something back of.
    """
    how, steps, is_clear = _recovered(change)
    several = f" in {steps} steps, the last" if steps > 1 else ""
    return f"{'' if is_clear else 'perhaps '}{how}{several}"


def left_words(found: Sequence[Change]) -> str:
    """The level after the recoveries against that before the changes; empty where it is the same.

    Args:
        found: At least one; of all of them as much was taken back, as `recovery_words` has it.
    """
    how = _recovered(found[0])[0]
    if how == _ALL:
        return ""
    since = sizes_word([_since(one) for one in found])
    return f"{'still ' if how == _PART else ''}{since.word} than before it"


def _recovered(change: Change) -> tuple[str, int, bool]:
    """How much was taken back, in how many steps, and whether the last of them is clear."""
    recovery = change.step.recovery
    if recovery is None:
        return "", 0, False
    how = _PART
    if recovery.whole:
        beyond = abs(math.log(recovery.left)) >= math.log1p(change.series.margin)
        how = _MORE if beyond else _ALL
    return how, recovery.steps, change.back_is_clear


def _since(change: Change) -> Change:
    """A change as if it went from the level before it to that after its recovery."""
    left = change.step.recovery.left if change.step.recovery else change.step.ratio
    return replace(
        change, step=replace(change.step, ratio=left, direction="up" if left > 1 else "down")
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
