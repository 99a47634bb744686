"""The area of a picture of requests is the time that they took, waited and were answered."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corebound.report.charts.requests import (
    REQUEST_INK,
    DrawnRequest,
    first_come,
    lanes_of,
    requests_svg,
)
from support.markup import parse_xml

_BLOCK = re.compile(r"h(\d+)v\d+h-\1z")


def area(svg: str, kind: str) -> float:
    """The area of one kind, in lanes over the whole width."""
    _, _, wide, _ = map(float, parse_xml(svg).attrib["viewBox"].split())
    return sum(
        float(width) / wide
        for drawn in parse_xml(svg).findall("path")
        if drawn.get("class") == kind
        for width in _BLOCK.findall(drawn.get("d") or "")
    )


@st.composite
def in_flight(draw: st.DrawFn) -> tuple[DrawnRequest, ...]:
    noise = random.Random(draw(st.integers(0, 2**32)))  # no secret
    number = draw(st.sampled_from([1, 10, 200]))
    times = sorted(sorted(noise.random() for _ in range(3)) for _ in range(number))
    return tuple(
        DrawnRequest(begin=begin, answered=answered, end=end, is_ok=noise.random() < 0.9)
        for begin, answered, end in times
    )


@settings(max_examples=30)
@given(in_flight())
def test_the_area_of_requests_is_their_time(requests: tuple[DrawnRequest, ...]) -> None:
    drawn = requests_svg(requests, 1.0, "requests")

    waited = sum(one.answered - one.begin for one in requests)
    answered = sum(one.end - one.answered for one in requests if one.is_ok)
    failed = sum(one.end - one.answered for one in requests if not one.is_ok)
    assert area(drawn, f"wait h{REQUEST_INK}") == pytest.approx(waited, abs=0.03)
    assert area(drawn, f"h{REQUEST_INK}") == pytest.approx(answered, abs=0.03)
    assert area(drawn, "stolen") == pytest.approx(failed, abs=0.03)


@settings(max_examples=30)
@given(in_flight())
def test_no_two_requests_overlap_on_a_lane_and_there_are_no_more_lanes_than_needed(
    requests: tuple[DrawnRequest, ...],
) -> None:
    lanes = lanes_of(requests)

    by_lane: dict[int, float] = {}
    for request, lane in zip(requests, lanes, strict=True):
        assert by_lane.get(lane, 0.0) <= request.begin
        by_lane[lane] = request.end
    most = max(
        sum(one.begin <= request.begin < one.end for one in requests) for request in requests
    )
    assert len(by_lane) == most


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 100)), min_size=1, max_size=50),
    st.integers(1, 8),
)
def test_no_more_requests_are_answered_at_a_time_than_there_are_workers(
    requests: list[tuple[int, int]], workers: int
) -> None:
    times = sorted((arrival, arrival + took) for arrival, took in requests)

    starts = first_come(times, workers)

    for start, (arrival, end) in zip(starts, times, strict=True):
        assert arrival <= start <= end
        at_once = sum(
            other <= start < other_end for other, (_, other_end) in zip(starts, times, strict=True)
        )
        assert at_once <= workers or start == end
