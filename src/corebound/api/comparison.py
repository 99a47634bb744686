"""What is compared with what: the rows of a comparison, with verdict and interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from corebound.analysis.commit_comparison import CellVerdict, CommitComparison
from corebound.analysis.launch_metrics import disturbed_note
from corebound.analysis.run_comparison import Compared, RunComparison, commit_title
from corebound.analysis.scenario_result import (
    BaselineComparison,
    CellResult,
    ScenarioResult,
    compare_cells,
)
from corebound.analysis.serialize import (
    Ends,
    cell_document,
    commit_comparison_document,
    ratio_interval_pair,
    run_comparison_document,
)
from corebound.analysis.tuning import TuneResult
from corebound.analysis.wording import (
    NO_ESTIMATE,
    compared_bounds,
    count,
    launches_to_decide,
    relative_speed,
    verdict_word,
)
from corebound.api.shown import Shown
from corebound.errors import InputError
from corebound.records.run_record import Run
from corebound.scenario.cell import axes_of_key, cell_id
from corebound.stats.comparison import Comparison as Statistics
from corebound.stats.comparison import Verdict
from corebound.stats.multiplicity import suite_findings

if TYPE_CHECKING:
    import pandas as pd


class ComparedRow(Shown, frozen=True, kw_only=True):
    """One thing measured twice: a configuration in two runs, or two functions.

    Attributes:
        scenario: The scenario, or the benchmark of an imported history.
        cell: The configuration, such as `binding=none,threads=2`.
        axes: The same by axis; values are text.
        before, after: The values of both sides in `unit`; None if one has no result.
        unit: `ns` for times.
        speedup_ratio: Speed of `after` as a multiple of `before`'s; above 1 it is faster. None
            without a result of both.
        speedup_interval: Its 95 % confidence interval, (low, high); None with too few launches.
        verdict: `faster`, `slower`, `equivalent` (the whole interval is within the margin), or
            `inconclusive`; None without a result of both.
        is_significant: Whether the difference is significant after correcting for all rows.
        p_value: Of the difference, before that correction.
        pairs: The number of paired launches; 0 if they are not paired.
        launches_needed: If inconclusive, how many launches of each side would decide; None if
            unknown.
        margin: The largest share that counts as equal.
        more_is_better: Whether the values are a rate. Above 1, `speedup_ratio` always is better.
        note: What to know about its launches, such as that other programs disturbed some.
        statistics: The comparison as corebound's own modules know it.
    """

    scenario: str
    cell: str
    axes: Mapping[str, str]
    before: float | None
    after: float | None
    unit: str
    speedup_ratio: float | None
    speedup_interval: Ends | None
    verdict: Verdict | None
    is_significant: bool
    p_value: float | None
    pairs: int
    launches_needed: int | None
    margin: float
    more_is_better: bool = False
    note: str = ""
    statistics: Statistics | None = None

    @property
    def slowdown_ratio(self) -> float | None:
        """The reciprocal of `speedup_ratio`: above 1, `after` is slower."""
        return None if self.speedup_ratio is None else 1 / self.speedup_ratio

    @property
    def slowdown_interval(self) -> Ends | None:
        """The 95 % interval of `slowdown_ratio`, (low, high); None with too few launches."""
        if self.speedup_interval is None:
            return None
        low, high = self.speedup_interval
        return 1 / high, 1 / low

    @property
    def change(self) -> str:
        """The ratio with its interval in words: `1.30× slower (95 % CI 1.21–1.39)`."""
        if self.statistics is None:
            return NO_ESTIMATE
        words = ("faster", "slower")
        if self.unit != "ns":
            words = ("more", "less") if self.more_is_better else ("less", "more")
        change = relative_speed(self.statistics.speedup_ratio, words=words)
        return f"{change} (95 % CI {compared_bounds(self.statistics)})"

    def heading(self) -> str:
        """Name, change and verdict on one line."""
        return f"{self.name}: {self.summary}"

    @property
    def summary(self) -> str:
        """The change with its interval, and the verdict in words."""
        if self.verdict is None:
            return "no result"
        word = verdict_word(self.verdict).word
        needed = launches_to_decide(self.launches_needed) if self.verdict == "inconclusive" else ""
        words = () if self.verdict in {"faster", "slower"} else (word, needed)
        return ", ".join(filter(None, (self.change, *words, self.note)))

    @property
    def name(self) -> str:
        """The configuration's id in a suite: `scenario[cell]`."""
        return cell_id(self.scenario, self.cell)

    @property
    def document(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            name: getattr(self, name) for name in self.__struct_fields__ if name != "statistics"
        }


def _row(
    *,
    scenario: str,
    cell: str,
    values: tuple[float | None, float | None],
    unit: str,
    comparison: Statistics | None,
    margin: float,
    is_significant: bool,
    note: str = "",
) -> ComparedRow:
    return ComparedRow(
        scenario=scenario,
        cell=cell,
        axes=axes_of_key(cell),
        before=values[0],
        after=values[1],
        unit=unit,
        speedup_ratio=comparison.speedup_ratio if comparison else None,
        speedup_interval=ratio_interval_pair(comparison.interval) if comparison else None,
        verdict=comparison.verdict if comparison else None,
        is_significant=is_significant,
        p_value=comparison.p_value if comparison else None,
        pairs=comparison.pairs if comparison else 0,
        launches_needed=comparison.launches_needed if comparison else None,
        margin=margin,
        note=note,
        statistics=comparison,
    )


class Comparison(Shown, frozen=True, kw_only=True):
    """Two runs, two commits, or functions with their baseline.

    Attributes:
        before, after: Names of both sides.
        rows: What was measured on both sides; the largest differences first for runs and commits.
        not_comparable: What cannot be compared, by name, with the reason.
        only_in_one: What only one side has, by name, with the side.
        document: The same as plain data, as `corebound compare --json` prints it.
    """

    before: str
    after: str
    rows: tuple[ComparedRow, ...]
    not_comparable: Mapping[str, str]
    only_in_one: Mapping[str, str]
    document: Mapping[str, Any]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[ComparedRow]:
        """Every row."""
        return iter(self.rows)

    def __getitem__(self, name: str) -> ComparedRow:
        """The row of a configuration, by its id, its key, or one of its axes' values.

        Raises:
            KeyError: No row, or several, have this name.
        """
        rows = [row for row in self.rows if name in {row.name, row.cell, *row.axes.values()}]
        if len(rows) != 1:
            raise KeyError(f"{name}: {count(len(rows), 'row')} of {len(self.rows)}")
        return rows[0]

    @property
    def row(self) -> ComparedRow:
        """The only row.

        Raises:
            ValueError: There are none or several.
        """
        if len(self.rows) != 1:
            raise ValueError(f"{count(len(self.rows), 'row')}: use `rows`")
        return self.rows[0]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the only row."""
        return self.row.verdict

    @property
    def speedup_ratio(self) -> float | None:
        """The ratio of the only row."""
        return self.row.speedup_ratio

    @property
    def speedup_interval(self) -> Ends | None:
        """The 95 % interval of the only row."""
        return self.row.speedup_interval

    def to_frame(self) -> pd.DataFrame:
        """The rows as a table, with a column for each attribute and for each axis (`axis_…`)."""
        from corebound.api import tables

        return tables.compared_rows(self.rows)

    def __str__(self) -> str:
        """Both sides, and a line for each row."""
        head = f"{self.before} → {self.after}"
        return "\n".join((head, *(f"  {row}" for row in self.rows)))

    def _repr_html_(self) -> str:
        from corebound.api import notebook

        return notebook.comparison_html(self)


def of_runs(result: RunComparison, noise: tuple[str, ...]) -> Comparison:
    """The comparison of two runs."""
    return Comparison(
        before=_run_name(result.before),
        after=_run_name(result.after),
        rows=tuple(
            _compared_row(
                cell,
                scenario=cell.cell.scenario,
                cell=cell.cell.key,
                values=(cell.before.median_ns, cell.after.median_ns),
                unit="ns",
                note=disturbed_note(cell.before, cell.after),
            )
            for cell in result.cells
        ),
        not_comparable=dict(result.not_comparable),
        only_in_one=dict(result.only_in_one),
        document=run_comparison_document(result, noise),
    )


def of_commits(result: CommitComparison) -> Comparison:
    """The comparison of two commits of an imported project."""
    return Comparison(
        before=commit_title(result.before),
        after=commit_title(result.after),
        rows=tuple(
            _compared_row(
                each,
                scenario=each.series.scenario,
                cell=each.series.cell,
                values=(each.before.value, each.after.value),
                unit=each.series.unit,
                more_is_better=each.series.more_is_better,
            )
            for each in result.series
        ),
        not_comparable=dict(result.not_comparable),
        only_in_one=dict(result.only_in_one),
        document=commit_comparison_document(result),
    )


def _compared_row(
    compared: Compared,
    *,
    scenario: str,
    cell: str,
    values: tuple[float | None, float | None],
    unit: str,
    more_is_better: bool = False,
    note: str = "",
) -> ComparedRow:
    row = _row(
        scenario=scenario,
        cell=cell,
        values=values,
        unit=unit,
        comparison=compared.comparison,
        margin=compared.margin,
        is_significant=compared.clear,
        note=note,
    )
    return replace(row, verdict=compared.verdict, more_is_better=more_is_better)


def of_baselines(result: ScenarioResult) -> Comparison:
    """Every configuration of a scenario with its baseline, in the order of the file."""
    pairs = {pair.cell.cell.key: pair for pair in result.ranked}
    ordered = [pairs[key] for key in result.by_key if key in pairs]
    rows = baseline_rows(ordered, margin=result.measure.margin)
    significant = {row.cell for row in rows if row.is_significant}
    return Comparison(
        before=", ".join(dict.fromkeys(pair.baseline.cell.label for pair in ordered)),
        after=", ".join(pair.cell.cell.label for pair in ordered),
        rows=rows,
        not_comparable={},
        only_in_one={},
        document={
            "scenario": result.scenario.name,
            "cells": [
                cell_document(
                    cell, result.run.host, is_finding=cell.cell.key in significant, noise=None
                )
                for cell in result.cells
            ],
        },
    )


def of_verdicts(
    verdicts: Sequence[CellVerdict], names: tuple[str, str], document: Mapping[str, Any]
) -> Comparison:
    """The comparison of two sides that were measured interleaved."""
    rows = [
        replace(
            _row(
                scenario=each.pair.scenario,
                cell=each.pair.cell,
                values=(each.pair.base_ns, each.pair.head_ns),
                unit="ns",
                comparison=each.pair.comparison,
                margin=each.pair.margin,
                is_significant=each.verdict in {"faster", "slower"},
            ),
            verdict=each.verdict,
        )
        for each in verdicts
    ]
    return Comparison(
        before=names[0],
        after=names[1],
        rows=tuple(row for row, each in zip(rows, verdicts, strict=True) if not each.pair.missing),
        not_comparable={
            row.name: "; ".join(each.pair.missing)
            for row, each in zip(rows, verdicts, strict=True)
            if each.pair.missing
        },
        only_in_one={},
        document=document,
    )


def of_finalists(result: TuneResult) -> tuple[ComparedRow, ...]:
    """The recommended configuration compared with each other finalist."""
    best = result.confirmed[0] if result.confirmed else None
    others = [each for each in result.confirmed[1:] if each.comparison is not None]
    significant = suite_findings([each.comparison for each in others])
    return tuple(
        _row(
            scenario=each.cell.scenario,
            cell=each.cell.key,
            values=(each.summary.median_ns, best.summary.median_ns if best else None),
            unit="ns",
            comparison=each.comparison,
            margin=result.tuning.rule.margin,
            is_significant=is_significant,
        )
        for each, is_significant in zip(others, significant, strict=True)
    )


def baseline_rows(pairs: Sequence[BaselineComparison], *, margin: float) -> tuple[ComparedRow, ...]:
    """A row for each configuration and its baseline."""
    return _rows([(pair.baseline, pair.cell, pair.comparison, margin) for pair in pairs])


# Both sides of a row, their comparison, and the margin.
_Pair = tuple[CellResult, CellResult, Statistics | None, float]


def _rows(pairs: Sequence[_Pair]) -> tuple[ComparedRow, ...]:
    significant = suite_findings([comparison for _, _, comparison, _ in pairs])
    return tuple(
        _row(
            scenario=after.cell.scenario,
            cell=after.cell.key,
            values=(before.summary.median_ns, after.summary.median_ns),
            unit="ns",
            comparison=comparison,
            margin=margin,
            is_significant=is_significant,
            note=disturbed_note(before.summary, after.summary),
        )
        for (before, after, comparison, margin), is_significant in zip(
            pairs, significant, strict=True
        )
    )


AxesValues = Mapping[str, frozenset[str]]


def of_configurations(
    results: Sequence[ScenarioResult], before: AxesValues, after: AxesValues
) -> Comparison:
    """Pairs of configurations that differ in the named axes and agree in all others.

    Args:
        results: Scenarios, each in one run.
        before: The values of axes on the one side.
        after: The values of axes on the other side.

    Raises:
        InputError: No scenario has such a pair.
    """
    pairs: list[_Pair] = []
    for result in results:
        others = {
            _key_without(cell, {*before, *after}): cell
            for cell in result.cells
            if _matches(cell, before)
        }
        for cell in result.cells:
            other = others.get(_key_without(cell, {*before, *after}))
            if other is not None and other is not cell and _matches(cell, after):
                comparison = compare_cells(result, cell.cell, other.cell)
                pairs.append((other, cell, comparison, result.measure.margin))
    names = [_axes_text(axes) for axes in (before, after)]
    if not pairs:
        raise InputError(
            what=f"no scenario has configurations with {names[0]} and with {names[1]}.",
            where="compare",
            fix="`results.comparisons()` has a column axis_NAME for each axis.",
        )
    rows = _rows(pairs)
    return Comparison(
        before=names[0],
        after=names[1],
        rows=rows,
        not_comparable={},
        only_in_one={},
        document={"before": names[0], "after": names[1], "cells": [row.document for row in rows]},
    )


def _matches(cell: CellResult, axes: AxesValues) -> bool:
    own = dict(cell.cell.axes)
    return all(own.get(axis) in values for axis, values in axes.items())


def _key_without(cell: CellResult, axes: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in cell.cell.axes if pair[0] not in axes)


def _axes_text(axes: AxesValues) -> str:
    return ", ".join(f"{axis}={'|'.join(sorted(values))}" for axis, values in axes.items())


def _run_name(run: Run) -> str:
    return f"run {run.id}" + (f", {commit_title(run.commit)}" if run.commit else "")
