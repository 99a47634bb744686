"""Launch-to-launch variation: every launch of every configuration as a dot."""

from __future__ import annotations

from msgspec import Struct

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.launch_metrics import figure_of
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.wording import Label, count, label, mode_class
from corebound.report.charts.axis import Axis, linear_axis
from corebound.report.elements import Tick
from corebound.units import significant, time_unit

# A launch that took at least half as long again is drawn at the edge.
_FURTHEST = 0.5
_LEAST_SPAN = 0.02


class DotRow(Struct, frozen=True, kw_only=True):
    """One configuration: each launch's value relative to their summary value, and in words.

    `command` launches it again.
    """

    label: Label
    mode: str
    ratios: tuple[float, ...]
    between: str
    launches: str
    command: CommandLine


class LaunchDots(Struct, frozen=True, kw_only=True):
    """The chart, which is a table."""

    says: str
    unit: str
    axis: Axis
    ticks: tuple[Tick, ...]
    rows: tuple[DotRow, ...]


def launch_dots(study: ScenarioResult) -> LaunchDots | None:
    """The launches of every measured configuration, fastest first; None if none has two."""
    shown = [
        (cell, cell.summary.median_ns)
        for cell in study.cells
        if cell.summary.median_ns is not None and len(cell.summary.launches) > 1
    ]
    if not shown:
        return None
    length_ns, unit = time_unit(min(middle for _, middle in shown))
    rows = []
    for cell, middle in sorted(shown, key=lambda pair: pair[1]):
        own = [one.median_ns for one in cell.summary.launches]
        ends = (significant(end / length_ns) for end in (min(own), max(own)))
        rows.append(
            DotRow(
                label=label(cell.cell),
                mode=mode_class(cell.cell.binding.mode),
                ratios=tuple(one / middle for one in own),
                between=f"{' to '.join(ends)} {unit}",
                launches=count(len(own), "launch", "launches"),
                command=reproduce_command(study, (cell.cell,)),
            )
        )
    axis = _axis([ratio for row in rows for ratio in row.ratios])
    name = figure_of(cell for cell, _ in shown)
    return LaunchDots(
        says=f"{name.heading} of each launch, beside the figure of all of them: a dot is a"
        " launch, a fresh process. Left of the line is faster.",
        unit=unit,
        axis=axis,
        ticks=tuple(
            Tick(
                at=round(axis.share(tick) * 100, 1),
                text=_away(tick),
                minor=index % 2 == 1,
            )
            for index, tick in enumerate(axis.ticks)
        ),
        rows=tuple(rows),
    )


def _away(ratio: float) -> str:
    percent = f"{(ratio - 1) * 100:+.3g} %" if ratio != 1 else "0 %"
    return percent.replace("-", "\N{MINUS SIGN}")


def _axis(ratios: list[float]) -> Axis:
    """An axis around 1, as wide as the range of the launches, within limits."""
    reach = max(_LEAST_SPAN, max(abs(ratio - 1) for ratio in ratios) * 1.05)
    return linear_axis(1 - min(reach, _FURTHEST), 1 + min(reach, _FURTHEST))
