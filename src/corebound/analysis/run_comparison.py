"""Compares two runs cell by cell, and only cells that were measured in the same way."""

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from corebound.analysis.change_history import environment_difference
from corebound.analysis.compared import ComparedRow, judge_together, row_values
from corebound.analysis.host_records import Record, by_host
from corebound.analysis.launch_counts import launch_counts
from corebound.analysis.run_changes import RunChange, changes_text, run_changes
from corebound.analysis.wording import count, day
from corebound.errors import InputError
from corebound.records.history import EnvironmentKey, Series
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import Cell
from corebound.scenario.models import Scenario, measure_for
from corebound.stats.between_runs import BetweenRuns, EarlierRun, between_runs
from corebound.stats.comparison import compare, delay_difference
from corebound.stats.history.series import environment_keys_of_run, launches_by_cell
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.noise_floor import COPIES, COPY_AXIS
from corebound.units import percent


def commit_title(commit: Commit) -> str:
    """A commit's name, which shows whether uncommitted changes were measured, and its subject.

    >>> commit_title(Commit(sha="a" * 40, subject="s", committed_at="", dirty=True, tree="b" * 40))
    'aaaaaaaaaa+dirty.bbbbbbb s'
    """
    return f"{commit.name} {commit.subject}".rstrip()


def run_title(run: Run) -> str:
    """A run by its id, its time, its host and its commit."""
    commit = f", commit {commit_title(run.commit)}" if run.commit else ""
    return f"{run.id}, {day(run.started_at)}, {run.host.name}{commit}"


# The number of earlier runs to search for a comparable one.
_MAX_RUNS_BACK = 10

# The number of latest earlier runs that show how much runs differ. The number of pairs grows with
# its square.
_MAX_EARLIER_RUNS = 60
_COPIES = frozenset(f"{COPY_AXIS}={name}" for name in COPIES)

RUNS_CAVEAT = (
    "The two runs were made at different times and share no blocks. A change of the host between "
    "them that earlier runs did not see is not removed."
)


class ComparedCell(ComparedRow, frozen=True, kw_only=True):
    """One cell in both runs.

    Attributes:
        configuration: The cell, as in the later run.
        title: Its scenario's title.
        before_summary, after_summary: The summaries of its launches in each run.
        between: How much its level varies from run to run; its interval is widened accordingly.
        delay_ratio: The factor by which other programs may have slowed one run down more than the
            other; 1 means not at all. The interval is widened by it as well.
    """

    configuration: Cell
    title: str
    before_summary: CellSummary
    after_summary: CellSummary
    between: BetweenRuns
    delay_ratio: float

    @property
    def floor_ratio(self) -> float | None:
        """The relative half width of the interval: a smaller difference cannot be detected."""
        interval = self.comparison.interval if self.comparison else None
        return interval.relative_half_width if interval else None


class RunComparison(Struct, frozen=True, kw_only=True):
    """The comparison of two runs.

    Attributes:
        cells: Comparable cells that are in both runs, by change over noise.
        not_comparable: Cells in both runs that are not comparable: (id, what differs).
        only_in_one: Cells in only one of the runs: (id, the run's id).
        noise: Sentences about the smallest difference that their host can detect, if known.
    """

    before: Run
    after: Run
    cells: tuple[ComparedCell, ...]
    not_comparable: tuple[tuple[str, str], ...]
    only_in_one: tuple[tuple[str, str], ...]
    noise: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[RunChange, ...]:
        """What else changed between the runs."""
        return run_changes(self.before, self.after)

    @property
    def rows(self) -> tuple[ComparedCell, ...]:
        """The cells."""
        return self.cells

    @property
    def code(self) -> Literal["same commit", "commit unknown"] | None:
        """Why a difference may not come from the code.

        None if the runs are of different commits.
        """
        before, after = self.before.commit, self.after.commit
        if before is None or after is None:
            return "commit unknown"
        both_known = (before.tree is not None or not before.dirty) and (
            after.tree is not None or not after.dirty
        )
        return "same commit" if both_known and before.name == after.name else None

    @property
    def launches(self) -> int:
        """The fewest launches per run behind any of the comparisons; 0 if there are none."""
        sides = (
            side
            for cell in self.cells
            if cell.comparison
            for side in (cell.before_summary, cell.after_summary)
        )
        return min((len(side.launches) for side in sides), default=0)


class PastResult(Struct, frozen=True, kw_only=True):
    """The result of one cell in one run.

    Attributes:
        run: When it began, and its id.
        commit: The hash of its commit; None if unknown.
        launches_ns: The medians of its launches.
        delay: How much other programs may have slowed it down, as a logarithm.
    """

    run: tuple[str, str]
    commit: str | None
    environment_key: EnvironmentKey
    launches_ns: tuple[float, ...]
    delay: float


# By host and cell: `HOST/CELL`, with the ids of both.
PastResults = Mapping[str, Sequence[PastResult]]


def past_results(
    all_series: Iterable[Series], delays: Mapping[str, Mapping[str, float]] | None = None
) -> PastResults:
    """The results of each cell in all runs.

    The copies that `calibrate` launches count as their cell.

    Args:
        all_series: The series of the cells; several of one cell count together.
        delays: By the id of each run, how much its cells were delayed, by cell id; None: not.
    """
    results: dict[str, list[PastResult]] = {}
    for series in all_series:
        key = ",".join(part for part in series.cell.split(",") if part not in _COPIES)
        cell = f"{series.scenario}[{series.cell}]"
        results.setdefault(f"{series.host}/{series.scenario}[{key or 'default'}]", []).extend(
            PastResult(
                run=(point.at, point.run or ""),
                commit=point.commit.sha if point.commit else None,
                environment_key=point.environment_key,
                launches_ns=point.launches,
                delay=(delays or {}).get(point.run or "", {}).get(cell, 0.0),
            )
            for point in series.points
        )
    return results


def earlier_runs(
    past: PastResults, cell: Cell, pair: tuple[Run, Run], environment_key: EnvironmentKey
) -> list[EarlierRun]:
    """The runs before the later one that have a comparable result for a cell, oldest first."""
    before, after = sorted(pair, key=lambda run: (run.started_at, run.id))
    by_run: dict[tuple[str, str], list[PastResult]] = {}
    for result in past.get(f"{after.host.id}/{cell.id}", ()):
        at, run = result.run
        if at < after.started_at and run != before.id and result.environment_key == environment_key:
            by_run.setdefault(result.run, []).append(result)
    return [
        EarlierRun(
            logs=tuple(
                math.log(ns) for result in by_run[run] for ns in result.launches_ns if ns > 0
            ),
            commit=by_run[run][0].commit,
            delay=statistics.fmean([result.delay for result in by_run[run]]),
        )
        for run in sorted(by_run)[-_MAX_EARLIER_RUNS:]
    ]


def compare_runs(before: Record, after: Record, past: PastResults | None = None) -> RunComparison:
    """Compare two runs.

    Args:
        before: A run with its launches.
        past: Results of the host's runs, which show how much two runs differ without a change.

    Raises:
        InputError: both are the same run, they are of two hosts, or no cell is comparable.
    """
    (first, _), (second, _) = before, after
    where = f"{first.id}, {second.id}"
    if first.id == second.id:
        raise InputError(what="both are the same run.", where=where, fix="Name two different runs.")
    if first.host.id != second.host.id:
        raise InputError(
            what=f"the runs are of two hosts, {first.host.name} ({first.host.id}) and "
            f"{second.host.name} ({second.host.id}); their times are not comparable.",
            where=where,
            fix="Compare two runs of one host.",
        )
    environments, other_environments = (
        environment_keys_of_run(*before),
        environment_keys_of_run(*after),
    )
    shared = [name for name in other_environments if name in environments]
    not_comparable = tuple(
        (name, difference)
        for name in shared
        if (difference := environment_difference(environments[name], other_environments[name]))
    )
    different = {name for name, _ in not_comparable}
    comparable = [name for name in shared if name not in different]
    if not comparable:
        raise _refusal(where, not_comparable, changes_text(run_changes(first, second)))
    cells = _compared(
        before, after, {name: other_environments[name] for name in comparable}, past or {}
    )
    return RunComparison(
        before=first,
        after=second,
        cells=tuple(sorted(cells, key=lambda cell: (-cell.over_noise, cell.name))),
        not_comparable=not_comparable,
        only_in_one=tuple(
            (name, run.id)
            for run, keys, other, other_keys in (
                (first, environments, second, other_environments),
                (second, other_environments, first, environments),
            )
            for name in keys
            if name not in other_keys and name not in other.duplicate_ids
        ),
    )


# As `environment_difference` says it.
_OTHER_CELLS = "different scenario"


def _refusal(where: str, not_comparable: Sequence[tuple[str, str]], changes: str) -> InputError:
    if not not_comparable:
        return InputError(
            what="the runs have no cell in common.",
            where=where,
            fix="Compare runs of one scenario; `corebound run` names the cells it launches.",
        )
    reasons = sorted({difference for _, difference in not_comparable})
    if reasons == [_OTHER_CELLS]:
        return InputError(
            what="no cell has the same workload, settings and environment variables in both.",
            where=where,
            fix="To compare values of a variable, list them under `matrix: env:` and run once.",
        )
    changed = f" Changed: {changes}." if changes else ""
    return InputError(
        what=f"no cell was measured in the same way in both: {'; '.join(reasons)}.{changed}",
        where=where,
        fix="Measure both in the same environment, or compare two other runs.",
    )


def _compared(
    before: Record, after: Record, comparable: Mapping[str, EnvironmentKey], past: PastResults
) -> list[ComparedCell]:
    launches_before, launches_after = launches_by_cell(before[1]), launches_by_cell(after[1])
    measures = {
        str(source.document["name"]): (
            str(source.document.get("title") or source.document["name"]),
            measure_for(Scenario.model_validate(source.document), after[0].profile),
        )
        for source in after[0].scenarios
    }
    cells: list[ComparedCell] = []
    for name, environment_key in comparable.items():
        title, measure = measures[launches_after[name][0].cell.scenario]
        summary_before = summarise(
            launches_before[name][0].cell, launches_before[name], measure.warmup
        )
        summary_after = summarise(
            launches_after[name][0].cell, launches_after[name], measure.warmup
        )
        earlier = earlier_runs(past, summary_after.cell, (before[0], after[0]), environment_key)
        between = between_runs(earlier)
        cells.append(
            ComparedCell(
                scenario=summary_after.cell.scenario,
                cell=summary_after.cell.key,
                **row_values(summary_before, summary_after),
                note=launch_counts((*launches_before[name], *launches_after[name])).note,
                configuration=summary_after.cell,
                title=title,
                before_summary=summary_before,
                after_summary=summary_after,
                comparison=compare(
                    summary_after,
                    summary_before,
                    margin=measure.margin,
                    adaptive=measure.launches.follow_spread,
                    between=between,
                ),
                margin=measure.margin,
                between=between,
                delay_ratio=math.exp(delay_difference(summary_after, summary_before))
                if summary_after.launches and summary_before.launches
                else 1.0,
            )
        )
    return judge_together(cells)


def comparisons(
    records: Sequence[Record],
    requested: Sequence[tuple[str, str]] = (),
    past: PastResults | None = None,
) -> tuple[RunComparison, ...]:
    """Compare each host's latest run, and the pairs of runs requested by their ids.

    Raises:
        InputError: a requested pair is not comparable.
    """
    latest = latest_comparisons(records, past)
    compared = {(comparison.before.id, comparison.after.id) for comparison in latest}
    by_id = {record[0].id: record for record in records}
    additional = (pair for pair in dict.fromkeys(requested) if pair not in compared)
    return (
        *latest,
        *(compare_runs(by_id[comparison], by_id[two], past) for comparison, two in additional),
    )


# So many of a host's latest runs are compared with each other, and of each of more hosts.
_RECENT_RUNS, _RECENT_RUNS_OF_MANY = 5, 2
_MANY_HOSTS = 20


def recent_runs(hosts: int) -> int:
    """How many of the latest runs of each host are compared with each other."""
    return _RECENT_RUNS if hosts <= _MANY_HOSTS else _RECENT_RUNS_OF_MANY


def recent_pairs(records: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Each two of the latest runs of a host that measured a common scenario, the earlier first.

    They may still not be comparable, which only `compare_runs` finds out.
    """
    hosts = by_host(records)
    for host_records in hosts.values():
        recent = host_records[-recent_runs(len(hosts)) :]
        for before, after in itertools.combinations(recent, 2):
            if _scenario_names(before[0]) & _scenario_names(after[0]):
                yield before, after


def _scenario_names(run: Run) -> set[str]:
    return {str(source.document["name"]) for source in run.scenarios}


def latest_comparisons(
    records: Sequence[Record], past: PastResults | None = None
) -> tuple[RunComparison, ...]:
    """Compare each host's latest run with the latest earlier run that is comparable.

    If both are of the same commit, also compare with the latest run of another commit.
    """
    comparisons_made: list[RunComparison] = []
    for host_records in by_host(records).values():
        *earlier, latest = host_records
        nearest = _nearest(earlier, latest, past)
        comparisons_made += nearest
        if nearest and not _differs(nearest[0].before, latest[0]):
            comparisons_made += _nearest(
                [record for record in earlier if _differs(record[0], latest[0])], latest, past
            )
    return tuple(comparisons_made)


def _nearest(
    earlier: Sequence[Record], latest: Record, past: PastResults | None
) -> list[RunComparison]:
    """The comparison with the latest comparable run; empty if there is none.

    `earlier` is oldest first.
    """
    for before in earlier[: -1 - _MAX_RUNS_BACK : -1]:
        try:
            return [compare_runs(before, latest, past)]
        except InputError:
            # Not comparable; the run before it may be.
            continue
    return []


def _differs(run: Run, other: Run) -> bool:
    """Whether both commits are known and differ."""
    commit, other_commit = run.commit, other.commit
    return commit is not None and other_commit is not None and commit.sha != other_commit.sha


# From this ratio on, the text mentions that other programs delayed the two runs unequally.
_NOTABLE_DELAY = 1.02


def run_spread_note(between: BetweenRuns) -> str:
    """How much runs of one cell differ without a change, and how that is known."""
    spread = percent(between.spread_ratio)
    if between.runs:
        return (
            f"The interval includes that runs differ by {spread} (standard deviation),"
            f" as {between.runs} earlier runs did."
        )
    return f"The interval assumes that runs differ by {spread}: too few earlier runs are known."


def run_variation_note(comparison: RunComparison) -> str:
    """How much runs differ without a change; the intervals of all cells include this."""
    compared = [cell for cell in comparison.cells if cell.comparison]
    estimated = [cell.between for cell in compared if cell.between.runs]
    assumed = [cell.between for cell in compared if not cell.between.runs]
    sentences = []
    if estimated:
        spread = percent(statistics.median(cell.spread_ratio for cell in estimated))
        runs = max(cell.runs for cell in estimated)
        sentences.append(
            f"Intervals include how much runs of this host differ: {spread} (standard deviation,"
            f" the median of {count(len(estimated), 'cell', 'cells')}), learned from up to"
            f" {count(runs, 'earlier run', 'earlier runs')}."
        )
    if assumed:
        sentences.append(
            f"Too few comparable earlier runs of {count(len(assumed), 'cell', 'cells')} are known;"
            f" {percent(assumed[0].spread_ratio)} is assumed."
        )
    delayed = sum(cell.delay_ratio >= _NOTABLE_DELAY for cell in compared)
    if delayed:
        sentences.append(
            f"Other programs delayed the two runs unequally in {count(delayed, 'cell', 'cells')};"
            " these intervals are wider."
        )
    floors = [cell.floor_ratio for cell in compared if cell.floor_ratio is not None]
    if floors:
        sentences.append(
            f"Two runs cannot show a difference below about {percent(statistics.median(floors))}"
            " here. corebound compare-commits interleaves both sides and detects smaller ones."
        )
    return " ".join(sentences)
