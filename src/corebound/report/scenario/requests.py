"""The first requests of a server's launch: how many were in flight, and which of them waited."""

from typing import Literal

from msgspec import Struct

from corebound.analysis.launch_facts import LaunchFact
from corebound.analysis.wording import count
from corebound.records.launch_record import Launch
from corebound.report.charts.axis import Tick
from corebound.report.charts.requests import (
    REQUEST_INK,
    DrawnRequest,
    first_come,
    lanes_of,
    requests_svg,
)
from corebound.units import duration, significant

_LANE_PX, _LEAST_PX, _MOST_PX = 10, 28, 200


class RequestsInFlight(Struct, frozen=True, kw_only=True):
    """Requests of one launch.

    Attributes:
        window_ms: From the arrival of the first to that of the last, or to the end of all if they
            are all that were sent; in milliseconds since the start of monitoring.
        drawn: Each with times as shares of that window, in the order of arrival.
        waits_for: What a request waits for before it is answered; None if it is unknown.
    """

    window_ms: tuple[int, int]
    drawn: tuple[DrawnRequest, ...]
    waits_for: Literal["a free worker", "its first token"] | None

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """(class of its colour, meaning) of each colour."""
        answered = (f"h{REQUEST_INK}", "request")
        waits = (f"wait h{REQUEST_INK}", f"request that waits for {self.waits_for}")
        failed = ("stolen", "failed request")
        has_failed = any(not span.is_ok for span in self.drawn)
        return (answered, *([waits] if self.waits_for else []), *([failed] if has_failed else []))

    @property
    def facts(self) -> tuple[LaunchFact, ...]:
        """How many were in flight and waited, on average."""
        in_flight = sum(span.end - span.begin for span in self.drawn)
        waiting = sum(span.answered - span.begin for span in self.drawn)
        facts = [LaunchFact(significant(in_flight), "requests in flight, on average")]
        if self.waits_for:
            says = f"of them waiting for {self.waits_for}"
            facts.append(LaunchFact(significant(waiting), says))
        return tuple(facts)

    @property
    def done(self) -> str:
        """How many there are in which time."""
        begin, end = self.window_ms
        return f"the first {count(len(self.drawn), 'request')} in {duration((end - begin) * 1e6)}"

    def above(self, name: str, until: float) -> tuple[str, int, tuple[Tick, ...]]:
        """The drawing, which ends at a share of its width; its height; the labels of its rows."""
        scaled = [
            DrawnRequest(
                begin=span.begin * until,
                answered=span.answered * until,
                end=span.end * until,
                is_ok=span.is_ok,
            )
            for span in self.drawn
        ]
        facts = "".join(f", {fact.value} {fact.says}" for fact in self.facts)
        text = f"Requests by time, {name}: {self.done}{facts}"
        height_px = max(_LEAST_PX, min(_MOST_PX, (max(lanes_of(scaled)) + 1) * _LANE_PX))
        return requests_svg(scaled, until, text), height_px, (Tick(at=50, text="requests"),)


def requests_in_flight(launch: Launch) -> RequestsInFlight | None:
    """The sampled requests of a launch; None without any, and in older records."""
    served = launch.served
    if served is None or served.began_us is None or not served.answered.sampled:
        return None
    sampled, answered = served.answered.sampled, served.answered
    first_us = sampled[0].arrived_us
    is_all = len(sampled) == answered.ok + sum(answered.errors.values())
    end_us = max(request.ended_us for request in sampled) if is_all else sampled[-1].arrived_us
    if end_us - first_us < 1000:
        return None
    times = [(request.arrived_us, request.ended_us) for request in sampled]
    waits_for: Literal["a free worker", "its first token"] | None = None
    starts: tuple[int, ...] = tuple(arrived for arrived, _ in times)
    if served.traffic.streaming is not None:
        waits_for = "its first token"
        starts = tuple(request.first_token_us or request.ended_us for request in sampled)
    elif launch.cell.runtime.server is not None:
        # A worker of these servers answers one request at a time.
        waits_for, starts = "a free worker", first_come(times, max(1, len(launch.workers)))

    def share(at_us: int) -> float:
        return min(at_us - first_us, end_us - first_us) / (end_us - first_us)

    begin_us = served.began_us + first_us
    return RequestsInFlight(
        window_ms=(begin_us // 1000, (begin_us + end_us - first_us) // 1000),
        drawn=tuple(
            DrawnRequest(
                begin=share(request.arrived_us),
                answered=share(start),
                end=share(request.ended_us),
                is_ok=request.is_ok,
            )
            for request, start in zip(sampled, starts, strict=True)
        ),
        waits_for=waits_for,
    )
