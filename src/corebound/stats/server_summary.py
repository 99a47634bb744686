"""Summarise a server cell: throughput, tail latency and CPU time per request."""

import statistics
from collections.abc import Iterable, Sequence

from msgspec import Struct

from corebound.records.launch_record import Launch, Served
from corebound.scenario.traffic import OPEN_SHAPES, Shape
from corebound.stats import latency
from corebound.stats.interference import is_mostly_disturbed, select_undisturbed
from corebound.stats.intervals import Interval, typical_launch_interval, typical_launch_value

# Judged by a latency. The other traffic shapes are judged by throughput.
BY_TAIL: tuple[Shape, ...] = (*OPEN_SHAPES, "multi-stream")
BY_P90: tuple[Shape, ...] = ("single-stream",)

# One request in a thousand takes longer than p99.9. With fewer requests, possibly none does.
LEAST_FOR_P99_9 = 1_000


class TypicalValue(Struct, frozen=True, kw_only=True):
    """A cell's result: that of a typical launch, with its 95 % interval.

    `interval` is None with fewer than two launches.
    """

    value: float
    interval: Interval | None


class StreamedCell(Struct, frozen=True, kw_only=True):
    """The tokens of one cell's `ok` launches.

    Attributes:
        tokens_per_s: Generated tokens per second, of all texts together.
        first_token_p50_ns, first_token_p99_ns: Time to the first token of an answer.
        per_token_p50_ns, per_token_p99_ns: Mean time from one token of an answer to the next; None
            if every answer has one token.
        good_per_s: Answers per second that are within all bounds (goodput), over all launches;
            None without bounds.
        good_share: Their share of successful answers; None without bounds.
    """

    tokens_per_s: TypicalValue
    first_token_p50_ns: TypicalValue
    first_token_p99_ns: TypicalValue
    per_token_p50_ns: TypicalValue | None
    per_token_p99_ns: TypicalValue | None
    good_per_s: float | None
    good_share: float | None


class ServedCell(Struct, frozen=True, kw_only=True):
    """The summary of one cell's `ok` launches.

    Attributes:
        per_s: Requests answered per second; for `rate-search`, the highest rate within the bound.
        p50_ns, p90_ns, p99_ns: Latencies.
        p99_9_ns: Latency over all requests of all launches; None below 1,000 requests.
        cpu_ns: The server's CPU time per request.
        errors: Requests without a valid response, over all launches.
        requests: Requests sent, over all launches.
        curve: Latency by percentile, over all launches.
        streamed: The tokens, if the answers are streams.
    """

    launches: int
    per_s: TypicalValue
    p50_ns: TypicalValue
    p90_ns: TypicalValue
    p99_ns: TypicalValue
    p99_9_ns: int | None
    cpu_ns: TypicalValue
    errors: int
    requests: int
    curve: tuple[latency.PercentilePoint, ...]
    streamed: StreamedCell | None = None


def judged_value_ns(served: Served) -> float:
    """The value that a launch is judged by; less is better.

    For saturating traffic (`closed`, `offline`) it is the time per successful request, which is
    the inverse of throughput. Otherwise it is a latency, as in MLPerf's rules: the 90th
    percentile for `single-stream`, the 99th for the other shapes. For `rate-search` it is the
    time between two requests at the highest rate within the bound.

    Raises:
        ValueError: No request was successful.
    """
    answered = served.answered
    if answered.search is not None and answered.search.within_per_s is not None:
        return 1e9 / answered.search.within_per_s
    latencies = latency.percentiles(answered.latencies)
    if not answered.ok or latencies is None:
        raise ValueError("a launch without a successful request has no value")
    if served.traffic.shape in BY_TAIL:
        return float(latencies.p99_ns)
    if served.traffic.shape in BY_P90:
        return float(latencies.p90_ns)
    return answered.duration_ns / answered.ok


def answered_per_s(launches: Iterable[Launch]) -> TypicalValue | None:
    """Requests answered per second, as in `ServedCell`; None if no launch is `ok`."""
    served_launches = _served_launches(launches)
    return _typical([*map(_per_s, served_launches)]) if served_launches else None


def summarise_served(launches: Iterable[Launch]) -> ServedCell | None:
    """Summarise the launches of one cell; None if none is `ok`."""
    served_launches = _served_launches(launches)
    if not served_launches:
        return None
    each = [latency.percentiles(served.answered.latencies) for served in served_launches]
    by_launch = [latencies for latencies in each if latencies is not None]
    merged = latency.merge([served.answered.latencies for served in served_launches])
    all_latencies = latency.percentiles(merged)
    if all_latencies is None:
        return None
    errors = sum(sum(served.answered.errors.values()) for served in served_launches)
    return ServedCell(
        launches=len(served_launches),
        per_s=_typical([*map(_per_s, served_launches)]),
        p50_ns=_typical([latencies.p50_ns for latencies in by_launch]),
        p90_ns=_typical([latencies.p90_ns for latencies in by_launch]),
        p99_ns=_typical([latencies.p99_ns for latencies in by_launch]),
        p99_9_ns=p99_9_ns(all_latencies),
        cpu_ns=_typical([max(each.cpu_ns, 1) / each.answered.ok for each in served_launches]),
        errors=errors,
        requests=errors + sum(served.answered.ok for served in served_launches),
        curve=latency.curve(merged),
        streamed=_streamed(served_launches),
    )


def _streamed(launches: Sequence[Served]) -> StreamedCell | None:
    """The summary of streams; None if the answers are none."""
    traffic = launches[0].traffic.streaming
    streams = [
        (_per_s(served), served.answered.streamed, first)
        for served in launches
        if served.answered.streamed is not None
        and (first := latency.percentiles(served.answered.streamed.first_token)) is not None
    ]
    if traffic is None or not streams:
        return None
    per_token = [
        times
        for _, streamed, _ in streams
        if (times := latency.percentiles(streamed.per_token)) is not None
    ]
    bounded = (traffic.first_token_bound_ms, traffic.per_token_bound_ms) != (None, None)
    # Of `rate-search`, the tokens and the rate are those at the highest rate within the bound.
    answers = sum(first.count for _, _, first in streams)
    good = sum(streamed.good for _, streamed, _ in streams)
    good_per_s = statistics.fmean(
        per_s * streamed.good / first.count for per_s, streamed, first in streams
    )
    return StreamedCell(
        tokens_per_s=_typical(
            [per_s * streamed.tokens / first.count for per_s, streamed, first in streams]
        ),
        first_token_p50_ns=_typical([first.p50_ns for _, _, first in streams]),
        first_token_p99_ns=_typical([first.p99_ns for _, _, first in streams]),
        per_token_p50_ns=_typical([times.p50_ns for times in per_token]) if per_token else None,
        per_token_p99_ns=_typical([times.p99_ns for times in per_token]) if per_token else None,
        good_per_s=good_per_s if bounded else None,
        good_share=good / answers if bounded else None,
    )


def p99_9_ns(latencies: latency.Percentiles) -> int | None:
    """The latency that 999 of 1,000 requests do not exceed; None with fewer requests."""
    return latencies.p99_9_ns if latencies.count >= LEAST_FOR_P99_9 else None


def _served_launches(launches: Iterable[Launch]) -> list[Served]:
    launches_ok = [
        launch for launch in launches if launch.status == "ok" and launch.served is not None
    ]
    counted = select_undisturbed(launches_ok, is_mostly_disturbed, within_run=True)
    served = [launch.served for launch in counted]
    return [launch for launch in served if launch is not None and launch.answered.ok]


def _per_s(served: Served) -> float:
    search = served.answered.search
    if search is not None and search.within_per_s is not None:
        return search.within_per_s
    return latency.throughput_per_s(served.answered.ok, served.answered.duration_ns) or 0.0


def _typical(values: Sequence[float]) -> TypicalValue:
    return TypicalValue(
        value=typical_launch_value(values), interval=typical_launch_interval(values)
    )
