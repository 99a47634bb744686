"""`corebound calibrate`: find the noise floor by measuring a scenario's baseline against itself."""

from collections.abc import Sequence
from functools import partial

from rich.table import Table
from rich.text import Text

from corebound.cli.options import Output
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.progress import TerminalReporter
from corebound.records.calibration import Calibration, Noise
from corebound.units import percent
from corebound.workflow.calibrate import CalibrateRequest, CalibrateResult, calibrate_scenarios

_LEGEND = (
    "spread: of the launches. noise floor: smaller differences cannot be detected. "
    "false alarms: how often equal cells are called faster or slower. detects: the smallest "
    "slowdown that is detected in 9 of 10 comparisons."
)


def calibrate(request: CalibrateRequest, console: Console) -> Output:
    """Find the smallest difference this host can detect.

    The baseline of each scenario is measured against itself.

    Examples:
        corebound calibrate scenarios/
        corebound calibrate hashing.yaml --budget 10m
    """
    result = calibrate_scenarios(request, TerminalReporter(console))
    return Output(result, partial(_show, result, Console()), result.exit_code)


def _show(result: CalibrateResult, console: Console) -> None:
    if result.calibrations:
        print_table(_table(result.calibrations), console)
        console.print(Text(_LEGEND))
    console.print_line(f"Records: {result.run.file}")


def _table(calibrations: Sequence[Calibration]) -> Table:
    """One row for each number of launches that a scenario's profiles can use."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("scenario, its baseline", overflow="fold")
    for heading in ("pairs", "spread", "launches", "noise floor", "false alarms", "detects"):
        table.add_column(heading, justify="right", no_wrap=True)
    for calibration in calibrations:
        for index, noise in enumerate(calibration.noise):
            table.add_row(*_row(calibration, noise, is_first=index == 0))
    return table


def _row(calibration: Calibration, noise: Noise, *, is_first: bool) -> tuple[str, ...]:
    scenario = (
        f"{calibration.scenario}, {calibration.cell}",
        str(calibration.blocks),
        percent(calibration.launch_spread_ratio),
    )
    return (
        *(scenario if is_first else ("", "", "")),
        str(noise.launches),
        f"±{percent(noise.floor_ratio)}",
        percent(noise.false_alarm_rate),
        "–" if noise.detectable_ratio is None else percent(noise.detectable_ratio),
    )
