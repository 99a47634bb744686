"""The page of an imported benchmark: which cells are charted, listed or only named."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.series_wording import latest_value
from corebound.analysis.wording import plain
from corebound.present.sections import Fact
from corebound.records.history import HistoryPoints, Series
from corebound.report.elements import Page
from corebound.report.inputs import PageContext
from corebound.report.pages.benchmark import benchmark_page, benchmarks_of, select_charts
from corebound.report.pages.history import history_page
from corebound.report.urls import benchmark_file, series_anchor
from support.build import a_point, a_series
from support.markup import by_id, parse_html
from support.report_sample import NOW, a_benchmark, pages_of
from support.texts import in_order


def a_page(*described: tuple[str, int, tuple[tuple[str, str], ...]]) -> Page:
    """A page of series: each its machine, its last day, and how the machine was that day."""
    all_series = tuple(
        a_series(
            [],
            project="p",
            host=host,
            host_name=host,
            cell=f"n={number}",
            points=HistoryPoints.of(
                (a_point(day=0), a_point(day=last, environment_key=circumstances))
            ),
        )
        for number, (host, last, circumstances) in enumerate(described)
    )
    return benchmark_page(a_benchmark(all_series))


def test_each_machine_is_told_as_the_latest_of_all_results_describe_it() -> None:
    page = a_page(
        ("box", 2, (("cpu", "old"),)),
        ("box", 5, (("cpu", "Xeon"), ("ram", "7GB"), ("version", ""))),
        ("arm", 1, ()),
    )

    assert page.machines == (
        Fact(term="arm", value="last measured 2026-01-02 02:00 UTC"),
        Fact(term="box", value="cpu Xeon, ram 7GB, last measured 2026-01-06 02:00 UTC"),
    )


def test_of_what_only_commits_have_dates_nothing_says_when_it_was_measured() -> None:
    series = a_series([], project="p", points=HistoryPoints.of([a_point(run=None)]))

    page = benchmark_page(a_benchmark((series,)))

    assert page.machines[0].value.endswith(", newest commit of 2026-01-01 02:00 UTC")


@pytest.mark.parametrize(
    ("at", "nights", "text"),
    [
        (45, 60, "1.50× slower since 2026-02-15."),
        (45, 120, "1 older regression is still open."),
        (200, 120, "No change."),
        (200, 6, "Too little data to detect changes."),
    ],
)
def test_the_verdict_is_what_is_new_else_open_else_whether_anything_could_be_seen(
    at: int, nights: int, text: str
) -> None:
    noise = random.Random(1)
    values = [1e6 * (1.5 if day >= at else 1.0) * noise.gauss(1, 0.005) for day in range(nights)]
    all_series = (a_series(values, project="p"),)

    page = benchmark_page(a_benchmark(all_series))

    assert plain(page.hero.verdict) == text
    assert ("than the mean of 5 values before it" in plain(page.hero.support)) == (nights == 6)


def a_cell(
    n: int | str, *, days: Sequence[int] = (0, 1, 2), host: str = "box", **changes: Any
) -> Series:
    """A cell with a figure on each of these days."""
    made = {
        "project": "p",
        "scenario": "b",
        "cell": f"n={n}",
        "host": host,
        "host_name": host,
        "points": HistoryPoints.of(a_point(1e6 + day, day=day) for day in days),
    }
    return a_series([], **(made | changes))


def a_changed_cell(n: int, *, host: str = "box") -> Series:
    """A cell that is twice as slow from its twentieth night on."""
    return a_stepped_cell(n, steps={20: 2.0}, nights=40, host=host)


def a_silent_cell(n: int, *, host: str = "box", scenario: str = "b") -> Series:
    points = HistoryPoints.of(a_point(None, day=day, missing="it failed") for day in range(3))
    return a_cell(n, host=host, scenario=scenario, title=scenario, points=points)


def known_of(*series: Series) -> ChangeHistory:
    return build_change_history(series)


def page_of(*series: Series) -> Page:
    history = known_of(*series)
    (benchmark,) = benchmarks_of(history)
    return benchmark_page(benchmark)


def site_of(*series: Series) -> dict[str, str]:
    return pages_of([], series=series)


def titles(page: Page) -> list[str]:
    return [panel.title for panel in page.charts]


def test_charts_are_in_order_of_the_parameters_size() -> None:
    page = page_of(*(a_changed_cell(n) for n in (100_000_000, 10, 2, 50_000_000)))

    assert titles(page) == ["n=2", "n=10", "n=50000000", "n=100000000"]


def test_a_single_figure_is_a_row_and_no_chart() -> None:
    page = page_of(a_cell(1, days=[5]), a_cell(2), a_cell(3))

    assert titles(page) == ["n=2", "n=3"]
    ((series, name),) = page.rows
    assert (name, series.host_name) == ("n=1", "box")
    assert latest_value(series).value == "1.00 ms"


def test_a_benchmark_of_single_figures_has_them_in_a_table_that_is_open() -> None:
    all_series = [a_cell(n, days=[5]) for n in range(3)]

    tree = parse_html(site_of(*all_series)[benchmark_file("p", "b")])

    assert not any(tree.all("figure"))
    for one in all_series:
        row = by_id(tree, series_anchor(one))
        assert row is not None
        assert row.within("details") is None


@pytest.mark.parametrize(("days", "has_ended"), [(range(20), True), (range(78, 80), False)])
def test_what_has_ended_or_hardly_begun_stands_behind_what_goes_on(
    days: range, has_ended: bool
) -> None:
    page = page_of(a_cell(1, days=days), a_cell(2, days=range(80)))

    retired = page.benchmark.history.retired_series
    assert titles(page) == ["n=2", "n=1"]
    assert [panel.all_series[0].id in retired for panel in page.charts] == [False, has_ended]
    assert ("1 retired" in plain(page.hero.support)) == has_ended


def test_all_charts_of_a_page_have_one_axis_of_time() -> None:
    first, second = page_of(a_cell(1, days=range(40)), a_cell(2, days=range(10, 20))).charts

    assert first.along == second.along
    (track,) = second.chart.tracks
    places = track.shares
    # Of 39 days the tenth to the nineteenth, within edges of 1.5 %.
    assert (places[0], places[-1]) == pytest.approx(
        (0.015 + 10 / 39 * 0.97, 0.015 + 19 / 39 * 0.97)
    )


def test_moments_that_cannot_be_read_leave_each_chart_its_own_axis() -> None:
    unread = HistoryPoints.of(a_point(1e6, at=f"night {night}") for night in range(3))

    first, second = page_of(a_cell(1), a_cell(2, points=unread)).charts

    assert (first.is_ordinal, second.is_ordinal) == (False, True)


@pytest.mark.parametrize(
    ("cells", "charts"),
    [
        ({"a": 24, "b": 24, "c": 24}, {"a": 4, "b": 4, "c": 4}),
        ({"a": 72, "b": 3}, {"a": 9, "b": 3}),
    ],
)
def test_charts_are_shared_out_among_machines_as_far_as_each_has_cells(
    cells: dict[str, int], charts: dict[str, int]
) -> None:
    all_series = [a_changed_cell(n, host=host) for host, most in cells.items() for n in range(most)]

    shown, _ = select_charts(a_benchmark(all_series, known_of(*all_series)))

    assert Counter(series.host for series in shown) == charts


def test_of_cells_without_a_change_two_have_a_chart() -> None:
    unchanged = [a_cell(n, host=host) for host in ("a", "b") for n in range(9)]
    changed = [a_changed_cell(n, host="a") for n in range(100, 109)]

    shown, _ = select_charts(a_benchmark((*unchanged, *changed), known_of(*unchanged, *changed)))

    assert len(shown) == 2 + 9
    assert {series.id for series in changed} <= {series.id for series in shown}
    assert [
        sum(series.host == host and series in unchanged for series in shown) for host in ("a", "b")
    ] == [0, 2]


def test_what_no_chart_is_left_for_is_a_row_with_its_course_in_the_same_order() -> None:
    all_series = [a_cell(n) for n in range(16)]

    text = site_of(*all_series)[benchmark_file("p", "b")]

    rows = page_of(*all_series).rows
    assert [name for _, name in rows] == [f"n={n}" for n in range(2, 16)]
    assert text.count('class="spark"') == 14
    assert all(f'id="{series_anchor(series)}"' in text for series in all_series)


def test_beyond_what_a_page_holds_cells_are_named() -> None:
    page = page_of(*(a_cell(n) for n in range(816)))

    assert (len(page.charts), len(page.rows)) == (2, 800)
    assert [name for _, name in page.unshown] == [f"n={n}" for n in range(802, 816)]


def test_each_of_few_charts_has_its_latest_points_behind_it_with_links_to_their_commits() -> None:
    at = "https://example.org/commit/"
    all_series = [replace(a_changed_cell(n), commit_url=at) for n in range(6)]

    page = page_of(*all_series)
    text = site_of(*all_series)[benchmark_file("p", "b")]

    assert {len(panel.points) for panel in page.charts} == {3}
    assert page.charts[0].points[0].link == f"{at}{39:040x}"
    assert text.count(f'href="{at}{39:040x}"') == 6


def test_more_charts_have_their_latest_points_in_one_table() -> None:
    asv = ("asv", "run", "--bench", "^b\\b")
    all_series = [replace(a_changed_cell(n), reproduce=asv) for n in range(8)]

    page = page_of(*all_series)
    text = site_of(*all_series)[benchmark_file("p", "b")]

    assert not any(panel.points for panel in page.charts)
    assert [len(row.points) for row in page.latest] == [8, 8, 8]
    # One command measures all cells of a commit.
    assert [len(row.commands) for row in page.latest] == [1, 1, 1]
    table = by_id(parse_html(text), "latest")
    assert table is not None
    (body,) = table.all("tbody")
    assert [next(row.all("a")).attributes["href"] for row in body.all("tr")] == [
        f"#{series_anchor(panel.all_series[0])}" for panel in page.charts
    ]


def test_a_single_chart_has_twenty_points_behind_it() -> None:
    (panel,) = page_of(a_cell(1, days=range(40))).charts

    assert len(panel.points) == 20


def test_cells_that_never_gave_a_figure_are_counted_and_named_with_the_reason() -> None:
    page = page_of(a_cell(1), a_silent_cell(10), a_silent_cell(2), a_silent_cell(3, host="arm"))

    assert "3 series have no" in plain(page.hero.support)
    assert page.without_values == [
        ("arm", "it failed", ["n=3"]),
        ("box", "it failed", ["n=2", "n=10"]),
    ]


def test_a_benchmark_that_never_had_a_figure_is_told_with_its_cells_and_machines() -> None:
    never = [a_silent_cell(n, host=host, scenario="api") for n in (1, 2) for host in ("x", "y")]
    some = a_silent_cell(7)

    ((location, reason, named),) = history_page(
        PageContext(now=NOW, history=known_of(a_cell(1), some, *never))
    ).without
    text = site_of(a_cell(1), some, *never)["history.html"]

    assert (location, reason) == ("p", "it failed")
    assert [(title, cells) for title, cells, _ in named] == [
        ("b", "n=7, on box"),
        ("api", "n=1; n=2, on x, y"),
    ]
    # What has a page leads there.
    assert f'href="{benchmark_file("p", "b")}#silent"' in text
    assert f'href="{benchmark_file("p", "api")}' not in text


def test_many_cells_that_never_gave_a_figure_are_counted() -> None:
    never = [a_silent_cell(n, scenario="api") for n in range(64)]

    ((_, _, named),) = history_page(
        PageContext(now=NOW, history=known_of(a_cell(1), *never))
    ).without

    assert [cells for _, cells, _ in named] == ["64 series, on box"]


def test_a_machine_is_described_without_the_version_of_the_benchmark_but_its_environments() -> None:
    points = HistoryPoints.of(
        a_point(day=day, environment_key=(("cpu", "Xeon"), ("benchmark", "79c981aa319a")))
        for day in range(2)
    )

    page = page_of(
        a_cell("1,environment=py3.10", points=points), a_cell("1,environment=py3.12", points=points)
    )

    assert [fact.value for fact in page.machines] == [
        "cpu Xeon, environment py3.10, environment py3.12, last measured 2026-01-02 02:00 UTC"
    ]


def test_a_machine_that_stopped_stands_behind_those_that_go_on() -> None:
    history = known_of(a_cell(1, host="a", days=range(9)), a_cell(1, host="b", days=range(90)))

    page = history_page(PageContext(now=NOW, history=history))

    assert [group.title for group in page.groups] == [
        "p, on b",
        "p, on a, last measured 2026-01-09",
    ]


def test_of_several_cells_those_that_ended_are_counted_and_stand_for_no_other() -> None:
    history = known_of(a_cell(1, days=range(9)), a_cell(2, days=range(90)))

    ((row,),) = (group.rows for group in history_page(PageContext(now=NOW, history=history)).groups)

    assert len(row.all_series) == 2
    assert len(row.series.points) == 90


def a_stepped_cell(
    n: int, *, steps: Mapping[int, float], dtype: str = "f", nights: int = 60, host: str = "box"
) -> Series:
    """A cell of so many nights, whose figures are times a factor from each of these on."""
    noise = random.Random(f"{n} {dtype} {host}")
    level, values = 1e6, []
    for night in range(nights):
        level *= steps.get(night, 1.0)
        values.append(level * noise.gauss(1, 0.004))
    return a_series(
        values, project="p", scenario="b", cell=f"n={n},dtype={dtype}", host=host, host_name=host
    )


def page_and_known(all_series: Sequence[Series]) -> tuple[Page, ChangeHistory]:
    history = build_change_history(all_series)
    return benchmark_page(a_benchmark(tuple(all_series), history)), history


def test_the_verdict_on_many_cells_is_how_many_changed_and_not_the_size_of_one() -> None:
    slower = [a_stepped_cell(n, steps={50: 1.2}, dtype="d") for n in range(8)]
    same = [a_stepped_cell(n, steps={}) for n in range(12)]

    page, _ = page_and_known([*slower, a_stepped_cell(99, steps={40: 0.5}), *same])

    assert in_order(plain(page.hero.verdict), "8 of 21 series", "slower", "1 faster")


def test_what_happened_to_several_cells_at_once_is_told_with_what_they_have_in_common() -> None:
    slower = [a_stepped_cell(n, steps={50: 1.2}, dtype="d") for n in range(8)]

    page, _ = page_and_known([*slower, *(a_stepped_cell(n, steps={}) for n in range(12))])

    text = plain(page.hero.support)
    facts = "8 of 20 series", "box", "slower", "dtype=d", "2026-02-20", "0000000000..0000000000"
    assert in_order(text, *facts, "20 series", "1 machine")
    # It leads to the first of them.
    assert f"#{series_anchor(slower[0])}" in {piece.link for piece in page.hero.support}


def test_of_two_machines_each_says_how_much_since_when_and_by_which_commits() -> None:
    all_series = [a_stepped_cell(1, steps={50: 1.2}, host=host) for host in ("arm", "box")]

    page, _ = page_and_known(all_series)

    assert in_order(plain(page.hero.verdict), "2 of 2 series", "slower")
    commits = f"{'0' * 10}..{'0' * 10}"
    assert in_order(plain(page.hero.support), "arm 1.", "since 2026-02-20", commits, "box")


def test_a_cell_that_changed_alone_is_named() -> None:
    page, _ = page_and_known(
        [a_stepped_cell(7, steps={50: 1.2}), *(a_stepped_cell(n, steps={}) for n in range(3))]
    )

    assert plain(page.hero.support).startswith("n=7 on box ")


def test_what_is_new_is_drawn_though_hundreds_changed_long_ago() -> None:
    # Thirty nights and more ago is no news.
    old = [a_stepped_cell(n, steps={20: 0.8}) for n in range(70)]
    new = a_stepped_cell(99, steps={50: 1.2})

    shown, _ = select_charts(a_benchmark([*old, new]))

    assert shown[0] == new


def test_what_one_commit_did_to_hundreds_leaves_charts_for_what_another_did() -> None:
    alike = [a_stepped_cell(n, steps={50: 1.2}) for n in range(70)]
    # The last by its parameters.
    series = a_stepped_cell(99, steps={40: 1.1})

    shown, _ = select_charts(a_benchmark([*alike, series]))

    assert series in shown
    assert len(shown) == 12


def test_a_cell_that_changed_has_a_row_also_where_it_is_over_and_others_have_a_name_only() -> None:
    # 2 charts without a change and 800 rows are what a page holds.
    all_series = [a_stepped_cell(n, steps={}, nights=3) for n in range(816)]
    series = a_stepped_cell(999, steps={20: 1.2})
    history = replace(build_change_history([series]), retired_series=frozenset({series.id}))

    page = benchmark_page(a_benchmark((*all_series, series), history))

    assert page.rows[-1][0] is series
    assert len(page.rows) == 800
    assert len(page.unshown) == 15
