"""Specifies how many iterations launches have, given what the first ones show."""

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.stats.launch_summary import LaunchSummary, combine_launches
from corebound.stats.pilot import PilotLaunches, worthwhile_iterations
from corebound.stats.warmup import SteadyState
from support.build import a_launch, a_scenario

MS = 1_000_000
BASELINE, CELL, OTHER = expand(a_scenario(matrix={"threads": [1, 2, 4]}), "f.yaml", None)
BASELINES = {CELL.key: BASELINE.key, OTHER.key: BASELINE.key}


def a_pilot(
    medians_ns: Sequence[float],
    *,
    error: float,
    cell: Cell = BASELINE,
    used: int = 100,
    setup_ms: float = 2000,
    start: int = 0,
    workers: int = 1,
) -> PilotLaunches:
    """Launches whose medians are known to within `error` each."""
    launches = [
        LaunchSummary(
            launch=f"{cell}-{block}",
            block=block,
            median_ns=median_ns,
            p99_ns=None,
            cpu_median_ns=None,
            used=used,
            steady=SteadyState(kind="steady", start=start),
            error=error,
        )
        for block, median_ns in enumerate(medians_ns)
    ]
    return PilotLaunches(
        summary=combine_launches(cell, launches, [a_launch()] * len(launches)),
        setup_ns=setup_ms * MS,
        iterations=start + used / workers,
        workers=workers,
    )


def test_the_number_balances_set_up_and_iterations() -> None:
    # Kalibera & Jones: sqrt(cost of a launch / cost of an iteration x variance / variance).
    between, error, used = 0.03, 0.01, 100
    medians_ns = [20 * MS * math.exp(sign * between / math.sqrt(2)) for sign in (-1, 1)]
    of_iteration = error**2 * used
    # An ordinary launch, which differs by 2 %, counts like one of these two.
    of_launches = (between**2 - error**2 + 0.02**2) / 2
    best = math.sqrt(2000 / 20 * of_iteration / of_launches)

    assert worthwhile_iterations([a_pilot(medians_ns, error=error)], {}) == {
        BASELINE.key: round(best)
    }


def test_an_error_within_launches_below_a_third_of_their_spread_is_enough() -> None:
    between, error = 0.03, 0.0001
    medians_ns = [MS * math.exp(sign * between / math.sqrt(2)) for sign in (-1, 1)]

    # Set-up is so dear that the optimum would be thousands.
    chosen = worthwhile_iterations([a_pilot(medians_ns, error=error, setup_ms=1e6)], {})

    assert chosen == {BASELINE.key: 10}


def test_the_more_launches_are_alike_the_more_iterations_the_next_ones_get() -> None:
    chosen = [
        worthwhile_iterations([a_pilot([50 * MS] * launches, error=0.01)], {})[BASELINE.key]
        for launches in (2, 3, 50)
    ]

    assert chosen == sorted(set(chosen))
    assert chosen[0] < 100
    # Launches that differ by less than 0.3 % were never seen.
    best = math.sqrt(2000 / 50 * 0.01**2 * 100 / 0.003**2)
    assert chosen[-1] == round(best)


def test_one_launch_that_varies_much_within_does_not_lengthen_the_next_ones() -> None:
    # A host that changes its speed within a launch does that.
    medians_ns = [20 * MS * math.exp(0.02 * (-1) ** block) for block in range(20)]
    pilot = a_pilot(medians_ns, error=0.005)
    first, *others = pilot.summary.launches
    launches = [replace(first, error=0.5), *others]
    summary = combine_launches(BASELINE, launches, [a_launch()] * len(launches))

    assert worthwhile_iterations([replace(pilot, summary=summary)], {}) == worthwhile_iterations(
        [pilot], {}
    )


def test_warm_up_and_what_does_not_count_are_added() -> None:
    pilot = a_pilot([50 * MS] * 3, error=0.01, start=7, used=20)
    with_slices = replace(pilot, iterations=7 + 30)

    plain = worthwhile_iterations([pilot], {})[BASELINE.key]
    assert plain == 7 + 35
    assert worthwhile_iterations([with_slices], {})[BASELINE.key] == 7 + 53


def test_a_baseline_has_as_many_as_the_cell_that_needs_most() -> None:
    level_ns = [20 * MS, 21 * MS, 22 * MS]
    pilots = [
        a_pilot(level_ns, error=0.001, cell=BASELINE),
        a_pilot([1.02 * level_ns[0], *level_ns[1:]], error=0.01, cell=CELL),
        a_pilot([0.98 * level_ns[0], *level_ns[1:]], error=0.02, cell=OTHER),
    ]

    chosen = worthwhile_iterations(pilots, BASELINES)

    assert chosen[BASELINE.key] == max(chosen[CELL.key], chosen[OTHER.key])


def test_the_drift_of_a_host_is_no_difference_between_launches() -> None:
    # Both drift alike, so their ratio does not differ from block to block.
    drifting_ns = [20 * MS, 25 * MS, 16 * MS]
    pilots = [a_pilot(drifting_ns, error=0.01, cell=cell) for cell in (BASELINE, CELL)]

    alike = [a_pilot([20 * MS] * 3, error=0.01, cell=cell) for cell in (BASELINE, CELL)]
    assert worthwhile_iterations(pilots, BASELINES) == worthwhile_iterations(alike, BASELINES)


@given(
    medians_ns=st.lists(st.floats(1, 1e12), min_size=2, max_size=6),
    error=st.floats(0, 10),
    used=st.integers(1, 10_000),
    setup_ms=st.floats(0, 1e9),
    start=st.integers(0, 100),
)
def test_any_launches_give_a_number_within_bounds(
    medians_ns: list[float], error: float, used: int, setup_ms: float, start: int
) -> None:
    pilot = a_pilot(medians_ns, error=error, used=used, setup_ms=setup_ms, start=start)

    (number,) = worthwhile_iterations([pilot], {}).values()

    assert start + 10 <= number <= start + 1000


def test_without_cells_there_is_no_number() -> None:
    assert worthwhile_iterations([], {}) == {}
