"""Histories of ratios to an anchor: all machines are one series, and a change on one is its own."""

import math
import random

import pytest
from msgspec.structs import replace

from corebound.records.history import ANCHOR_UNIT, ANCHORED, MACHINE_KEY, HistoryPoints, Series
from corebound.stats.history.anchored import chained
from corebound.stats.history.regressions import Analysis, analyse, arrays_of
from support.build import a_point, a_series
from support.known import known
from support.series import EPYC, XEON, anchored_nights

BOTH = {EPYC: 1.03, XEON: 1.03}


def told(series: Series) -> list[tuple[int, tuple[str, ...]]]:
    return [(change.change_point.at, change.only_on) for change in of(series).changes]


def of(series: Series) -> Analysis:
    return analyse([series])


@pytest.mark.parametrize(
    ("series", "changes"),
    [
        (anchored_nights(BOTH), [(20, ())]),
        # Machines whose ratios differ are no change, and do not hide one.
        (anchored_nights({}, levels={EPYC: 1.05}), []),
        (anchored_nights(BOTH, levels={EPYC: 1.05}), [(20, ())]),
        # Nor do imprecise nights before it.
        (anchored_nights(BOTH, at=38, noisy=(5, 11, 17, 26)), [(38, ())]),
    ],
)
def test_a_change_on_all_machines_is_one_change_of_all_of_them(
    series: Series, changes: list[tuple[int, tuple[str, ...]]]
) -> None:
    assert told(series) == changes


def test_a_change_on_one_machine_is_told_of_it_alone_with_its_own_size() -> None:
    (change,) = of(anchored_nights({XEON: 1.06})).changes

    assert change.only_on == (XEON,)
    assert 1.05 < change.change_point.ratio < 1.07


def test_two_precise_nights_on_different_machines_are_enough_for_a_change() -> None:
    series = anchored_nights(BOTH, at=38)

    assert series.points.environment_keys[-1] != series.points.environment_keys[-2]
    assert told(series) == [(38, ())]


def test_an_imprecise_night_among_two_precise_ones_does_not_hide_a_change() -> None:
    series = anchored_nights(BOTH, at=37, noisy=(38,))

    (change,) = of(series).changes
    assert change.change_point.last_good < 37 <= change.change_point.first_bad


def test_one_precise_night_beside_an_imprecise_one_is_no_change() -> None:
    series = anchored_nights(BOTH, at=38, noisy=(39,))

    assert (told(series), of(series).early_warnings) == ([], ())


def test_a_level_is_that_of_its_precise_nights() -> None:
    series = anchored_nights(BOTH, noisy=tuple(range(22, 40, 2)))

    (change,) = of(series).changes

    interval = known(change.change_point.interval)
    assert interval.contains(1.03)
    assert interval.high - interval.low < 0.01


def test_one_night_that_is_far_off_is_no_change() -> None:
    points = list(anchored_nights({}).points)
    for at in (38, 39):
        far = replace(points[at], value=1.06, bounds=(1.055, 1.065))
        nights = [*points[:at], far, *points[at + 1 :]]
        series = a_series([], host=ANCHORED, unit=ANCHOR_UNIT, points=HistoryPoints.of(nights))

        assert (told(series), of(series).early_warnings) == ([], ())


def test_nights_far_off_that_happen_now_and_then_are_no_change_even_in_a_row() -> None:
    points = [
        replace(point, value=1.06, bounds=(1.055, 1.065))
        if at in (7, 14, 20, 31, 38, 39)
        else point
        for at, point in enumerate(anchored_nights({}).points)
    ]
    series = a_series([], host=ANCHORED, unit=ANCHOR_UNIT, points=HistoryPoints.of(points))

    assert (told(series), of(series).early_warnings) == ([], ())


def test_an_imprecise_night_raises_no_warning() -> None:
    assert of(anchored_nights({}, noisy=(38, 39))).early_warnings == ()


def test_ratios_that_never_vary_have_changes_too() -> None:
    points = [
        replace(point, value=1.0 if at < 30 else 1.05, bounds=None)
        for at, point in enumerate(anchored_nights({}).points)
    ]
    series = a_series([], host=ANCHORED, unit=ANCHOR_UNIT, points=HistoryPoints.of(points))

    assert told(series) == [(30, ())]


def moved(overlap: int, *, change: float = 1.0) -> Series:
    """Nights relative to `a1`, then to `b2`, which is 20 % slower; some of both."""
    rng = random.Random(5)
    points = []
    for day in range(40):
        log = rng.gauss(0, 0.003) + (math.log(change) if day >= 34 else 0.0)
        for anchor, level in (("a1", 0.0), ("b2", math.log(1 / 1.2))):
            if day < 20 + overlap if anchor == "a1" else day >= 20:
                value = math.exp(log + level + rng.gauss(0, 0.002))
                points.append(
                    a_point(
                        value,
                        day=day,
                        bounds=(value * 0.996, value * 1.004),
                        environment_key=(("anchor", anchor), (MACHINE_KEY, EPYC)),
                    )
                )
    series = a_series([], host=ANCHORED, unit=ANCHOR_UNIT, points=HistoryPoints.of(points))
    return chained(series, arrays_of(series))


def test_nights_with_both_anchors_join_their_histories() -> None:
    series = moved(4)

    assert len(series.points) == 40
    assert all(abs(value * 1.2 - 1) < 0.02 for value in series.points.values)
    assert dict(series.points.environment_keys[0])["anchor"].startswith("b2 through a1 ±")
    assert told(series) == []


def test_without_such_nights_a_new_anchor_begins_anew() -> None:
    series = moved(0)

    assert len(series.points) == 40
    assert {dict(key)["anchor"] for key in series.points.environment_keys} == {"a1", "b2"}
    assert told(series) == []


def test_an_anchor_that_gets_a_tag_later_begins_no_segment() -> None:
    series = anchored_nights({})
    named = [
        tuple((name, "v1 (a1)" if name == "anchor" else which) for name, which in key)
        for key in series.points.environment_keys[20:]
    ]
    keys = [*series.points.environment_keys[:20], *named]
    series = replace(series, points=series.points.with_environment_keys(keys))

    series = chained(series, arrays_of(series))

    assert {dict(key)["anchor"] for key in series.points.environment_keys} == {"v1 (a1)"}


def test_a_change_after_a_move_is_found_in_the_joined_history() -> None:
    assert [at for at, _ in told(moved(4, change=1.04))] == [34]
