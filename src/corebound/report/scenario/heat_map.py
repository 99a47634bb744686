"""The heat map: the configurations on the first two axes on which they differ.

Other axes have no place in the map: a cell of it is then the fastest of its configurations.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.selection import varying_axes
from corebound.analysis.wording import (
    axis_value,
    capital,
    compared_with,
    full_name,
    relative_speed,
    verdict_word,
)
from corebound.groups import grouped
from corebound.report.elements import Content
from corebound.scenario.cell import Cell
from corebound.scenario.fault_wording import join_words

State = Literal[
    "faster", "slower", "equivalent", "inconclusive", "baseline", "duplicate", "skipped", "absent"
]  # fmt: skip
# The tint grows with the logarithm of the ratio, up to a share at which text stays readable.
_LEAST_TINT, _TINT_PER_LOG, _MOST_TINT = 8, 60, 55
# In rows, if it is one of the axes.
_ROWS = "binding"


class HeatCell(Struct, frozen=True, kw_only=True):
    """A cell of the map.

    Attributes:
        state: How it looks.
        text: The ratio, or words in its place.
        name: What a screen reader reads: the configuration and its verdict.
        cell: The configuration that was launched for it; None without one.
        sign: Before the ratio; not read out.
        note: Below it; may be empty.
        tint: Per cent of the verdict's colour.
    """

    state: State
    text: str
    name: str
    cell: Cell | None = None
    sign: str = ""
    note: str = ""
    tint: int = 0
    is_best: bool = False


# A configuration and the result that stands for it, which a duplicate shares.
Shown = tuple[Cell, CellResult]


def heat_map(result: ScenarioResult) -> Content | None:
    """Build the map; None if nothing is compared, or if fewer than two axes vary."""
    shown = [(cell, found) for cell in result.planned if (found := result.find(cell)) is not None]
    axes = varying_axes([cell for cell, _ in shown])
    if len(axes) < 2 or not result.ranked:
        return None
    rows, columns, *_ = sorted(axes, key=lambda axis: (axis != _ROWS, axes.index(axis)))

    def place(cell: Cell) -> tuple[str, str]:
        return _value(cell, rows), _value(cell, columns)

    by_place = grouped(shown, lambda pair: place(pair[0]))
    planned = set(map(place, result.planned))
    column_values = tuple(dict.fromkeys(column for _, column in by_place))
    table = tuple(
        (
            row,
            tuple(
                _cell(result, by_place[row, column])
                if (row, column) in by_place
                else _absent("not run" if (row, column) in planned else "excluded")
                for column in column_values
            ),
        )
        for row in dict.fromkeys(row for row, _ in by_place)
    )
    names = (_axis_name(rows), _axis_name(columns))
    others = [_axis_name(axis) for axis in axes if axis not in {rows, columns}]
    return Content(
        title=f"{capital(names[0])} × {names[1]}",
        lead=_lead(result, others),
        axes=names,
        columns=column_values,
        rows=table,
        states=frozenset(cell.state for _, cells in table for cell in cells),
    )


def _axis_name(axis: str) -> str:
    """An axis as a heading: `parameters.batch_size` is `batch size`."""
    return axis.removeprefix("parameters.").replace("_", " ")


def _value(cell: Cell, axis: str) -> str:
    """A value below its axis' heading: a binding in words, others as scenarios write them."""
    return axis_value(cell, axis) if axis == _ROWS else dict(cell.axes).get(axis, "–")


def _speed(shown: Shown) -> tuple[float, bool]:
    """The sort key of configurations in one place: the fastest, of equals one that was measured."""
    cell, found = shown
    is_measured_itself = cell.key == found.cell.key
    if found.baseline is None and found.is_measured:
        return 1.0, is_measured_itself
    return (found.comparison.speedup_ratio if found.comparison else 0.0), is_measured_itself


def _cell(result: ScenarioResult, configurations: Sequence[Shown]) -> HeatCell:
    cell, found = max(configurations, key=_speed)

    def cell_with(state: State, text: str, *, heard: str = "", **shown: Any) -> HeatCell:
        name = f"{full_name(cell)}: {heard or text}"
        return HeatCell(state=state, text=text, name=name, cell=found.cell, **shown)

    if not found.is_measured:
        launch = found.launches[-1]
        return cell_with("skipped", launch.status, note=_short_reason(launch.reason or ""))
    # A cell that repeats the baseline can differ from it by noise only.
    repeats = any(pair.cell is found and pair.is_itself for pair in result.ranked)
    if repeats or cell.key != found.cell.key:
        same = compared_with(cell, found.cell) if cell.key != found.cell.key else "the baseline"
        return cell_with("duplicate", f"= {same}", heard=f"same as {same}")
    if found.baseline is None:
        return cell_with("baseline", "1×", heard="baseline", note="baseline")
    comparison = found.comparison
    if comparison is None:
        return cell_with("absent", "no baseline", heard="not compared")
    word = verdict_word(comparison.verdict)
    ratio = relative_speed(comparison.speedup_ratio, words=found.cell.words)
    if comparison.verdict == "inconclusive":
        so_far = f"{ratio} so far"
        heard = f"{word.word}, {so_far}"
        return cell_with("inconclusive", word.word, heard=heard, sign=word.sign, note=so_far)
    is_best = result.winner is not None and result.winner.cell is found
    is_decided = comparison.verdict != "equivalent"
    return cell_with(
        comparison.verdict,
        ratio.partition(" ")[0],
        heard=f"{ratio if is_decided else f'{word.word}, {ratio}'}{', best' if is_best else ''}",
        sign=word.sign,
        note="best" if is_best else "",
        tint=effect_tint(comparison.speedup_ratio) if is_decided else 0,
        is_best=is_best,
    )


def effect_tint(speedup_ratio: float) -> int:
    """The share of a verdict's colour behind a cell, in per cent: more for a larger effect."""
    distance = abs(math.log(speedup_ratio))
    return round(min(_LEAST_TINT + _TINT_PER_LOG * distance, _MOST_TINT))


# The first clause of a reason; a colon within code is not its end.
_FIRST_CLAUSE = re.compile(r"(?:[^:`]|`[^`]*`)*")


def _short_reason(reason: str) -> str:
    """The first clause of a reason, as plain text.

    >>> _short_reason("`workers: 4` does not fit 2 cores: some would have none.")
    'workers: 4 does not fit 2 cores'
    """
    match = _FIRST_CLAUSE.match(reason)
    return match[0].replace("`", "").rstrip(".") if match else ""


def _absent(text: str) -> HeatCell:
    """A place without a configuration, or one that this run did not launch."""
    return HeatCell(state="absent", text=text, name=text)


def _lead(result: ScenarioResult, others: Sequence[str]) -> str:
    baselines = result.baselines
    against = full_name(baselines[0]) if len(baselines) == 1 else "each baseline"
    fastest = f", for the fastest {join_words(list(others), 'and')}" if others else ""
    return f"Speed against {against}{fastest}."
