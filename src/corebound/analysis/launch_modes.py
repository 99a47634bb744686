"""Launches of two modes: the mode of each, and the comparisons in words."""

from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import full_name
from corebound.stats.comparison import Comparison, ModeComparison
from corebound.stats.intervals import Interval
from corebound.stats.modes import Mode
from corebound.units import percent, ratio


def modes_by_launch(result: ScenarioResult) -> dict[str, Mode]:
    """The mode of each launch, by its id.

    Launches without one are absent: those of cells without two modes, those whose mode is
    unknown, and those of a baseline whose comparisons disagree.
    """
    found: dict[str, set[Mode]] = {}
    for pair in result.ranked:
        for launch, mode in _modes_of(pair.cell, pair.baseline).items():
            found.setdefault(launch, set()).add(mode)
    return {launch: modes.pop() for launch, modes in found.items() if len(modes) == 1}


def _modes_of(cell: CellResult, baseline: CellResult) -> dict[str, Mode]:
    """The known modes of the launches of one comparison, by their ids."""
    by_mode = cell.comparison.by_mode if cell.comparison else None
    if by_mode is None:
        return {}
    sides = (
        (cell, {block.block: block.cell for block in by_mode.modes.blocks}),
        (baseline, {block.block: block.baseline for block in by_mode.modes.blocks}),
    )
    return {
        launch.launch: mode
        for side, modes in sides
        for launch in side.summary.launches
        if (mode := modes.get(launch.block)) is not None
    }


def mode_notes(result: ScenarioResult) -> tuple[str, ...]:
    """For each comparison of launches of two modes a note, which begins with the cell's name."""
    return tuple(
        f"{full_name(pair.cell.cell)}: {text}"
        for pair in result.ranked
        if (text := mode_text(pair.comparison))
    )


def mode_text(comparison: Comparison | None) -> str:
    """What a comparison says of two modes, in sentences; empty without modes."""
    by_mode = comparison.by_mode if comparison else None
    if by_mode is None:
        return ""
    modes = by_mode.modes
    return (
        f"In the same mode {_difference(modes.speedup_ratio, modes.interval)};"
        f" over both modes {_difference(by_mode.expected_ratio, by_mode.expected_interval)}."
        f" {_shares_text(by_mode)}"
    )


def _shares_text(by_mode: ModeComparison) -> str:
    modes = by_mode.modes
    cell, baseline = modes.share("cell"), modes.share("baseline")
    verdict = "a significant difference" if by_mode.shares_differ else "no significant difference"
    if cell is None or baseline is None:
        return f"Shares of the fast mode ({ratio(modes.slow_ratio)}): {verdict}."
    return (
        f"Fast mode ({ratio(modes.slow_ratio)}) in {cell.fast} of {cell.launches} against"
        f" {baseline.fast} of {baseline.launches} launches: {verdict}."
    )


def _difference(speedup_ratio: float, interval: Interval) -> str:
    """A difference with its interval: `3.3 % slower [2.9, 3.6]`."""
    if interval.high < 1:
        low, high = 1 / interval.high - 1, 1 / interval.low - 1
        return f"{percent(1 / speedup_ratio - 1)} slower [{low * 100:.1f}, {high * 100:.1f}]"
    if interval.low > 1:
        low, high = interval.low - 1, interval.high - 1
        return f"{percent(speedup_ratio - 1)} faster [{low * 100:.1f}, {high * 100:.1f}]"
    slower, faster = percent(1 / interval.low - 1), percent(interval.high - 1)
    return f"between {slower} slower and {faster} faster"
