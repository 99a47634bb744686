"""Points as columns are the points that they are of."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from build import a_point, a_series
from corebound.model.points import Point, Points
from corebound.store import series_lines

FIGURES = st.floats(min_value=1e-300, allow_nan=False, allow_infinity=False)
CIRCUMSTANCES = st.sampled_from([(), (("kernel", "6.1"),), (("kernel", "6.2"), ("CPUs", "a"))])


def _in_order(ends: tuple[float, float]) -> tuple[float, float]:
    return min(ends), max(ends)


@st.composite
def points(draw: st.DrawFn) -> Point:
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
        circumstances=draw(CIRCUMSTANCES),
    )


SEVERAL = st.lists(points(), max_size=6).map(tuple)


@given(told=SEVERAL, at=st.integers(-7, 6), cut=st.slices(6))
def test_they_are_a_sequence_of_points(told: tuple[Point, ...], at: int, cut: slice) -> None:
    columns = Points.of(told)

    assert len(columns) == len(told)
    assert tuple(columns) == told
    assert tuple(columns[cut]) == told[cut]
    if -len(told) <= at < len(told):
        assert columns[at] == told[at]
    else:
        with pytest.raises(IndexError):
            columns[at]


@given(one=SEVERAL, other=SEVERAL)
def test_others_go_behind_them(one: tuple[Point, ...], other: tuple[Point, ...]) -> None:
    assert Points.of(one).followed_by(Points.of(other)) == Points.of(one + other)


@given(told=SEVERAL.filter(bool), data=st.data())
def test_some_can_be_taken_in_any_order(told: tuple[Point, ...], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(told) - 1)))

    assert Points.of(told).taken(places) == Points.of(told[at] for at in places)


@given(one=SEVERAL, other=SEVERAL)
def test_they_are_equal_where_their_points_are(
    one: tuple[Point, ...], other: tuple[Point, ...]
) -> None:
    assert (Points.of(one) == Points.of(other)) == (one == other)
    assert hash(Points.of(one)) == hash(Points.of(one))


@given(told=SEVERAL)
def test_a_border_is_where_circumstances_change(told: tuple[Point, ...]) -> None:
    columns = Points.of(told)

    assert columns.borders == tuple(
        at for at in range(1, len(told)) if told[at].circumstances != told[at - 1].circumstances
    )


@given(told=SEVERAL)
def test_measured_are_the_figures_that_there_are(told: tuple[Point, ...]) -> None:
    figures = tuple(point.figure for point in told if point.figure is not None)

    assert Points.of(told).measured == figures


@given(several=st.lists(SEVERAL.filter(bool), max_size=4))
def test_they_come_back_from_a_file_as_they_were(several: list[tuple[Point, ...]]) -> None:
    series = tuple(
        a_series([], cell=f"cell={number}", points=Points.of(told))
        for number, told in enumerate(several)
    )

    assert series_lines.decode(series_lines.encode(series)) == series


def test_series_of_one_file_share_what_they_have_in_common() -> None:
    kept = series_lines.encode([a_series([1.0, 2.0]), a_series([3.0, 4.0], cell="other")])

    one, other = series_lines.decode(kept)

    assert one.points.moments is other.points.moments
    assert one.points.circumstances is other.points.circumstances


def test_columns_that_differ_in_length_are_no_points() -> None:
    whole = Points.of([a_point(1.0), a_point(2.0, day=1)])

    with pytest.raises(ValueError, match="equally long"):
        Points(moments=whole.moments, figures=array("d", [1.0]), circumstances=whole.circumstances)
    with pytest.raises(ValueError, match="two ends"):
        Points(
            moments=whole.moments,
            figures=whole.figures,
            circumstances=whole.circumstances,
            lows=whole.figures,
        )
