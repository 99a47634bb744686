"""What is compared with what: the rows of a comparison, with verdict and interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from corebound.analysis import compared
from corebound.analysis.commit_comparison import CommitComparison, InterleavedComparison
from corebound.analysis.json_documents import cell_document, compare_document
from corebound.analysis.run_comparison import RunComparison
from corebound.analysis.scenario_result import CellResult, ScenarioResult, compare_cells
from corebound.analysis.tuning import TuneResult
from corebound.analysis.wording import count
from corebound.errors import InputError
from corebound.present.compare import rows_table, side_titles
from corebound.present.shown import Shown
from corebound.stats.comparison import Verdict
from corebound.stats.intervals import Ends
from corebound.stats.multiplicity import suite_findings

if TYPE_CHECKING:
    import pandas as pd


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
    rows: tuple[compared.ComparedRow, ...]
    not_comparable: Mapping[str, str] = {}
    only_in_one: Mapping[str, str] = {}
    document: Mapping[str, Any]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[compared.ComparedRow]:
        """Every row."""
        return iter(self.rows)

    def __getitem__(self, name: str) -> compared.ComparedRow:
        """The row of a configuration, by its id, its key, or one of its axes' values.

        Raises:
            KeyError: No row, or several, have this name.
        """
        rows = [row for row in self.rows if name in {row.name, row.cell, *row.axes.values()}]
        if len(rows) != 1:
            raise KeyError(f"{name}: {count(len(rows), 'row')} of {len(self.rows)}")
        return rows[0]

    @property
    def row(self) -> compared.ComparedRow:
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

        head = f"<p><b>{escape(self.before)}</b> → <b>{escape(self.after)}</b></p>"
        return notebook.compared_html((head, rows_table(self.rows)))


def of_recorded(result: RunComparison | CommitComparison | InterleavedComparison) -> Comparison:
    """Two runs, two commits of an imported project, or two sides that were measured interleaved."""
    rows: Sequence[compared.ComparedRow]
    if isinstance(result, InterleavedComparison):
        before, after = result.sides.names
        rows = [cell for cell in result.cells if not cell.missing]
        not_comparable = {
            cell.name: "; ".join(cell.missing) for cell in result.cells if cell.missing
        }
        only_in_one = {}
    else:
        before, after = side_titles(result)
        rows = result.rows
        not_comparable, only_in_one = dict(result.not_comparable), dict(result.only_in_one)
    return Comparison(
        before=before,
        after=after,
        rows=tuple(rows),
        not_comparable=not_comparable,
        only_in_one=only_in_one,
        document=compare_document(result),
    )


def of_baselines(result: ScenarioResult) -> Comparison:
    """Every configuration of a scenario with its baseline, in the order of the file."""
    pairs = {pair.cell.cell.key: pair for pair in result.ranked}
    ordered = [pairs[key] for key in result.by_key if key in pairs]
    rows = compared.baseline_rows(ordered, margin=result.measure.margin)
    significant = {row.cell for row in rows if row.is_significant}
    return Comparison(
        before=", ".join(dict.fromkeys(pair.baseline.cell.label for pair in ordered)),
        after=", ".join(pair.cell.cell.label for pair in ordered),
        rows=rows,
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


def of_finalists(result: TuneResult) -> tuple[compared.ComparedRow, ...]:
    """The recommended configuration compared with each other finalist."""
    best = result.confirmed[0] if result.confirmed else None
    others = [each for each in result.confirmed[1:] if each.comparison is not None]
    significant = suite_findings([each.comparison for each in others])
    return tuple(
        compared.ComparedRow(
            scenario=each.cell.scenario,
            cell=each.cell.key,
            **compared.row_values(each.summary, best.summary if best else None),
            comparison=each.comparison,
            margin=result.tuning.rule.margin,
            verdict=each.comparison.verdict if each.comparison else None,
            is_significant=is_significant,
        )
        for each, is_significant in zip(others, significant, strict=True)
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
    pairs: list[compared.PairOfCells] = []
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
    rows = compared.rows_of_cells(pairs)
    return Comparison(
        before=names[0],
        after=names[1],
        rows=rows,
        document={
            "before": names[0],
            "after": names[1],
            "cells": [{name: getattr(row, name) for name in _DOCUMENT} for row in rows],
        },
    )


# The values of a row of two configurations, as plain data.
_DOCUMENT = (
    "scenario", "cell", "axes", "before", "after", "unit", "speedup_ratio", "speedup_interval",
    "verdict", "is_significant", "p_value", "pairs", "launches_needed", "margin", "more_is_better",
    "note",
)  # fmt: skip


def _matches(cell: CellResult, axes: AxesValues) -> bool:
    own = dict(cell.cell.axes)
    return all(own.get(axis) in values for axis, values in axes.items())


def _key_without(cell: CellResult, axes: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in cell.cell.axes if pair[0] not in axes)


def _axes_text(axes: AxesValues) -> str:
    return ", ".join(f"{axis}={'|'.join(sorted(values))}" for axis, values in axes.items())
