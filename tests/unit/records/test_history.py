"""A history's points as columns equal the points they were made from."""

from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records import history_files
from corebound.records.history import HistoryPoint, HistoryPoints, UnreadPoints
from support.build import a_point, a_series
from support.series import anchored_nights

FIGURES = st.floats(min_value=1e-300, allow_nan=False, allow_infinity=False)
CIRCUMSTANCES = st.sampled_from([(), (("kernel", "6.1"),), (("kernel", "6.2"), ("CPUs", "a"))])


def _in_order(ends: tuple[float, float]) -> tuple[float, float]:
    return min(ends), max(ends)


@st.composite
def points(draw: st.DrawFn) -> HistoryPoint:
    """One that may lack whatever a point may lack."""
    figure = draw(st.none() | FIGURES)
    whole = a_point(figure, day=draw(st.integers(0, 99)))
    return replace(
        whole,
        run=draw(st.none() | st.just(whole.run)),
        commit=draw(st.none() | st.just(whole.commit)),
        bounds=draw(st.none() | st.tuples(FIGURES, FIGURES | st.just(float("inf"))).map(_in_order)),
        launches=tuple(draw(st.lists(FIGURES, max_size=2))),
        missing=draw(st.none() | st.just("it failed")),
        environment_key=draw(CIRCUMSTANCES),
    )


SEVERAL = st.lists(points(), max_size=6).map(tuple)


@given(points=SEVERAL, at=st.integers(-7, 6), cut=st.slices(6))
def test_columns_are_a_sequence_of_points(
    points: tuple[HistoryPoint, ...], at: int, cut: slice
) -> None:
    columns = HistoryPoints.of(points)

    assert len(columns) == len(points)
    assert tuple(columns) == points
    assert tuple(columns[cut]) == points[cut]
    if -len(points) <= at < len(points):
        assert columns[at] == points[at]
    else:
        with pytest.raises(IndexError):
            columns[at]


@given(one=SEVERAL, other=SEVERAL)
def test_columns_are_concatenated(
    one: tuple[HistoryPoint, ...], other: tuple[HistoryPoint, ...]
) -> None:
    assert HistoryPoints.of(one).followed_by(HistoryPoints.of(other)) == HistoryPoints.of(
        one + other
    )


@given(points=SEVERAL.filter(bool), data=st.data())
def test_points_are_selected_in_any_order(
    points: tuple[HistoryPoint, ...], data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(0, len(points) - 1)))

    assert HistoryPoints.of(points).select(places) == HistoryPoints.of(points[at] for at in places)


@given(one=SEVERAL, other=SEVERAL)
def test_equal_points_have_equal_columns(
    one: tuple[HistoryPoint, ...], other: tuple[HistoryPoint, ...]
) -> None:
    assert (HistoryPoints.of(one) == HistoryPoints.of(other)) == (one == other)
    assert hash(HistoryPoints.of(one)) == hash(HistoryPoints.of(one))


@given(points=SEVERAL)
def test_environment_changes_are_found(points: tuple[HistoryPoint, ...]) -> None:
    columns = HistoryPoints.of(points)

    assert columns.environment_changes == tuple(
        at
        for at in range(1, len(points))
        if points[at].environment_key != points[at - 1].environment_key
    )


@given(several=st.lists(SEVERAL.filter(bool), max_size=4))
def test_points_survive_a_round_trip(several: list[tuple[HistoryPoint, ...]]) -> None:
    series = tuple(
        a_series([], cell=f"cell={number}", points=HistoryPoints.of(points))
        for number, points in enumerate(several)
    )

    assert history_files.decode(history_files.encode(series)) == series


def test_the_points_of_a_stored_history_stay_in_its_file_even_if_that_is_replaced(
    tmp_path: Path,
) -> None:
    stored = tuple(a_series([1e6 + cell, 2e6], project="p", cell=f"cell={cell}") for cell in (0, 1))
    history_files.keep("p", stored, tmp_path)
    series, _ = history_files.read_all(tmp_path)
    history_files.keep("p", (a_series([1e6], project="p"),), tmp_path)

    assert all(isinstance(each.points, UnreadPoints) for each in series)
    assert series == stored


def test_columns_of_different_lengths_are_rejected() -> None:
    whole = HistoryPoints.of([a_point(1.0), a_point(2.0, day=1)])

    with pytest.raises(ValueError, match="equally long"):
        HistoryPoints(
            moments=whole.moments, values=array("d", [1.0]), environment_keys=whole.environment_keys
        )
    with pytest.raises(ValueError, match="two ends"):
        HistoryPoints(
            moments=whole.moments,
            values=whole.values,
            environment_keys=whole.environment_keys,
            lows=whole.values,
        )


def test_another_cpu_model_breaks_no_line_of_ratios_to_an_anchor() -> None:
    points = anchored_nights({}).points

    assert points.environment_changes
    assert points.breaks == ()


def test_another_environment_breaks_the_line_of_any_history() -> None:
    keys = ["6.1", "6.1", "6.2"]
    points = HistoryPoints.of(
        a_point(day=day, environment_key=(("kernel", kernel),)) for day, kernel in enumerate(keys)
    )

    assert points.breaks == points.environment_changes == (2,)
