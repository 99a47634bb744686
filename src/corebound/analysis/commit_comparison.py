"""Compares two commits: those of an imported project, or those that corebound built itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from corebound.analysis.change_history import ChangeHistory, environment_difference
from corebound.analysis.run_comparison import Compared, apply_fdr
from corebound.analysis.scenario_result import BaselineComparison, ScenarioResult
from corebound.analysis.series_names import series_name
from corebound.analysis.wording import (
    Text,
    TextSpan,
    axis_value,
    headline_speed,
    relative_speed,
    rich,
    strong,
    verdict_word,
)
from corebound.errors import InputError
from corebound.records.history import HistoryPoint, Series
from corebound.records.run_record import Commit
from corebound.scenario.compared_axis import compared_axis
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.history.pairwise import compare_points
from corebound.stats.history.regressions import arrays_of
from corebound.stats.multiplicity import benjamini_hochberg
from corebound.units import percent

COMMITS_CAVEAT = (
    "Each commit was measured once, at its own time. Intervals show the variation between points "
    "of the same level; with fewer than ten such points there is none."
)


class ComparedSeries(Compared, frozen=True, kw_only=True):
    """One benchmark's cell on one machine at both commits.

    For a rate the ratio is inverted, so that above 1 and `faster` always mean better.
    """

    series: Series
    before: HistoryPoint
    after: HistoryPoint

    @property
    def is_less(self) -> bool:
        """Whether the value went down; only meaningful if the verdict is faster or slower."""
        return (self.verdict == "faster") != self.series.more_is_better

    @property
    def change(self) -> str:
        """The ratio in words: only times have a speed, other values are less or more."""
        if self.comparison is None or self.series.unit == "ns":
            return super().change
        words = ("more", "less") if self.series.more_is_better else ("less", "more")
        return relative_speed(self.comparison.speedup_ratio, words=words)


class CommitComparison(Struct, frozen=True, kw_only=True):
    """The comparison of two commits of an imported project.

    Attributes:
        project: The project's name.
        before, after: The commits.
        series: Series measured at both commits in the same environment, by change over noise.
        not_comparable: Names of series that are not comparable, and what differs.
        only_in_one: Names of series measured at only one of the commits, and its hash.
    """

    project: str
    before: Commit
    after: Commit
    series: tuple[ComparedSeries, ...]
    not_comparable: tuple[tuple[str, str], ...]
    only_in_one: tuple[tuple[str, str], ...]


def compare_commits(
    project: str, before: str, after: str, history: ChangeHistory
) -> CommitComparison:
    """Compare two commits of an imported project.

    Args:
        project: Its name.
        before: The hash of the earlier commit.
        after: The hash of the later commit.
        history: All histories with their changes.

    Raises:
        InputError: both are the same commit, or no series is comparable at both.
    """
    where = f"{project}, {before[:10]}, {after[:10]}"
    if before == after:
        raise InputError(
            what="both are the same commit.", where=where, fix="Name two different commits."
        )
    compared: list[ComparedSeries] = []
    not_comparable: list[tuple[str, str]] = []
    only_in_one: list[tuple[str, str]] = []
    commits: dict[str, Commit] = {}
    for series in (first for first in history.series if first.project == project):
        indices = _places(series, (before, after), commits)
        if len(indices) < 2:
            only_in_one += ((series_name(series), sha) for sha in indices)
            continue
        first, second = series.points[indices[before]], series.points[indices[after]]
        if difference := environment_difference(first.environment_key, second.environment_key):
            not_comparable.append((series_name(series), difference))
            continue
        if series.id in history.not_analysed:
            not_comparable.append((series_name(series), "its history could not be analysed"))
            continue
        compared.append(_compared(series, (indices[before], indices[after]), history))
    if not compared:
        raise InputError(
            what="no benchmark was measured in the same environment at both commits.",
            where=where,
            fix="Name two commits of one machine and version of the benchmarks.",
        )
    by_noise = sorted(apply_fdr(compared), key=lambda first: (-first.over_noise, first.series.id))
    return CommitComparison(
        project=project,
        before=commits[before],
        after=commits[after],
        series=tuple(by_noise),
        not_comparable=tuple(not_comparable),
        only_in_one=tuple(only_in_one),
    )


def _places(series: Series, shas: Sequence[str], commits: dict[str, Commit]) -> dict[str, int]:
    """The index of each commit's latest point in a series.

    It adds the commits it finds to `commits`.
    """
    indices = {}
    for index, moment in enumerate(series.points.moments):
        if moment.commit and moment.commit.sha in shas:
            indices[moment.commit.sha] = index
            commits[moment.commit.sha] = moment.commit
    return indices


def _compared(series: Series, indices: tuple[int, int], history: ChangeHistory) -> ComparedSeries:
    change_points = [change.change_point.at for change in history.changes_of(series)]
    before, after = indices[::-1] if series.more_is_better else indices
    return ComparedSeries(
        series=series,
        before=series.points[indices[0]],
        after=series.points[indices[1]],
        comparison=compare_points(
            arrays_of(series), before, after, changed=change_points, margin=series.margin
        ),
        clear=False,
        margin=series.margin,
    )


def commits_of(all_series: Iterable[Series]) -> dict[str, dict[str, Commit]]:
    """Every commit of imported histories, by project and hash."""
    commits: dict[str, dict[str, Commit]] = {}
    handled: set[tuple[str, int]] = set()
    for series in all_series:
        # Most series share the same timestamps.
        key = series.project or "", id(series.points.moments)
        if series.project is None or key in handled:
            continue
        handled.add(key)
        project_commits = commits.setdefault(series.project, {})
        project_commits.update((m.commit.sha, m.commit) for m in series.points.moments if m.commit)
    return commits


class CellAtCommits(Struct, frozen=True, kw_only=True):
    """A cell at two commits.

    Attributes:
        scenario: The scenario's name, without the part that the comparison added.
        cell: The cell's key, without its commit.
        base_ns, head_ns: Time of an iteration at each commit; None without a value.
        comparison: Head compared with base; None if one has no value.
        margin: Differences within it count as equal.
        missing: Why a side has no value, in words; empty if both have one.
        cpu_ratio: CPU time of an iteration at head, as a multiple of that at base; None if
            one is unknown. No verdict is based on it.
    """

    scenario: str
    cell: str
    base_ns: float | None
    head_ns: float | None
    comparison: Comparison | None
    margin: float
    missing: tuple[str, ...]
    cpu_ratio: float | None = None

    @property
    def cpu_differs(self) -> bool:
        """Whether the change of CPU time lies outside the interval of wall time.

        Wall time also includes waiting and other load on the host.
        """
        bounds = self.comparison.interval if self.comparison else None
        return (
            bounds is not None
            and self.cpu_ratio is not None
            and not bounds.low <= 1 / self.cpu_ratio <= bounds.high
        )


class CellVerdict(Struct, frozen=True, kw_only=True):
    """A cell at two commits with its verdict among all cells.

    `verdict` is None without a comparison. `is_regression`: the estimate is slower by more than
    the margin, and the difference is a finding of the whole suite.
    """

    pair: CellAtCommits
    verdict: Verdict | None
    is_regression: bool


def judge_cells(pairs: Sequence[CellAtCommits]) -> tuple[CellVerdict, ...]:
    """Give each cell its verdict, corrected for the number of cells.

    On average, at most one in twenty reported differences is false (Benjamini & Hochberg). A cell
    whose own interval excludes 1 but that is not significant after correction is `inconclusive`.
    """
    findings = benjamini_hochberg(
        [pair.comparison.p_value if pair.comparison else None for pair in pairs]
    )
    return tuple(
        _verdict(pair, is_finding=is_finding)
        for pair, is_finding in zip(pairs, findings, strict=True)
    )


def _verdict(pair: CellAtCommits, *, is_finding: bool) -> CellVerdict:
    comparison = pair.comparison
    if comparison is None:
        return CellVerdict(pair=pair, verdict=None, is_regression=False)
    verdict = comparison.verdict
    if verdict in {"faster", "slower"} and not is_finding:
        verdict = "inconclusive"
    is_regression = verdict == "slower" and comparison.speedup_ratio < 1 / (1 + pair.margin)
    return CellVerdict(pair=pair, verdict=verdict, is_regression=is_regression)


def sides_verdict(result: ScenarioResult) -> Text:
    """The verdict between the sides of a comparison, in a sentence; empty without a comparison.

    Args:
        result: The result of a scenario that was measured at several commits, or other sides.
    """
    if not result.ranked:
        return ()
    axis = (compared_axis(result.source.document) or ("commit",))[-1]
    if len(result.ranked) > 1:
        verdicts = Counter(_decided(result, pair) for pair in result.ranked)
        parts = ", ".join(
            f"{number} {verdict_word(verdict).word}" for verdict, number in verdicts.items()
        )
        return rich(strong(parts), f": {len(result.ranked)} comparisons by {axis}.")
    (pair,) = result.ranked
    head, base = (
        dict(cell.cell.axes)[axis] if axis == "commit" else axis_value(cell.cell, axis)
        for cell in (pair.cell, pair.baseline)
    )
    verdict = _decided(result, pair)
    if verdict == "equivalent":
        margin = percent(result.measure.margin, 0)
        return rich(strong(head), f" is as fast as {base}, within ±{margin}.")
    if verdict == "inconclusive":
        looks = relative_speed(pair.comparison.speedup_ratio)
        return rich(strong(head), f" looks {looks} than {base}. This is not decided yet.")
    speed = TextSpan(headline_speed(pair.comparison), "good" if verdict == "faster" else "bad")
    return rich(strong(head), " is ", speed, f" than {base}.")


def _decided(result: ScenarioResult, pair: BaselineComparison) -> Verdict:
    verdict = pair.comparison.verdict
    is_decided = verdict == "equivalent" or pair.cell.cell.id in result.decided
    return verdict if is_decided else "inconclusive"
