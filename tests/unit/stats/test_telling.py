"""Which cells are looked into: baseline, fastest, and a trap."""

from __future__ import annotations

from corebound.records.launch_record import Status
from corebound.stats.launch_summary import CellSummary, summarise
from corebound.stats.sample_size import most_informative_cells
from support.build import a_cell, a_launch, a_worker


def a_summary(name: str, median_ns: int | None) -> CellSummary:
    cell = a_cell(axes=(("binding", name),))
    status: Status = "failed" if median_ns is None else "ok"
    worker = a_worker(wall_ns=(median_ns or 1,) * 30)
    return summarise(cell, [a_launch(cell=cell, status=status, workers=(worker,))], "auto")


def chosen(**medians_ns: int | None) -> tuple[tuple[str, ...], ...]:
    """What is chosen where every cell is compared with the one named `base`."""
    summaries = [a_summary(name, median_ns) for name, median_ns in medians_ns.items()]
    keys = [summary.cell.key for summary in summaries]
    return most_informative_cells(
        summaries, {key: "binding=base" for key in keys if key != "binding=base"}
    )


def test_a_baseline_and_its_fastest_rival_are_looked_into() -> None:
    assert chosen(slow=120, base=100, fast=80) == (("binding=base", "binding=fast"),)


def test_a_rival_twice_as_slow_is_too() -> None:
    assert chosen(base=100, fast=80, trap=210) == (
        ("binding=base", "binding=fast", "binding=trap"),
    )


def test_a_cell_is_named_once() -> None:
    assert chosen(base=100, trap=300) == (("binding=base", "binding=trap"),)


def test_a_baseline_that_failed_is_not_looked_into_but_its_rivals_are() -> None:
    assert chosen(base=None, fast=80, trap=900) == (("binding=fast",),)


def test_what_was_never_measured_tells_nothing() -> None:
    assert chosen(base=None, other=None) == ()


def test_every_baseline_has_its_own() -> None:
    summaries = [a_summary(name, 100) for name in ("a1", "b1", "a2", "b2")]

    assert most_informative_cells(
        summaries, {"binding=a2": "binding=a1", "binding=b2": "binding=b1"}
    ) == (
        ("binding=a1", "binding=a2"),
        ("binding=b1", "binding=b2"),
    )
