"""Specifies shifts that several alternating environments show only together."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from support.known import known
from support.series import Observation, find_change_points

PROCESSORS = 5


def by_turns(
    nights: int,
    level: Callable[[int], float] = lambda _: 1.0,
    *,
    processors: int = PROCESSORS,
    noise: float = 0.01,
    seed: int = 1,
) -> list[Observation]:
    """Nights that each processor has in turn, a fifth slower than the one before it."""
    rng = np.random.default_rng(seed)
    return [
        Observation(
            figure=level(night)
            * 1.2 ** (night % processors)
            * math.exp(noise * rng.standard_normal()),
            key=str(night % processors),
        )
        for night in range(nights)
    ]


def test_a_step_that_no_environment_shows_alone_is_found_in_all() -> None:
    nights = by_turns(58, lambda night: 1.1 if night >= 50 else 1.0)
    assert not any(find_change_points(nights[which::PROCESSORS]) for which in range(PROCESSORS))

    (step,) = find_change_points(nights)

    assert (step.last_good, step.at, step.first_bad) == (49, 50, 50)
    assert (step.direction, step.status) == ("up", "new")
    assert known(step.interval).contains(1.1)
    # The level is that of one of them.
    assert min(abs(step.before / 1.2**which - 1) for which in range(PROCESSORS)) < 0.01


def test_alternating_environments_without_a_step_have_none() -> None:
    assert all(find_change_points(by_turns(60, seed=seed)) == () for seed in range(10))


def test_bimodal_values_with_a_changing_mix_of_environments_are_no_step() -> None:
    """By medians each processor's level lies in one of the two kinds: seed 23 alarms."""
    for seed in range(20, 26):
        rng = np.random.default_rng((6, seed))
        share = np.array([0.6, 0.1, 0.1, 0.1, 0.1])
        first, then = (rng.choice(PROCESSORS, 100, p=np.roll(share, by)) for by in (0, 1))
        which = np.where(np.arange(100) < 70, first, then)
        logs = rng.normal(0, 0.01, 100) + math.log(1.06) * rng.integers(0, 2, 100) + 0.2 * which
        nights = [
            Observation(figure=math.exp(log), key=str(key))
            for log, key in zip(logs, which, strict=True)
        ]
        assert find_change_points(nights) == ()


def test_a_step_in_one_environment_is_not_attributed_to_all() -> None:
    nights = by_turns(
        60, lambda night: 1.2 if night >= 50 and not night % PROCESSORS else 1.0, noise=0.005
    )

    assert find_change_points(nights) == ()


def test_a_long_step_in_one_environment_has_its_own_size() -> None:
    nights = by_turns(
        150, lambda night: 1.2 if night >= 75 and not night % PROCESSORS else 1.0, noise=0.005
    )

    (step,) = find_change_points(nights)

    assert (step.last_good, step.first_bad) == (70, 75)
    assert step.ratio == pytest.approx(1.2, abs=0.01)
    assert step.before == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("late", [4, 6])
def test_a_recent_recovery_is_detected(late: int) -> None:
    nights = by_turns(90 + late, lambda night: 1.1 if 40 <= night < 90 else 1.0, noise=0.005)

    up, down = find_change_points(nights)

    assert (up.direction, up.status) == ("up", "recovered")
    assert (down.at, down.direction, down.status) == (90, "down", "new")
    assert (known(up.recovery).last_good, known(up.recovery).first_bad) == (89, 90)


def test_all_environments_together_narrow_the_location_of_a_step() -> None:
    nights = by_turns(80, lambda night: 1.1 if night >= 50 else 1.0)
    alone = [
        (step.last_good, step.first_bad)
        for which in range(PROCESSORS)
        for step in find_change_points(nights[which::PROCESSORS])
    ]

    (step,) = find_change_points(nights)

    assert alone  # in its own nights, each of which is every fifth
    assert (step.last_good, step.at, step.first_bad) == (49, 50, 50)


def test_environments_that_occur_once_are_analysed_separately() -> None:
    kernels = [*by_turns(40, processors=1), *by_turns(25, processors=1, seed=2)]
    moved = [
        Observation(figure=(night.figure or 1) * (1.3 if at >= 40 else 1), key=str(at >= 40))
        for at, night in enumerate(kernels)
    ]

    assert find_change_points(moved) == ()


def test_missing_values_are_skipped() -> None:
    nights = by_turns(58, lambda night: 1.1 if night >= 48 else 1.0)
    for missing in (20, 49, 55):
        nights[missing] = Observation(figure=None, key=nights[missing].key)

    (step,) = find_change_points(nights)

    assert (step.last_good, step.first_bad) == (47, 48)


def test_levels_at_the_ends_of_a_float_s_range_are_steps() -> None:
    low, high = 5e-324, 1e308

    up, down = find_change_points(
        by_turns(72, lambda night: high if 40 <= night < 56 else low, processors=2, noise=0.0)
    )

    assert (up.at, up.before, up.direction) == (40, low, "up")
    assert (down.at, down.direction) == (56, "down")
    assert down.before == pytest.approx(high, rel=0.3)
