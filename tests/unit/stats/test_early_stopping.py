"""MLPerf's early stopping, against what MLPerf's own load generator has printed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from corebound.stats.latency import bound_percentile, least_within


# "Processed at least 64 queries", "Processed at least 662 queries": summaries of MLPerf's
# loadgen for a 90th and a 99th percentile (single stream and multi-stream).
@pytest.mark.parametrize(("share", "queries"), [(0.9, 64), (0.99, 662)])
def test_an_estimate_takes_as_many_queries_as_mlperf_says(share: float, queries: int) -> None:
    assert least_within(1, share=share) + 1 == queries
    assert bound_percentile(range(queries - 1), share=share).value is None
    assert bound_percentile(range(queries), share=share).value is not None


# "Processed 300 queries. Would need to run at least 159 more queries", and 21 with 438:
# server runs with none over the bound.
@pytest.mark.parametrize(("processed", "more"), [(300, 159), (21, 438)])
def test_a_run_with_none_over_the_bound_lacks_as_many_as_mlperf_says(
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
def test_as_many_queries_are_discarded_as_mlperf_discards(
    queries: int, share: float, discarded: int
) -> None:
    found = bound_percentile(range(queries), share=share)

    assert found.discarded == discarded
    assert found.value == queries - 1 - discarded


@given(over=st.integers(0, 200), share=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_it_is_the_least_number_whose_binomial_tail_is_thin_enough(over: int, share: float) -> None:
    least = least_within(over, share=share)

    def chance(within: int) -> float:
        return float(stats.binom.cdf(over, within + over, 1 - share))

    assert chance(least) <= 0.01
    assert least == 1 or chance(least - 1) > 0.01


@given(st.permutations(range(70)))
def test_the_order_of_the_latencies_does_not_matter(latencies: list[int]) -> None:
    assert bound_percentile(latencies, share=0.9) == bound_percentile(range(70), share=0.9)


def test_queries_that_were_never_answered_are_the_worst() -> None:
    assert bound_percentile([1.0] * 63 + [math.inf], share=0.9).value == math.inf


@pytest.mark.parametrize("share", [0.0, 1.0, 1.5])
def test_a_share_lies_between_0_and_1(share: float) -> None:
    with pytest.raises(ValueError, match="shares"):
        least_within(1, share=share)
