"""Compares two commits: those of an imported project, or those that corebound built itself.

What was built and measured interleaved may also be two values, environments or versions.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Literal

from msgspec import Struct

from corebound.analysis import wording
from corebound.analysis.change_history import ChangeHistory, environment_difference
from corebound.analysis.compared import ComparedRow, judge_together
from corebound.analysis.launch_counts import launch_counts
from corebound.analysis.scenario_result import BaselineComparison, ScenarioResult
from corebound.analysis.series_names import series_name
from corebound.errors import InputError
from corebound.records.history import HistoryPoint, Series
from corebound.records.run_record import Commit
from corebound.scenario.compared_axis import compared_axis
from corebound.scenario.matrix import Key
from corebound.stats.comparison import Verdict
from corebound.stats.history.pairwise import compare_points
from corebound.stats.history.regressions import arrays_of
from corebound.units import percent

COMMITS_CAVEAT = (
    "Each commit was measured once, at its own time. Intervals show the variation between points "
    "of the same level; with fewer than ten such points there is none."
)


class ComparedSeries(ComparedRow, frozen=True, kw_only=True):
    """One benchmark's cell on one machine at both commits.

    For a rate the ratio is inverted, so that above 1 and `faster` always mean better.
    """

    series: Series
    before_point: HistoryPoint
    after_point: HistoryPoint

    @property
    def bounds(self) -> str:
        """As of other rows; in a history, points take the place of launches."""
        missing = self.comparison is not None and self.comparison.interval is None
        return "too few points" if missing else super().bounds


class CommitComparison(Struct, frozen=True, kw_only=True):
    """The comparison of two commits of an imported project.

    Attributes:
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

    @property
    def rows(self) -> tuple[ComparedSeries, ...]:
        """The series."""
        return self.series


def compare_imported_commits(
    project: str, before: str, after: str, history: ChangeHistory
) -> CommitComparison:
    """Compare two commits of an imported project.

    Args:
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
    judged = judge_together(compared)
    return CommitComparison(
        project=project,
        before=commits[before],
        after=commits[after],
        series=tuple(sorted(judged, key=lambda row: (-row.over_noise, row.series.id))),
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
    points = [series.points[index] for index in indices]
    return ComparedSeries(
        scenario=series.scenario,
        cell=series.cell,
        before=points[0].value,
        after=points[1].value,
        unit=series.unit,
        more_is_better=series.more_is_better,
        series=series,
        before_point=points[0],
        after_point=points[1],
        comparison=compare_points(
            arrays_of(series), before, after, changed=change_points, margin=series.margin
        ),
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


class CellAtCommits(ComparedRow, frozen=True, kw_only=True):
    """A cell at two commits, base and head; its key and its scenario's name are without them.

    Attributes:
        missing: Why a side has no value, in words; empty if both have one.
        cpu_ratio: CPU time of an iteration at head, as a multiple of that at base; None if
            one is unknown. No verdict is based on it.
    """

    # Commits often differ by less than a hundredth.
    digits: ClassVar[int] = 3

    missing: tuple[str, ...]
    cpu_ratio: float | None = None

    @property
    def is_regression(self) -> bool:
        """Whether it is slower, and the estimate is so by more than the margin."""
        ratio = self.speedup_ratio
        return self.verdict == "slower" and ratio is not None and ratio < 1 / (1 + self.margin)

    @property
    def cpu_differs(self) -> bool:
        """Whether the change of CPU time lies outside the interval of wall time.

        Wall time also includes waiting and other load on the host.
        """
        bounds = self.comparison.interval if self.comparison else None
        return (
            bounds is not None
            and self.cpu_ratio is not None
            and not bounds.contains(1 / self.cpu_ratio)
        )


class Side(Struct, frozen=True, kw_only=True):
    """One side of a comparison.

    Attributes:
        name: The name that cells show.
        title: Further description, such as a commit's subject.
        commit: The commit, if the side is one.
    """

    name: str
    title: str
    commit: Commit | None


class Sides(Struct, frozen=True, kw_only=True):
    """Both sides of a comparison.

    Attributes:
        subject: What is compared: the name of the project or of the axis.
        axis: The axis on which cells differ.
    """

    subject: str
    axis: Key
    base: Side
    head: Side

    @property
    def names(self) -> tuple[str, str]:
        """The names of base and head, as cells show them."""
        return self.base.name, self.head.name


class InterleavedComparison(Struct, frozen=True, kw_only=True):
    """Two sides that were measured interleaved.

    Attributes:
        cells: In the order of the suite.
        noise: The noise floor of each calibrated scenario, one sentence each.
        ending: Why the launches ended.
        exit_code: 1 with a regression; 4 if a side has no results, 5 if the time ran out; else 0.
    """

    sides: Sides
    cells: tuple[CellAtCommits, ...]
    noise: tuple[str, ...]
    records: Path
    ending: Literal["complete", "out of time"]
    exit_code: int = 0


def sides_verdict(result: ScenarioResult) -> wording.Text:
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
            f"{number} {wording.verdict_word(verdict).word}" for verdict, number in verdicts.items()
        )
        return wording.rich(wording.strong(parts), f": {len(result.ranked)} comparisons by {axis}.")
    (pair,) = result.ranked
    head, base = (
        dict(cell.cell.axes)[axis] if axis == "commit" else wording.axis_value(cell.cell, axis)
        for cell in (pair.cell, pair.baseline)
    )
    verdict = _decided(result, pair)
    if verdict == "equivalent":
        margin = percent(result.measure.margin, 0)
        return wording.rich(wording.strong(head), f" is as fast as {base}, within ±{margin}.")
    if verdict == "inconclusive":
        looks = wording.relative_speed(pair.comparison.speedup_ratio)
        return wording.rich(
            wording.strong(head), f" looks {looks} than {base}{_open_because(result)}."
        )
    speed = wording.TextSpan(
        wording.headline_speed(pair.comparison), "good" if verdict == "faster" else "bad"
    )
    return wording.rich(wording.strong(head), " is ", speed, f" than {base}.")


def _open_because(result: ScenarioResult) -> str:
    """What to know of a difference that is not decided: the launches that do not count, if any."""
    counts = launch_counts(result.launches)
    lost = counts.total_discarded
    if not lost:
        return ": not decided yet"
    is_disturbed = all(reason.startswith("disturbed") for reason, _ in counts.discarded)
    word = "disturbed" if is_disturbed else "discarded"
    launches = wording.count(lost + counts.counted, "launch", "launches")
    return f"; {lost:,} of {launches} {'was' if lost == 1 else 'were'} {word}"


def _decided(result: ScenarioResult, pair: BaselineComparison) -> Verdict:
    verdict = pair.comparison.verdict
    is_decided = verdict == "equivalent" or pair.cell.cell.id in result.decided
    return verdict if is_decided else "inconclusive"
