"""Specifies when the load generator limited a launch of a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.scenario.traffic import Shape
from corebound.serving.checks import MOST_CPU_SHARE, MOST_IDLE_SHARE, bottleneck_evidence
from support.build import a_traffic, an_answered

MS = 1_000_000


@given(share=st.floats(0, 1), cpus=st.integers(1, 64))
def test_it_is_one_as_soon_as_its_one_thread_is_busy_however_many_cpus_it_has(
    share: float, cpus: int
) -> None:
    answered = an_answered(cpu_ns=round(share * 1e9), wall_ns=1_000_000_000)

    said = bottleneck_evidence(answered, a_traffic(), cpus)

    assert bool(said) == (round(share * 1e9) > MOST_CPU_SHARE * 1e9)


def test_it_is_told_with_its_figure_and_the_limit() -> None:
    (said,) = bottleneck_evidence(an_answered(cpu_ns=930, wall_ns=1_000), a_traffic(), 2)

    assert said == (
        "the load generator, which has 2 CPUs but one thread, used 93 % of a CPU (more than 80 %)"
    )


@given(late_ms=st.integers(0, 200), took_ms=st.integers(1, 1_000))
def test_in_an_open_loop_it_is_late_beyond_a_tenth_of_a_usual_latency(
    late_ms: int, took_ms: int
) -> None:
    answered = an_answered(
        latencies_ns=(took_ms * MS,) * 100, lateness_ns=(0,) * 90 + (late_ms * MS,) * 10
    )

    said = bottleneck_evidence(answered, a_traffic(shape="poisson"), 1)

    # Histograms are good to a thousandth: no figure that close to the limit is judged here.
    if late_ms > 0.11 * took_ms and late_ms >= 1:
        assert said
    if late_ms < 0.09 * took_ms or late_ms == 0:
        assert not said


@given(idle_share=st.floats(0, 1), connections=st.integers(1, 100))
def test_in_a_closed_loop_it_leaves_connections_idle_beyond_a_tenth_of_the_time(
    idle_share: float, connections: int
) -> None:
    # 100 requests over so many connections in a second: each has so long a turn.
    turn_ns = connections * 1e9 / 100
    answered = an_answered(
        duration_ns=1_000_000_000,
        connections=connections,
        lateness_ns=(round(idle_share * turn_ns),) * 100,
    )

    said = bottleneck_evidence(answered, a_traffic(concurrency=connections), 1)

    if abs(idle_share - MOST_IDLE_SHARE) > 0.01:
        assert bool(said) == (idle_share > MOST_IDLE_SHARE)


def test_errors_of_ab_are_held_against_it_as_it_averages_them_in() -> None:
    answered = an_answered(errors={"status": 3}, lateness=None)

    (said,) = bottleneck_evidence(answered, a_traffic(client="ab"), 1)

    assert said.startswith("3 of 100")


@pytest.mark.parametrize("shape", ["closed", "constant"])
def test_errors_of_our_own_client_are_kept_apart_and_no_fault(shape: Shape) -> None:
    assert bottleneck_evidence(an_answered(errors={"reset": 3}), a_traffic(shape=shape), 1) == ()


@pytest.mark.parametrize("shape", ["closed", "constant"])
def test_a_launch_without_one_good_answer_has_nothing_to_be_late_for(shape: Shape) -> None:
    answered = an_answered(latencies_ns=(), errors={"refused": 100})

    assert bottleneck_evidence(answered, a_traffic(shape=shape), 1) == ()


@pytest.mark.parametrize(("bound_ms", "is_late"), [(20.0, True), (50.0, False)])
def test_in_a_search_it_is_late_beyond_a_tenth_of_the_bound(bound_ms: float, is_late: bool) -> None:
    answered = an_answered(latencies_ns=(5 * MS,) * 100, lateness_ns=(0,) * 90 + (3 * MS,) * 10)

    said = bottleneck_evidence(answered, a_traffic(shape="rate-search", bound_ms=bound_ms), 1)

    assert bool(said) == is_late
