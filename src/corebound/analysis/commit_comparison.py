"""Two commits of an imported project against one another, benchmark by benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.comparison import Compared, apply_fdr
from corebound.analysis.environment_changes import differing
from corebound.analysis.series_names import series_name
from corebound.errors import InputError
from corebound.records.history import HistoryPoint, Series
from corebound.records.run_record import Commit
from corebound.stats.history.pairwise import compare_points
from corebound.stats.history.regressions import course_of

CAVEAT = (
    "Each commit was measured once, at its own time. Every interval is as wide as other nights "
    "of the same level differ; where fewer than ten are known there is none."
)


class ComparedSeries(Compared, frozen=True, kw_only=True):
    """One benchmark's cell on one machine at both commits.

    Of a rate the comparison is of the later figure with the earlier one, so that above 1, and
    `faster`, are better in every one.
    """

    series: Series
    before: HistoryPoint
    after: HistoryPoint

    @property
    def is_less(self) -> bool:
        """Whether its figure went down, of one that differs."""
        return (self.verdict == "faster") != self.series.more_is_better


class CommitComparison(Struct, frozen=True, kw_only=True):
    """What a project's history says of two of its commits.

    Attributes:
        project: Whose they are.
        before, after: The commits.
        series: Those measured at both and alike, by change over noise.
        unlike: Names of those that were not measured alike, and what differs.
        alone: Names of those measured at one of them only, and its hash.
    """

    project: str
    before: Commit
    after: Commit
    series: tuple[ComparedSeries, ...]
    unlike: tuple[tuple[str, str], ...]
    alone: tuple[tuple[str, str], ...]


def compare_commits(
    project: str, before: str, after: str, known: ChangeHistory
) -> CommitComparison:
    """Compare two commits of an imported project.

    Args:
        project: Its name.
        before: The hash of the one.
        after: The hash of the other.
        known: All histories, with what changed in them.

    Raises:
        InputError: they are one commit, or nothing was measured alike at both.
    """
    where = f"{project}, {before[:10]}, {after[:10]}"
    if before == after:
        raise InputError(what="the two are the same commit.", where=where, mend="Name two.")
    found: list[ComparedSeries] = []
    unlike: list[tuple[str, str]] = []
    alone: list[tuple[str, str]] = []
    commits: dict[str, Commit] = {}
    for series in (one for one in known.series if one.project == project):
        at = _places(series, (before, after), commits)
        if len(at) < 2:
            alone += ((series_name(series), sha) for sha in at)
            continue
        one, two = series.points[at[before]], series.points[at[after]]
        if said := differing(one.circumstances, two.circumstances):
            unlike.append((series_name(series), said))
            continue
        if series.id in known.not_analysed:
            unlike.append((series_name(series), "its history could not be analysed"))
            continue
        found.append(_compared(series, (at[before], at[after]), known))
    if not found:
        raise InputError(
            what="no benchmark was measured alike at both commits.",
            where=where,
            mend="Name two commits of one machine and version of the benchmarks.",
        )
    by_noise = sorted(apply_fdr(found), key=lambda one: (-one.over_noise, one.series.id))
    return CommitComparison(
        project=project,
        before=commits[before],
        after=commits[after],
        series=tuple(by_noise),
        unlike=tuple(unlike),
        alone=tuple(alone),
    )


def _places(series: Series, shas: Sequence[str], commits: dict[str, Commit]) -> dict[str, int]:
    """Of each commit that was measured its latest point; commits are added as they are met."""
    found = {}
    for at, moment in enumerate(series.points.moments):
        if moment.commit and moment.commit.sha in shas:
            found[moment.commit.sha] = at
            commits[moment.commit.sha] = moment.commit
    return found


def _compared(series: Series, at: tuple[int, int], known: ChangeHistory) -> ComparedSeries:
    changed = [change.step.at for change in known.of(series)]
    before, after = at[::-1] if series.more_is_better else at
    return ComparedSeries(
        series=series,
        before=series.points[at[0]],
        after=series.points[at[1]],
        comparison=compare_points(
            course_of(series), before, after, changed=changed, margin=series.margin
        ),
        clear=False,
        margin=series.margin,
    )


def commits_of(series: Iterable[Series]) -> dict[str, dict[str, Commit]]:
    """Every commit of imported histories: by project, by hash."""
    found: dict[str, dict[str, Commit]] = {}
    seen: set[tuple[str, int]] = set()
    for one in series:
        # Most series share their moments.
        key = one.project or "", id(one.points.moments)
        if one.project is None or key in seen:
            continue
        seen.add(key)
        own = found.setdefault(one.project, {})
        own.update((m.commit.sha, m.commit) for m in one.points.moments if m.commit)
    return found
