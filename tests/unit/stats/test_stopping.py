"""Specifies which cells need another launch, and which tell most."""

from __future__ import annotations

from corebound.records.launch_record import Status
from corebound.scenario.models import Launches
from corebound.stats.comparison import compare
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.stopping import (
    most_informative_cells,
    needs_more_launches,
    unfinished,
)
from support.build import a_cell, a_launch, a_worker

RULE = Launches(min=4, max=8, until_relative_ci=0.02)
QUIET = (1.0, 1.001, 0.999, 1.0, 1.001, 0.999, 1.0, 1.0)
NOISY = (1.0, 1.3, 0.8, 1.1, 0.7, 1.2, 0.9, 1.05)


def a_summary(
    name: str, levels: tuple[float, ...] = (), *, others: tuple[Status, ...] = ()
) -> CellSummary:
    """A cell with `ok` launches at these levels, then launches of other statuses."""
    cell = a_cell(axes=(("binding", name),))
    launches = [
        a_launch(cell=cell, block=block, workers=(a_worker(wall_ns=(round(1e9 * level),)),))
        for block, level in enumerate(levels)
    ]
    launches += [
        a_launch(cell=cell, block=block, status=status, workers=())
        for block, status in enumerate(others, start=len(levels))
    ]
    return summarise(cell, launches, "auto")


def unfinished_cells(*summaries: CellSummary, baseline: str | None = "base") -> set[str]:
    """Names of the cells that want another launch, all compared with the baseline."""
    baselines = {s.cell.key: f"binding={baseline}" for s in summaries} if baseline else {}
    return {
        key.removeprefix("binding=") for key in unfinished(summaries, baselines, RULE, margin=0.02)
    }


def test_every_cell_is_launched_at_first() -> None:
    assert unfinished_cells(a_summary("base"), a_summary("one")) == {"base", "one"}


def test_no_cell_stops_below_the_minimum_of_launches() -> None:
    assert unfinished_cells(a_summary("base", QUIET[:3]), a_summary("one", QUIET[:3])) == {
        "base",
        "one",
    }


def test_a_narrow_interval_ends_a_cell() -> None:
    assert unfinished_cells(a_summary("base", QUIET[:4]), a_summary("one", QUIET[:4])) == set()


def test_a_clearly_slower_cell_gets_no_more_launches() -> None:
    three_times_slower = a_summary("one", (2.9, 3.0, 3.1, 3.2))

    assert unfinished_cells(a_summary("base", QUIET[:4]), three_times_slower) == set()


def test_a_cell_that_may_be_within_the_margin_continues() -> None:
    # 10 % slower with a spread of 2 %: Student's 99.9 % factor for 4 launches is 12.9.
    perhaps_slower = a_summary("one", (1.08, 1.1, 1.12, 1.1))

    assert unfinished_cells(a_summary("base", QUIET[:4]), perhaps_slower) == {"base", "one"}


def test_a_noisy_cell_continues_with_its_baseline_only() -> None:
    cells = (a_summary("base", QUIET[:4]), a_summary("one", NOISY[:4]), a_summary("two", QUIET[:4]))

    assert unfinished_cells(*cells) == {"base", "one"}


def test_noise_that_cancels_in_the_ratio_ends_a_cell() -> None:
    assert unfinished_cells(a_summary("base", NOISY[:4]), a_summary("one", NOISY[:4])) == set()


def test_no_cell_exceeds_the_maximum_of_launches() -> None:
    assert unfinished_cells(a_summary("base", QUIET), a_summary("one", NOISY)) == set()


def test_failed_launches_count_towards_the_maximum() -> None:
    flaky = a_summary("one", NOISY[:4], others=("failed",) * 4)

    assert unfinished_cells(a_summary("base", QUIET[:4]), flaky) == set()


def test_a_cell_that_fails_twice_is_given_up() -> None:
    base = a_summary("base", QUIET[:2])

    assert unfinished_cells(base, a_summary("one", others=("failed",))) == {"base", "one"}
    assert unfinished_cells(base, a_summary("one", others=("failed", "timed-out"))) == {"base"}
    assert unfinished_cells(base, a_summary("one", others=("invalid", "invalid"))) == {"base"}


def test_a_skipped_cell_is_not_tried_again() -> None:
    assert unfinished_cells(
        a_summary("base", QUIET[:1]), a_summary("one", others=("skipped",))
    ) == {"base"}


def test_one_good_launch_keeps_a_cell_that_also_fails() -> None:
    assert unfinished_cells(
        a_summary("base", QUIET[:3]), a_summary("one", QUIET[:1], others=("failed", "failed"))
    ) == {"base", "one"}


def test_without_a_baseline_result_a_cell_is_judged_by_its_own_interval() -> None:
    base = a_summary("base", others=("failed", "failed"))

    assert unfinished_cells(base, a_summary("one", QUIET[:4]), a_summary("two", NOISY[:4])) == {
        "two"
    }


def test_a_single_cell_is_judged_by_its_own_interval() -> None:
    assert unfinished_cells(a_summary("one", QUIET[:4]), baseline=None) == set()
    assert unfinished_cells(a_summary("one", NOISY[:4]), baseline=None) == {"one"}
    assert unfinished_cells(a_summary("base", NOISY[:4])) == {"base"}


def test_a_baseline_whose_cells_all_fail_is_judged_by_its_own_interval() -> None:
    failed = a_summary("one", others=("failed", "failed"))

    assert unfinished_cells(a_summary("base", NOISY[:4]), failed) == {"base"}


def needs_more(cell: CellSummary, baseline: CellSummary) -> bool:
    return needs_more_launches(cell, compare(cell, baseline, margin=0.02), RULE, margin=0.02)


def test_an_inconclusive_or_imprecise_result_needs_more_launches() -> None:
    base = a_summary("base", QUIET)

    assert needs_more(a_summary("one", NOISY), base)
    assert not needs_more(a_summary("one", QUIET), base)


def test_a_difference_beyond_the_margin_needs_no_more_launches() -> None:
    assert not needs_more(a_summary("one", (2.9, 3.0, 3.1, 3.2)), a_summary("base", QUIET[:4]))


def a_cell_summary(name: str, median_ns: int | None) -> CellSummary:
    cell = a_cell(axes=(("binding", name),))
    status: Status = "failed" if median_ns is None else "ok"
    worker = a_worker(wall_ns=(median_ns or 1,) * 30)
    return summarise(cell, [a_launch(cell=cell, status=status, workers=(worker,))], "auto")


def chosen(**medians_ns: int | None) -> tuple[tuple[str, ...], ...]:
    """What is chosen where every cell is compared with the one named `base`."""
    summaries = [a_cell_summary(name, median_ns) for name, median_ns in medians_ns.items()]
    keys = [summary.cell.key for summary in summaries]
    return most_informative_cells(
        summaries, {key: "binding=base" for key in keys if key != "binding=base"}
    )


def test_a_baseline_and_its_fastest_alternative_are_chosen() -> None:
    assert chosen(slow=120, base=100, fast=80) == (("binding=base", "binding=fast"),)


def test_an_alternative_twice_as_slow_is_chosen() -> None:
    assert chosen(base=100, fast=80, trap=210) == (
        ("binding=base", "binding=fast", "binding=trap"),
    )


def test_a_cell_is_chosen_once() -> None:
    assert chosen(base=100, trap=300) == (("binding=base", "binding=trap"),)


def test_the_alternatives_of_a_failed_baseline_are_chosen() -> None:
    assert chosen(base=None, fast=80, trap=900) == (("binding=fast",),)


def test_unmeasured_cells_are_not_chosen() -> None:
    assert chosen(base=None, other=None) == ()


def test_each_baseline_has_its_own_choice() -> None:
    summaries = [a_cell_summary(name, 100) for name in ("a1", "b1", "a2", "b2")]

    assert most_informative_cells(
        summaries, {"binding=a2": "binding=a1", "binding=b2": "binding=b1"}
    ) == (
        ("binding=a1", "binding=a2"),
        ("binding=b1", "binding=b2"),
    )
