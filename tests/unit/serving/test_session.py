"""Specifies how a launch of a server is judged."""

import pytest
from msgspec.structs import replace

from corebound.records.launch_record import Served
from corebound.scenario.traffic import HighestRate
from corebound.serving.session import why_dropped
from support.build import a_served, a_traffic, an_answered
from support.known import known


def a_search_result(
    *,
    within_per_s: float | None,
    over_per_s: float | None,
    least_per_s: float | None,
    latencies_ns: tuple[int, ...] = (20_000_000,) * 100,
) -> Served:
    """A search for the highest rate of a server that answers 100 requests per second."""
    search = HighestRate(
        within_per_s=within_per_s, over_per_s=over_per_s, trials=(), capacity_per_s=100.0
    )
    return replace(
        a_served(answered=an_answered(search=search, latencies_ns=latencies_ns)),
        traffic=a_traffic(shape="rate-search", bound_ms=50.0, least_per_s=least_per_s),
    )


def test_a_server_that_cannot_reach_the_least_rate_is_dropped() -> None:
    reason = known(
        why_dropped(a_search_result(within_per_s=None, over_per_s=25.0, least_per_s=42.0))
    )

    assert "25" in reason
    assert "42" in reason


@pytest.mark.parametrize("least_per_s", [None, 42.0])
def test_a_server_whose_rate_may_still_be_the_least_one_is_not_dropped(
    least_per_s: float | None,
) -> None:
    served = a_search_result(within_per_s=40.0, over_per_s=50.0, least_per_s=least_per_s)

    assert why_dropped(served) is None


def test_a_server_that_answers_nothing_is_not_merely_too_slow() -> None:
    served = a_search_result(within_per_s=None, over_per_s=25.0, least_per_s=42.0, latencies_ns=())

    assert why_dropped(served) is None
