"""What `corebound regressions` says: one row for a commit, and what one can do about it."""

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.triage import CommitEntry
from corebound.present.changes import failure_table
from corebound.present.markdown import markdown
from corebound.present.regressions import headline, regressions_document, regressions_sections
from corebound.present.sections import Facts, Marked, Section, Sentence, Table, text_of
from corebound.records.decisions import Decision
from corebound.records.history import Series
from corebound.report.urls import place_of
from corebound.stats.history.regressions import analyse
from support.build import a_series
from support.series import a_stepped_series, accepted
from support.texts import in_order

SITE = "https://example.org/perf/"


def place(shown: Series | CommitEntry) -> str:
    return place_of(shown, SITE)


def sections_of(
    series: Sequence[Series], *, show_all: bool = False, brief: bool = False
) -> tuple[Section, ...]:
    history = build_change_history(series)
    return tuple(regressions_sections(history, place, show_all=show_all, brief=brief))


def tables(sections: Sequence[Section]) -> dict[str, Table]:
    return {section.title: section for section in sections if isinstance(section, Table)}


def two_commits(*, cells: int = 20) -> list[Series]:
    """One commit made many series of two benchmarks slower, a later one a third benchmark."""
    many = [
        a_stepped_series(f"b{number % 2}", 1.2 + number / 100, at=40, cell=f"n={number}")
        for number in range(cells)
    ]
    return [*many, a_stepped_series("late", 1.5, at=50)]


def early_warnings() -> list[Series]:
    """Series whose last two nightly runs stand out, which no detector can confirm yet."""
    slight = [a_stepped_series("b", 1.025, at=58, cell=f"n={number}") for number in range(30)]
    return [warning.series for warning in analyse(slight).early_warnings]


def test_the_headline_separates_thousands() -> None:
    series = [a_series([1.0], cell=f"n={number}") for number in range(1200)]

    said = "No new regression, in 1,200 series. All 1,200 series have too little data"
    assert headline(build_change_history(series)).startswith(said)


def test_short_series_have_their_latest_value_with_its_uncertainty() -> None:
    short = [a_series(values, project="p") for values in ([1e6], [1e6, 1.1e6])]
    short = [replace(series, cell=f"n={number}") for number, series in enumerate(short)]
    spread = a_series([1e6, 1.01e6, 0.99e6, 1.2e6], project="p", cell="n=9")

    rows = tables(sections_of([*short, spread]))["Latest values"].in_words[1]
    document = regressions_document(build_change_history([spread]), place)

    assert "7 more values" in rows[0][1]
    assert "1.10× slower" in rows[1][1]
    assert "(95 % CI 1.14–1.26)" in rows[2][1]
    (latest,) = document["latest"]
    assert (latest["values_before"], latest["ratio"]) == (3, pytest.approx(1.2, rel=1e-3))
    assert "Latest values" not in tables(sections_of([spread, a_stepped_series("b", 1.2)]))


def test_many_regressions_of_two_commits_are_two_rows() -> None:
    sections = sections_of(two_commits())

    first, table = sections[0], tables(sections)["New regressions"]
    assert isinstance(first, Sentence)
    assert in_order(first.text, "21 new regressions", "2 commits")
    late, early = table.in_words[1]
    assert late[0] == "0000000000 (change 50)"
    assert in_order(early[1], "▼ 1.29× slower", "geometric mean", "1.39×")
    assert early[2] == "b1; b0"
    assert early[3] == "new"


def test_a_commit_has_its_largest_changes_and_with_all_every_one() -> None:
    few = [table for table in sections_of(two_commits()) if isinstance(table, Table)]
    every = [
        table for table in sections_of(two_commits(), show_all=True) if isinstance(table, Table)
    ]

    assert [len(table.rows) for table in few] == [2, 1, 2]
    assert few[-1].notes == ("and 18 more series.",)
    assert [len(table.rows) for table in every] == [2, 1, 20]


def test_a_commit_has_commands_and_links_to_its_place_on_the_page() -> None:
    sections = sections_of([a_stepped_series("a", 1.2)])

    facts = {
        fact.term: fact.value
        for section in sections
        if isinstance(section, Facts)
        for fact in section.rows
    }
    assert facts["Compare"].startswith("corebound compare 0000000000 0000000000")
    accept = ["regressions", "--accept", "0000000000", "--because", "REASON"]
    assert facts["Acknowledge"].split() == ["corebound", *accept]
    assert facts["Commit"] == "https://example.org/perf/history.html#commit-0000000000"


def test_a_message_has_one_line_with_a_link_for_a_commit() -> None:
    sections = sections_of(two_commits(), brief=True)

    assert [*tables(sections)] == ["New regressions"]
    lines = markdown(sections).splitlines()
    assert lines[6].startswith(
        "| [0000000000](https://example.org/perf/history.html#commit-0000000000)"
    )


def test_a_message_about_many_commits_stays_short() -> None:
    series = [a_stepped_series(f"b{at}", 1.3, at=at) for at in range(31, 56, 2)]

    table = tables(sections_of(series, brief=True))["New regressions"]

    assert (len(table.rows), table.notes) == (10, ("and 3 more",))


def test_early_warnings_of_one_commit_are_one_row() -> None:
    warned = early_warnings()

    sections = sections_of(warned)

    assert len(warned) > 4
    (row,) = tables(sections)["Suspected"].rows
    assert isinstance(row[3], Marked)
    assert row[3].word.word == "early warning"
    assert f"{len(warned)} series of 1 benchmark" in text_of(row[1])


def test_the_document_has_the_commits_with_the_ids_of_their_changes() -> None:
    document = json.loads(
        json.dumps(regressions_document(build_change_history(two_commits()), place))
    )

    late, early = document["commits"]
    assert [entry["status"] for entry in (late, early)] == ["new", "new"]
    assert (early["regressions"]["benchmarks"], early["regressions"]["series"]) == (2, 20)
    assert early["regressions"]["geometric_mean"] == pytest.approx(1.29, abs=0.02)
    assert early["improvements"] is None
    ids = {change["id"] for change in document["changes"]}
    assert {*late["changes"], *early["changes"]} == ids


def test_improvements_follow_regressions() -> None:
    sections = sections_of(
        [a_stepped_series("better", 0.8, at=50), a_stepped_series("worse", 1.2, at=35)]
    )

    new = [title for title in tables(sections) if title.startswith("New")]
    assert new == ["New regressions", "New improvements"]


def all_accepted(history: ChangeHistory) -> list[Decision]:
    regressions = [change for change in history.changes if change.is_regression]
    return [accepted(change, "checks its input") for change in regressions]


def test_a_commit_listed_for_its_improvement_is_described_by_it() -> None:
    series = [a_stepped_series("worse", 1.5, at=40), a_stepped_series("better", 0.7, at=40)]
    history = build_change_history(series, decisions=all_accepted(build_change_history(series)))

    (row,) = tables([*regressions_sections(history, place)])["New improvements"].rows

    change = row[1]
    assert isinstance(change, Marked)
    assert change.word.sign == "▲"
    assert change.word.word.endswith("faster")
    assert in_order(change.notes[-1], "1 series", "1 benchmark", "1.5")


def test_the_status_of_a_commit_says_how_many_series_have_which() -> None:
    series = [a_stepped_series(name, 1.5, at=40) for name in ("a", "b")]
    decisions = all_accepted(build_change_history(series))[:1]
    history = build_change_history(series, decisions=decisions)

    (row,) = tables([*regressions_sections(history, place)])["New regressions"].rows

    assert in_order(text_of(row[3]), "1 new", "1 acknowledged", "checks its input")


def test_series_without_values_are_grouped_by_reason() -> None:
    values = [*[1e6] * 18, None, None]
    series = [
        replace(a_series(values, scenario=name, project="p"), title=name) for name in "abcdef"
    ]
    history = build_change_history(series)

    table = tables([*regressions_sections(history, place)])["Without values"]

    (row,) = table.in_words[1]
    assert row[1] == "6"
    assert in_order(text_of(row[2]), "a; b; c;", "and 2 more")
    assert row[3].endswith(", 2 runs")
    # The page has the same table.
    assert table.columns == failure_table((), place).columns
