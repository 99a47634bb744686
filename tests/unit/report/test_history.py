"""Histories on the pages: the chart, its marks and gaps, the verdict of the night, the feed."""

import csv
import itertools
import json
import math
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.change_history import (
    ChangeHistory,
    build_change_history,
    change_size,
    size_interval,
)
from corebound.analysis.series_wording import latest_value
from corebound.analysis.wording import plain
from corebound.present.changes import recovery
from corebound.present.sections import Commands, Commits, Items, Value, text_of
from corebound.records.decisions import Answer, Confirmation, Decision
from corebound.records.history import HistoryPoints, Series, days_since_1970
from corebound.report.charts.axis import date_ticks, has_year
from corebound.report.charts.history import history_svg, sparkline_svg, value_axis
from corebound.report.downloads import changes_csv
from corebound.report.elements import Content, Page
from corebound.report.history.panel import history_panel
from corebound.report.inputs import PageContext
from corebound.report.pages.feed import feed
from corebound.report.pages.history import entry_changes, history_page
from corebound.report.pages.whats_new import whats_new
from corebound.scenario.matrix import expand
from corebound.stats.history.alerts import assess_changes
from corebound.stats.history.regressions import Change
from corebound.stats.intervals import Interval
from support.build import a_launch, a_point, a_run, a_scenario, a_series
from support.markup import parse_xml
from support.report_sample import NOW, pages_of
from support.series import accepted
from support.texts import in_order

figures = st.floats(min_value=5e-324, max_value=1.7e308, allow_nan=False)


def stepped(ratio: float = 1.1, *, nights: int = 60, at: int = 45, **changes: Any) -> Series:
    noise = random.Random(1)
    values = [1e6 * (ratio if day >= at else 1.0) * noise.gauss(1, 0.005) for day in range(nights)]
    return replace(a_series(values), **changes)


def known_of(
    *series: Series, decisions: Sequence[Decision] = (), confirmations: Sequence[Confirmation] = ()
) -> ChangeHistory:
    return build_change_history(series, decisions=decisions, confirmations=confirmations)


def measured_again(change: Change, answer: Answer) -> Confirmation:
    """What a re-run of both commits said after the last night."""
    return Confirmation(
        schema=1, id=change.id, location=change.location, answer=answer, both=True, how="somehow",
        at=NOW, last_point=change.series.points[-1].at, run=None, ratio=None, interval=None,
    )  # fmt: skip


def doubted(history: ChangeHistory) -> ChangeHistory:
    """The same, whose only change is not clear among so many series."""
    (change,) = (replace(change, clear=False) for change in history.changes)
    return replace(
        history,
        changes=(),
        unclear=(change,),
        assessed={assessed.id: assessed for assessed in assess_changes([change], [], [])},
    )


def panel_of(*series: Series, most_points: int = 500) -> Content:
    return history_panel(series, known_of(*series), title="a chart", most_points=most_points)


def places(svg: str) -> list[tuple[int, int]]:
    """Every place that the paths of a drawing go to; commands with lower case are relative."""
    found = []
    for path in re.findall(r' d="([^"]*)"', svg):
        x = y = 0
        for command, arguments in re.findall(r"([A-Za-z])([-\d ]*)", path):
            numbers = [int(number) for number in re.findall(r"-?\d+", arguments)]
            across = numbers[::2] if command in "mMlL" else numbers if command in "hH" else []
            up = numbers[1::2] if command in "mMlL" else numbers if command in "vV" else []
            for dx, dy in itertools.zip_longest(across, up):
                if command.islower():
                    x, y = x + (dx or 0), y + (dy or 0)
                else:
                    x, y = x if dx is None else dx, y if dy is None else dy
                found.append((x, y))
    return found


@given(
    points=st.lists(
        st.one_of(st.none(), st.tuples(figures, figures)), min_size=1, max_size=30
    ).filter(any)
)
def test_no_point_is_drawn_outside_whatever_the_figures(
    points: list[tuple[float, float] | None],
) -> None:
    series = replace(
        a_series([]),
        points=HistoryPoints.of(
            a_point(None, day=day)
            if pair is None
            else a_point(min(pair), day=day, bounds=(min(pair), max(pair)))
            for day, pair in enumerate(points)
        ),
    )

    svg = history_svg(panel_of(series).chart)

    # An arrowhead at the edge is ten units wide.
    assert all(-5 <= x <= 1005 and 0 <= y <= 300 for x, y in places(svg))
    assert "nan" not in svg


@given(values=st.lists(st.one_of(st.just(math.nan), figures), max_size=100))
def test_a_spark_never_leaves_its_line(values: list[float]) -> None:
    x = y = 0
    path = re.search(r' d="([^"]*)"', sparkline_svg(values, "m-none"))
    for dx, dy in re.findall(r"(-?\d+) ?(-?\d+)", path[1] if path else ""):
        # Every step is from the point before, with its letter or without.
        x, y = x + int(dx), y + int(dy)
        assert 0 <= x <= 96
        assert 0 <= y <= 20


def test_a_spark_is_one_path_with_gaps_that_ends_in_a_diamond() -> None:
    # From 1 to 95 across; 1.0 lies at the lower edge, 2.0 at the upper.
    assert re.findall(r'd="(.*?)"', sparkline_svg((1.0, 2.0, math.nan, 2.0), "m-none")) == [
        "m1 18 31-16m63 0m-1 0 1-2 1 2-1 2z"
    ]


def test_a_spark_shows_a_figure_between_gaps() -> None:
    course = (1.0, math.nan, 2.0, math.nan, 1.0, 1.0)

    assert re.findall(r'd="(.*?)"', sparkline_svg(course, "m-none")) == [
        "m1 18 2 0m36-16 2 0m35 16 19 0m-1 0 1-2 1 2-1 2z"
    ]


@given(values=st.lists(figures, min_size=1))
def test_an_axis_has_a_length_and_ticks_upon_it(values: list[float]) -> None:
    axis = value_axis(values, margin=0.02)

    assert 0 < axis.low < axis.high
    assert axis.ticks
    # A round number a billionth beyond the end is still drawn at it.
    assert all(axis.low * (1 - 1e-8) <= tick <= axis.high * (1 + 1e-8) for tick in axis.ticks)


@given(values=st.lists(figures, min_size=1), ends=st.lists(st.floats(allow_nan=False), max_size=10))
def test_an_axis_takes_in_intervals_but_leaves_half_of_its_height_to_the_figures(
    values: list[float], ends: list[float]
) -> None:
    narrow = value_axis(values, margin=0.02)
    wide = value_axis(values, margin=0.02, ends=ends)

    assert wide.scale == narrow.scale
    assert wide.low <= narrow.low < narrow.high <= wide.high
    assert wide.share(narrow.high) - wide.share(narrow.low) >= 0.5 - 1e-9


def a_bounded(reach: float) -> Series:
    """Figures from 2.9 to 3.2 ms, each with an interval that reaches so far either way."""
    values = [1e6 * (2.9 + 0.05 * (day % 7)) for day in range(20)]
    return replace(
        a_series([]),
        points=HistoryPoints.of(
            a_point(value, day=day, bounds=(value / reach, value * reach))
            for day, value in enumerate(values)
        ),
    )


def test_an_interval_that_leaves_the_chart_has_an_arrowhead_there_and_the_caption_says_so() -> None:
    panel = panel_of(a_bounded(1.5))

    (heads,) = re.findall(r'class="open m-history" d="([^"]*)"', history_svg(panel.chart))
    # Every one does so at both ends.
    assert (heads.count(" 0l"), heads.count(" 300l")) == (20, 20)
    assert in_order(panel.caption, "95 %", "arrowheads", "beyond the chart")


def test_a_circumstance_kept_as_a_digest_is_named_and_not_shown() -> None:
    points = [
        a_point(1.0, day=day, environment_key=(("environment", f"{day:012x}"),)) for day in (0, 1)
    ]

    (border,) = panel_of(replace(a_series([]), points=HistoryPoints.of(points))).environment_changes

    assert border.what == "different environment"


def test_marks_that_would_touch_get_lanes_of_their_own() -> None:
    circumstances = [(("kernel", f"6.{max(day - 108, 0)}"),) for day in range(120)]
    points = [a_point(1.0, day=day, environment_key=one) for day, one in enumerate(circumstances)]

    panel = panel_of(replace(a_series([]), points=HistoryPoints.of(points)))

    by_lane: dict[int, list[float]] = {}
    for mark in panel.marks:
        by_lane.setdefault(mark.lane, []).append(mark.at)
    assert panel.lanes > 1
    for places in by_lane.values():
        assert all(after - before >= 8 for before, after in itertools.pairwise(places))


def test_a_long_history_is_thinned_to_its_extremes() -> None:
    noise = random.Random(2)
    values = [noise.gauss(100, 1) for _ in range(2_000)]
    values[777] = 200.0

    (track,) = panel_of(a_series(values), most_points=100).chart.tracks

    drawn = track.values.tolist()
    assert len(drawn) <= 100
    assert max(drawn) == 200.0


@pytest.mark.parametrize(
    ("ratio", "word"), [(1.1, "slower"), (0.9, "faster"), (3.0, "slower"), (0.2, "faster")]
)
def test_a_size_says_which_way_with_its_interval_about_it(ratio: float, word: str) -> None:
    series = stepped(ratio)
    (change,) = known_of(series).changes_of(series)

    verdict = change_size(change)
    low, high = map(float, size_interval(change).split("–"))

    amount = float(verdict.word.split()[0].removesuffix("×"))
    assert verdict.word.endswith(word)
    assert 1 < low <= amount <= high
    assert verdict.tone == ("bad" if word == "slower" else "good")


@pytest.mark.parametrize(
    ("ratio", "low", "high", "says", "ends"),
    [
        (2.0, 1.9, 2.1, "2.00× slower", "1.90–2.10"),
        (0.25, 0.2, 0.3125, "4.00× faster", "3.20–5.00"),
        # In digits that count, and never in powers of ten.
        (1500.0, 1234.0, 1800.0, "1,500× slower", "1,234–1,800"),
        # On both sides of 1, the ends point in two directions.
        (1.02, 0.98, 1.06, "1.02× slower", "−2.0 to +6.0 %"),
    ],
)
def test_a_multiple_has_as_many_digits_as_its_interval(
    ratio: float, low: float, high: float, says: str, ends: str
) -> None:
    (change,) = known_of(stepped(3.0)).changes
    step = replace(
        change.change_point,
        ratio=ratio,
        interval=Interval(low=low, high=high, confidence=0.95),
        direction="up" if ratio > 1 else "down",
    )
    told = replace(change, change_point=step)

    assert change_size(told).word == says
    assert size_interval(told) == ends


def test_a_change_that_a_re_run_refuted_is_no_news_but_inconclusive() -> None:
    series = stepped()
    (change,) = known_of(series).changes

    history = known_of(series, confirmations=[measured_again(change, "refuted")])
    tonight = whats_new(history, ())

    assert history.assessed[change.id].status == "not confirmed"
    assert tonight is not None
    assert in_order(plain(tonight.verdict), "1 series", "no new change")
    (row,) = tonight.inconclusive.in_words[1]
    assert in_order(row[3], "not confirmed", "2026-03-14", "somehow")


def test_a_suspicion_that_both_commits_confirm_is_news_as_any_change() -> None:
    series = stepped(nights=20, at=18)
    (suspicion,) = known_of(series).early_warnings

    history = known_of(series, confirmations=[measured_again(suspicion, "confirmed")])
    tonight = whats_new(history, ())

    assert known_of(series).news == ()
    assert history.news == history.changes == history.changes_of(series) == (suspicion,)
    assert history.early_warnings == history.inconclusive == ()
    assert tonight is not None
    assert plain(tonight.verdict) == "1 series got slower."
    (entry,) = history_page(PageContext(now=NOW, history=history)).commits
    assert "new (confirmed" in text_of(entry_changes(entry, history).rows[0][2])


def test_a_suspicion_that_somebody_accepted_is_no_doubt_any_more() -> None:
    series = stepped(nights=20, at=18)
    (suspicion,) = known_of(series).early_warnings

    assert known_of(series).inconclusive == (suspicion,)
    assert known_of(series, decisions=[accepted(suspicion)]).inconclusive == ()


def test_the_night_names_what_got_slower_first_and_what_failed() -> None:
    scenario = a_scenario()
    failed = a_launch(cell=expand(scenario, "a.yaml")[0], status="failed", reason="out of memory")
    slower, faster = stepped(), stepped(0.8, cell="binding=node")

    tonight = whats_new(known_of(slower, faster), [(a_run(), (failed,))])

    assert tonight is not None
    assert in_order(plain(tonight.verdict), "1 series", "slower", "1 faster")
    assert [row.size.sign for row in tonight.changed] == ["▼", "▲"]
    assert [row.reason for row in tonight.failed] == ["out of memory"]


def test_two_nights_that_stand_out_cannot_be_decided_yet() -> None:
    tonight = whats_new(known_of(stepped(1.2, nights=47, at=45)), [])

    assert tonight is not None
    assert in_order(plain(tonight.verdict), "1 series", "no new change")
    (row,) = tonight.inconclusive.in_words[1]
    assert "too few yet" in row[3]


def test_one_run_is_no_history() -> None:
    assert whats_new(known_of(a_series([1.0])), []) is None


def test_a_figure_that_was_imported_is_shown_though_it_is_the_only_one() -> None:
    series = a_series([1e6], project="trees")
    history = known_of(series)

    (group,) = history_page(PageContext(now=NOW, history=history)).groups
    tonight = whats_new(history, ())

    assert [latest_value(row.series).value for row in group.rows] == ["1.00 ms"]
    assert panel_of(series).chart.tracks
    assert tonight is not None
    assert in_order(plain(tonight.verdict), "1 series", "measured once")


def test_of_several_cells_a_row_says_which_its_figures_are_of() -> None:
    all_series = [
        a_series([1e6] * 3, project="trees", cell=f"n={n},environment=py") for n in (9, 10)
    ]

    (row,) = history_page(PageContext(now=NOW, history=known_of(*all_series))).groups[0].rows
    (alone,) = history_page(PageContext(now=NOW, history=known_of(all_series[0]))).groups[0].rows

    assert (len(row.all_series), row.shown) == (2, "n=9")
    assert alone.shown == ""


def test_a_regression_that_is_no_news_is_still_said_to_be_open() -> None:
    tonight = whats_new(known_of(stepped(1.2, nights=90, at=20)), [])

    assert tonight is not None
    assert in_order(plain(tonight.verdict), "1 series", "no new change")
    assert in_order(plain(tonight.support), "1 series", "older regression", "open")
    (link,) = (
        piece.link for piece in tonight.support if piece.text.startswith("1 series has an older")
    )
    assert link == "history.html#triage"


def commits_of(row: Sequence[Value]) -> Commits:
    """The commits of a row of changes."""
    (commits,) = (cell for cell in row if isinstance(cell, Commits))
    return commits


def members_of(row: Sequence[Value]) -> Items | None:
    """What a row sums up."""
    assert isinstance(row[-1], Commands)
    return row[-1].members


def rows_of(page: Page) -> list[tuple[Value, ...]]:
    """The rows of changes, of all commits."""
    return [row for each in page.commits for row in entry_changes(each, page.history).rows]


def regressed(page: Page) -> list[tuple[Value, ...]]:
    """The rows of regressions, of all commits."""
    return [row for row in rows_of(page) if text_of(row[1]).startswith("▼")]


def test_the_feed_is_valid_atom_whose_ids_stay() -> None:
    # 24 nights later the same change has the same entry.
    texts = [pages_of([], series=(stepped(nights=nights),))["feed.xml"] for nights in (60, 84)]

    atom = "{http://www.w3.org/2005/Atom}"
    roots = [parse_xml(text) for text in texts]
    entries = [root.findall(f"{atom}entry") for root in roots]
    ids = [[entry.findtext(f"{atom}id") for entry in each] for each in entries]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 1
    for root in roots:
        for name in ("id", "title", "updated"):
            assert root.findtext(f"{atom}{name}")
    assert roots[0].findtext(f"{atom}updated") == entries[0][0].findtext(f"{atom}updated")


def test_what_xml_cannot_write_is_no_part_of_the_feed() -> None:
    made = feed(PageContext(now=NOW, history=known_of(stepped(title="a \x00 title \ud800"))))

    assert "\x00" not in made.entries[0].title
    assert "\ud800" not in made.entries[0].title


@given(low=st.floats(-1e7, 1e7), span=st.floats(0, 1e7))
def test_an_axis_beyond_the_years_1_to_9999_has_ticks(low: float, span: float) -> None:
    # A damaged record may have any year.
    ticks = date_ticks(low, low + span)

    assert 1 <= len(ticks) <= 6


def test_moments_are_read_with_their_offset() -> None:
    assert days_since_1970("1970-01-02T01:00:00+01:00") == 1.0
    assert days_since_1970("2026-02-30") is not None
    assert days_since_1970("2026-13-01") is None


@given(low=st.floats(-100_000, 100_000), span=st.floats(0, 100_000))
def test_dates_lie_on_their_axis_and_are_few(low: float, span: float) -> None:
    ticks = date_ticks(low, low + span)

    assert 1 <= len(ticks) <= 6
    assert any(has_year(text) for _, text in ticks)
    assert all(low <= at <= low + span for at, _ in ticks)


def test_where_there_is_little_room_an_axis_still_says_the_years() -> None:
    days = range(0, 730, 10)
    points = HistoryPoints.of(a_point(100.0, day=day) for day in days)

    along = panel_of(a_series([], points=points)).along

    assert [(tick.text, tick.minor) for tick in along if not tick.minor] != []
    assert {tick.text for tick in along if not tick.minor} >= {"2027"}


def test_a_change_says_its_levels_and_leads_to_all_commits_of_its_range() -> None:
    url = "https://forge.example/p/-/commit/"
    (row,) = panel_of(stepped(1.5, commit_url=url)).changes.rows

    assert re.search(r"; 1\.0\d? to 1\.[45]\d ms; new", text_of(row[1]))
    link = commits_of(row).link.removeprefix("https://forge.example/p/-/compare/")
    good, bad = link.split("...")
    assert (len(good), len(bad)) == (40, 40)
    (elsewhere,) = panel_of(stepped(1.5, commit_url="https://forge.example/?id=")).changes.rows
    assert commits_of(elsewhere).link == f"https://forge.example/?id={bad}"


@pytest.mark.parametrize("url", ["javascript:alert(1)//", "data:text/html,x", "//evil/commit/", ""])
def test_a_stored_address_that_is_none_of_the_web_is_no_link(url: str) -> None:
    (row,) = panel_of(stepped(1.5, commit_url=url)).changes.rows

    assert not commits_of(row).link


def test_a_change_that_is_not_clear_ends_a_level_and_stands_in_the_table_without_a_number() -> None:
    series = stepped(1.5)

    panel = history_panel((series,), doubted(known_of(series)), title="a chart")

    (row,) = panel.changes.rows
    assert row[0] == "?"
    assert "; not significant; " in text_of(row[1])
    assert len(panel.chart.tracks[0].levels) == 2
    assert panel.chart.marks == ()


def test_a_chart_of_one_series_says_how_noisy_its_latest_level_is() -> None:
    caption = panel_of(stepped(1.5, at=20)).caption

    found = re.search(r"varies by (\d\.\d) %$", caption)
    # The noise was 0.5 %, and the step is not in it.
    assert found is not None
    assert 0.3 <= float(found[1]) <= 0.8
    assert "varies" not in panel_of(a_series([1.0] * 4)).caption


def test_circumstances_that_come_and_go_are_told_in_a_line_and_hide_no_point() -> None:
    """A machine in a cloud has now one processor, now another."""
    points = HistoryPoints.of(
        a_point(100.0, day=day, environment_key=(("cpu", ["old", "new"][day % 2]), ("os", "6")))
        for day in range(60)
    )

    panel = panel_of(a_series([], points=points))

    assert panel.environment_changes == ()
    (changing,) = panel.changing_values
    assert in_order(changing, "cpu", "59 times", "old, new", "same value")
    assert (panel.marks, panel.chart.borders) == ((), ())
    assert len(panel.chart.flips) == 59
    assert history_svg(panel.chart).count("v12") == 59


def test_cells_that_changed_in_one_range_of_commits_are_one_row() -> None:
    all_series = [stepped(ratio, cell=f"c={ratio}") for ratio in (1.1, 1.3, 1.2)]
    elsewhere = stepped(1.2, cell="c=1.1", host="other", host_name="other")
    faster = stepped(0.8, cell="c=0.8")

    page = history_page(PageContext(now=NOW, history=known_of(*all_series, elsewhere, faster)))

    alone, group = sorted(regressed(page), key=lambda row: isinstance(members_of(row), Items))
    members = members_of(group)
    assert members is not None
    assert "3 series" in text_of(group[0])
    assert [item.name for item in members.items] == ["c=1.3", "c=1.2", "c=1.1"]
    assert re.fullmatch(r"▼ 1\.1\d to 1\.[23]\d× slower", text_of(group[1]))
    assert text_of(alone[0]).endswith("(c=1.1, other)")
    (entry,) = page.commits
    assert len(entry.improvements.benchmarks) == 1


def with_levels(*levels: tuple[int, float], **changes: Any) -> Series:
    """So many nights at each level, in milliseconds."""
    noise = random.Random(1)
    values = [
        1e6 * level * noise.gauss(1, 0.005) for nights, level in levels for _ in range(nights)
    ]
    return replace(a_series(values), **changes)


def test_what_recovered_names_the_commits_that_it_did_in() -> None:
    url = "https://forge.example/p/-/commit/"
    page = history_page(
        PageContext(
            now=NOW, history=known_of(with_levels((40, 1), (15, 1.1), (5, 1), commit_url=url))
        )
    )

    gain, row = rows_of(page)

    assert text_of(row[2]).startswith("fixed")
    (recovered,) = commits_of(row).after
    assert isinstance(recovered, Commits)
    assert recovered.when == "fully recovered 2026-02-25 02:00 UTC"
    assert recovered.after == ()
    assert (recovered.name, recovered.link) == (commits_of(gain).name, commits_of(gain).link)
    assert commits_of(gain).after == ()


@pytest.mark.parametrize(
    ("levels", "says", "left"),
    [
        (
            ((40, 1), (20, 1.2), (20, 1.1)),
            "partly recovered",
            r"still 1\.(09|10)× slower than before it",
        ),
        (
            ((40, 1), (20, 1.1), (20, 0.9)),
            "more than recovered",
            r"1\.(10|11|12)× faster than before it",
        ),
        (((40, 1), (20, 1.2), (20, 1.1), (20, 1)), "fully recovered in 2 steps, the last", ""),
    ],
)
def test_what_recovered_in_part_or_beyond_says_how_it_is_since(
    levels: tuple[tuple[int, float], ...], says: str, left: str
) -> None:
    (note,) = commits_of(panel_of(with_levels(*levels)).changes.rows[-1]).after

    assert isinstance(note, Commits)
    assert note.when.partition(" 2026")[0] == says
    assert re.fullmatch(left, "".join(map(text_of, note.after)))


def test_what_perhaps_recovered_is_told_so() -> None:
    (change, _) = sorted(
        known_of(with_levels((40, 1), (15, 1.1), (5, 1))).changes, key=lambda change: change.since
    )

    (note,) = recovery((replace(change, back_is_clear=False),))

    assert note.when.startswith("perhaps fully recovered 2")


def test_cells_that_recovered_together_say_it_once_and_others_each_for_itself() -> None:
    def page_of(*ends: int) -> Page:
        all_series = [
            with_levels((40, 1), (end, 1.1), (30 - end, 1), cell=f"c={index}")
            for index, end in enumerate(ends)
        ]
        return history_page(PageContext(now=NOW, history=known_of(*all_series)))

    (together,) = regressed(page_of(15, 15))
    (apart,) = regressed(page_of(10, 20))

    assert commits_of(together).after
    assert not commits_of(apart).after
    members = members_of(apart)
    assert members is not None
    assert all("fully recovered" in item.aside for item in members.items)


def test_on_the_page_and_in_the_feed_stands_in_which_commits_a_change_recovered() -> None:
    series = with_levels((40, 1), (15, 1.1), (5, 1), project="p")
    foreign = "<b>mend & \x00"
    points = list(series.points)
    commit = points[55].commit
    assert commit is not None
    points[55] = replace(points[55], commit=replace(commit, subject=foreign))
    series = replace(series, points=HistoryPoints.of(points))

    made = pages_of([], series=[series])

    pages = [name for name in made if name == "history.html" or name.startswith("history/")]
    assert len(pages) == 2
    for name in pages:
        assert re.search(
            r"fully recovered 2026-02-25 02:00 UTC<small><code>0{10}\.\.0{10}</code></small>"
            r"<small>&lt;b&gt;mend &amp; ",
            made[name],
        )
    assert "fully recovered 2026-02-25 02:00 UTC, 0000000000..0000000000 (" in made["feed.xml"]


def test_the_csv_of_changes_says_in_which_commits_each_recovered_and_how_far() -> None:
    back = with_levels((40, 1), (15, 1.1), (5, 1), cell="back")
    stays = with_levels((40, 1), (20, 1.1), cell="stays")

    history = known_of(back, stays)

    groups = {row["id"]: row for row in csv.DictReader(changes_csv(history).splitlines())}

    names = ("recovered_last_good_commit", "recovered_first_bad_commit", "recovered_left")
    incomplete, _ = history.changes_of(back)
    (change,) = history.changes_of(stays)
    assert incomplete.recovered_between is not None
    *shas, left = (groups[incomplete.id][name] for name in names)
    assert shas == [point.commit.sha for point in incomplete.recovered_between if point.commit]
    assert float(left) == pytest.approx(1, abs=0.02)
    assert [groups[change.id][name] for name in names] == ["", "", ""]


def test_the_csv_of_changes_has_also_those_that_are_not_clear() -> None:
    history = doubted(known_of(stepped()))

    (row,) = csv.DictReader(changes_csv(history).splitlines())

    assert (row["id"], row["status"]) == (history.unclear[0].id, "not significant")


def test_a_change_is_zoomed_at_its_minute_or_where_dates_cannot_be_read_at_its_place() -> None:
    dated = stepped(at=45)
    undated = replace(
        dated,
        points=HistoryPoints.of(
            replace(point, at=f"night {number:02}") for number, point in enumerate(dated.points)
        ),
    )

    minutes, places = panel_of(dated), panel_of(undated)

    # The 45th day after the first of January 2026, which is 20,454 days after 1970, at two; by
    # an even bet half a day before.
    ((_, ((mark, *_),), _), (_, ((place, *_),), _)) = (
        json.loads(one.zoom) for one in (minutes, places)
    )
    assert (mark, minutes.is_ordinal) == ((20_454 + 44.5) * 1440 + 120, False)
    assert (place, places.is_ordinal) == (44.5, True)


def test_a_zoom_has_levels_changes_and_borders_where_the_still_chart_has_them() -> None:
    values = [2e6] * 20 + [3e6] * 20 + [1e6] * 20
    jittered = [value * (1 + 0.002 * (at % 3)) for at, value in enumerate(values)]
    series = a_series(jittered)
    changed = tuple(
        replace(point, environment_key=(("kernel", "6.1" if at < 20 else "6.2"),))
        for at, point in enumerate(series.points)
    )
    panel = panel_of(replace(series, points=HistoryPoints.of(changed)))

    levels, changes, borders = json.loads(panel.zoom)

    (track,) = panel.chart.tracks
    first = borders[0] - 20 * 1440
    assert [(begin - first) / 1440 for ((begin, _, _), *_) in [levels[0]]] == [0]
    assert [figure for _, _, figure in levels[0]] == pytest.approx(
        [value for _, _, value in track.levels], rel=1e-5
    )
    assert [(end - begin) / 1440 for begin, end, _ in levels[0]] == [19, 19, 19]
    assert [(x - first) / 1440 for x, *_ in changes] == [39.5]
    ((_, begin, end, is_worse),) = changes
    assert begin < (39.5 * 1440 + first) < end
    assert is_worse == 0
    assert len(panel.marks) == 2
