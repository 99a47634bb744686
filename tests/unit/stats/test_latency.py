"""Specifies latency histograms and percentiles, and MLPerf's bounds with few queries."""

import contextlib
import math

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corebound.errors import InputError
from corebound.stats import latency
from corebound.stats.latency import bound_percentile, least_within
from support.examples import examples
from support.known import known

HOUR_NS = 3_600_000_000_000
durations = st.lists(st.integers(0, HOUR_NS), min_size=1, max_size=200)


def as_counted(value_ns: float) -> tuple[float, float]:
    """Least and most that a duration may come back as: to a µs, and to a thousandth."""
    return value_ns - 500, value_ns * 1.001 + 1_500


@given(durations)
def test_percentiles_and_mean_are_exact_to_a_thousandth_and_those_of_the_library(
    durations_ns: list[int],
) -> None:
    encoded = latency.encode(durations_ns)
    theirs = HdrHistogram.decode(encoded.encode())

    found = known(latency.percentiles(encoded))

    told = (found.p50_ns, found.p90_ns, found.p99_ns, found.p99_9_ns, found.max_ns)
    ordered = sorted(durations_ns)
    for share, value_ns in zip(latency.SHARES.values(), told, strict=True):
        # The rank that HdrHistogram takes: the nearest, and at least the first.
        least, most = as_counted(ordered[max(1, math.floor(share * len(ordered) + 0.5)) - 1])
        assert least <= value_ns <= most
        assert value_ns == theirs.get_value_at_percentile(share * 100) * 1000
    assert found.count == len(durations_ns)
    mean_ns = latency.mean_ns(encoded)
    assert mean_ns == theirs.get_mean_value() * 1e3
    assert mean_ns == pytest.approx(sum(ordered) / len(ordered), rel=0.001, abs=500)


# The library takes a while for each.
@examples(10)
@given(durations)
def test_a_curve_rises_to_the_longest_duration_by_the_steps_of_the_library(
    durations_ns: list[int],
) -> None:
    encoded = latency.encode(durations_ns)
    steps = HdrHistogram.decode(encoded.encode()).get_percentile_iterator(latency.POINTS_A_HALVING)

    points = [(point.share, point.latency_ns) for point in latency.curve(encoded)]

    assert points == [
        (step.percentile_level_iterated_to / 100, step.value_iterated_to * 1000) for step in steps
    ]
    assert points == sorted(set(points))
    least, most = as_counted(max(durations_ns))
    assert points[-1][0] == 1.0
    assert least <= points[-1][1] <= most


def test_ten_thousand_durations_distinguish_neighbouring_percentiles() -> None:
    # Of 1 ms, 2 ms and so on to 10 s, 99.9 % take no more than 9,990 ms; 99.5 % would be 9,950.
    found = known(latency.percentiles(latency.encode([ms * 1_000_000 for ms in range(1, 10_001)])))

    in_ms = (found.p50_ns, found.p90_ns, found.p99_ns, found.p99_9_ns, found.max_ns)
    assert [one / 1e6 for one in in_ms] == pytest.approx(
        [5_000, 9_000, 9_900, 9_990, 10_000], rel=0.001
    )


@given(st.lists(durations, max_size=5))
def test_merged_histograms_are_the_histogram_of_all(parts: list[list[int]]) -> None:
    merged = latency.merge([latency.encode(part) for part in parts])

    together = [value for part in parts for value in part]
    assert latency.percentiles(merged) == latency.percentiles(latency.encode(together))


def test_no_durations_have_no_values_more_than_an_hour_is_an_hour_and_less_than_0_an_error() -> (
    None
):
    nothing = latency.encode([])
    found = known(latency.percentiles(latency.encode([2 * HOUR_NS])))

    assert latency.percentiles(nothing) is None
    assert latency.mean_ns(nothing) is None
    assert latency.curve(nothing) == ()
    assert latency.throughput_per_s(0, 0) is None
    assert found.max_ns == pytest.approx(HOUR_NS, rel=0.001)
    with pytest.raises(ValueError, match="negative"):
        latency.encode([1, -1])


@pytest.mark.parametrize("text", ["", "x", "AAAA", "HISTFAAAACx4nJNp", "é"])
def test_a_text_that_is_no_histogram_is_rejected_with_a_fix(text: str) -> None:
    with pytest.raises(InputError, match="not an HDR histogram"):
        latency.percentiles(text)


@given(durations, st.data())
def test_a_damaged_histogram_is_read_or_rejected(
    durations_ns: list[int], data: st.DataObject
) -> None:
    text = latency.encode(durations_ns)
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.characters()) + text[at + 1 :]

    with contextlib.suppress(InputError):
        latency.percentiles(damaged)


# "Processed at least 64 queries", "Processed at least 662 queries": summaries of MLPerf's
# loadgen for a 90th and a 99th percentile (single stream and multi-stream).
@pytest.mark.parametrize(("share", "queries"), [(0.9, 64), (0.99, 662)])
def test_an_estimate_needs_as_many_queries_as_in_mlperf(share: float, queries: int) -> None:
    assert least_within(1, share=share) + 1 == queries
    assert bound_percentile(range(queries - 1), share=share).value is None
    assert bound_percentile(range(queries), share=share).value is not None


# "Processed 300 queries. Would need to run at least 159 more queries", and 21 with 438:
# server runs with none over the bound.
@pytest.mark.parametrize(("processed", "more"), [(300, 159), (21, 438)])
def test_a_run_below_the_bound_lacks_as_many_queries_as_in_mlperf(
    processed: int, more: int
) -> None:
    assert least_within(0, share=0.99) - processed == more


# "Processed at least ... queries (2048). Would discard 172 highest latency queries", and so
# on: published summaries of seven submissions.
@pytest.mark.parametrize(
    ("queries", "share", "discarded"),
    [
        (2_048, 0.9, 172),
        (2_116, 0.9, 178),
        (2_145, 0.9, 181),
        (7_469, 0.9, 685),
        (4_776_846, 0.9, 476_158),
        (1_179_125, 0.99, 11_539),
        (2_091_550, 0.99, 20_579),
    ],
)
def test_as_many_queries_are_discarded_as_in_mlperf(
    queries: int, share: float, discarded: int
) -> None:
    found = bound_percentile(range(queries), share=share)

    assert found.discarded == discarded
    assert found.value == queries - 1 - discarded


@given(over=st.integers(0, 200), share=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_number_of_queries_is_the_least_with_a_small_binomial_tail(
    over: int, share: float
) -> None:
    least = least_within(over, share=share)

    def chance(within: int) -> float:
        return float(stats.binom.cdf(over, within + over, 1 - share))

    assert chance(least) <= 0.01
    assert least == 1 or chance(least - 1) > 0.01


@given(st.permutations(range(70)))
def test_the_order_of_the_latencies_does_not_matter(latencies: list[int]) -> None:
    assert bound_percentile(latencies, share=0.9) == bound_percentile(range(70), share=0.9)
    # Unanswered queries count as the slowest.
    assert bound_percentile([1.0] * 63 + [math.inf], share=0.9).value == math.inf


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_a_share_lies_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="shares"):
        least_within(1, share=share)
