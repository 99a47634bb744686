"""Specifies the change points found in a history, their recovery and their error rates."""

import math
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from corebound.stats.history.change_point import ChangePoint
from corebound.stats.intervals import Interval
from support.examples import examples
from support.known import known
from support.series import Observation, find_change_points, history_arrays

Array = NDArray[np.float64]


def a_history(
    *levels: tuple[int, float], noise: float = 0.01, seed: int = 1, key: str = "host"
) -> list[Observation]:
    """So many nights at each level, in milliseconds, each with relative noise."""
    rng = np.random.default_rng(seed)
    return [
        Observation(figure=1e6 * level * math.exp(noise * rng.standard_normal()), key=key)
        for count, level in levels
        for _ in range(count)
    ]


def summaries(steps: tuple[ChangePoint, ...]) -> list[tuple[int, str, str]]:
    return [(step.at, step.direction, step.status) for step in steps]


def test_a_step_is_found_with_its_location_and_size() -> None:
    (step,) = find_change_points(a_history((60, 40.0), (20, 42.0)))
    (down,) = find_change_points(a_history((60, 42.0), (20, 40.0)))

    assert (step.at, step.direction, step.status) == (60, "up", "new")
    assert step.last_good < 60 <= step.first_bad
    assert step.ratio == pytest.approx(1.05, abs=0.01)
    assert known(step.interval).contains(1.05)
    assert not step.is_early
    assert step.p_value < 1e-6
    assert (down.at, down.direction) == (60, "down")
    assert down.ratio == pytest.approx(40 / 42, abs=0.01)


def with_outliers() -> list[Observation]:
    nights = a_history((80, 40.0))
    nights[40] = nights[-1] = Observation(figure=8e7, key="host")
    return nights


@pytest.mark.parametrize(
    "nights",
    [
        *(a_history((100, 40.0), seed=seed) for seed in range(5)),
        *([Observation(figure=7.0)] * n for n in (0, 1, 2, 5, 100)),
        with_outliers(),
        [*a_history((50, 40.0), key="6.1"), *a_history((50, 60.0), key="6.12", seed=2)],
    ],
    ids=[*["noise"] * 5, *["constant"] * 5, "two outliers", "another environment"],
)
def test_these_have_no_step(nights: list[Observation]) -> None:
    assert find_change_points(nights) == ()


def test_without_noise_a_step_is_located_exactly() -> None:
    (step,) = find_change_points(
        [Observation(figure=100.0)] * 50 + [Observation(figure=105.0)] * 10
    )

    assert (step.last_good, step.at, step.first_bad) == (49, 50, 50)
    assert step.ratio == pytest.approx(1.05)


def test_a_small_step_is_ignored_unless_the_threshold_is_lower() -> None:
    nights = a_history((50, 40.0), (50, 40.6), noise=0.002)

    assert find_change_points(nights) == ()
    assert [step.at for step in find_change_points(nights, threshold=0.01)] == [50]


@examples(15)
@given(
    dip=st.integers(10, 30),
    edge=st.sampled_from([-1, 0]),
    odd=st.one_of(st.floats(0.2, 0.95), st.floats(1.05, 5)),
    noise=st.sampled_from([0.001, 0.003, 0.01]),
    is_end=st.booleans(),
)
def test_an_odd_point_at_an_edge_of_a_level_hides_no_step(
    dip: int, edge: int, odd: float, noise: float, *, is_end: bool
) -> None:
    ends = 30, 30 + dip
    nights = a_history((30, 22.0), (dip, 1.0), (40, 22.0), noise=noise)
    at = ends[is_end] + edge
    nights[at] = Observation(figure=(nights[at].figure or 0.0) * odd)

    found = [step.at for step in find_change_points(nights)]

    assert len(found) == 2
    assert all(abs(at - end) <= 1 for at, end in zip(found, ends, strict=True))


@pytest.mark.parametrize(
    "levels",
    [
        ((2, 476.0), (4, 1.0), (61, 13.6)),
        ((61, 13.6), (4, 1.0), (2, 476.0)),
        ((3, 5.0), (3, 1.0), (50, 3.0)),
        ((40, 1.0), (3, 2.0), (4, 4.0), (40, 1.0)),
    ],
)
@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_short_levels_side_by_side_are_mostly_found(
    levels: tuple[tuple[int, float], ...], noise: float
) -> None:
    ends = np.cumsum([size for size, _ in levels])[:-1].tolist()
    found = [find_change_points(a_history(*levels, noise=noise, seed=seed)) for seed in range(6)]

    right = [
        len(steps) == len(ends)
        and all(abs(step.at - end) <= 1 for step, end in zip(steps, ends, strict=True))
        for steps in found
    ]
    assert sum(right) >= 4


def test_two_slow_points_are_a_step_unless_slow_points_are_common() -> None:
    quiet = a_history((80, 40.0), (2, 44.0))
    spiky = list(quiet)
    for index in range(5, 80, 15):
        spiky[index] = Observation(figure=4.4e7, key="host")

    assert summaries(find_change_points(quiet)) == [(80, "up", "new")]
    assert find_change_points(spiky) == ()


def test_a_reverted_step_has_recovered_at_the_return_of_the_level() -> None:
    up, down = find_change_points(a_history((50, 40.0), (10, 44.0), (20, 40.0)))

    assert summaries((up, down)) == [(50, "up", "recovered"), (60, "down", "new")]
    recovery = known(up.recovery)
    assert (recovery.last_good, recovery.at, recovery.first_bad) == (
        down.last_good, down.at, down.first_bad,
    )  # fmt: skip
    assert (recovery.steps, recovery.whole) == (1, True)
    assert recovery.left == pytest.approx(1.0, abs=0.01)
    assert down.recovery is None


def test_a_recovery_in_several_steps_names_the_last_and_the_remaining_ratio() -> None:
    partial, _ = find_change_points(a_history((40, 40.0), (20, 46.0), (20, 43.0)))
    first, *_ = find_change_points(a_history((40, 40.0), (20, 46.0), (20, 43.0), (20, 40.0)))

    some, recovery = known(partial.recovery), known(first.recovery)
    assert (partial.status, some.at, some.whole) == ("old", 60, False)
    assert some.left == pytest.approx(43 / 40, abs=0.01)
    assert (first.status, recovery.at) == ("recovered", 80)
    assert (recovery.steps, recovery.whole) == (2, True)


def test_a_recovery_beyond_the_old_level_is_whole() -> None:
    """Two steps up, and one that takes both back: of the second it is more than all."""
    first, second, _ = find_change_points(a_history((40, 40.0), (20, 42.0), (20, 44.1), (20, 40.0)))

    assert first.recovery is not None
    assert second.recovery is not None
    assert first.recovery.at == second.recovery.at == 80
    assert first.recovery.left == pytest.approx(1.0, abs=0.01)
    assert second.recovery.left == pytest.approx(40 / 42, abs=0.01)
    assert (first.recovery.whole, second.recovery.whole) == (True, True)


def test_a_recovery_from_a_later_step_leaves_earlier_ones() -> None:
    """Up by a quarter, by a third more, and down by less than that third."""
    first, second, _ = find_change_points(a_history((40, 40.0), (20, 50.0), (20, 66.0), (20, 60.0)))

    assert first.recovery is None
    assert known(second.recovery).left == pytest.approx(60 / 50, abs=0.01)


def test_two_steps_in_the_same_direction_are_separate_and_no_recovery() -> None:
    steps = find_change_points(a_history((40, 40.0), (15, 42.0), (15, 44.1)))

    assert summaries(steps) == [(40, "up", "new"), (55, "up", "new")]
    assert steps[0].recovery is None


def test_in_alternating_environments_a_recovery_is_located_like_its_step() -> None:
    nights = a_history((60, 40.0), (30, 48.0), (30, 40.0), noise=0.005)
    mixed = [replace(night, key="ab"[at % 2]) for at, night in enumerate(nights)]

    up, down = find_change_points(mixed)

    assert (down.last_good, down.first_bad) == (89, 90)
    assert (known(up.recovery).last_good, known(up.recovery).first_bad) == (89, 90)


def test_a_step_long_ago_is_old() -> None:
    nights = a_history((60, 40.0), (20, 42.0))
    later = [*nights, *a_history((20, 42.0), seed=2)]

    assert summaries(find_change_points(nights)) == [(60, "up", "new")]
    assert summaries(find_change_points(later)) == [(60, "up", "old")]


def test_a_step_just_below_the_threshold_has_not_recovered() -> None:
    """Of the nights next to it, it matters; of all before and after, hardly."""
    (step,) = find_change_points(a_history((150, 40.3), (100, 40.0), (40, 40.85), noise=0.002))

    assert step.ratio < 1.02
    assert step.status == "old"
    assert step.before == pytest.approx(40.2e6, rel=0.002)


def test_a_step_without_overlap_is_significant_despite_correlation() -> None:
    rng = np.random.default_rng(7)
    logs: Array = np.zeros(400)
    for night in range(1, 400):
        logs[night] = 0.7 * logs[night - 1] + 0.003 * rng.standard_normal()
    logs[253:] += 0.25
    logs[281:] += math.log(1.13)
    logs[298:] -= 0.1

    _, step, _ = find_change_points([Observation(figure=math.exp(log)) for log in logs])

    assert step.at == 281
    assert step.p_value < 0.01


@pytest.mark.parametrize("kernels", ["ab", "aaaaaabbbbbb", "abc", "aaab"])
def test_alternating_environments_neither_hide_a_step_nor_are_one(kernels: str) -> None:
    """A machine in a cloud has now one processor, now another."""
    still, stepped = a_history((60, 40.0)), a_history((48, 40.0), (12, 48.0))
    slower = {kernel: 1 + 0.2 * place for place, kernel in enumerate(sorted(set(kernels)))}

    def mixed(nights: list[Observation]) -> list[Observation]:
        keys = [kernels[at % len(kernels)] for at in range(60)]
        return [
            Observation(figure=(night.figure or 0) * slower[key], key=key)
            for night, key in zip(nights, keys, strict=True)
        ]

    assert find_change_points(mixed(still)) == ()
    (step,) = find_change_points(mixed(stepped))
    assert step.last_good < 48 <= step.first_bad
    assert step.last_good < step.at <= step.first_bad
    assert step.ratio == pytest.approx(1.2, abs=0.03)


def test_distant_steps_in_two_environments_are_separate() -> None:
    first = a_history((20, 40.0), (30, 44.0), key="a")
    second = a_history((35, 60.0), (15, 66.0), key="b", seed=2)
    by_turns = [night for pair in zip(first, second, strict=True) for night in pair]

    assert [step.at for step in find_change_points(by_turns)] == [40, 71]


def test_a_step_after_an_environment_change_is_found() -> None:
    nights = [*a_history((30, 40.0), key="a"), *a_history((40, 60.0), (10, 64.0), key="b", seed=2)]

    assert [step.at for step in find_change_points(nights)] == [70]


def test_missing_values_are_skipped_and_widen_the_location() -> None:
    nights = a_history((50, 40.0), (30, 44.0), noise=0.002)
    for index in (20, 48, 49, 50, 60):
        nights[index] = Observation(figure=None if index % 2 else math.nan, key="host")

    (step,) = find_change_points(nights)

    assert (step.last_good, step.at, step.first_bad) == (47, 51, 51)


def with_intervals(nights: list[Observation], reach: Callable[[int], float]) -> list[Observation]:
    """Nights that say themselves how far off they may be, as a factor."""
    return [
        Observation(
            figure=night.figure,
            key=night.key,
            interval=Interval(
                low=night.figure / reach(at), high=night.figure * reach(at), confidence=0.95
            ),
        )
        for at, night in enumerate(nights)
        if night.figure is not None
    ]


def test_points_with_wide_intervals_are_no_step() -> None:
    nights = a_history((30, 40.0), (3, 42.0), noise=0.002)

    assert [step.at for step in find_change_points(nights)] == [30]
    assert [step.at for step in find_change_points(with_intervals(nights, lambda _: 1.004))] == [30]
    assert find_change_points(with_intervals(nights, lambda at: 1.3 if at >= 30 else 1.004)) == ()


def test_intervals_wider_than_the_noise_do_not_hide_a_step() -> None:
    """asv's interval of two samples is as wide as if nothing was known."""
    nights = a_history((48, 40.0), (12, 44.0), noise=0.02)

    (step,) = find_change_points(with_intervals(nights, lambda _: 1.38))

    assert step.at == 48
    assert known(step.interval).low > 1.05


def test_a_point_with_an_infinite_interval_is_skipped() -> None:
    nights = a_history((30, 40.0), (20, 42.0))
    nights[35] = Observation(
        figure=8e7, key="host", interval=Interval(low=0.0, high=math.inf, confidence=0.95)
    )

    assert [step.at for step in find_change_points(nights)] == [30]


def test_bimodal_values_neither_hide_a_step_nor_are_one() -> None:
    rng = np.random.default_rng(5)
    logs = rng.normal(0, 0.01, 100) + math.log(1.06) * rng.integers(0, 2, 100)

    assert find_change_points([Observation(figure=math.exp(log)) for log in logs]) == ()

    logs[50:] += math.log(1.05)
    (step,) = find_change_points([Observation(figure=math.exp(log)) for log in logs])
    assert abs(step.at - 50) <= 3


@pytest.mark.parametrize("at", [12, 88])
def test_a_step_near_an_end_is_found_in_bimodal_values(at: int) -> None:
    found = alarms = 0
    for seed in range(20):
        rng = np.random.default_rng((4, seed))
        logs: Array = rng.normal(0, 0.01, 100) + math.log(1.06) * rng.integers(0, 2, 100)
        alarms += bool(_places(logs))
        logs[at:] += math.log(1.05)
        found += any(abs(place - at) <= 3 for _, place, _ in _places(logs))

    # Of votes that means and ranks decide, 15 of these are found.
    assert found >= 18
    assert alarms == 0


def test_a_step_lies_within_its_reported_range() -> None:
    for seed in range(40):
        rng = np.random.default_rng((5, seed))
        logs: Array = rng.normal(0, 0.01, 100) + math.log(1.06) * rng.integers(0, 2, 100)
        logs[30:] += 0.05
        logs[60:] -= 0.04
        places = _places(logs)
        assert all(last_good < at <= first_bad for last_good, at, first_bad in places)
        assert [at for _, at, _ in places] == sorted({at for _, at, _ in places})


def test_values_and_thresholds_must_have_a_logarithm() -> None:
    with pytest.raises(ValueError, match="above 0"):
        find_change_points([Observation(figure=0.0)])
    with pytest.raises(ValueError, match="above 0"):
        find_change_points([Observation(figure=math.inf)])
    with pytest.raises(ValueError, match="threshold"):
        find_change_points([], threshold=0.0)


seeds = st.integers(0, 10_000)


def _stepped(seed: int) -> Array:
    """Logarithms of 60 nights with a clear step somewhere."""
    rng = np.random.default_rng(seed)
    logs: Array = rng.normal(0, 0.01, 60)
    logs[int(rng.integers(15, 46)) :] += 0.08
    return logs


def _places(logs: Array) -> list[tuple[int, int, int]]:
    steps = find_change_points([Observation(figure=math.exp(log)) for log in logs])
    return [(step.last_good, step.at, step.first_bad) for step in steps]


@examples(8)
@given(seed=seeds, unit=st.sampled_from([1e-9, 0.3, 1e6]))
def test_unit_direction_and_order_of_a_history_change_nothing_else(seed: int, unit: float) -> None:
    logs = _stepped(seed)

    forwards = _places(logs)

    n = logs.size
    assert _places(logs + math.log(unit)) == forwards
    assert _places(-logs) == forwards
    assert _places(logs[::-1]) == [(n - 1 - b, n - at, n - 1 - g) for g, at, b in forwards]


@examples(8)
@given(seed=seeds, missing=st.sets(st.integers(0, 59), max_size=20))
def test_missing_points_do_not_change_the_steps(seed: int, missing: set[int]) -> None:
    logs = _stepped(seed)
    nights = [
        Observation(figure=None if index in missing else math.exp(log))
        for index, log in enumerate(logs)
    ]
    kept = [index for index in range(60) if index not in missing]

    found = [step.at for step in find_change_points(nights)]

    assert found == [kept[at] for _, at, _ in _places(logs[kept])]


@pytest.mark.parametrize("kind", ["independent", "heavy tail", "AR(0.6)", "spikes"])
def test_nearly_all_steps_of_5_percent_are_found_with_few_false_alarms(kind: str) -> None:
    found = alarms = 0
    for seed in range(15):
        rng = np.random.default_rng((3, seed))
        logs: Array = rng.normal(0, 0.01, 100)
        if kind == "heavy tail":
            logs = 0.01 * rng.standard_t(3, 100)
        elif kind == "spikes":
            logs += 0.3 * (rng.random(100) < 0.05)
        elif kind == "AR(0.6)":
            for index in range(1, 100):
                logs[index] += 0.6 * logs[index - 1]
        alarms += bool(_places(logs))
        logs[50:] += math.log(1.05)
        found += any(abs(at - 50) <= 3 for _, at, _ in _places(logs))

    # docs/explanation/statistics/change-points.md: 12 of 15 and 2 alarms are far in the tails.
    assert found >= 12
    assert alarms <= 2


def test_an_interval_beyond_a_float_s_range_has_an_error() -> None:
    night = Observation(figure=1.0, interval=Interval(low=1e-200, high=1e200, confidence=0.95))

    (error,) = history_arrays([night]).errors
    assert error == pytest.approx(400 * math.log(10) / 2 / 1.96, rel=1e-3)


@examples(15)
@given(
    figures=st.lists(
        st.one_of(
            st.none(),
            st.floats(5e-324, sys.float_info.max),
            st.sampled_from([5e-324, 1e-300, 1.0, 1.01, 1.7e308]),
        ),
        max_size=40,
    ),
    runs=st.lists(st.integers(1, 15), min_size=40, max_size=40),
    keys=st.sampled_from(["a", "ab", "aab"]),
)
def test_any_values_have_steps_with_finite_levels(
    figures: list[float | None], runs: list[int], keys: str
) -> None:
    repeated = [one for one, times in zip(figures, runs, strict=False) for _ in range(times)]
    nights = [Observation(figure=one, key=keys[at % len(keys)]) for at, one in enumerate(repeated)]

    for step in find_change_points(nights):
        assert 0 < step.before < math.inf
        assert 0 < step.ratio < math.inf
        assert step.last_good < step.at <= step.first_bad
