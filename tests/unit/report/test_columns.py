"""The scripts with points hold every point of a history, to ten digits, in little space."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.history import HistoryPoint, HistoryPoints, Moment, Series
from corebound.records.run_record import Commit
from corebound.report.history.columns import SharedMoments, points_document, script
from support.build import a_point, a_series
from support.columns import stored

NUMBERS = st.floats(min_value=5e-324, max_value=1.7e308)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def points(draw: st.DrawFn) -> HistoryPoint:
    """A point with any number, moment, environment and reason."""
    value = draw(st.none() | NUMBERS)
    low = draw(st.none() | NUMBERS)
    sha = draw(st.text("0123456789abcdef", min_size=40, max_size=40))
    commit = Commit(sha=sha, subject="", committed_at="", dirty=False)
    return replace(
        a_point(day=draw(st.integers(0, 4000))),
        run=draw(st.none() | TEXTS.filter(bool)),
        commit=draw(st.sampled_from([None, commit])),
        value=value,
        bounds=None if low is None else (low, draw(NUMBERS)),
        missing=None if value is not None else draw(TEXTS.filter(bool)),
        environment_key=draw(st.tuples(st.tuples(TEXTS, TEXTS))),
    )


@st.composite
def histories(draw: st.DrawFn) -> Series:
    """A series with any name and any points."""
    return replace(
        a_series([1.0]),
        project=draw(TEXTS),
        host=draw(TEXTS),
        scenario=draw(TEXTS),
        cell=draw(TEXTS),
        unit=draw(TEXTS),
        points=HistoryPoints.of(draw(st.lists(points(), min_size=1, max_size=12))),
    )


def is_close(number: float | None, original: float | None, within: float) -> bool:
    """Whether a number is another one, to ten digits or as close as this."""
    if number is None or original is None:
        return number is original
    return math.isclose(number, original, rel_tol=5.001e-10, abs_tol=within)


@given(st.lists(histories(), min_size=1, max_size=4, unique_by=lambda series: series.id))
def test_every_point_is_as_it_was(all_series: list[Series]) -> None:
    read = stored(*all_series)

    for series, one in zip(all_series, read, strict=True):
        original = [*series.points]
        assert (one.project, one.scenario, one.host, one.cell, one.unit) == (
            series.project, series.scenario, series.host, series.cell, series.unit,
        )  # fmt: skip
        assert one.at == [point.at for point in original]
        assert one.run == [point.run for point in original]
        assert one.commit == [point.commit and point.commit.sha for point in original]
        assert one.environment == [point.environment_key for point in original]
        assert one.missing == [point.missing for point in original]
        ends = [point.bounds or (None, None) for point in original]
        # Ten digits of the smallest value: half of the last one is at most 5e-10 of it.
        within = 5.001e-10 * min((point.value for point in original if point.value), default=0)
        for numbers, originals, allowed in (
            (one.value, [point.value for point in original], 0.0),
            (one.low, [low for low, _ in ends], within),
            (one.high, [high for _, high in ends], within),
        ):
            assert all(map(is_close, numbers, originals, itertools.repeat(allowed)))


@given(st.lists(st.integers(10**9, 10**10 - 1), min_size=1, max_size=6), st.integers(-250, 250))
def test_numbers_of_ten_digits_are_exact(digits: list[int], exponent: int) -> None:
    values = [float(f"{number}e{exponent}") for number in digits]

    (one,) = stored(a_series(values))

    assert one.value == values


@given(st.lists(st.integers(1, 2**53 - 1), min_size=1, max_size=6))
def test_whole_numbers_are_exact(values: list[int]) -> None:
    (one,) = stored(a_series([float(value) for value in values]))

    assert one.value == values


def test_ends_of_five_digits_are_exact() -> None:
    point = replace(a_point(), value=1.23456789, bounds=(1.2099, 1.2592))

    (one,) = stored(replace(a_series([1.0]), points=HistoryPoints.of([point])))

    assert (one.value, one.low, one.high) == ([1.23456789], [1.2099], [1.2592])


def test_an_infinite_end_is_missing() -> None:
    point = replace(a_point(), value=2.0, bounds=(1.0, math.inf))

    (one,) = stored(replace(a_series([1.0]), points=HistoryPoints.of([point])))

    assert (one.value, one.low, one.high) == ([2.0], [1.0], [None])


def test_minutes_are_those_since_1970_or_unknown() -> None:
    moments = ["1970-01-02T00:01:00Z", "some day"]
    series = replace(
        a_series([1.0]), points=HistoryPoints.of(replace(a_point(), at=at) for at in moments)
    )

    (one,) = stored(series)

    assert one.minutes == [24 * 60 + 1, None]


def test_a_pause_is_where_a_result_is_overdue() -> None:
    days = [0, 1, 2, 3, 6, 7, 8, 9]
    series = replace(
        a_series([1.0]), points=HistoryPoints.of(a_point(1.0, day=day) for day in days)
    )

    (one,) = stored(series)

    assert one.pauses == [4]


def test_series_of_different_runs_share_the_moments_of_both() -> None:
    early = replace(a_series([1.0]), cell="n=1")
    late = replace(
        a_series([1.0]),
        cell="n=2",
        points=HistoryPoints.of(a_point(2.0, day=day) for day in (1, 4)),
    )

    moments = SharedMoments((late, early)).document()
    read = stored(late, early)

    assert moments["run"] == ["run0", "run1", "run4"]
    assert [one.run for one in read] == [["run1", "run4"], ["run0"]]


def measured(nights: int, seed: int) -> Series:
    """Values with all digits of a double, and intervals of five digits, as asv stores them."""
    noise = random.Random(seed)
    values = [noise.lognormvariate(14, 0.02) for _ in range(nights)]
    bounded = [
        replace(
            a_point(value, day=day),
            bounds=(float(f"{value * 0.98:.4e}"), float(f"{value * 1.02:.4e}")),
            commit=Commit(
                sha=f"{noise.getrandbits(160):040x}", subject="", committed_at="", dirty=False
            ),
        )
        for day, value in enumerate(values)
    ]
    return replace(a_series([1.0]), cell=f"n={seed}", points=HistoryPoints.of(bounded))


@pytest.fixture(scope="module")
def wide() -> list[Series]:
    """Forty series that share 350 moments."""
    first, *others = (measured(350, seed) for seed in range(40))
    return [
        first,
        *(
            replace(other, points=_with_moments(other.points, first.points.moments))
            for other in others
        ),
    ]


def _with_moments(points: HistoryPoints, moments: Sequence[Moment]) -> HistoryPoints:
    return HistoryPoints(
        moments=moments,
        values=points.values,
        environment_keys=points.environment_keys,
        lows=points.lows,
        highs=points.highs,
    )


def test_a_point_with_its_interval_takes_9_bytes(wide: list[Series]) -> None:
    shared = SharedMoments(wide)

    text = script(points_document(wide, shared, moments_file="p.moments.js"))

    assert len(text) < 9 * 40 * 350


def test_a_moment_takes_50_bytes_whatever_the_number_of_series(wide: list[Series]) -> None:
    assert len(script(SharedMoments(wide).document())) < 50 * 350
