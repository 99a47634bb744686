"""The output of `corebound calibrate`: a table of noise floors."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from corebound.records.calibration import Calibration, Noise
from corebound.units import percent


def table(found: Sequence[Calibration]) -> Table:
    """One row for each number of launches that a scenario's profiles can use."""
    shown = Table(box=None, padding=(0, 1))
    shown.add_column("scenario, its baseline", overflow="fold")
    for heading in ("pairs", "spread", "launches", "noise floor", "false alarms", "finds"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        for place, noise in enumerate(one.noise):
            shown.add_row(*_row(one, noise, first=place == 0))
    return shown


def _row(one: Calibration, noise: Noise, *, first: bool) -> tuple[str, ...]:
    named = (f"{one.scenario}, {one.cell}", str(one.blocks), percent(one.launch_spread_ratio))
    finds = "–" if noise.detectable_ratio is None else percent(noise.detectable_ratio)
    return (
        *(named if first else ("", "", "")),
        str(noise.launches),
        f"±{percent(noise.floor_ratio)}",
        percent(noise.false_alarm_rate),
        finds,
    )


EXPLAINED = (
    "spread: of the launches. noise floor: a smaller difference cannot be told from none. "
    "false alarms: two equal cells called faster or slower. finds: the least slowdown "
    "that is called slower nine times in ten."
)
