"""Compares two runs cell by cell, and only cells that were measured in the same way."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.change_history import differing
from corebound.analysis.host_records import Record, by_host
from corebound.analysis.wording import count
from corebound.errors import InputError
from corebound.records.history import EnvironmentKey, Series
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import Cell
from corebound.scenario.models import Scenario, measure_for
from corebound.stats.between_runs import BetweenRuns, EarlierRun, between_runs
from corebound.stats.comparison import Comparison, Verdict, compare, shift
from corebound.stats.history.series import environment_keys_of_run, launches_by_cell
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.multiplicity import benjamini_hochberg
from corebound.stats.noise_floor import COPIES, COPY
from corebound.units import percent


def commit_words(commit: Commit) -> str:
    """A commit's name, which shows whether uncommitted changes were measured, and its subject.

    >>> commit_words(Commit(sha="a" * 40, subject="s", committed_at="", dirty=True, tree="b" * 40))
    'aaaaaaaaaa+dirty.bbbbbbb s'
    """
    return f"{commit.name} {commit.subject}".rstrip()


# The number of earlier runs to search for a comparable one.
_MOST_BACK = 10

# The number of latest earlier runs that show how much runs differ. The number of pairs grows with
# its square.
_MOST_EARLIER = 60
_COPIES = frozenset(f"{COPY}={name}" for name in COPIES)

RUNS_CAVEAT = (
    "The two runs were made at different times and share no blocks. A change of the host between "
    "them that earlier runs did not see is not removed."
)


class Compared(Struct, frozen=True, kw_only=True):
    """One item that was measured twice.

    Attributes:
        comparison: The later speed as a multiple of the earlier speed; None if one of the two
            values is missing.
        clear: Whether the difference is significant after correcting for all comparisons made here.
        margin: The largest difference that counts as equal.
    """

    comparison: Comparison | None
    clear: bool
    margin: float

    @property
    def verdict(self) -> Verdict | None:
        """The verdict after correcting for all comparisons.

        None if one of the two values is missing.
        """
        if self.comparison is None:
            return None
        alone = self.comparison.verdict
        return "undecided" if alone in {"faster", "slower"} and not self.clear else alone

    @property
    def is_finding(self) -> bool:
        """Whether the difference is significant and exceeds the margin."""
        return self.verdict in {"faster", "slower"}

    @property
    def over_noise(self) -> float:
        """The distance from no change, in half widths of the interval; 0 if unknown."""
        interval = self.comparison.interval if self.comparison else None
        if self.comparison is None or interval is None or not interval.low > 0:
            return 0.0
        width = math.log(interval.high / interval.low) / 2
        distance = abs(math.log(self.comparison.speedup_ratio))
        return distance / width if width > 0 else (math.inf if distance else 0.0)


C = TypeVar("C", bound=Compared)


class ComparedCell(Compared, frozen=True, kw_only=True):
    """One cell in both runs.

    Attributes:
        cell: The cell, as in the later run.
        title: Its scenario's title.
        before, after: The summaries of its launches in each run.
        between: How much its level varies from run to run; its interval is widened accordingly.
        delay_ratio: The factor by which other programs may have slowed one run down more than the
            other; 1 means not at all. The interval is widened by it as well.
    """

    cell: Cell
    title: str
    before: CellSummary
    after: CellSummary
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
        before, after: The runs.
        cells: Comparable cells that are in both runs, by change over noise.
        unlike: Cells in both runs that are not comparable: (id, what differs).
        alone: Cells in only one of the runs: (id, the run's id).
    """

    before: Run
    after: Run
    cells: tuple[ComparedCell, ...]
    unlike: tuple[tuple[str, str], ...]
    alone: tuple[tuple[str, str], ...]

    @property
    def code(self) -> Literal["same commit", "commit unknown"] | None:
        """Why a difference may not come from the code.

        None if the runs are of different commits.
        """
        one, two = self.before.commit, self.after.commit
        if one is None or two is None:
            return "commit unknown"
        known = (one.tree is not None or not one.dirty) and (two.tree is not None or not two.dirty)
        return "same commit" if known and one.name == two.name else None

    @property
    def launches(self) -> int:
        """The fewest launches per run behind any of the comparisons; 0 if there are none."""
        sides = (side for one in self.cells if one.comparison for side in (one.before, one.after))
        return min((len(side.launches) for side in sides), default=0)


class PastResult(Struct, frozen=True, kw_only=True):
    """The result of one cell in one run.

    Attributes:
        run: When it began, and its id.
        commit: The hash of its commit; None if unknown.
        environment_key: The environment it was measured in.
        launches_ns: The medians of its launches.
        delay: How much other programs may have slowed it down, as a logarithm.
    """

    run: tuple[str, str]
    commit: str | None
    environment_key: EnvironmentKey
    launches_ns: tuple[float, ...]
    delay: float


# By host and cell; see `past_of`.
PastResults = Mapping[str, Sequence[PastResult]]


def past_results(runs: Iterable[tuple[Iterable[Series], Mapping[str, float]]]) -> PastResults:
    """The results of each cell in all runs.

    The copies that `calibrate` launches count as their cell.

    Args:
        runs: For each run its series, and how much its cells were delayed, by cell id.
    """
    found: dict[str, list[PastResult]] = {}
    for every, delays in runs:
        for one in every:
            key = ",".join(part for part in one.cell.split(",") if part not in _COPIES)
            own = found.setdefault(f"{one.host}/{one.scenario}[{key or 'default'}]", [])
            delay = delays.get(f"{one.scenario}[{one.cell}]", 0.0)
            own += (
                PastResult(
                    run=(point.at, point.run or ""),
                    commit=point.commit.sha if point.commit else None,
                    environment_key=point.environment_key,
                    launches_ns=point.launches,
                    delay=delay,
                )
                for point in one.points
            )
    return found


def earlier_runs(
    past: PastResults, cell: Cell, pair: tuple[Run, Run], environment_key: EnvironmentKey
) -> list[EarlierRun]:
    """The runs before the later one that have a comparable result for a cell, oldest first."""
    before, after = sorted(pair, key=lambda run: (run.started_at, run.id))
    found: dict[tuple[str, str], list[PastResult]] = {}
    for one in past.get(f"{after.host.id}/{cell.id}", ()):
        at, run = one.run
        if at < after.started_at and run != before.id and one.environment_key == environment_key:
            found.setdefault(one.run, []).append(one)
    return [
        EarlierRun(
            logs=tuple(math.log(ns) for one in found[run] for ns in one.launches_ns if ns > 0),
            commit=found[run][0].commit,
            delay=statistics.fmean([one.delay for one in found[run]]),
        )
        for run in sorted(found)[-_MOST_EARLIER:]
    ]


def compare_runs(before: Record, after: Record, past: PastResults | None = None) -> RunComparison:
    """Compare two runs.

    Args:
        before: A run with its launches.
        after: Another run with its launches.
        past: Results of the host's runs, which show how much two runs differ without a change.

    Raises:
        InputError: both are the same run, they are of two hosts, or no cell is comparable.
    """
    (one, _), (two, _) = before, after
    where = f"{one.id}, {two.id}"
    if one.id == two.id:
        raise InputError(what="the two are the same run.", where=where, fix="Name two runs.")
    if one.host.id != two.host.id:
        raise InputError(
            what=f"the runs are of two hosts, {one.host.name} ({one.host.id}) and "
            f"{two.host.name} ({two.host.id}); their times say nothing of one another.",
            where=where,
            fix="Compare two runs of one host.",
        )
    mine, theirs = environment_keys_of_run(*before), environment_keys_of_run(*after)
    both = [name for name in theirs if name in mine]
    unlike = tuple((name, said) for name in both if (said := differing(mine[name], theirs[name])))
    different = {name for name, _ in unlike}
    alike = [name for name in both if name not in different]
    if not alike:
        raise _refusal(where, unlike)
    cells = _compared(before, after, {name: theirs[name] for name in alike}, past or {})
    return RunComparison(
        before=one,
        after=two,
        cells=tuple(sorted(cells, key=lambda cell: (-cell.over_noise, cell.cell.id))),
        unlike=unlike,
        alone=tuple(
            (name, run.id)
            for run, own, other in ((one, mine, theirs), (two, theirs, mine))
            for name in own
            if name not in other
        ),
    )


def _refusal(where: str, unlike: Sequence[tuple[str, str]]) -> InputError:
    if not unlike:
        return InputError(
            what="the runs have no cell in common.",
            where=where,
            fix="Compare runs of one scenario; `corebound run` names the cells it launches.",
        )
    reasons = sorted({said for _, said in unlike})
    return InputError(
        what=f"no cell was measured alike in both: {'; '.join(reasons)}.",
        where=where,
        fix="Measure both in the same circumstances, or compare two other runs.",
    )


def _compared(
    before: Record, after: Record, alike: Mapping[str, EnvironmentKey], past: PastResults
) -> list[ComparedCell]:
    mine, theirs = launches_by_cell(before[1]), launches_by_cell(after[1])
    ways = {
        str(source.document["name"]): (
            str(source.document.get("title") or source.document["name"]),
            measure_for(Scenario.model_validate(source.document), after[0].profile),
        )
        for source in after[0].scenarios
    }
    found: list[ComparedCell] = []
    for name, environment_key in alike.items():
        title, measure = ways[theirs[name][0].cell.scenario]
        old = summarise(mine[name][0].cell, mine[name], measure.warmup)
        new = summarise(theirs[name][0].cell, theirs[name], measure.warmup)
        earlier = earlier_runs(past, new.cell, (before[0], after[0]), environment_key)
        between = between_runs(earlier)
        found.append(
            ComparedCell(
                cell=new.cell,
                title=title,
                before=old,
                after=new,
                comparison=compare(
                    new,
                    old,
                    margin=measure.margin,
                    adaptive=measure.launches.follow_spread,
                    between=between,
                ),
                clear=False,
                margin=measure.margin,
                between=between,
                delay_ratio=math.exp(shift(new, old)) if new.launches and old.launches else 1.0,
            )
        )
    return apply_fdr(found)


def apply_fdr(found: Sequence[C]) -> list[C]:
    """The same items, each `clear` if significant after correction (Benjamini & Hochberg)."""
    clear = benjamini_hochberg(
        [one.comparison.p_value if one.comparison else None for one in found]
    )
    return [replace(one, clear=is_clear) for one, is_clear in zip(found, clear, strict=True)]


def comparisons(
    records: Sequence[Record],
    asked: Sequence[tuple[str, str]] = (),
    past: PastResults | None = None,
) -> tuple[RunComparison, ...]:
    """Compare each host's latest run, and the pairs of runs requested by their ids.

    Raises:
        InputError: a requested pair is not comparable.
    """
    latest = latest_comparisons(records, past)
    known = {(one.before.id, one.after.id) for one in latest}
    by_id = {record[0].id: record for record in records}
    more = (pair for pair in dict.fromkeys(asked) if pair not in known)
    return (*latest, *(compare_runs(by_id[one], by_id[two], past) for one, two in more))


def latest_comparisons(
    records: Sequence[Record], past: PastResults | None = None
) -> tuple[RunComparison, ...]:
    """Compare each host's latest run with the latest earlier run that is comparable.

    If both are of the same commit, also compare with the latest run of another commit.
    """
    found: list[RunComparison] = []
    for own in by_host(records).values():
        *earlier, latest = own
        nearest = _nearest(earlier, latest, past)
        found += nearest
        if nearest and not _differs(nearest[0].before, latest[0]):
            found += _nearest([one for one in earlier if _differs(one[0], latest[0])], latest, past)
    return tuple(found)


def _nearest(
    earlier: Sequence[Record], latest: Record, past: PastResults | None
) -> list[RunComparison]:
    """The comparison with the latest comparable run; empty if there is none.

    `earlier` is oldest first.
    """
    for before in earlier[: -1 - _MOST_BACK : -1]:
        try:
            return [compare_runs(before, latest, past)]
        except InputError:
            # Not comparable; the run before it may be.
            continue
    return []


def _differs(run: Run, other: Run) -> bool:
    """Whether both commits are known and differ."""
    one, two = run.commit, other.commit
    return one is not None and two is not None and one.sha != two.sha


def compared_words(found: Sequence[Compared], noun: tuple[str, str]) -> str:
    """A summary of all comparisons, findings included.

    Args:
        found: What was measured twice.
        noun: The name of one item, singular and plural.
    """
    unclear, unknown = unclear_in(found), unknown_in(found)
    said = f"{count(len(found) - unknown, *noun)} compared, {unclear:,} without a clear difference"
    return f"{said}; {unknown:,} more not compared, for a figure is missing" if unknown else said


def unclear_words(others: Sequence[Compared]) -> str:
    """Why the remaining comparisons are not findings, with the number for each reason."""
    unclear, unknown = unclear_in(others), unknown_in(others)
    parts = [f"No clear difference: {unclear:,}"] if unclear else []
    parts += [f"not compared, for a figure is missing: {unknown:,}"] if unknown else []
    said = "; ".join(parts)
    return said[:1].upper() + said[1:]


def unknown_in(found: Iterable[Compared]) -> int:
    """The number of items that were not compared because a value is missing."""
    return sum(one.comparison is None for one in found)


def unclear_in(found: Iterable[Compared]) -> int:
    """The number of comparisons without a clear difference."""
    return sum(one.comparison is not None and not one.is_finding for one in found)


# From this ratio on, the text mentions that other programs delayed the two runs unequally.
_TELLING_DELAY = 1.02


def spread_words(between: BetweenRuns) -> str:
    """How much runs of one cell differ without a change, and how that is known."""
    spread = percent(between.spread_ratio)
    if between.runs:
        return (
            f"The interval includes that runs differ by {spread} (standard deviation),"
            f" as {between.runs} earlier runs did."
        )
    return f"The interval assumes that runs differ by {spread}: too few earlier runs are known."


def run_to_run_words(found: RunComparison) -> str:
    """How much runs differ without a change; the intervals of all cells include this."""
    compared = [one for one in found.cells if one.comparison]
    learned = [one.between for one in compared if one.between.runs]
    assumed = [one.between for one in compared if not one.between.runs]
    said = []
    if learned:
        spread = percent(statistics.median(one.spread_ratio for one in learned))
        runs = max(one.runs for one in learned)
        said.append(
            f"Intervals include how much runs of this host differ: {spread} (standard deviation,"
            f" the median of {count(len(learned), 'cell', 'cells')}), learned from up to"
            f" {count(runs, 'earlier run', 'earlier runs')}."
        )
    if assumed:
        said.append(
            f"Too few comparable earlier runs of {count(len(assumed), 'cell', 'cells')} are known;"
            f" {percent(assumed[0].spread_ratio)} is assumed."
        )
    delayed = sum(one.delay_ratio >= _TELLING_DELAY for one in compared)
    if delayed:
        said.append(
            f"Other programs delayed the two runs unequally in {count(delayed, 'cell', 'cells')};"
            " these intervals are wider."
        )
    floors = [one.floor_ratio for one in compared if one.floor_ratio is not None]
    if floors:
        said.append(
            f"A difference of less than about {percent(statistics.median(floors))} cannot be told"
            " from none here. corebound compare-commits launches both sides in turns and sees"
            " smaller ones."
        )
    return " ".join(said)
