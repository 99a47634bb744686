"""The history page by commit: what each changed, its worst series, and bars of the latest."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.change_history import build_change_history
from corebound.analysis.wording import plain
from corebound.present.sections import text_of
from corebound.records.history import HistoryPoints, Series
from corebound.report.charts.commits import CommitBar, commit_bars_svg, presence_svg, step_svg
from corebound.report.elements import Page
from corebound.report.inputs import PageContext
from corebound.report.pages import history as history_module
from corebound.report.pages.history import history_page
from support.markup import parse_html
from support.report_sample import NOW, pages_of
from support.series import a_stepped_series
from support.texts import in_order


def page_of(*series: Series) -> Page:
    return history_page(PageContext(now=NOW, history=build_change_history(series)))


def test_the_headline_counts_new_regressions_of_primary_benchmarks() -> None:
    page = page_of(
        a_stepped_series("a", 1.2, at=45),
        a_stepped_series("a", 1.3, at=45, cell="n=2"),
        a_stepped_series("b", 1.2, at=35),
        a_stepped_series("c", 9.0, at=50, importance="secondary"),
    )

    assert in_order(plain(page.hero.verdict), "3 series", "2 commits")
    assert in_order(plain(page.hero.support), "1 series", "secondary")


def test_older_regressions_are_said_to_be_open() -> None:
    page = page_of(a_stepped_series("a", 1.2, at=20, nights=90))

    assert plain(page.hero.verdict) == "No new regression."
    assert in_order(plain(page.hero.support), "1 series", "older regression", "open")
    assert [entry.status for entry in page.commits] == ["open"]


def test_improvements_that_are_not_new_are_folded() -> None:
    page = page_of(
        a_stepped_series("better", 0.8, at=20, nights=90),
        a_stepped_series("worse", 1.2, at=70, nights=90),
    )

    assert [entry.is_regression for entry in page.commits] == [True]
    assert [text_of(row[3]) for row in page.older.rows] == ["kept"]


def test_the_worst_series_of_the_most_affected_benchmarks_are_drawn() -> None:
    cells = [a_stepped_series("a", ratio, cell=f"n={ratio}") for ratio in (1.2, 1.5)]
    others = [a_stepped_series(f"b{number}", 1.1 + number / 100) for number in range(5)]

    (entry,) = page_of(*cells, *others).commits

    benchmarks = entry.leading.benchmarks
    assert [each.largest.series.title for each in benchmarks[:4]] == ["a", "b4", "b3", "b2"]
    assert (benchmarks[0].largest.series.cell, len(benchmarks[0].changes)) == ("n=1.5", 2)


def test_every_change_is_listed_once_under_its_commit() -> None:
    series = [a_stepped_series("a<b>", 1.2), a_stepped_series("c", 0.8)]
    history = build_change_history(series)

    text = pages_of([], series=series)["history.html"]

    for change in history.changes:
        assert text.count(f'id="change-{change.id}"') == 1
    assert text.count('id="commit-0000000000"') == 1
    assert "a<b>" not in text


def test_commits_beyond_what_a_page_holds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_MOST_COMMITS", 2)
    monkeypatch.setattr(history_module, "_MOST_UNFOLDED", 1)

    page = page_of(*(a_stepped_series(f"b{at}", 1.2, at=at) for at in (32, 40, 48)))

    assert (len(page.commits), len(page.older.rows)) == (1, 1)
    # What the headline counts is what the list shows and what it says is below.
    assert "3 commits" in plain(page.hero.verdict)
    assert page.more == 2
    assert page.hidden == 1


def test_a_bar_counts_the_series_of_its_commit_by_importance() -> None:
    (timeline,) = page_of(
        a_stepped_series("a", 1.2), a_stepped_series("b", 0.8),
        a_stepped_series("c", 1.2, importance="secondary"),
    ).timelines  # fmt: skip

    (bar,) = (bar for bar in timeline.bars if bar.link)
    assert (bar.faster, bar.slower) == ((1, 0), (1, 1))
    assert in_order(timeline.title, "60 commits", " p")
    assert timeline.bars.index(bar) == 45


def test_a_project_without_a_recent_change_has_no_bars() -> None:
    assert page_of(a_stepped_series("a", 1.2, at=20, nights=120)).timelines == ()


def test_an_environment_change_of_most_series_is_a_line_between_the_bars() -> None:
    def moved(series: Series) -> Series:
        points = (
            replace(point, environment_key=(("kernel", "6.1" if at < 20 else "6.2"),))
            for at, point in enumerate(series.points)
        )
        return replace(series, points=HistoryPoints.of(points))

    (timeline,) = page_of(moved(a_stepped_series("a", 1.2))).timelines

    assert timeline.borders == ((20 / 60, "kernel 6.1 to 6.2"),)

    still = replace(a_stepped_series("a", 1.2), host="other", host_name="other")
    (timeline,) = page_of(moved(a_stepped_series("a", 1.2)), still).timelines
    assert [what for _, what in timeline.borders] == ["host: kernel 6.1 to 6.2"]


def test_secondary_benchmarks_are_marked_by_word_and_can_be_hidden() -> None:
    series = [a_stepped_series("a", 1.2), a_stepped_series("b", 1.3, importance="secondary")]

    with_secondary = parse_html(pages_of([], series=series)["history.html"])
    without = parse_html(pages_of([], series=series[:1])["history.html"])

    assert "secondary" in next(iter(with_secondary.all("article"))).text
    inputs = [{each.attributes.get("id") for each in root.all("input")} for root in
              (with_secondary, without)]  # fmt: skip
    assert "kind-primary" in inputs[0]
    assert "kind-primary" not in inputs[1]


@given(
    values=st.lists(
        st.one_of(st.just(math.nan), st.floats(min_value=5e-324, max_value=1.7e308)),
        min_size=1, max_size=60,
    ),
    share=st.floats(0, 1),
    levels=st.tuples(
        st.floats(min_value=5e-324, max_value=1.7e308), st.floats(min_value=5e-324),
    ),
)  # fmt: skip
def test_a_drawn_change_never_leaves_its_box(
    values: list[float], share: float, levels: tuple[float, float]
) -> None:
    svg = step_svg(values, round(share * (len(values) - 1)), levels, tone="bad", says="a")

    numbers = [float(number) for drawn in re.findall(r' d="(.*?)"', svg)
               for number in re.findall(r"-?\d+(?:\.\d+)?", drawn)]  # fmt: skip
    assert all(0 <= number <= 300 for number in numbers)
    assert "nan" not in svg


def test_a_bar_is_a_link_that_says_its_numbers() -> None:
    bars = [CommitBar(name="1f0c"), CommitBar(name="9be1", link="commit-9be1", slower=(4, 1))]

    svg = commit_bars_svg(bars, [], "two commits")

    assert 'href="#commit-9be1" aria-label="9be1: 0 series better, 5 worse"' in svg
    assert "1f0c" not in svg
    # 46 is the whole side; the primary part is sqrt(4/5) of it.
    heights = [float(height) for height in re.findall(r'height="([\d.]+)"', svg)]
    assert heights == pytest.approx([46 * math.sqrt(0.8), 46 * (1 - math.sqrt(0.8))], abs=0.1)


def test_boxes_say_how_many_have_a_value() -> None:
    assert 'aria-label="2 of the last 3 have a value"' in presence_svg([True, True, False])
