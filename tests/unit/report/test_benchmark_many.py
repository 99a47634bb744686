"""The page of a benchmark of hundreds of cells: what is new is said first, and drawn."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.wording import plain
from corebound.records.history import Series
from corebound.report.pages.benchmark import BenchmarkPage, benchmark_page, charted
from corebound.report.urls import series_anchor
from support.build import a_series
from support.report_sample import NOW


def a_cell(
    n: int, *, steps: Mapping[int, float], dtype: str = "f", nights: int = 60, host: str = "box"
) -> Series:
    """A cell of so many nights, whose figures are times a factor from each of these on."""
    noise = random.Random(f"{n} {dtype} {host}")
    level, values = 1e6, []
    for night in range(nights):
        level *= steps.get(night, 1.0)
        values.append(level * noise.gauss(1, 0.004))
    return a_series(
        values,
        project="p",
        scenario="b",
        cell=f"n={n},dtype={dtype}",
        host=host,
        host_name=host,
    )


def page_and_known(all_series: Sequence[Series]) -> tuple[BenchmarkPage, ChangeHistory]:
    history = build_change_history(all_series)
    return benchmark_page("p", tuple(all_series), history, now=NOW), history


def test_the_verdict_on_many_cells_is_how_many_changed_and_not_the_size_of_one() -> None:
    slower = [a_cell(n, steps={50: 1.2}, dtype="d") for n in range(8)]
    same = [a_cell(n, steps={}) for n in range(12)]

    page, _ = page_and_known([*slower, a_cell(99, steps={40: 0.5}), *same])

    assert plain(page.hero.verdict) == "8 of 21 cells got slower, 1 faster."


def test_what_happened_to_several_cells_at_once_is_told_with_what_they_have_in_common() -> None:
    slower = [a_cell(n, steps={50: 1.2}, dtype="d") for n in range(8)]

    page, _ = page_and_known([*slower, *(a_cell(n, steps={}) for n in range(12))])

    text = plain(page.hero.support)
    assert text.startswith("8 of 20 cells on box ")
    assert (
        " slower, all dtype=d, since 2026-02-20 by 0000000000..0000000000. 20 series on 1 machine"
        in text
    )
    # It leads to the first of them.
    assert f"#{series_anchor(slower[0])}" in {piece.link for piece in page.hero.support}


def test_of_two_machines_each_says_how_much_since_when_and_by_which_commits() -> None:
    all_series = [a_cell(1, steps={50: 1.2}, host=host) for host in ("arm", "box")]

    page, _ = page_and_known(all_series)

    assert plain(page.hero.verdict) == "2 of 2 cells got slower."
    assert re.match(
        r"On arm (19|20)\.\d % slower since 2026-02-20 by 0{10}\.\.0{10}\. On box ",
        plain(page.hero.support),
    )


def test_a_cell_that_changed_alone_is_named() -> None:
    page, _ = page_and_known([a_cell(7, steps={50: 1.2}), *(a_cell(n, steps={}) for n in range(3))])

    assert plain(page.hero.support).startswith("n=7 on box ")


def test_what_is_new_is_drawn_though_hundreds_changed_long_ago() -> None:
    # Thirty nights and more ago is no news.
    old = [a_cell(n, steps={20: 0.8}) for n in range(70)]
    new = a_cell(99, steps={50: 1.2})

    all_series = charted([*old, new], build_change_history([*old, new]))

    assert all_series[0] == new


def test_what_one_commit_did_to_hundreds_leaves_charts_for_what_another_did() -> None:
    alike = [a_cell(n, steps={50: 1.2}) for n in range(70)]
    # The last by its parameters.
    series = a_cell(99, steps={40: 1.1})

    all_series = charted([*alike, series], build_change_history([*alike, series]))

    assert series in all_series
    assert len(all_series) == 60


def test_a_cell_that_changed_has_a_row_also_where_it_is_over_and_others_have_a_name_only() -> None:
    # 30 charts and 800 rows are what a page holds.
    all_series = [a_cell(n, steps={}, nights=3) for n in range(840)]
    series = a_cell(999, steps={20: 1.2})
    history = replace(build_change_history([series]), ended=frozenset({series.id}))

    page = benchmark_page("p", (*all_series, series), history, now=NOW)

    assert page.rest.rows[-1].place == series_anchor(series)
    assert len(page.rest.rows) == 800
    assert len(page.rest.unshown) == 11
