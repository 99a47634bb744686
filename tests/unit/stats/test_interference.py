"""Specifies which iterations count as disturbed, and when a launch has too many of them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.launch_record import TimeSlice, Worker
from corebound.records.telemetry import (
    Cause,
    Disturbance,
    DisturbedIterations,
    HostOverTime,
    HostWindow,
)
from corebound.stats.interference import (
    busy_threads,
    causes,
    delay,
    disturbance,
    disturbed_ranges,
    is_too_much,
    refusal_of,
    undelayed_iteration_ns,
)
from support.build import a_host_over_time, a_launch, a_thread, a_window, a_worker
from support.known import known
from support.texts import in_order, numbers_in

MS = 1_000_000


def lost(window: HostWindow, cpus: int) -> dict[Cause, float]:
    """CPUs lost by cause."""
    return {cause: loss.cpus for cause, loss in causes(window, cpus).items()}


UNKNOWN = dict.fromkeys(("steal_ms", "foreign_ms", "waited_ms", "throttled_ms"))
# 192 threads on 16 CPUs beside the 0.4 % of each CPU that is always foreign.
CROWDED = {"foreign_ms": 32, "waited_ms": 88_000, "most_waited_ms": 480}


@pytest.mark.parametrize(
    ("window", "cpus", "expected"),
    [
        # A tenth of a CPU is 50 of 500 ms; the ticks' blur of 17 ms is below it.
        ({"foreign_ms": 50, "waited_ms": 50}, 1, {"foreign load": 0.1}),
        ({"foreign_ms": 49, "waited_ms": 49}, 1, {}),
        ({"steal_ms": 50}, 1, {"steal": 0.1}),
        ({"throttled_ms": 50}, 1, {"throttling": 0.1}),
        ({"suspended_ns": 50 * MS}, 1, {"suspension": 0.1}),
        ({"suspended_ns": 49 * MS}, 1, {}),
        ({}, 1, {}),
        (UNKNOWN, 2, {}),
        # 10 of 20 ms is half of a CPU, and one tick.
        ({"to_ms": 20, "steal_ms": 10, "foreign_ms": 10, "waited_ms": 10}, 1, {}),
        # The error of a sum grows with the root of its CPUs: 17 ms × √64 = 136 ms.
        ({"foreign_ms": 130, "waited_ms": 500, "most_waited_ms": 500}, 64, {}),
        ({"foreign_ms": 140, "waited_ms": 500, "most_waited_ms": 500}, 64, {"foreign load": 0.28}),
        # Threads that wait for one another are not disturbed.
        (CROWDED, 16, {}),
        (CROWDED | {"foreign_ms": 80}, 16, {}),
        # Load on idle CPUs of the launch, and what its threads wait for.
        ({"foreign_ms": 400, "waited_ms": 10}, 4, {}),
        ({"foreign_ms": 400, "waited_ms": 200}, 4, {"foreign load": 0.4}),
        # Three programs on each of two CPUs leave one thread a quarter of one.
        ({"foreign_ms": 875, "waited_ms": 375}, 2, {"foreign load": 0.75}),
        ({"foreign_ms": 875, "waited_ms": 50}, 2, {"foreign load": 0.1}),
        ({"foreign_ms": 875, "waited_ms": 49}, 2, {}),
        # Without waiting times, foreign load beyond idle time.
        ({"foreign_ms": 200, "waited_ms": None, "rested_ms": 0}, 1, {"foreign load": 0.4}),
        ({"foreign_ms": 200, "waited_ms": None, "rested_ms": 1500}, 4, {}),
    ],
)
def test_losing_a_tenth_of_a_cpu_that_is_in_use_is_a_disturbance(
    window: dict[str, Any], cpus: int, expected: dict[Cause, float]
) -> None:
    assert lost(a_window(**window), cpus) == expected


@pytest.mark.parametrize("cpus", [1, 2, 16, 64])
@pytest.mark.parametrize(
    "on_one",
    [
        {"foreign_ms": 200, "waited_ms": 200, "most_waited_ms": 190},
        {"steal_ms": 200, "most_stolen_ms": 190},
    ],
)
def test_a_program_or_guest_on_one_of_any_number_of_cpus_is_found(
    cpus: int, on_one: dict[str, int]
) -> None:
    # A pool waits for its slowest thread, however many there are.
    assert list(lost(a_window(**on_one), cpus).values()) == [0.4]


@pytest.mark.parametrize("cpus", [8, 16, 64, 256])
@given(share=st.floats(0, 0.024), most=st.floats(0, 0.09))
def test_what_a_host_always_takes_of_all_its_cpus_is_no_disturbance(
    cpus: int, share: float, most: float
) -> None:
    each_ms = int(500 * share * cpus)
    most_ms = min(each_ms, int(500 * most))

    assert not causes(a_window(steal_ms=each_ms, most_stolen_ms=most_ms), cpus)
    waits = a_window(foreign_ms=each_ms, waited_ms=each_ms, most_waited_ms=most_ms)
    assert not causes(waits, cpus)


@pytest.mark.parametrize("cpus", [1, 2, 16, 64, 256])
def test_a_twentieth_of_all_cpus_is_a_disturbance_but_not_of_the_idle_ones(cpus: int) -> None:
    steal_ms = max(50, 25 * cpus)

    assert lost(a_window(steal_ms=steal_ms, most_stolen_ms=25), cpus)
    # One busy CPU lost a tenth. It may have been on each of them for a while.
    assert lost(a_window(to_ms=5_000, steal_ms=500, rested_ms=5_000 * (cpus - 1)), cpus)


def test_iterations_in_a_disturbed_window_are_marked_except_the_first() -> None:
    # Ten of 100 ms after the first, which ran before the workers were told to go:
    # the window from 500 to 1000 ms holds those that end at 600 to 1000.
    host = a_host_over_time(a_window(), a_window(from_ms=500, to_ms=1000, steal_ms=250))
    worker = a_worker(wall_ns=(900 * MS, *[100 * MS] * 10))
    # One that alternated: two from 0, two from 400 and two from 800 ms.
    time_slices = tuple(TimeSlice(iterations=2, began_us=at_ms * 1000) for at_ms in (0, 400, 800))
    alternated = replace(a_worker(wall_ns=(MS, *[100 * MS] * 6)), time_slices=time_slices)

    assert disturbed_ranges(worker, host) == (DisturbedIterations(first=6, last=10, by=("steal",)),)
    assert disturbed_ranges(alternated, host) == (
        DisturbedIterations(first=4, last=6, by=("steal",)),
    )


def test_an_iteration_over_several_windows_has_the_causes_of_each() -> None:
    host = a_host_over_time(
        a_window(steal_ms=250), a_window(from_ms=500, to_ms=1000, throttled_ms=250)
    )

    assert disturbed_ranges(a_worker(wall_ns=(MS, 800 * MS, 200 * MS)), host) == (
        DisturbedIterations(first=1, last=1, by=("steal", "throttling")),
        DisturbedIterations(first=2, last=2, by=("throttling",)),
    )


@given(
    walls=st.lists(st.integers(1, 400 * MS), min_size=1, max_size=60),
    bad=st.lists(st.booleans(), min_size=1, max_size=12),
)
def test_marks_equal_a_check_of_every_iteration_and_window(
    walls: list[int], bad: list[bool]
) -> None:
    windows = [
        a_window(from_ms=500 * at, to_ms=500 * at + 500, steal_ms=250 if is_bad else 0)
        for at, is_bad in enumerate(bad)
    ]
    expected, end = set(), 0
    for index, wall in enumerate(walls[1:], start=1):
        begin, end = end, end + wall
        if any(
            is_bad and begin < one.to_ms * MS and end > one.from_ms * MS
            for one, is_bad in zip(windows, bad, strict=True)
        ):
            expected.add(index)

    found = disturbed_ranges(a_worker(wall_ns=tuple(walls)), a_host_over_time(*windows))

    assert {at for one in found for at in range(one.first, one.last + 1)} == expected


def a_half_stolen_host(*bad: int, windows: int = 4) -> HostOverTime:
    """Windows of half a second, in some of which half of a CPU was stolen."""
    return a_host_over_time(
        *(
            a_window(from_ms=500 * at, to_ms=500 * at + 500, steal_ms=250 if at in bad else 0)
            for at in range(windows)
        )
    )


def marked(worker: Worker, host: HostOverTime) -> tuple[Worker]:
    return (replace(worker, disturbed=disturbed_ranges(worker, host)),)


# 200 iterations of 10 ms over four windows of 500 ms.
TWO_SECONDS = a_worker(wall_ns=(MS, *[10 * MS] * 200))


@pytest.mark.parametrize(
    ("bad", "warm", "share", "too_much"),
    [
        ((0, 1), (), 0.5, False),
        ((0, 1, 2), (), 0.75, True),
        # Only iterations that enter the value count.
        ((2, 3), (), 0.5, False),
        ((2, 3), (101,), 1.0, True),
    ],
)
def test_more_than_half_of_the_iterations_disturbed_is_too_much(
    bad: tuple[int, ...], warm: tuple[int, ...], share: float, *, too_much: bool
) -> None:
    host = a_half_stolen_host(*bad)

    found = known(disturbance(marked(TWO_SECONDS, host), host, warm=warm))

    assert (found.share, found.by) == (share, ("steal",))
    assert is_too_much(found, host) is too_much


@pytest.mark.parametrize(("lost_ms", "too_much"), [(120, False), (130, True)])
def test_a_launch_of_less_than_a_second_has_to_lose_a_quarter_of_a_cpu(
    lost_ms: int, *, too_much: bool
) -> None:
    # 120 of 500 ms is 24 %; more than a tenth, which marks it.
    host = a_host_over_time(a_window(foreign_ms=lost_ms, waited_ms=lost_ms))

    found = known(disturbance(marked(a_worker(), host), host))

    assert found.share == 1.0
    assert is_too_much(found, host) is too_much


def test_any_suspension_of_a_launch_is_too_much() -> None:
    # One of 101 iterations took 5 s.
    host = a_host_over_time(
        a_window(to_ms=500),
        a_window(from_ms=500, to_ms=5500, suspended_ns=4990 * MS),
        a_window(from_ms=5500, to_ms=6000),
    )
    worker = a_worker(wall_ns=(MS, *[5 * MS] * 100, 5000 * MS, *[5 * MS] * 100))

    found = known(disturbance(marked(worker, host), host))

    assert found.by == ("suspension",)
    assert found.share < 0.05
    assert in_order(found.evidence[1], "suspended", "4.99 s")
    assert is_too_much(found, host)


def test_a_profile_is_too_much_disturbed_from_a_tenth_of_its_time_on() -> None:
    # It adds up all of the time; a launch's median is that of the undisturbed half.
    host = a_half_stolen_host(*range(9), windows=20)
    found = known(disturbance((a_worker(wall_ns=()),), host))

    assert found.share == 0.45
    assert is_too_much(found, host, "profile")
    assert not is_too_much(found, host)


def test_a_server_s_share_is_of_time() -> None:
    found = known(disturbance((a_worker(wall_ns=()),), a_half_stolen_host(0, 1, 2)))

    assert found.share == 0.75
    # 3 × 250 ms of 2 s.
    assert [numbers_in(said) for said in found.evidence] == [[75], [38]]
    assert in_order(found.evidence[1], "hypervisor", "steal")


def test_quiet_and_unsampled_launches_are_not_disturbed() -> None:
    assert disturbance((a_worker(),), a_host_over_time(a_window())) is None
    assert disturbance((a_worker(),), None) is None


def with_shares(*shares: float) -> tuple[Worker, ...]:
    """A worker of a hundred timed milliseconds whose threads ran for these shares of them."""
    threads = tuple(
        a_thread(tid=tid, run_ns=round(share * 1e8)) for tid, share in enumerate(shares)
    )
    return (a_worker(wall_ns=(1_000_000,) * 101, threads=threads),)


@pytest.mark.parametrize(
    ("first", "second", "busy"),
    [
        ((0.99,), (0.98, 0.02), None),
        ((0.99,), (0.98, 0.5), (1, 2)),
        ((0.05, 0.9, 0.9), (1.0,), (2, 1)),
        # A helper matters by its CPU time, not by which side of a limit it is on.
        ((0.99, 0.24), (0.99, 0.26), None),
        ((0.99, 0.09), (0.99, 0.3), None),
        ((0.97,) * 16 + (0.26,), (0.99,) * 16 + (0.09,), None),
        ((0.97,) * 16 + (0.4,), (0.99,) * 16, (17, 16)),
        # Eight loaders that are each busy for a sixth of the time need more than one CPU.
        ((0.99,), (0.99,) + (0.16,) * 8, (1, 9)),
        # Threads that live for one iteration, and one that lives for all.
        ((0.9, *(0.01,) * 90), (0.9, 0.9), None),
        # A step that sleeps keeps no thread busy.
        ((0.01,), (0.02,), None),
    ],
)
def test_launches_are_compared_by_the_threads_that_they_keep_busy(
    first: tuple[float, ...], second: tuple[float, ...], busy: tuple[int, int] | None
) -> None:
    found = busy_threads(with_shares(*first), with_shares(*second))

    assert (found and tuple(each.threads for each in found)) == busy


def test_a_helper_beside_threads_on_all_cpus_leaves_no_cpu_idle() -> None:
    # On more CPUs, the one of the helper would be idle meanwhile.
    pools = with_shares(*(0.95,) * 16, 0.7), with_shares(*(0.99,) * 16)

    assert busy_threads(*pools, cpus=16) is None
    assert busy_threads(*pools, cpus=17) is not None


def test_waiting_for_a_cpu_counts_as_busy_and_an_unobserved_launch_has_no_threads() -> None:
    waiting = (
        a_worker(
            wall_ns=(1_000_000,) * 101, threads=(a_thread(run_ns=10_000_000, wait_ns=80_000_000),)
        ),
    )

    assert busy_threads(waiting, with_shares(0.9)) is None
    assert busy_threads((), ()) is None


@pytest.mark.parametrize(
    ("disturbance", "kind"),
    [
        (None, None),
        (Disturbance(share=0.9, by=("steal",), evidence=("x",)), None),
        (
            Disturbance(share=0.9, by=(), evidence=(), refused=True, refusal="disturbed"),
            "disturbed",
        ),
        # Older records do not say why.
        (Disturbance(share=0.9, by=("steal",), evidence=("x",), refused=True), "disturbed"),
        (Disturbance(share=0.0, by=(), evidence=(), refused=True), "partner disturbed"),
        (Disturbance(share=0.0, by=(), evidence=("x",), refused=True), "unlike threads"),
    ],
)
def test_a_refused_launch_says_why_in_records_of_any_version(
    disturbance: Disturbance | None, kind: str | None
) -> None:
    assert refusal_of(replace(a_launch(), disturbance=disturbance)) == kind


@pytest.mark.parametrize("cpus", [1, 2, 16])
def test_a_launch_may_be_delayed_as_much_as_its_slowest_thread(cpus: int) -> None:
    window = a_window(
        foreign_ms=250, waited_ms=250, most_waited_ms=250, ran_ns=(500 * cpus - 250) * MS
    )

    assert delay(a_host_over_time(window, cpus=tuple(range(cpus)))) == pytest.approx(math.log(2))


def test_the_bound_of_a_launch_that_was_ended_excludes_what_others_delayed() -> None:
    delayed = a_host_over_time(
        a_window(foreign_ms=250, waited_ms=250, most_waited_ms=250, ran_ns=250 * MS), cpus=(0,)
    )
    ended = replace(a_launch(status="dropped"), least_iteration_ns=4_000_000_000, host=delayed)

    assert undelayed_iteration_ns(ended) == pytest.approx(2_000_000_000)
    assert undelayed_iteration_ns(replace(ended, host=None)) == 4_000_000_000
    assert undelayed_iteration_ns(a_launch()) is None
