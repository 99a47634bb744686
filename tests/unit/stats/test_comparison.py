"""Specifies verdicts on a cell and its baseline."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.launch_record import Launch, TimeSlice
from corebound.scenario.models import WarmupIterations
from corebound.stats.between_runs import BetweenRuns
from corebound.stats.comparison import (
    Comparison,
    are_different,
    compare,
    compare_together,
    speedup_intervals,
)
from corebound.stats.launch_summary import CellSummary, summarise
from support.build import a_cell, a_launch, a_worker
from support.known import known

MARGIN = 0.02
# Two runs whose levels do not differ: then Welch alone is asked.
ALIKE = BetweenRuns(variance=0.0, freedom=1.0, runs=0, whole=0.0)
SWAPPED = {"faster": "slower", "slower": "faster"}

medians = st.lists(st.integers(10**6, 10**9), min_size=2, max_size=12)


def a_summary(*medians_ns: float, first_block: int = 0) -> CellSummary:
    """A cell with one launch a block, of these medians."""
    launches = [
        a_launch(block=block, workers=(a_worker(wall_ns=(round(median_ns),)),))
        for block, median_ns in enumerate(medians_ns, start=first_block)
    ]
    return summarise(a_cell(), launches, "auto")


def compared(cell: CellSummary, baseline: CellSummary, **options: Any) -> Comparison:
    return known(compare(cell, baseline, margin=MARGIN, **options))


def around(level: float, *percent: float) -> list[float]:
    return [level * (1 + share / 100) for share in percent]


@pytest.mark.parametrize(
    ("cell_ns", "baseline_ns", "verdict"),
    [
        ([5e8] * 6, [1e9] * 6, "faster"),
        # Certain, but within the margin.
        ([1.00e9] * 6, [1.01e9] * 6, "equivalent"),
        # Two launches decide a large difference, and three may have a narrow interval.
        ([3e9, 3.01e9], [1e9] * 2, "slower"),
        ([1.0e9, 1.001e9, 1.002e9], [1.22e9, 1.22e9, 1.221e9], "faster"),
    ],
)
def test_a_ratio_with_a_narrow_interval_is_decided(
    cell_ns: list[float], baseline_ns: list[float], verdict: str
) -> None:
    comparison = compared(a_summary(*cell_ns), a_summary(*baseline_ns))

    assert comparison.speedup_ratio == pytest.approx(baseline_ns[0] / cell_ns[0], rel=0.005)
    assert (comparison.verdict, comparison.pairs) == (verdict, len(cell_ns))


def test_a_slowdown_of_a_whole_block_cancels() -> None:
    blocks = np.array([1.0, 3.0, 1.2, 2.0, 5.0, 1.1])

    comparison = compared(a_summary(*(1.10e8 * blocks)), a_summary(*(1e8 * blocks)))

    assert comparison.verdict == "slower"
    assert known(comparison.interval).relative_half_width < 1e-6


def test_an_interval_across_1_is_inconclusive_and_a_wider_margin_needs_fewer_launches() -> None:
    cell = a_summary(*around(1e9, -4, 3, 5, -3, 4, 1))
    baseline = a_summary(*around(1e9, 3, -2, -4, 4, -1, 2))

    strict, usual, mild = (
        known(compare(cell, baseline, margin=margin)) for margin in (0.01, MARGIN, 0.03)
    )

    assert {one.verdict for one in (strict, usual, mild)} == {"inconclusive"}
    assert known(usual.launches_needed) > 6
    assert known(strict.launches_needed) > 2 * known(mild.launches_needed)


def test_the_launches_needed_decide_if_the_spread_stays() -> None:
    pattern = (-6.0, -2.8, -1.5, -0.5, 0.2, 0.8, 1.5, 2.5, 3.8, 7.0)
    first = compared(a_summary(*around(1e9, *pattern)), a_summary(*[1e9] * 10))
    assert first.verdict == "inconclusive"

    # Whole patterns, so that the mean stays as it is; and a few for the standard
    # deviation, which n - 1 makes a little smaller in a longer series.
    rounds = known(first.launches_needed) // 10 + 1
    longer = compared(a_summary(*around(1e9, *pattern * rounds)), a_summary(*[1e9] * 10 * rounds))

    assert longer.verdict != "inconclusive"


def test_a_few_outliers_do_not_decide() -> None:
    level = around(1e9, -1, 1, 0, -2, 2, -1, 1, 0, 50, 60)

    comparison = compared(a_summary(*level), a_summary(*around(1.1e9, *[0] * 10)))

    assert comparison.verdict == "faster"
    assert comparison.speedup_ratio == pytest.approx(1.1, abs=0.01)


def alternating(
    *blocks: tuple[tuple[int, ...], tuple[int, ...]],
) -> tuple[CellSummary, CellSummary]:
    """Cells of which each block's launches alternated, an iteration a stint, of these lengths."""
    sides: list[list[Launch]] = [[], []]
    for block, both in enumerate(blocks):
        for side, wall_ns in enumerate(both):
            time_slices = tuple(
                TimeSlice(iterations=1, began_us=at) for at in range(len(wall_ns) - 1)
            )
            made = a_launch(block=block, position=side, workers=(a_worker(wall_ns=wall_ns),))
            workers = (replace(made.workers[0], time_slices=time_slices),)
            other = f"{made.id.rpartition('-')[0]}-{1 - side}"
            sides[side].append(replace(made, workers=workers, alternated=(other,)))
    cell, baseline = (
        summarise(a_cell(), launches, WarmupIterations(iterations=1)) for launches in sides
    )
    return cell, baseline


def of_disturbed(summary: CellSummary, *delays: float) -> CellSummary:
    launches = zip(summary.launches, delays or [0.0] * len(summary.launches), strict=True)
    disturbed = (replace(launch, disturbed=True, delay=delay) for launch, delay in launches)
    return replace(summary, launches=tuple(disturbed))


def test_a_cell_slower_only_while_disturbed_is_inconclusive() -> None:
    slow, fast = a_summary(*around(2e8, 0, 1, 0, 1)), a_summary(*around(1e8, 0, 1, 1, 0))

    for found in (compared(of_disturbed(slow), fast), compared(fast, of_disturbed(slow))):
        assert (found.verdict, found.p_value, found.launches_needed) == ("inconclusive", None, None)
        assert found.interval is not None

    # Both were, or only the one that is faster all the same, or it is beyond any disturbance.
    assert compared(of_disturbed(slow), of_disturbed(fast)).verdict == "slower"
    assert compared(slow, of_disturbed(fast)).verdict == "slower"
    slowest = of_disturbed(a_summary(*around(1e10, 0, 1, 0, 1)))
    assert compared(slowest, fast).verdict == "slower"
    assert compared(fast, slowest).verdict == "faster"


@pytest.mark.parametrize(
    ("delays", "verdict"), [((0.6,) * 4, "inconclusive"), ((1.2, *(0.0,) * 3), "slower")]
)
def test_each_launch_explains_its_part_of_a_difference(
    delays: tuple[float, ...], verdict: str
) -> None:
    fast = a_summary(*around(1e8, 0, 1, 1, 0))
    slow = a_summary(*around(3e8, 0, 1, 0, 1))

    assert compared(of_disturbed(slow, *delays), fast).verdict == verdict


def test_what_disturbs_one_side_in_every_block_belongs_to_its_configuration() -> None:
    fast = a_summary(*around(1e8, 0, 1, 1, 0, 1))
    slow = of_disturbed(a_summary(*around(2e8, 0, 1, 0, 1, 0)))
    pair = [(slow, fast)]

    within = compared(slow, fast)
    between = compare(slow, fast, margin=MARGIN, between=ALIKE)

    assert within.verdict == "slower"
    assert are_different(pair, speedup_intervals(pair), margin=MARGIN, confidence=0.95) == (True,)
    # Others may have disturbed one run and not the other, or a time when the other did not run.
    assert known(between).verdict == "inconclusive"
    later = a_summary(*around(1e8, 0, 1, 1, 0, 1), first_block=5)
    assert compared(slow, later).verdict == "inconclusive"


def test_where_others_disturb_one_side_all_launches_of_both_are_compared() -> None:
    # Most launches of the fast one were not disturbed, and only these are its value.
    slow = of_disturbed(a_summary(*around(2e8, 0, 1, 0, 1, 0, 1, 0)))
    fast = a_summary(*around(1e8, 0, 1, 1, 0, 1, 0, 1))
    hit, calm = of_disturbed(fast).launches[:3], fast.launches[3:]

    found = compared(slow, replace(fast, launches=calm, left_out=hit))

    assert (found.pairs, found.verdict) == (7, "slower")


def test_alternating_launches_are_compared_by_time_slice() -> None:
    # The host halves its clock at another moment in each block; each pair of stints saw the same.
    slow = [[1, 1, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 2, 2], [1, 2, 2, 2, 2, 2, 1]]
    blocks = [
        (tuple(900_000 * at for at in course), tuple(1_000_000 * at for at in course))
        for course in slow
    ]

    comparison = compared(*alternating(*blocks))

    assert [ratio for _, ratio in comparison.per_block] == pytest.approx([1 / 0.9] * 3)


# The host is slow in every second block, where equal launches differ by 6 % instead of 1 %.
_SPEEDS = [
    (1.000, 1.010), (1.300, 1.360), (1.010, 1.000), (1.330, 1.270), (1.005, 1.000),
    (1.300, 1.350), (1.000, 1.005), (1.350, 1.280), (1.000, 1.000), (1.310, 1.370),
]  # fmt: skip


def test_blocks_of_a_slow_host_count_less_where_launches_alternated() -> None:
    cell, baseline = (a_summary(*(1e9 * pair[side] for pair in _SPEEDS)) for side in (0, 1))
    together = replace(
        cell, launches=tuple(replace(one, alternated=("other",)) for one in cell.launches)
    )

    alike, weighted = compared(cell, baseline), compared(together, baseline)

    assert alike.host_speeds is None
    assert known(weighted.host_speeds).slow_blocks == (1, 3, 5, 7, 9)
    assert (
        known(weighted.interval).relative_half_width < known(alike.interval).relative_half_width / 2
    )
    assert weighted.per_block == alike.per_block


def test_time_slices_with_a_launch_of_another_block_are_not_paired() -> None:
    cell, baseline = alternating(
        *[((10, 10, 20, 20, 30, 30, 40), (10, 10, 10, 10, 10, 10, 10))] * 2
    )
    apart = replace(
        cell, launches=tuple(replace(one, alternated=("elsewhere",)) for one in cell.launches)
    )

    assert compared(apart, baseline).speedup_ratio == pytest.approx(10 / 25)


def test_only_blocks_with_both_are_paired() -> None:
    comparison = compared(a_summary(1e9, 2e9, 3e9), a_summary(2e9, 3e9, 4e9, first_block=1))

    assert [block for block, _ in comparison.per_block] == [1, 2]
    assert [ratio for _, ratio in comparison.per_block] == pytest.approx([1.0, 1.0])
    assert comparison.pairs == 2


def test_launches_that_share_no_block_are_compared_unpaired() -> None:
    cell, baseline = a_summary(*around(5e8, 0, 1, 2)), a_summary(*[1e9] * 3, first_block=7)

    comparison = compared(cell, baseline)

    assert (comparison.pairs, comparison.per_block) == (0, ())
    assert comparison.verdict == "faster"


def test_launches_of_two_runs_are_unpaired_despite_equal_block_numbers() -> None:
    # A session that drifts: paired, the ratio would seem certain.
    cell, baseline = a_summary(*around(1e9, 0, 20, 40, 60)), a_summary(*around(9e8, 0, 20, 40, 60))

    comparison = compared(cell, baseline, between=ALIKE)

    assert (comparison.pairs, comparison.verdict) == (0, "inconclusive")
    assert compared(cell, baseline).verdict == "slower"


def test_unequal_numbers_of_launches_are_compared_by_welch_s_t() -> None:
    # Welch's error of means: sqrt(s1^2/n1 + s2^2/n2), of logarithms.
    few, many = [1e9, 1.02e9, 0.99e9], [5e8, 5.1e8, 4.9e8, 5.05e8, 4.95e8, 5e8, 5.02e8]
    logs = [np.log(side) for side in (few, many)]
    error = np.sqrt(sum(side.var(ddof=1) / side.size for side in logs))

    comparison = compared(a_summary(*many), a_summary(*few), between=ALIKE)

    assert comparison.speedup_ratio == pytest.approx(np.exp(logs[0].mean() - logs[1].mean()))
    reach = np.log(known(comparison.interval).high / known(comparison.interval).low) / 2
    # Between Student's factors of 8 and of 2 degrees of freedom, as Welch's always lies.
    assert 2.306 * error < reach < 4.303 * error


def of_logs(*logs: float) -> CellSummary:
    """Launches whose medians have these logarithms, up to a constant and to rounding."""
    return a_summary(*(1e9 * float(np.exp(log)) for log in logs))


# Two kinds of soporific, hours of sleep gained by each of ten patients: Student, "The probable
# error of a mean", Biometrika 6 (1908). Paired, t is 4.062 with 9 degrees of freedom, p 0.00283.
SLEEP_1 = (0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0)
SLEEP_2 = (1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4)


def test_paired_blocks_are_compared_by_student_s_t() -> None:
    comparison = compared(of_logs(*SLEEP_1), of_logs(*SLEEP_2))

    # Student's 95 % interval of the difference is 1.58 ± 0.880, and a tenth more for choices.
    assert np.log(known(comparison.interval).low) == pytest.approx(1.58 - 1.1 * 0.880, abs=5e-4)
    assert np.log(known(comparison.interval).high) == pytest.approx(1.58 + 1.1 * 0.880, abs=5e-4)
    # t is 4.0621 with 9 degrees of freedom, p 0.00283; of t / 1.1 it is 0.00498. A fifth more,
    # because ranks might have decided too.
    assert comparison.p_value == pytest.approx(1.2 * 0.00498, abs=6e-6)


def test_launches_of_two_runs_are_compared_by_welch_s_t() -> None:
    # The same without pairs: t is 1.861 with 17.776 degrees of freedom (not 18), p 0.0794.
    comparison = compared(of_logs(*SLEEP_1), of_logs(*SLEEP_2), between=ALIKE)

    assert comparison.p_value == pytest.approx(0.07939, abs=5e-6)
    # A tenth of the logarithms, so that the interval is narrow enough to be kept.
    tenths = [of_logs(*np.array(side) / 10) for side in (SLEEP_1, SLEEP_2)]
    comparison = compared(*tenths, between=ALIKE)
    assert np.log(known(comparison.interval).low) == pytest.approx(-0.02055, abs=5e-5)


def test_the_side_that_varies_most_sets_welch_s_freedom() -> None:
    # s² / n is 2 / 2 of (-1, 1) and 0.1 / 6 of the others: t is 2 / √1.016667 = 1.98354 with
    # 1.016667² / (1² / 1 + 0.016667² / 5) = 1.03355 degrees of freedom; pooled they are 6.
    cell, baseline = of_logs(-1, 1), of_logs(1.5, 2.5, 2, 2, 2, 2)

    comparison = compared(cell, baseline, between=ALIKE)

    # With 1 degree p is 1 - 2 / π × atan 1.98354 = 0.297, with 6 it is 0.095.
    assert comparison.p_value == pytest.approx(0.2909, abs=5e-5)


def test_one_launch_each_gives_a_ratio_without_a_verdict() -> None:
    comparison = compared(a_summary(5e8), a_summary(1e9))

    assert comparison.speedup_ratio == pytest.approx(2.0)
    assert comparison.interval is None
    assert comparison.verdict == "inconclusive"
    assert comparison.launches_needed is None


def test_without_launches_a_baseline_or_a_time_there_is_no_ratio() -> None:
    cell, baseline = a_summary(*[1e9] * 3), a_summary(*[2e9] * 3)

    assert compare(a_summary(), baseline, margin=MARGIN) is None
    assert compare(a_summary(0, 0), baseline, margin=MARGIN) is None
    assert speedup_intervals([(a_summary(), baseline)]) == (None,)
    without, of_cell = compare_together([(baseline, None), (cell, baseline)], margin=MARGIN)
    assert (without, of_cell is None) == (None, False)
    assert are_different([(cell, None)], (None,), margin=MARGIN, confidence=0.999) == (False,)


@given(ours=medians, theirs=medians)
def test_swapping_the_sides_gives_the_reciprocal(ours: list[int], theirs: list[int]) -> None:
    one, other = a_summary(*ours), a_summary(*theirs)

    there, back = compared(one, other), compared(other, one)

    assert there.speedup_ratio * back.speedup_ratio == pytest.approx(1.0)
    assert back.verdict == SWAPPED.get(there.verdict, there.verdict)
    assert there.launches_needed == back.launches_needed
    if there.interval is not None and back.interval is not None:
        assert there.interval.low * back.interval.high == pytest.approx(1.0)


@given(ours=medians, factor=st.integers(2, 50))
def test_another_unit_changes_no_verdict(ours: list[int], factor: int) -> None:
    theirs = [10**7] * len(ours)

    one = compared(a_summary(*ours), a_summary(*theirs))
    scaled = compared(
        a_summary(*[m * factor for m in ours]), a_summary(*[m * factor for m in theirs])
    )

    assert scaled.speedup_ratio == pytest.approx(one.speedup_ratio)
    assert scaled.verdict == one.verdict


@pytest.mark.parametrize("blocks", [4, 12])
def test_equal_cells_on_a_noisy_host_alarm_as_rarely_as_promised(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    covered = alarms = 0
    for _ in range(150):
        session = 1e8 * np.exp(np.cumsum(rng.normal(0, 0.05, blocks)))
        pair = session * np.exp(rng.normal(0, 0.015, (2, blocks)))
        comparison = compared(a_summary(*pair[0]), a_summary(*pair[1]))
        covered += known(comparison.interval).contains(1.0)
        alarms += comparison.verdict in {"faster", "slower"}

    # 150 draws at 5 %: 7.5 expected, standard deviation 2.7.
    assert alarms <= 7.5 + 3 * 2.7
    assert 150 - covered == pytest.approx(7.5, abs=3 * 2.7)


def test_cells_of_one_scenario_share_what_they_show_of_the_variance() -> None:
    baseline = a_summary(*[1e9] * 3)
    # A spread of 1 % each, about a factor of 1.3.
    cells = [a_summary(*(1.3e9 * np.exp([-0.01, 0.0, 0.01]))) for _ in range(4)]

    together = compare_together([(cell, baseline) for cell in cells], margin=MARGIN)

    alone = compared(cells[0], baseline)
    for comparison in together:
        assert comparison is not None
        assert comparison.speedup_ratio == pytest.approx(alone.speedup_ratio)
        assert (
            known(comparison.interval).relative_half_width
            < known(alone.interval).relative_half_width
        )


# Both launches of the cell are in one mode and both of its baseline in the other, 22 % apart.
OPPOSITE_MODES = (a_summary(1.0e9, 1.001e9), a_summary(1.221e9, 1.22e9))


@pytest.mark.parametrize("between", [None, ALIKE])
def test_two_launches_decide_nothing_that_two_modes_can_explain(
    between: BetweenRuns | None,
) -> None:
    comparison = compared(*OPPOSITE_MODES, between=between)
    (shared, _) = compare_together([OPPOSITE_MODES, OPPOSITE_MODES], margin=MARGIN)

    assert comparison.verdict == known(shared).verdict == "inconclusive"
    assert known(comparison.p_value) > 0.05
    interval = known(comparison.interval)
    assert math.log(interval.high / interval.low) / 2 == pytest.approx(math.log(4 / 3))


def test_an_interval_from_far_slower_to_far_faster_is_none_and_a_wide_one_that_excludes_1() -> None:
    unknown = compared(a_summary(1e9, 3e9, 2e9), a_summary(2e9, 1e9, 2e9))
    wide = compared(a_summary(4e9, 9e9, 6e9), a_summary(1e9, 1e9, 1e9))

    assert (unknown.interval, unknown.verdict) == (None, "inconclusive")
    assert unknown.launches_needed is not None
    assert wide.verdict == "slower"
    assert known(wide.interval).high > 4 * known(wide.interval).low


def different(cell: CellSummary, baseline: CellSummary) -> bool:
    pairs = [(cell, baseline)]
    (differs,) = are_different(pairs, speedup_intervals(pairs), margin=MARGIN, confidence=0.999)
    return differs


def test_a_cell_is_different_if_its_interval_lies_beyond_the_margin() -> None:
    # Student's 99.9 % factor for 4 launches is 12.9; of the spread of 1 %, that is 8 %.
    spread = np.exp([-0.01, 0.01, -0.01, 0.01])
    baseline = a_summary(*[1e9] * 4)

    assert different(a_summary(*(1.3e9 * spread)), baseline)
    assert different(baseline, a_summary(*(1.3e9 * spread)))
    assert not different(a_summary(*(1.05e9 * spread)), baseline)
    assert compared(a_summary(*(1.05e9 * spread)), baseline).verdict == "slower"
    # Far beyond 1, but only just beyond the margin.
    assert not different(a_summary(*[1.019e9] * 4), baseline)


def test_cells_that_all_vary_as_their_baseline_show_its_variance_once() -> None:
    # Three launches of the baseline are a factor of 1.2 apart, and those of the cells are equal.
    baseline = a_summary(1e9, 1.2e9, 1.44e9)
    cells = [a_summary(*[1e9] * 3), a_summary(*[1.01e9] * 3), a_summary(*[0.99e9] * 3)]

    together = speedup_intervals([(cell, baseline) for cell in cells])
    (alone,) = speedup_intervals([(cells[0], baseline)])

    assert alone is not None
    assert known(together[0]).relative_half_width > 0.9 * alone.relative_half_width


@pytest.mark.parametrize(("launches", "price"), [(4, 1.3), (5, 1.3), (6, 1.2), (8, 1.2)])
def test_an_adaptive_number_of_launches_widens_the_interval_more_where_they_are_few(
    launches: int, price: float
) -> None:
    shares = [-1, 1, 0, 2, -2, 1, 0, -1][:launches]
    cell, baseline = a_summary(*around(1e9, *shares)), a_summary(*[1e9] * launches)

    (fixed,) = speedup_intervals([(cell, baseline)])
    (adaptive,) = speedup_intervals([(cell, baseline)], adaptive=True)

    assert fixed is not None
    assert adaptive is not None
    widths = [np.log(i.high / i.low) for i in (fixed, adaptive)]
    assert widths[1] == pytest.approx(price / 1.1 * widths[0])


# A configuration whose launches vary wildly, and one whose launches do not; milliseconds.
WILD_MS = (16.7, 51.7, 39.0, 25.0, 480.0, 23.0)
STEADY_MS = (9.9, 10.1, 12.6, 11.3, 13.0, 12.2)


def of_ms(*times_ms: float) -> CellSummary:
    return a_summary(*(ms * 1e6 for ms in times_ms))


def test_a_cell_keeps_an_interval_of_its_own_that_noisy_siblings_would_widen() -> None:
    wild, steady = of_ms(*WILD_MS), of_ms(*STEADY_MS)
    siblings = [of_ms(*np.roll(WILD_MS, shift)) for shift in range(1, 5)]

    first, *_ = compare_together(
        [(steady, wild), *((sibling, wild) for sibling in siblings)], margin=MARGIN
    )

    assert first is not None
    assert first.verdict == "faster"


def test_ranks_of_five_launches_decide_where_one_hides_a_difference_from_student_s_t() -> None:
    fast, slow = of_ms(10, 11, 9, 12, 10.5), of_ms(20, 21, 22, 20.5, 4_000)
    comparison = compared(fast, slow)

    assert (comparison.verdict, comparison.by_ranks) == ("faster", True)
    # The slowest fast launch against the fastest slow one.
    assert known(comparison.interval).low == pytest.approx(20 / 12)
    assert comparison.p_value == pytest.approx(6 * 2 / 252)
    assert not compared(of_ms(10, 11, 9, 12), of_ms(20, 21, 22, 4_000)).by_ranks
    assert not compared(fast, slow, between=ALIKE).by_ranks


@given(st.lists(st.integers(1, 10**6), min_size=5, max_size=9), st.integers(2, 1_000))
def test_ranks_never_decide_between_equal_launches(times: list[int], factor: int) -> None:
    cell = a_summary(*(time * 1_000 for time in times))

    comparison = compared(cell, cell)

    assert comparison.verdict in {"equivalent", "inconclusive"}
    assert comparison.p_value == 1.0


def test_a_margin_is_above_0() -> None:
    with pytest.raises(ValueError, match="margin"):
        compare(a_summary(1e9), a_summary(1e9), margin=0.0)


# Cell and baseline in milliseconds: launches take 5 ms in one mode and 6 ms in the other.
TWO_MODES = [(5, 5), (5, 6), (6, 5), (6, 6), (5, 6), (6, 5), (6, 6), (5, 6), (6, 5), (6, 6)]


def by_modes(*blocks: tuple[float, float], slower: float = 0.0, **options: Any) -> Comparison:
    """Compare launches that take so many milliseconds, and up to 0.1 % more or less."""
    cell = [
        ms * 1e6 * (1 + slower) * (1 + (at % 3 - 1) / 1000) for at, (ms, _) in enumerate(blocks)
    ]
    return compared(a_summary(*cell), a_summary(*(ms * 1e6 for _, ms in blocks)), **options)


def test_launches_of_two_modes_are_compared_within_a_mode() -> None:
    comparison = by_modes(*TWO_MODES, slower=0.03)

    assert comparison.verdict == "slower"
    assert known(comparison.interval).contains(1 / 1.03)
    assert known(comparison.by_mode).is_same_mode
    assert known(comparison.by_mode).expected_interval.contains(1.0)
    assert by_modes(*[(5, 5)] * 10, slower=0.03).by_mode is None


def test_a_comparison_within_a_mode_cannot_say_equivalent() -> None:
    comparison = by_modes(*TWO_MODES)

    assert comparison.verdict == "inconclusive"
    assert not known(comparison.by_mode).is_same_mode
    assert comparison.interval == known(comparison.by_mode).expected_interval


def test_a_side_that_is_fast_more_often_is_compared_over_both_modes() -> None:
    # Only the baseline is slow in nine of ten such blocks: p = 2 (1 + 10) / 2¹⁰.
    comparison = by_modes(*[(5, 6)] * 9, (6, 5), *[(5, 5)] * 3, slower=0.03)

    assert comparison.verdict == "faster"
    assert not known(comparison.by_mode).is_same_mode
    assert known(comparison.by_mode).modes.interval.high < 1


def test_stopping_by_the_spread_widens_the_interval_within_a_mode_too() -> None:
    fixed, adaptive = (by_modes(*TWO_MODES, slower=0.03, adaptive=on) for on in (False, True))

    assert known(adaptive.by_mode).modes.error == pytest.approx(
        1.2 / 1.1 * known(fixed.by_mode).modes.error
    )
