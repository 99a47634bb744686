"""Find the smallest difference that this host can detect, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from typing import ClassVar

from msgspec.structs import asdict

from corebound.api.arguments import Budget
from corebound.api.reporter import CallReporter
from corebound.api.results import Results, of_files
from corebound.present.shown import Shown
from corebound.records.calibration import Calibration
from corebound.records.jsonl import RECORDS
from corebound.scenario.models import ProfileName
from corebound.workflow.calibrate import CalibrateRequest, CalibrateResult, calibrate_scenarios
from corebound.workflow.options import request_of


class Calibrations(Shown, CalibrateResult, frozen=True, kw_only=True):
    """The noise of each scenario's baseline on this host.

    Attributes:
        calibrations: One for each scenario with enough launches. The `noise` of each has, for a
            number of launches, `floor_ratio` (0.02 is ±2 %), `false_alarm_rate` and
            `detectable_ratio`.
        results: All launches, of both copies of each baseline.
    """

    shown: ClassVar = ("scenario", "cell", "noise")

    results: Results

    def __len__(self) -> int:
        """The number of calibrated scenarios."""
        return len(self.calibrations)

    def __iter__(self) -> Iterator[Calibration]:
        """Every calibration."""
        return iter(self.calibrations)


def calibrate(
    *files: str | PathLike[str],
    profile: ProfileName | None = None,
    budget_s: Budget | None = None,
    seed: int | None = None,
    records: str | PathLike[str] = RECORDS,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Calibrations:
    """Measure the baseline of each scenario against itself, as `corebound calibrate` does.

    Args:
        files: Scenario files, or folders of them.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        budget_s: End after this many seconds; None is no limit.
        seed: The seed of the order; None picks one.
        records: The folder of records, where the calibrations are kept.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        CoreboundError: The environments or the host do not allow the run.
    """
    result = calibrate_scenarios(request_of(CalibrateRequest, locals()), CallReporter(notify))
    return Calibrations(**asdict(result), results=of_files([result.run.file]))
