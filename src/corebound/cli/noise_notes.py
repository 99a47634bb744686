"""The noise floor to print beside a comparison's verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.noise_floor import floors
from corebound.records import documents
from corebound.records.run_record import EnvironmentLock, Run, ScenarioSource
from corebound.scenario.cell import PROJECT, is_project


def beside(
    records: Path,
    run: Run,
    plain: Iterable[ScenarioSource],
    *,
    launches: int,
    own_margin: bool = True,
) -> tuple[str, ...]:
    """The noise floor of each calibrated scenario: `parsing: Noise floor …`.

    Empty without launches, because there are no verdicts then.

    Args:
        records: The folder of records.
        run: The run of the comparison.
        plain: Its scenarios without the two sides, which is the form that was calibrated.
        launches: The smallest number of launches of a side behind the verdicts.
        own_margin: Whether the verdicts use the same margin as the calibration.
    """
    if not launches:
        return ()
    as_calibrated = replace(
        run, scenarios=tuple(plain), environments=_plain_environments(run.environments)
    )
    kept, _ = documents.read_calibrations(records)
    told = floors(kept, as_calibrated, launches=launches)
    more = "" if own_margin else " That is by the scenario's own margin."
    return tuple(f"{one}{more}" for one in told)


def _plain_environments(locks: Sequence[EnvironmentLock]) -> tuple[EnvironmentLock, ...]:
    """Replace the names of commits' environments with the project's; the base's packages count."""
    return tuple(replace(one, name=PROJECT) if is_project(one.name) else one for one in locks)
