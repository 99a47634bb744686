"""Specifies which cells need another launch, and which tell most."""

import pytest

from corebound.records.launch_record import Status
from corebound.scenario.models import Launches
from corebound.stats.comparison import compare
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.stopping import most_informative_cells, needs_more_launches, unfinished
from support.build import a_cell, a_launch, a_worker

RULE = Launches(min=4, max=8, until_relative_ci=0.02)
QUIET = (1.0, 1.001, 0.999, 1.0, 1.001, 0.999, 1.0, 1.0)
SLOWER = (2.9, 3.0, 3.1, 3.2)
NOISY = (1.0, 1.3, 0.8, 1.1, 0.7, 1.2, 0.9, 1.05)


def a_summary(name: str, *launches: float | Status) -> CellSummary:
    """A cell with an `ok` launch at each level, or one of another status."""
    cell = a_cell(axes=(("binding", name),))
    return summarise(
        cell,
        [
            a_launch(cell=cell, block=block, status=launch, workers=())
            if isinstance(launch, str)
            else a_launch(
                cell=cell, block=block, workers=(a_worker(wall_ns=(round(1e9 * launch),)),)
            )
            for block, launch in enumerate(launches)
        ],
        "auto",
    )


@pytest.mark.parametrize(
    ("cells", "continue_"),
    [
        pytest.param({"base": (), "one": ()}, {"base", "one"}, id="none-was-launched"),
        pytest.param(
            {"base": QUIET[:3], "one": QUIET[:3]}, {"base", "one"}, id="below-the-minimum"
        ),
        pytest.param({"base": QUIET[:4], "one": QUIET[:4]}, set(), id="narrow-intervals"),
        pytest.param({"base": QUIET[:4], "one": SLOWER}, set(), id="one-is-clearly-slower"),
        # 10 % slower with a spread of 2 %: Student's 99.9 % factor for 4 launches is 12.9.
        pytest.param(
            {"base": QUIET[:4], "one": (1.08, 1.1, 1.12, 1.1)},
            {"base", "one"},
            id="one-may-be-within-the-margin",
        ),
        pytest.param(
            {"base": QUIET[:4], "one": NOISY[:4], "two": QUIET[:4]},
            {"base", "one"},
            id="a-noisy-cell-continues-with-its-baseline-only",
        ),
        pytest.param({"base": NOISY[:4], "one": NOISY[:4]}, set(), id="noise-cancels-in-the-ratio"),
        pytest.param({"base": QUIET, "one": NOISY}, set(), id="the-maximum-of-launches"),
        pytest.param(
            {"base": QUIET[:4], "one": (*NOISY[:4], *["failed"] * 4)},
            set(),
            id="failed-launches-count-towards-the-maximum",
        ),
        pytest.param(
            {"base": QUIET[:2], "one": ("failed",)}, {"base", "one"}, id="one-failed-once"
        ),
        pytest.param(
            {"base": QUIET[:2], "one": ("failed", "timed-out")}, {"base"}, id="one-failed-twice"
        ),
        pytest.param(
            {"base": QUIET[:2], "one": ("invalid", "invalid")}, {"base"}, id="one-is-never-valid"
        ),
        pytest.param({"base": QUIET[:1], "one": ("skipped",)}, {"base"}, id="one-was-skipped"),
        pytest.param(
            {"base": QUIET[:3], "one": (QUIET[0], "failed", "failed")},
            {"base", "one"},
            id="one-also-fails",
        ),
        # Without a result to compare with, a cell is judged by its own interval.
        pytest.param(
            {"base": ("failed", "failed"), "one": QUIET[:4], "two": NOISY[:4]},
            {"two"},
            id="a-baseline-that-fails",
        ),
        pytest.param({"one": QUIET[:4]}, set(), id="a-single-quiet-cell"),
        pytest.param({"one": NOISY[:4]}, {"one"}, id="a-single-noisy-cell"),
        pytest.param({"base": NOISY[:4]}, {"base"}, id="a-baseline-alone"),
        pytest.param(
            {"base": NOISY[:4], "one": ("failed", "failed")}, {"base"}, id="all-others-fail"
        ),
    ],
)
def test_these_cells_get_another_launch(
    cells: dict[str, tuple[float | Status, ...]], continue_: set[str]
) -> None:
    summaries = [a_summary(name, *launches) for name, launches in cells.items()]
    baselines = {summary.cell.key: "binding=base" for summary in summaries if "base" in cells}

    keys = unfinished(summaries, baselines, RULE, margin=0.02)

    assert {key.removeprefix("binding=") for key in keys} == continue_


def needs_more(cell: CellSummary, baseline: CellSummary) -> bool:
    return needs_more_launches(cell, compare(cell, baseline, margin=0.02), RULE, margin=0.02)


def test_only_an_inconclusive_or_imprecise_result_needs_more_launches() -> None:
    assert needs_more(a_summary("one", *NOISY), a_summary("base", *QUIET))
    assert not needs_more(a_summary("one", *QUIET), a_summary("base", *QUIET))
    assert not needs_more(a_summary("one", *SLOWER), a_summary("base", *QUIET[:4]))


def a_cell_summary(name: str, median_ns: int | None) -> CellSummary:
    cell = a_cell(axes=(("binding", name),))
    status: Status = "failed" if median_ns is None else "ok"
    worker = a_worker(wall_ns=(median_ns or 1,) * 30)
    return summarise(cell, [a_launch(cell=cell, status=status, workers=(worker,))], "auto")


@pytest.mark.parametrize(
    ("medians_ns", "names"),
    [
        pytest.param({"slow": 120, "base": 100, "fast": 80}, ("base", "fast"), id="the-fastest"),
        pytest.param(
            {"base": 100, "fast": 80, "trap": 210}, ("base", "fast", "trap"), id="twice-as-slow"
        ),
        pytest.param({"base": 100, "trap": 300}, ("base", "trap"), id="each-cell-once"),
        pytest.param({"base": None, "fast": 80, "trap": 900}, ("fast",), id="the-baseline-failed"),
        pytest.param({"base": None, "other": None}, (), id="unmeasured-cells"),
    ],
)
def test_a_baseline_its_fastest_alternative_and_a_trap_are_chosen(
    medians_ns: dict[str, int | None], names: tuple[str, ...]
) -> None:
    summaries = [a_cell_summary(name, median_ns) for name, median_ns in medians_ns.items()]
    baselines = {f"binding={name}": "binding=base" for name in medians_ns if name != "base"}

    chosen = most_informative_cells(summaries, baselines)

    assert chosen == (tuple(f"binding={name}" for name in names),) * bool(names)


def test_each_baseline_has_its_own_choice() -> None:
    summaries = [a_cell_summary(name, 100) for name in ("a1", "b1", "a2", "b2")]

    assert most_informative_cells(
        summaries, {"binding=a2": "binding=a1", "binding=b2": "binding=b1"}
    ) == (("binding=a1", "binding=a2"), ("binding=b1", "binding=b2"))
