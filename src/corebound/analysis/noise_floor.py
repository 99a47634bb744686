"""The noise floor for a verdict: the smallest difference that this host can detect."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.records.calibration import Calibration, Noise
from corebound.records.run_record import Run, ScenarioSource
from corebound.stats.noise_floor import lock_digest
from corebound.units import percent


def calibration_for(
    calibrations: Iterable[Calibration], run: Run, source: ScenarioSource
) -> Calibration | None:
    """The latest calibration that applies to a run's results of a scenario.

    Host, scenario and profile must be the same, and so must the packages of the calibrated cell's
    environment. Any other calibration measured different noise.
    """
    alike = [
        one
        for one in calibrations
        if one.host == run.host.id
        and one.sha256 == source.sha256
        and one.scenario == source.document.get("name")
        and one.profile == run.profile
        and one.lock == lock_digest(run.environments, one.environment)
    ]
    return max(alike, key=lambda one: (one.at, one.run), default=None)


def noise_at(calibration: Calibration, launches: int) -> Noise:
    """The noise for a number of launches.

    It is taken from the nearest calibrated count that is not larger, else the smallest.
    """
    fewer = [one for one in calibration.noise if one.launches <= launches]
    return max(fewer, key=lambda one: one.launches) if fewer else calibration.noise[0]


def noise_words(calibration: Calibration | None, *, launches: int) -> str:
    """The noise floor in a sentence; empty if it is unknown.

    Args:
        calibration: The calibration that applies to the results.
        launches: The number of launches per cell behind the verdict.
    """
    if calibration is None:
        return ""
    known = noise_at(calibration, launches)
    sees = (
        "no slowdown up to tenfold is found"
        if known.detectable_ratio is None
        else f"a slowdown of {percent(known.detectable_ratio)} is found nine times in ten"
    )
    return (
        f"Noise floor ±{percent(known.floor_ratio)} with {known.launches} launches of each,"
        f" measured {calibration.at[:10]} by comparing the baseline with itself: {sees}."
    )


def floors(calibrations: Iterable[Calibration], run: Run, *, launches: int) -> tuple[str, ...]:
    """The noise floor of each calibrated scenario of a run: `resnet50: Noise …`.

    Args:
        calibrations: All calibrations.
        run: The run.
        launches: The least number of launches per cell behind a comparison with it.
    """
    every = tuple(calibrations)
    found = ((source, calibration_for(every, run, source)) for source in run.scenarios)
    return tuple(
        f"{source.document['name']}: {noise_words(one, launches=launches)}"
        for source, one in found
        if one is not None
    )
