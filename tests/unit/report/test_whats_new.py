"""What is new: failing series, many changes, and series too short to analyse."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.series_wording import missing_since
from corebound.analysis.wording import Text
from corebound.cli.app import app
from corebound.present import changes
from corebound.present.sections import text_of
from corebound.records import history_files
from corebound.records.history import HistoryPoints, Series
from corebound.report.elements import Content
from corebound.report.inputs import PageContext
from corebound.report.pages import feed, history
from corebound.report.pages.benchmark import benchmark_hero
from corebound.report.pages.series_table import no_change, series_groups
from corebound.report.pages.whats_new import whats_new
from corebound.stats.history.regressions import analyse, min_values_to_detect
from support.build import a_point, a_series
from support.report_sample import NOW, a_benchmark
from support.series import Observation, find_change_points
from support.series import a_stepped_series as stepped
from support.texts import in_order

FAILED = "it failed"
ZERO = "0 x: only values above 0 can be compared"


def series(scenario: str, *ends: str, nights: int = 40, **changes: Any) -> Series:
    """A steady one, whose last points have no figure for these reasons."""
    noise = random.Random(scenario)
    values = [1e6 * noise.gauss(1, 0.005) for _ in range(nights)]
    series = a_series(values, scenario=scenario, title=scenario, project="p")
    points = list(series.points)
    for at, why in zip(range(nights - len(ends), nights), ends, strict=True):
        points[at] = replace(points[at], value=None, missing=why)
    return replace(series, points=HistoryPoints.of(points), **changes)


def words(text: Text) -> str:
    return "".join(piece.text for piece in text)


def tonight(history: ChangeHistory) -> Content:
    news = whats_new(history, ())
    assert news is not None
    return news


def test_the_headline_says_how_many_give_no_figure_any_more() -> None:
    history = build_change_history([series("a", *[FAILED] * 3), series("b", FAILED), series("c")])

    news = tonight(history)

    assert in_order(words(news.verdict), "2 series", "no result")
    assert in_order(words(news.support), "3 series", "no new change")
    (row,) = news.failing.in_words[1]
    assert row[:3] == ("it failed (p)", "2", "b; a")
    assert row[3].startswith(day(history, "a", 3))
    assert news.inconclusive.rows == ()


def day(history: ChangeHistory, scenario: str, points: int) -> str:
    series = next(series for series in history.series if series.scenario == scenario)
    return series.points.moments[-points].at[:10]


def test_what_got_slower_is_told_before_it() -> None:
    noise = random.Random(1)
    values = [1e6 * (1.5 if at >= 30 else 1) * noise.gauss(1, 0.005) for at in range(40)]
    slower = a_series(values, scenario="slow", title="slow", project="p")

    news = tonight(build_change_history([slower, series("b", FAILED)]))

    assert in_order(words(news.verdict), "1 series", "slower", "1 gives no")


def test_what_has_failed_for_long_is_no_headline_and_stays_on_the_page_of_the_history() -> None:
    known = build_change_history([series("a", *[FAILED] * 31, nights=60), series("c", nights=60)])

    news, page = tonight(known), history.history_page(PageContext(now=NOW, history=known))

    assert (news.is_news, "2 series watched" in words(news.verdict)) == (False, True)
    assert in_order(words(news.support), "1 series", "without results", "longer")
    assert news.failing.rows == ()
    assert [text_of(row[2]) for row in page.failures.rows] == ["a"]
    assert "1 series stopped giving" in words(page.hero.support)


def test_rows_beyond_a_first_page_are_counted_by_what_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("corebound.report.pages.whats_new._MOST_ROWS", 4)
    reasons = [f"{FAILED} at {letter}" for letter in "abcdefghij"]

    news = tonight(build_change_history([series(why, why) for why in reasons]))

    assert len(news.failing.rows) == 4
    assert news.more.endswith(": 6 without a result.")


@pytest.mark.parametrize("why", [FAILED, ZERO])
def test_a_latest_figure_that_points_came_after_says_so(why: str) -> None:
    # A value of 0 is none that can be compared, and has not failed; it is not the old one either.
    known = build_change_history([series("a", why, why), series("b")])

    (group,) = history.history_page(PageContext(now=NOW, history=known)).groups

    missing = [missing_since(row.series) for row in group.rows]
    assert missing == [f"none since {day(known, 'a', 2)}", ""]


def test_a_benchmarks_page_says_which_cells_and_why() -> None:
    cells = [series("a", FAILED, cell="n=1"), series("a", cell="n=2")]
    history = build_change_history(cells)

    hero = benchmark_hero(a_benchmark(history.series, history))

    assert in_order(words(hero.verdict), "1 of 2 series", "no result")
    assert in_order(words(hero.support), "1 series", day(history, "a", 1), "it failed")


def test_what_ended_while_others_went_on_has_not_failed() -> None:
    gone = series("gone", FAILED, nights=10)
    history = build_change_history([gone, series("c", nights=60)])

    assert history.failing == {}


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corebound.report.pages.whats_new._MOST_ROWS", 4)
    monkeypatch.setattr("corebound.report.pages.whats_new._LEAST_BETTER", 1)
    monkeypatch.setattr(feed, "_MOST_ENTRIES", 3)
    monkeypatch.setattr(changes, "_MOST_LISTED", 2)


def titles(history: ChangeHistory) -> list[str]:
    tonight = whats_new(history, ())
    assert tonight is not None
    return [group.change.series.title for group in tonight.changed]


@pytest.mark.usefixtures("few_rows")
def test_the_overview_has_rows_of_every_event_and_of_what_got_better() -> None:
    # One event of many benchmarks, later than another of one, and improvements beside both.
    many = [stepped(f"large{number}", 1.5, at=50) for number in range(6)]
    series, better = stepped("other", 1.14, at=45), [stepped(f"b{n}", 0.8) for n in range(3)]
    history = build_change_history([*many, series, *better])

    names = titles(history)

    assert len(names) == 4
    assert "other" in names
    assert sum(title.startswith("large") for title in names) == 2
    assert sum(title.startswith("b") for title in names) == 1
    assert names[-1].startswith("b")


@pytest.mark.usefixtures("few_rows")
def test_what_few_improvements_leave_the_regressions_have_and_the_other_way_round() -> None:
    worse = [stepped(f"w{number}", 1.2) for number in range(6)]
    better = [stepped(f"b{number}", 0.8) for number in range(6)]

    assert (
        len(titles(build_change_history(worse))) == len(titles(build_change_history(better))) == 4
    )
    assert [title[0] for title in titles(build_change_history([worse[0], *better]))] == [
        "w",
        "b",
        "b",
        "b",
    ]


@pytest.mark.usefixtures("few_rows")
def test_the_feed_has_what_got_worse_where_not_all_fits_and_cells_together() -> None:
    better = [stepped(f"b{number}", 0.8, at=50) for number in range(5)]
    cells = [stepped("cells", ratio, cell=f"c={ratio}") for ratio in (1.1, 1.3)]

    made = feed.feed(
        PageContext(now=NOW, history=build_change_history([*better, *cells, stepped("alone", 1.2)]))
    )

    parts = [entry.title for entry in made.entries]
    assert len(parts) == 3
    assert sum(title.startswith("▲") for title in parts) == 1
    assert sum(title.endswith("slower: cells, 2 series") for title in parts) == 1


def test_an_entry_of_several_cells_keeps_its_id_whichever_of_them_is_the_largest() -> None:
    def entry(first: float, second: float) -> str:
        history = build_change_history(
            [stepped("s", first, cell="c=1"), stepped("s", second, cell="c=2")]
        )
        (entry,) = feed.feed(PageContext(now=NOW, history=history)).entries
        return str(entry.id)

    assert entry(1.1, 1.3) == entry(1.3, 1.1)


@pytest.mark.parametrize(
    ("unit", "text"), [("ns", "1 series got slower."), ("bytes", "2 series got worse.")]
)
def test_the_headline_calls_nothing_slower_that_is_no_time(unit: str, text: str) -> None:
    all_series = [stepped("time", 1.5), stepped("other", 1.5, unit=unit)][: 1 + (unit != "ns")]

    tonight = whats_new(build_change_history(all_series), ())

    assert tonight is not None
    assert "".join(piece.text for piece in tonight.verdict) == text


ENOUGH = min_values_to_detect()


def of(figures: int, **changes: object) -> Series:
    return a_series([1e6 + day % 3 for day in range(figures)], **changes)


def known(*series: Series) -> ChangeHistory:
    return build_change_history(series)


def said_of(*series: Series) -> tuple[str, str]:
    """The verdict of the night, and what it rests on."""
    tonight = whats_new(known(*series), ())
    assert tonight is not None
    verdict, support = (
        "".join(piece.text for piece in told) for told in (tonight.verdict, tonight.support)
    )
    return verdict, support


def test_so_many_figures_are_the_fewest_in_which_any_step_is_found() -> None:
    noise = random.Random(3)

    def found(nights: int) -> bool:
        """Whether steps of any size at any place are, each in so much noise."""
        return any(
            find_change_points(
                [
                    Observation(
                        figure=(1 if night < at else ratio) * noise.lognormvariate(0, spread)
                    )
                    for night in range(nights)
                ]
            )
            for at in range(1, nights)
            for ratio in (0.01, 1.5, 100.0)
            for spread in (1e-6, 1e-3, 1e-2)
        )

    assert not any(found(nights) for nights in range(2, ENOUGH))
    assert found(ENOUGH)


def test_only_figures_under_the_latest_circumstances_count() -> None:
    whole = of(2 * ENOUGH)
    late = 2 * ENOUGH - 3
    moved = replace(
        whole,
        points=HistoryPoints.of(
            point if day < late else replace(point, environment_key=(("kernel", "6.2"),))
            for day, point in enumerate(whole.points)
        ),
    )

    assert not analyse([whole]).too_short
    assert analyse([moved]).too_short == {moved.id}


def test_nights_without_a_figure_tell_nothing_and_a_series_of_them_failed() -> None:
    gaps = a_series([1e6, None] * (ENOUGH - 1))
    failed = a_series([None] * 3)

    assert analyse([gaps]).too_short == {gaps.id}
    assert not analyse([failed]).too_short


@pytest.mark.parametrize(
    ("lengths", "verdict", "short"),
    [
        ((ENOUGH,), "1 series watched; no new change.", ""),
        ((ENOUGH, ENOUGH, 3), "3 series watched; no new change.", "1 of 3 series has"),
        ((ENOUGH, 3, 2), "1 of 3 series with enough data; no new change.", "2 of 3 series have"),
        ((7, 3), "2 series recorded; too few values yet to detect changes.", "All 2 series have"),
    ],
)
def test_the_verdict_of_the_night_is_of_the_series_that_can_tell(
    lengths: tuple[int, ...], verdict: str, short: str
) -> None:
    said, support = said_of(*(of(length, cell=f"n={at}") for at, length in enumerate(lengths)))

    assert said == verdict
    assert ("too little data" in support) is bool(short)
    assert short in support


def test_a_table_says_that_a_series_is_too_short_instead_of_unchanged() -> None:
    series, long = of(3), of(2 * ENOUGH, scenario="longer")
    history = known(series, long)

    rows = [row for group in series_groups([series, long], history) for row in group.rows]

    assert [row.change for row in rows] == [None, None]
    assert {len(row.series.points): no_change(row.all_series, history) for row in rows} == {
        3: "too little data",
        2 * ENOUGH: "none",
    }


def test_what_has_ended_need_not_tell() -> None:
    series = of(4 * ENOUGH + 60, project="p", cell="n=1")
    ended = replace(series, cell="n=2", points=HistoryPoints.of([a_point(1e6)]))

    assert known(series, ended).retired_series == {ended.id}
    assert "too little data" not in said_of(series, ended)[1]


def test_the_command_says_the_same_in_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    all_series = [of(ENOUGH), of(3, cell="n=2")]
    history_files.keep(
        "p", [replace(series, project="p") for series in all_series], Path("reports/records")
    )
    by_name = {
        form: CliRunner()
        .invoke(app, ["regressions", "--format", form], env={"COLUMNS": "400"})
        .stdout
        for form in ("text", "md", "json")
    }

    text = f"1 of 2 series has too little data: a change takes {ENOUGH} values"
    assert f"No new regression, in 2 series. {text}" in by_name["text"]
    assert text in by_name["md"]
    assert json.loads(by_name["json"])["too_short"] == 1


def test_secondary_benchmarks_never_set_the_headline_and_come_last() -> None:
    secondary = replace(stepped("large", 3.0), importance="secondary")

    alone = tonight(build_change_history([secondary, stepped("still", 1.0)]))
    both = tonight(build_change_history([secondary, stepped("small", 1.1), stepped("larger", 1.8)]))

    assert "slower" not in words(alone.verdict)
    assert in_order(words(alone.support), "1 series", "secondary benchmarks", "worse")
    assert [row.change.series.title for row in both.changed] == ["larger", "small", "large"]
    assert "got slower" in words(both.verdict)


def test_what_changed_is_counted_by_direction_and_importance_with_mean_and_range() -> None:
    slower = [stepped("a", 1.5), stepped("b", 2.0)]
    less_important = replace(stepped("c", 1.5), importance="secondary")
    history = build_change_history([*slower, less_important, stepped("d", 0.5)])

    rows = tonight(history).summary.in_words[1]

    assert [row[:2] for row in rows] == [
        ("▼ regressions, primary", "2"),
        ("▼ regressions, secondary", "1"),
        ("▲ improvements, primary", "1"),
    ]
    # The geometric mean of 1.5 and 2.
    assert rows[0][2:] == ("1.73×", "1.50 to 2.00×")
    assert rows[1][3] == ""
