"""Requests on lanes: when each arrived, waited, was answered or failed."""

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from msgspec import Struct

from corebound.report.charts.cpu_time import INKS
from corebound.report.charts.svg import path, svg

# The last colour, so that few workers share it.
REQUEST_INK = INKS - 1
# Units of the drawing: about a pixel each, so that numbers are short. A lane has a gap above and
# below its requests while there is room for one.
_WIDTH, _LANE, _GAP, _MOST_WITH_GAPS = 1000, 10, 1, 40


class DrawnRequest(Struct, frozen=True, kw_only=True):
    """A request; its times are shares of the drawing's width.

    Attributes:
        begin, end: When it arrived, and when its answer was complete or the drawing ends.
        answered: When it began to be answered; it waited before.
        is_ok: Whether it did not fail.
    """

    begin: float
    answered: float
    end: float
    is_ok: bool = True


def first_come(requests: Iterable[tuple[int, int]], at_once: int) -> tuple[int, ...]:
    """When requests began to be answered, if each waits for one of so many at a time.

    Args:
        requests: (arrival, end) of each, in the order of their arrival.
        at_once: How many are answered at a time, first come, first served.

    >>> first_come([(0, 10), (0, 20), (5, 30)], 1)
    (0, 10, 20)
    """
    free = [0] * at_once
    heapify(free)
    starts = []
    for arrival, end in requests:
        free_at = heappop(free)
        starts.append(min(max(arrival, free_at), end))
        heappush(free, max(end, free_at))
    return tuple(starts)


def lanes_of(requests: Sequence[DrawnRequest]) -> tuple[int, ...]:
    """The lane of each request, in the order of their arrival: the first one that is free."""
    free, taken = list[int](), list[tuple[float, int]]()
    lanes = []
    for request in requests:
        while taken and taken[0][0] <= request.begin:
            heappush(free, heappop(taken)[1])
        lanes.append(heappop(free) if free else len(taken))
        heappush(taken, (request.end, lanes[-1]))
    return tuple(lanes)


def requests_svg(requests: Sequence[DrawnRequest], until: float, alt_text: str) -> str:
    """Draw requests that end by a time: the area of each is the time that it took."""
    lanes = lanes_of(requests)
    number = max(lanes, default=0) + 1
    gap = _GAP if number <= _MOST_WITH_GAPS else 0
    drawn: dict[str, list[tuple[int, int, str]]] = {
        kind: [] for kind in ("answered", "waits", "failed", "begins")
    }
    for lane, request in sorted(
        zip(lanes, requests, strict=True), key=lambda pair: (pair[0], pair[1].begin)
    ):
        begin, answered, end = (
            round(at * _WIDTH) for at in (request.begin, request.answered, request.end)
        )
        top, height = lane * _LANE + gap, _LANE - 2 * gap
        for kind, left, right in (
            ("waits", begin, answered),
            ("answered" if request.is_ok else "failed", answered, end),
        ):
            if right > left:
                wide = right - left
                drawn[kind].append((left, top, f"h{wide}v{height}h-{wide}z"))
        drawn["begins"].append((begin, top, f"v{height}z"))
    high = number * _LANE
    end_at = round(until * _WIDTH)
    return svg(
        _WIDTH,
        high,
        alt_text,
        path("past", f"M{end_at} 0H{_WIDTH}V{high}H{end_at}z" if until < 1 else ""),
        path(f"h{REQUEST_INK}", _from_one_to_the_next(drawn["answered"])),
        path(f"wait h{REQUEST_INK}", _from_one_to_the_next(drawn["waits"])),
        path("stolen", _from_one_to_the_next(drawn["failed"])),
        path("core", _from_one_to_the_next(drawn["begins"])),
    )


def _from_one_to_the_next(shapes: Iterable[tuple[int, int, str]]) -> str:
    """Closed shapes, each with its place: steps between them compress better than places."""
    steps, x, y = list[str](), 0, 0
    for left, top, shape in shapes:
        steps.append(f"m{left - x} {top - y}{shape}")
        x, y = left, top
    return "".join(steps)
