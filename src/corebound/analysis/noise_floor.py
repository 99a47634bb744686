"""The noise floor for a verdict: the smallest difference that this host can detect."""

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
    applicable = [
        calibration
        for calibration in calibrations
        if calibration.host == run.host.id
        and calibration.sha256 == source.sha256
        and calibration.scenario == source.document.get("name")
        and calibration.profile == run.profile
        and calibration.lock == lock_digest(run.environments, calibration.environment)
    ]
    return max(applicable, key=lambda calibration: (calibration.at, calibration.run), default=None)


def noise_at(calibration: Calibration, launches: int) -> Noise:
    """The noise for a number of launches.

    It is taken from the nearest calibrated count that is not larger, else the smallest.
    """
    not_larger = [noise for noise in calibration.noise if noise.launches <= launches]
    return max(not_larger, key=lambda noise: noise.launches) if not_larger else calibration.noise[0]


def noise_floor_note(calibration: Calibration | None, *, launches: int) -> str:
    """The noise floor in a sentence; empty if it is unknown.

    Args:
        calibration: The calibration that applies to the results.
        launches: The number of launches per cell behind the verdict.
    """
    if calibration is None:
        return ""
    noise = noise_at(calibration, launches)
    sees = (
        "no slowdown up to 10× is detected"
        if noise.detectable_ratio is None
        else f"a slowdown of {percent(noise.detectable_ratio)} is detected in 9 of 10 comparisons"
    )
    return (
        f"Noise floor ±{percent(noise.floor_ratio)} with {noise.launches} launches of each,"
        f" measured {calibration.at[:10]} by comparing the baseline with itself: {sees}."
    )


def noise_floor_notes(
    calibrations: Iterable[Calibration], run: Run, *, launches: int
) -> tuple[str, ...]:
    """The noise floor of each calibrated scenario of a run: `resnet50: Noise …`.

    Args:
        launches: The least number of launches per cell behind a comparison with it.
    """
    all_calibrations = tuple(calibrations)
    by_source = (
        (source, calibration_for(all_calibrations, run, source)) for source in run.scenarios
    )
    return tuple(
        f"{source.document['name']}: {noise_floor_note(calibration, launches=launches)}"
        for source, calibration in by_source
        if calibration is not None
    )
