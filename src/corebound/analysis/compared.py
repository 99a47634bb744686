"""One thing that was measured twice: both values, their ratio, and the verdict among all rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis import wording
from corebound.analysis.launch_counts import launch_counts
from corebound.analysis.scenario_result import BaselineComparison, CellResult
from corebound.scenario.cell import axes_of_key, cell_id
from corebound.scenario.metrics import LESS_MEMORY, PEAK_MEMORY
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import Ends
from corebound.stats.launch_summary import CellSummary, value_of
from corebound.stats.multiplicity import benjamini_hochberg, suite_findings


class ComparedRow(Struct, frozen=True, kw_only=True):
    """One thing measured twice: a configuration in two runs, or two functions.

    Attributes:
        scenario: The scenario, or the benchmark of an imported history.
        cell: The configuration, such as `binding=none,threads=2`.
        before, after: The values of both sides in `unit`; None if one has no result.
        unit: `ns` for times.
        comparison: The comparison as corebound's own modules know it; None without a result of
            both.
        margin: The largest share that counts as equal.
        verdict: `faster`, `slower`, `equivalent` (the whole interval is within the margin), or
            `inconclusive`; None without a result of both.
        is_significant: Whether the difference is significant after correcting for all rows.
        more_is_better: Whether the values are a rate. Above 1, `speedup_ratio` always is better.
        is_memory: Whether the values are peak memory.
        note: What to know about its launches, such as that other programs disturbed some.
    """

    # Decimals of a ratio below 10.
    digits: ClassVar[int] = 2

    scenario: str
    cell: str
    before: float | None
    after: float | None
    unit: str = "ns"
    comparison: Comparison | None
    margin: float
    verdict: Verdict | None = None
    is_significant: bool = False
    more_is_better: bool = False
    is_memory: bool = False
    note: str = ""

    @property
    def axes(self) -> Mapping[str, str]:
        """The configuration by axis; values are text."""
        return axes_of_key(self.cell)

    @property
    def name(self) -> str:
        """The configuration's id in a suite: `scenario[cell]`."""
        return cell_id(self.scenario, self.cell)

    @property
    def speedup_ratio(self) -> float | None:
        """Speed of `after` as a multiple of `before`'s; above 1 it is faster.

        None without a result of both.
        """
        return self.comparison.speedup_ratio if self.comparison else None

    @property
    def speedup_interval(self) -> Ends | None:
        """The 95 % interval of `speedup_ratio`, (low, high); None with too few launches."""
        return self.comparison.speedup_interval if self.comparison else None

    @property
    def slowdown_ratio(self) -> float | None:
        """The reciprocal of `speedup_ratio`: above 1, `after` is slower."""
        return self.comparison.slowdown_ratio if self.comparison else None

    @property
    def slowdown_interval(self) -> Ends | None:
        """The 95 % interval of `slowdown_ratio`, (low, high); None with too few launches."""
        return self.comparison.slowdown_interval if self.comparison else None

    @property
    def p_value(self) -> float | None:
        """The p-value of the difference, before the correction for all rows."""
        return self.comparison.p_value if self.comparison else None

    @property
    def pairs(self) -> int:
        """The number of paired launches; 0 if they are not paired."""
        return self.comparison.pairs if self.comparison else 0

    @property
    def launches_needed(self) -> int | None:
        """If inconclusive, how many launches of each side would decide; None if unknown."""
        return self.comparison.launches_needed if self.comparison else None

    @property
    def is_finding(self) -> bool:
        """Whether the verdict is a difference."""
        return self.verdict in {"faster", "slower"}

    @property
    def words(self) -> tuple[str, str]:
        """What a ratio above 1 means, and what one below 1 means.

        Only times have a speed; other values are less or more.
        """
        if self.unit == "ns":
            return "faster", "slower"
        if self.is_memory:
            return LESS_MEMORY
        return ("more", "less") if self.more_is_better else ("less", "more")

    @property
    def verdict_word(self) -> wording.VerdictWord:
        """The verdict with its sign, in these words."""
        if self.verdict is None:
            return wording.NOT_COMPARED
        known = wording.verdict_word(self.verdict)
        return (
            replace(known, word=self.words[self.verdict == "slower"]) if self.is_finding else known
        )

    @property
    def ratio_text(self) -> str:
        """The ratio in words: `1.30× slower`; empty if one of the two values is missing."""
        if self.comparison is None:
            return ""
        return wording.relative_speed(
            self.comparison.speedup_ratio, digits=self.digits, words=self.words
        )

    @property
    def bounds(self) -> str:
        """The interval of the ratio in words, or why there is none; empty without a comparison."""
        return wording.compared_bounds(self.comparison, digits=self.digits)

    @property
    def change(self) -> str:
        """The ratio with its interval in words: `1.30× slower (95 % CI 1.21–1.39)`."""
        if self.comparison is None:
            return wording.NOT_COMPARED.word
        if self.comparison.interval is None:
            return f"looks {self.ratio_text} ({self.bounds})"
        return f"{self.ratio_text} (95 % CI {self.bounds})"

    @property
    def summary(self) -> str:
        """The change with its interval, and the verdict in words."""
        if self.verdict is None:
            return "no result"
        word = wording.verdict_word(self.verdict).word
        words = () if self.is_finding else (word, wording.open_note(self.comparison))
        return ", ".join(filter(None, (self.change, *words, self.note)))

    @property
    def over_noise(self) -> float:
        """The distance from no change, in half widths of the interval; 0 if unknown."""
        interval = self.comparison.interval if self.comparison else None
        if self.comparison is None or interval is None or not interval.low > 0:
            return 0.0
        width = math.log(interval.high / interval.low) / 2
        distance = abs(math.log(self.comparison.speedup_ratio))
        return distance / width if width > 0 else (math.inf if distance else 0.0)

    def __str__(self) -> str:
        """Name, change and verdict on one line."""
        return f"{self.name}: {self.summary}"

    __repr__ = __str__


Row = TypeVar("Row", bound=ComparedRow)


def judge_together(rows: Sequence[Row]) -> list[Row]:
    """The rows with their verdicts, corrected for the number of rows (Benjamini & Hochberg).

    On average, at most one in twenty reported differences is false. A row whose own interval
    excludes 1 but that is not significant after correction is `inconclusive`.
    """
    significant = benjamini_hochberg([row.p_value for row in rows])
    judged = []
    for row, is_significant in zip(rows, significant, strict=True):
        verdict = row.comparison.verdict if row.comparison else None
        if verdict in {"faster", "slower"} and not is_significant:
            verdict = "inconclusive"
        judged.append(replace(row, is_significant=is_significant, verdict=verdict))
    return judged


def comparison_summary(rows: Sequence[ComparedRow], noun: tuple[str, str]) -> str:
    """A summary of all comparisons, findings included.

    Args:
        noun: The name of one row, singular and plural.
    """
    unclear, unknown = count_no_difference(rows), count_not_compared(rows)
    compared = wording.count(len(rows) - unknown, *noun)
    text = f"{compared} compared, {unclear:,} without a clear difference"
    return f"{text}; {unknown:,} more not compared, because a value is missing" if unknown else text


def no_difference_note(rows: Sequence[ComparedRow]) -> str:
    """Why the remaining comparisons are not findings, with the number for each reason."""
    unclear, unknown = count_no_difference(rows), count_not_compared(rows)
    parts = [f"No clear difference: {unclear:,}"] if unclear else []
    parts += [f"not compared, because a value is missing: {unknown:,}"] if unknown else []
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def count_not_compared(rows: Iterable[ComparedRow]) -> int:
    """The number of rows that were not compared because a value is missing."""
    return sum(row.comparison is None for row in rows)


def count_no_difference(rows: Iterable[ComparedRow]) -> int:
    """The number of comparisons without a clear difference."""
    return sum(row.comparison is not None and not row.is_finding for row in rows)


def baseline_rows(pairs: Sequence[BaselineComparison], *, margin: float) -> tuple[ComparedRow, ...]:
    """A row for each configuration and its baseline."""
    return rows_of_cells([(pair.baseline, pair.cell, pair.comparison, margin) for pair in pairs])


def row_values(before: CellSummary | None, after: CellSummary | None) -> dict[str, Any]:
    """The values of both sides of a row with their unit and direction, by its attributes."""
    metric = next((side.cell.metric for side in (before, after) if side), None)
    return {
        "before": value_of(before) if before else None,
        "after": value_of(after) if after else None,
        "unit": metric.unit if metric else "ns",
        "more_is_better": metric is not None and metric.better == "higher",
        "is_memory": metric == PEAK_MEMORY,
    }


# Both sides of a row, their comparison, and the margin.
PairOfCells = tuple[CellResult, CellResult, Comparison | None, float]


def rows_of_cells(pairs: Sequence[PairOfCells]) -> tuple[ComparedRow, ...]:
    """A row for each pair; their verdicts are corrected together."""
    significant = suite_findings([comparison for _, _, comparison, _ in pairs])
    return tuple(
        ComparedRow(
            scenario=after.cell.scenario,
            cell=after.cell.key,
            **row_values(before.summary, after.summary),
            comparison=comparison,
            margin=margin,
            verdict=comparison.verdict if comparison else None,
            is_significant=is_significant,
            note=launch_counts((*before.launches, *after.launches)).note,
        )
        for (before, after, comparison, margin), is_significant in zip(
            pairs, significant, strict=True
        )
    )
