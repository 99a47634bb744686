"""Specifies the values of a cell that its launches give, and which launches count."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.launch_record import Launch, TimeSlice
from corebound.records.telemetry import Disturbance
from corebound.scenario.metrics import Metric
from corebound.scenario.models import WarmupIterations, WarmupSeconds
from corebound.stats.launch_summary import effective_sample_size, summarise, summarise_launch
from corebound.stats.warmup import Warmup, counted_iterations, first_used_iteration
from support.build import a_cell, a_launch, a_worker
from support.examples import examples
from support.known import known

MS = 1_000_000


def a_launch_of(*wall_ns: int, block: int = 0) -> Launch:
    return a_launch(block=block, workers=(a_worker(wall_ns=wall_ns),))


def disturbed(launch: Launch, share: float = 1.0) -> Launch:
    found = Disturbance(share=share, by=("foreign load",), evidence=("so it was",))
    return replace(launch, disturbance=found)


def test_disturbed_launches_are_excluded_if_there_are_enough_others() -> None:
    # What was reported of a busy host: the geometric mean of all four is 51.
    quiet = [
        a_launch_of(*[wall] * 20, block=block) for block, wall in enumerate((35, 36, 37), start=1)
    ]
    slow = replace(disturbed(a_launch_of(*[147] * 20)), id="slow")

    found = summarise(a_cell(), [slow, *quiet], "auto")

    assert found.median_ns == pytest.approx(math.exp(np.mean(np.log([35, 36, 37]))))
    assert [one.launch for one in found.left_out] == ["slow"]
    assert (found.disturbed, found.count("ok")) == (0, 4)


@given(
    walls=st.lists(st.integers(1_000, 10**9), min_size=2, max_size=8),
    hit=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_whether_a_launch_is_excluded_never_depends_on_its_duration(
    walls: list[int], hit: list[bool]
) -> None:
    def out(walls: list[int]) -> list[int]:
        launches = [
            disturbed(a_launch_of(*[wall] * 5, block=block), 1.0 if hit[block] else 0.2)
            for block, wall in enumerate(walls)
        ]
        found = summarise(a_cell(), launches, "auto")
        assert found.disturbed in {0, sum(hit[: len(walls)])}
        return [one.block for one in found.left_out]

    expected = [block for block in range(len(walls)) if hit[block]]
    is_enough = len(walls) - len(expected) >= 2
    assert out(walls) == out(walls[::-1]) == (expected if is_enough else [])


def test_without_enough_other_launches_disturbed_ones_count_and_are_reported() -> None:
    launches = [disturbed(a_launch_of(*[40] * 20, block=block)) for block in range(3)]

    found = summarise(a_cell(), [*launches, a_launch_of(*[40] * 20, block=3)], "auto")

    assert (len(found.launches), found.disturbed, found.left_out) == (4, 3, ())


@pytest.mark.parametrize(("hit", "excluded"), [(3, 0), (2, 2)])
def test_within_a_run_all_launches_count_where_most_are_disturbed(hit: int, excluded: int) -> None:
    launches = [a_launch_of(*[40] * 20, block=block) for block in range(5)]
    launches[:hit] = map(disturbed, launches[:hit])

    within = summarise(a_cell(), launches, "auto", within_run=True)

    assert len(within.left_out) == excluded
    # Two runs may differ in what disturbed them.
    assert len(summarise(a_cell(), launches, "auto").left_out) == hit


def test_the_detected_warm_up_is_excluded() -> None:
    launch = a_launch_of(900, 60, 45, 44, 45, 46, 45, 44, 46, 45, 45, 44)

    summary = summarise_launch(launch, "auto")

    assert (summary.median_ns, summary.used) == (45.0, 10)
    assert summary.steady.start == 2
    assert summary.settled


def test_each_worker_has_its_own_warm_up_and_the_worst_is_reported() -> None:
    quick = a_worker(slot=0, wall_ns=(10,) * 20)
    slow = a_worker(slot=1, wall_ns=(90,) * 5 + (20,) * 15)

    summary = summarise_launch(a_launch(workers=(quick, slow)), "auto")

    # 20 samples of 10 and 15 of 20 are left.
    assert (summary.used, summary.median_ns) == (35, 10.0)
    assert summary.steady.kind == "warm-up then steady"
    assert summary.steady.start == 5


@pytest.mark.parametrize(
    ("wall_ns", "warmup", "used", "settled"),
    [
        ([50] * 4 + [40] * 16, WarmupIterations(iterations=10), 10, True),
        # They start at 0, 0.4, 0.8 s: three within the first second.
        ([400 * MS] * 10, WarmupSeconds(seconds=1.0), 7, True),
        # Too short: used and flagged. One that leaves nothing: the first fifth is left out.
        ([90] * 20 + [40] * 80, WarmupIterations(iterations=5), 95, False),
        ([40] * 20, WarmupIterations(iterations=50), 16, False),
    ],
)
def test_a_fixed_warm_up_is_dropped_and_flagged_if_it_does_not_fit(
    wall_ns: list[int], warmup: WarmupIterations | WarmupSeconds, used: int, *, settled: bool
) -> None:
    summary = summarise_launch(a_launch_of(*wall_ns), warmup)

    assert (summary.used, summary.settled) == (used, settled)


def test_a_99th_percentile_needs_a_hundred_iterations() -> None:
    def p99_ns(*wall_ns: int) -> float | None:
        return summarise_launch(a_launch_of(*wall_ns), WarmupIterations(iterations=0)).p99_ns

    assert p99_ns(*[40] * 99) is None
    # Between the two longest of a hundred.
    assert p99_ns(*range(1001, 1101)) == 1099.5


def test_a_cell_s_p99_has_an_interval_over_its_launches_unless_iterations_are_correlated() -> None:
    noise = np.random.default_rng(1)
    apart = [
        a_launch_of(*(1_000_000 * noise.lognormal(0, 0.01, 600)).astype(int).tolist(), block=block)
        for block in range(6)
    ]
    # Blocks of ten equal ones: six hundred count as some sixty.
    correlated = [
        a_launch_of(*np.repeat(noise.integers(10**6, 2 * 10**6, 60), 10).tolist(), block=block)
        for block in range(6)
    ]

    found = summarise(a_cell(), apart, "auto")
    unknown = summarise(a_cell(), correlated, WarmupIterations(iterations=0))

    interval = known(found.p99_interval)
    # The 99th percentile of a standard normal is 2.326.
    assert interval.contains(1_000_000 * math.exp(0.01 * 2.326))
    assert 0 < interval.low < known(found.p99_ns) < interval.high
    assert (unknown.p99_ns is None, unknown.p99_interval) == (False, None)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60))
def test_the_effective_sample_size_is_at_most_the_sample_size(samples: list[float]) -> None:
    assert 0 < effective_sample_size(samples) <= len(samples)


@pytest.mark.parametrize(
    ("wall_ns", "cpu_ns", "median_ns"),
    [
        ((40,) * 20, (), None),
        # Recorded: one thread, 9,457 ns of CPU time in 7,594 ns; the clock takes 1,900 ns to read.
        ((7_594,) * 20, (9_457,) * 20, None),
        ((200_000,) * 20, (201_900,) * 20, 201_900),
    ],
)
def test_cpu_times_of_other_samples_or_too_short_for_their_clock_are_unknown(
    wall_ns: tuple[int, ...], cpu_ns: tuple[int, ...], median_ns: int | None
) -> None:
    launch = a_launch(workers=(a_worker(wall_ns=wall_ns, cpu_ns=cpu_ns),))

    assert summarise_launch(launch, "auto").cpu_median_ns == median_ns


def test_only_ok_launches_give_values_but_all_are_counted() -> None:
    launches = [
        a_launch_of(*[40] * 20, block=0),
        a_launch(block=1, status="invalid", workers=(a_worker(wall_ns=(9_000,) * 20),)),
        a_launch(block=2, status="skipped"),
        a_launch_of(*[10] * 20, block=3),
    ]

    summary = summarise(a_cell(), launches, "auto")

    # The geometric mean of 40 and 10.
    assert summary.median_ns == pytest.approx(20.0)
    assert [launch.block for launch in summary.launches] == [0, 3]
    assert dict(summary.counts) == {"ok": 2, "invalid": 1, "skipped": 1}
    assert summary.attempts == 4


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        ([a_launch(status="failed", workers=())], (None, None, None)),
        ([a_launch_of(*[40] * 20)], (pytest.approx(40.0), None, None)),
        ([a_launch_of(*[0] * 20, block=block) for block in range(3)], (0.0, None, 0.0)),
    ],
    ids=["none that is ok", "one", "zero times"],
)
def test_without_two_launches_and_times_there_is_no_interval(
    launches: list[Launch], expected: tuple[object, object, object]
) -> None:
    summary = summarise(a_cell(), launches, "auto")

    assert (summary.median_ns, summary.interval, summary.spread_ratio) == expected


def test_launches_that_never_become_steady_are_included_and_counted() -> None:
    launches = [a_launch_of(*[40] * 100, block=0), a_launch_of(*[40] * 60, *[80] * 40, block=1)]

    summary = summarise(a_cell(), launches, "auto")

    assert summary.launches[1].steady.kind == "slowdown"
    assert (len(summary.launches), summary.unsettled) == (2, 1)


@examples(40)
@given(
    medians_ns=st.lists(st.integers(1_000, 10**9), min_size=2, max_size=10),
    factor=st.integers(2, 1000),
)
def test_another_unit_scales_every_value(medians_ns: list[int], factor: int) -> None:
    one = summarise(a_cell(), [a_launch_of(m, block=b) for b, m in enumerate(medians_ns)], "auto")
    other = summarise(
        a_cell(), [a_launch_of(m * factor, block=b) for b, m in enumerate(medians_ns)], "auto"
    )

    assert other.median_ns == pytest.approx(known(one.median_ns) * factor)
    assert known(other.interval).low == pytest.approx(known(one.interval).low * factor, rel=1e-9)
    assert other.spread_ratio == pytest.approx(one.spread_ratio)


def test_a_launch_without_samples_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarise_launch(a_launch(workers=()), "auto")


def interleaved(*lengths: int, wall_ns: tuple[int, ...], workers: int = 1) -> Launch:
    """A launch that alternated, with time slices of these lengths."""
    time_slices = tuple(TimeSlice(iterations=length, began_us=0) for length in lengths)
    worker = replace(a_worker(wall_ns=wall_ns), time_slices=time_slices)
    launch = a_launch(workers=(worker,) * workers)
    return replace(launch, alternated=("other",))


@pytest.mark.parametrize(
    ("launch", "warmup", "used", "slices"),
    [
        # The first after a hand-over is left out; of several workers, the last one too.
        (interleaved(3, 3, wall_ns=(10, 90, 10, 10, 90, 10, 10)), 1, 4, ((0, 10), (1, 10))),
        (
            interleaved(4, 4, wall_ns=(10, 90, 10, 10, 5, 90, 10, 10, 5), workers=2),
            1, 8, ((0, 10), (1, 10)),
        ),
        # Time slices of one iteration count.
        (interleaved(1, 1, 1, wall_ns=(10, 20, 20, 20)), 1, 3, ((0, 20), (1, 20), (2, 20))),
        # One that begins within the warm-up is not compared.
        (interleaved(3, 3, wall_ns=(90, 90, 90, 10, 90, 10, 10)), 3, 3, ((1, 10),)),
    ],
)  # fmt: skip
def test_iterations_of_time_slices_that_count(
    launch: Launch, warmup: int, used: int, slices: tuple[tuple[int, int], ...]
) -> None:
    summary = summarise_launch(launch, WarmupIterations(iterations=warmup))

    assert (summary.used, summary.time_slices_ns) == (used, slices)
    assert summary.median_ns == slices[-1][1]


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    is_alone=st.booleans(),
    drop=st.integers(0, 100),
)
def test_used_iterations_follow_the_warm_up(lengths: list[int], is_alone: bool, drop: int) -> None:
    launch = interleaved(*lengths, wall_ns=tuple(range(1, sum(lengths) + 2)))
    worker = launch.workers[0]

    counted = counted_iterations(worker, is_alone=is_alone)
    first = first_used_iteration(worker, WarmupIterations(iterations=drop), is_alone=is_alone)

    assert counted == sorted(set(counted))
    assert first in counted
    assert first >= drop or drop > counted[-1]


@pytest.mark.parametrize("warmup", ["auto", WarmupIterations(iterations=3)])
def test_of_a_worker_without_an_iteration_none_is_warm_up(warmup: Warmup) -> None:
    assert first_used_iteration(a_worker(wall_ns=()), warmup, is_alone=False) == 0


RATE = Metric(name="rate", unit="op/s", better="higher")
SIZE = Metric(name="size", unit="MB", better="lower")


def a_reporting_launch(
    *values: tuple[float, ...], metrics: tuple[Metric, ...] = (RATE, SIZE)
) -> Launch:
    """A launch whose iterations took a millisecond and reported these values."""
    worker = replace(
        a_worker(wall_ns=(MS,) * len(values)),
        metrics=tuple(tuple((value,) for value in each) for each in values),
    )
    return a_launch(cell=replace(a_cell(), metrics=metrics), workers=(worker,))


@pytest.mark.parametrize("rate", [5.0, 1e-9, 1e15])
def test_a_launch_that_reports_a_metric_of_any_size_is_judged_by_it_instead_of_its_time(
    rate: float,
) -> None:
    found = summarise_launch(
        a_reporting_launch(*[(rate * (1 + 0.002 * (at % 3 - 1)), 1.0) for at in range(9)]), "auto"
    )

    assert RATE.from_time_ns(found.median_ns) == pytest.approx(rate)
    assert (found.wall_median_ns, found.p99_ns) == (MS, None)
    assert math.isfinite(found.error)


def test_each_metric_can_be_summarised() -> None:
    launch = a_reporting_launch(*[(5.0, 20.0 + 0.01 * (at % 3 - 1)) for at in range(9)])

    found = summarise(launch.cell, [launch], "auto", metric=1)

    assert SIZE.from_time_ns(known(found.median_ns)) == pytest.approx(20)


def test_the_tools_own_repetitions_are_what_a_value_varies_by() -> None:
    def error(*samples: float) -> float:
        worker = replace(a_worker(wall_ns=(MS, MS)), metrics=(((5.0, *samples),),) * 2)
        launch = a_launch(cell=replace(a_cell(), metrics=(RATE,)), workers=(worker,))
        return summarise_launch(launch, "auto").error

    assert error() == 0
    assert error(4.0, 5.0, 6.0) > error(4.9, 5.0, 5.1) > 0


def test_warm_up_ends_when_the_metric_settles() -> None:
    values = [(50.0 + 0.01 * (at % 3) if at >= 5 else 10.0, 1.0) for at in range(60)]

    found = summarise_launch(a_reporting_launch(*values), "auto")

    assert found.used == 55
    assert RATE.from_time_ns(found.median_ns) == pytest.approx(50, rel=0.01)
