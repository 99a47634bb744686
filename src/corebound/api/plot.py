"""Comparisons with their intervals as a matplotlib figure, for papers and slides."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from corebound.analysis.scenario_result import BaselineComparison, ScenarioResult
from corebound.analysis.wording import verdict_word
from corebound.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"good": "#0059a6", "bad": "#a83c06", "plain": "#4a525b", "warn": "#7a5000"}
_ROW_INCHES = 0.32


def comparisons_figure(results: Sequence[ScenarioResult]) -> Figure:
    """One panel a scenario: each configuration's speed-up with its 95 % interval, and 1.

    Args:
        results: Scenarios, each in one run; several runs of a scenario are several panels.

    Raises:
        HostError: matplotlib is not installed.
        InputError: There are no comparisons.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("matplotlib", needed_for="a plot", where="plot") from error
    drawn = [result for result in results if result.ranked]
    if not drawn:
        raise InputError(
            what="no configuration is compared with a baseline.",
            where="plot",
            fix="Select a scenario with several configurations.",
        )
    rows = [len(result.ranked) for result in drawn]

    class Shown(Figure):
        """A figure that a notebook shows without pyplot."""

        def _repr_png_(self) -> bytes:
            data = io.BytesIO()
            self.savefig(data, format="png", dpi=120)
            return data.getvalue()

    figure = Shown(figsize=(8, sum(rows) * _ROW_INCHES + len(drawn) * 0.9), layout="constrained")
    panels = figure.subplots(len(drawn), squeeze=False, height_ratios=rows)
    for result, panel in zip(drawn, panels[:, 0], strict=True):
        panel.axvspan(1 / (1 + result.measure.margin), 1 + result.measure.margin, color="#e3e6e8")
        panel.axvline(1, color="#14171b", linewidth=1)
        for row, pair in enumerate(reversed(result.ranked)):
            _draw(panel, row, pair)
        panel.set_xscale("log")
        panel.xaxis.set_major_formatter("{x:g}×")
        panel.xaxis.set_minor_formatter("{x:g}×")
        labels = [pair.cell.cell.label for pair in reversed(result.ranked)]
        panel.set_yticks(range(len(labels)), labels)
        panel.set_ylim(-0.6, len(labels) - 0.4)
        panel.set_title(result.scenario.title, loc="left", fontsize="medium")
        panel.set_xlabel("speed as a multiple of the baseline's, 95 % CI")
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def _draw(panel: object, row: int, pair: BaselineComparison) -> None:
    comparison = pair.comparison
    colour = _COLOURS[verdict_word(comparison.verdict).tone]
    errors = None
    if comparison.interval is not None:
        errors = [
            [comparison.speedup_ratio - comparison.interval.low],
            [comparison.interval.high - comparison.speedup_ratio],
        ]
    panel.errorbar(  # type: ignore[attr-defined]  # matplotlib has no types here
        comparison.speedup_ratio, row, xerr=errors, fmt="o", color=colour, capsize=0
    )
