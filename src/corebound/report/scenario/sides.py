"""The two sides of a comparison: what was built, and each pair of launches."""

from collections.abc import Iterator
from functools import partial

from corebound.analysis import wording
from corebound.analysis.launch_counts import discarded_launches
from corebound.analysis.scenario_result import BaselineComparison, ScenarioResult
from corebound.analysis.suggested_commands import cell_command
from corebound.records.run_record import EnvironmentLock
from corebound.report.charts.axis import linear_axis, linear_or_log_axis, plain_tick
from corebound.report.charts.lines import Curve, CurveChart, CurvePoint
from corebound.report.elements import Content
from corebound.scenario.cell import Cell
from corebound.scenario.compared_axis import compared_axis

# The pairs of the others are in the list of launches.
_MOST_FIGURES = 6
_MOST_PACKAGES = 8


def compared_sides(result: ScenarioResult) -> Content | None:
    """Build the section; None for a scenario that compares no sides."""
    axis = compared_axis(result.source.document)
    if axis is None or not result.ranked:
        return None
    by_name: dict[str, Cell] = {}
    for pair in result.ranked:
        for cell in (pair.baseline.cell, pair.cell.cell):
            by_name.setdefault(str(dict(cell.axes)[axis[-1]]), cell)
    locks = [result.run.lock_of(cell.environment) for cell in by_name.values()]
    return Content(
        names=tuple(by_name),
        builds=tuple(_builds(locks)),
        figures=tuple(_figure(result, pair) for pair in result.ranked[:_MOST_FIGURES]),
    )


def _builds(locks: list[EnvironmentLock | None]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What was built for each side, as far as the sides differ."""
    commits = [lock.commit if lock is not None else None for lock in locks]
    packages = [set(lock.packages) if lock is not None else set() for lock in locks]
    every = set.intersection(*packages)
    values = {
        "Subject": [commit.subject if commit else "" for commit in commits],
        "Committed": [wording.day(commit.committed_at) if commit else "" for commit in commits],
        "Uncommitted changes": [
            ("yes" if commit.tree is not None or commit.dirty else "none") if commit else ""
            for commit in commits
        ],
        "Python": [lock.python if lock is not None else "" for lock in locks],
        "Packages that differ": [
            wording.listed(sorted(own - every), _MOST_PACKAGES) for own in packages
        ],
    }
    for what, of_sides in values.items():
        if len(set(of_sides)) > 1:
            yield what, tuple(value or "–" for value in of_sides)


def _figure(result: ScenarioResult, pair: BaselineComparison) -> Content:
    sides = pair.baseline, pair.cell
    values = [{each.block: each.median_ns for each in side.summary.launches} for side in sides]
    lost = {
        launch.block: reason
        for launch, reason in discarded_launches([*sides[0].launches, *sides[1].launches])
    }
    ratios = dict(pair.comparison.per_block)
    blocks = sorted({*values[0], *values[1], *lost})
    tone = {"faster": "good", "slower": "bad"}.get(pair.comparison.verdict, "one")
    name = wording.full_name(pair.cell.cell)
    pairs = wording.count(len(ratios), "pair")
    left_out = len(blocks) - len(ratios)
    return Content(
        title=name,
        caption=f"{pairs} of launches" + (f"; {left_out} left out" if left_out else ""),
        chart=_chart(
            blocks,
            values,
            ratios,
            tone,
            cell=pair.cell.cell,
            alt_text=f"{name}: {pairs} of launches, by block",
        ),
        rows=tuple(
            Content(
                block=block + 1,
                base=wording.value_text(values[0].get(block), sides[0].cell),
                head=wording.value_text(values[1].get(block), sides[1].cell),
                outcome=wording.relative_speed(ratios[block], words=pair.cell.cell.words)
                if block in ratios
                else lost.get(block, "no partner"),
            )
            for block in blocks
        ),
        command=cell_command(result, pair.cell),
    )


def _chart(
    blocks: list[int],
    values: list[dict[int, float]],
    ratios: dict[int, float],
    tone: str,
    *,
    cell: Cell,
    alt_text: str,
) -> CurveChart:
    """The value of each side by block, with a line for each pair; marks are blocks left out."""
    every = [*values[0].values(), *values[1].values()]
    low, high = min(every) / 1.05, max(every) * 1.05
    up = linear_or_log_axis(low, high)
    # About a fifteenth of the height.
    foot = (high / low) ** (1 / 15) if up.scale == "log" else 1 + (high / low - 1) / 15
    lines = [
        _curve("plain", *((block, side[block]) for side in values))
        for block in ratios
        if block in values[0] and block in values[1]
    ]
    dots = [
        _curve(mode, (block, value))
        for mode, side in zip(("plain", tone), values, strict=True)
        for block, value in side.items()
    ]
    lost = [
        _curve("lost", (block, low), (block, low * foot)) for block in blocks if block not in ratios
    ]
    return CurveChart(
        curves=(*lines, *dots, *lost),
        across=linear_axis(0.5, max(blocks) + 1.5),
        up=up,
        texts=(plain_tick, partial(wording.value_text, cell=cell)),
        alt_text=alt_text,
    )


def _curve(mode: str, *points: tuple[int, float]) -> Curve:
    return Curve(
        label=wording.Label(mode=mode, name="", more=""),
        dash=0,
        points=tuple(CurvePoint(x=block + 1, y=value) for block, value in points),
        has_dots=len(points) == 1,
    )
