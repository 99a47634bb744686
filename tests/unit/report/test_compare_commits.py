"""The comparison of two commits of an imported project."""

import csv
import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.change_history import ChangeHistory, build_change_history
from corebound.analysis.commit_comparison import compare_imported_commits
from corebound.analysis.wording import plain
from corebound.cli.app import app
from corebound.errors import InputError
from corebound.records import history_files
from corebound.records.history import HistoryPoints, Series
from corebound.report.downloads import commits_csv
from corebound.report.inputs import PageContext
from corebound.report.pages.compare import compare_page
from corebound.workflow.resolve_refs import resolve_commits
from support.build import a_point, a_series
from support.tables import column

NIGHTS = 80
EARLY, LATE = (f"{day:040x}" for day in (10, 70))
ASV = ("asv", "run", "--bench", r"^io\.read\b")


def a_history(*, step: float = 1.0, seed: int = 1, **changes: object) -> Series:
    """Of so many nights, each with a commit of its own, and so much more from the 40th on."""
    noise = random.Random(seed)
    values = [
        1e6 * (step if day >= 40 else 1) * noise.lognormvariate(0, 0.01) for day in range(NIGHTS)
    ]
    by_name = {"project": "trees", "scenario": "io.read", "reproduce": ASV} | changes
    return a_series(values, **by_name)


def known(*series: Series) -> ChangeHistory:
    return build_change_history(series)


def test_what_got_worse_is_clear_and_comes_first() -> None:
    comparison = compare_imported_commits(
        "trees", EARLY, LATE, known(a_history(cell="n=1"), a_history(cell="n=2", step=1.1, seed=2))
    )

    first, second = comparison.series
    assert (first.series.cell, first.is_finding) == ("n=2", True)
    assert (second.series.cell, second.is_finding) == ("n=1", False)
    assert first.verdict == "slower"
    assert first.speedup_ratio == pytest.approx(1 / 1.1, rel=0.05)


def test_of_a_commit_that_was_measured_twice_the_latest_figure_counts() -> None:
    series = a_history()
    point = replace(series.points[10], at="2026-12-31T00:00:00Z", value=5e6)
    series = replace(series, points=series.points.followed_by(HistoryPoints.of([point])))

    (one,) = compare_imported_commits("trees", EARLY, LATE, known(series)).series

    assert one.before == 5e6


def test_what_was_measured_differently_or_once_is_named_and_not_compared() -> None:
    series = a_history(cell="other")
    newer = [(("kernel", "6.1"),)] * 40 + [(("kernel", "7.0"),)] * 40
    series = replace(series, points=series.points.with_environment_keys(newer))
    short = a_history(cell="short")
    short = replace(short, points=short.points[:60])

    comparison = compare_imported_commits("trees", EARLY, LATE, known(a_history(), series, short))

    assert comparison.not_comparable == (("io.read[other] on host", "kernel 6.1 to 7.0"),)
    assert comparison.only_in_one == (("io.read[short] on host", EARLY),)


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (EARLY, EARLY, "the same commit"),
        (EARLY, "f" * 40, "no benchmark was measured in the same environment"),
    ],
)
def test_what_cannot_be_compared_is_refused(before: str, after: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        compare_imported_commits("trees", before, after, known(a_history()))


def test_the_page_says_what_differs_how_to_measure_it_again_and_marks_both() -> None:
    histories_ = known(
        a_history(step=1.2), a_history(scenario="io.size", unit="bytes", step=1.3, seed=2)
    )
    page = compare_page(
        compare_imported_commits("trees", EARLY, LATE, histories_),
        PageContext(now="2026-04-01T00:00:00Z", history=histories_),
    )

    assert [piece.text for piece in page.hero.verdict] == ["2 series ", "worse", "."]
    assert {one.word.word for one in column(page.findings, "verdict")} == {"slower", "more"}
    assert rf"asv continuous --bench '^io\.read\b' {EARLY[:10]} {LATE[:10]}" in {
        one.lines[0].line for one in column(page.findings, "reproduce")
    }
    assert [len(panel.chart.compared) for panel in page.histories] == [2, 2]
    assert page.command.line == f"corebound compare {EARLY[:10]} {LATE[:10]}"


def test_a_figure_stands_with_the_interval_that_its_own_samples_gave_it() -> None:
    series = a_history(confidence=0.99)
    bounded = [replace(point, value=1.3e6, bounds=(1.2e6, 1.4e6)) for point in series.points]
    series = replace(series, points=HistoryPoints.of(bounded))
    comparison = compare_imported_commits("trees", EARLY, LATE, known(series))

    page = compare_page(comparison, PageContext(now="2026-12-01T00:00:00Z", history=known(series)))

    (both,) = column(page.others, "before, after")
    assert (both.before.ends, both.after.ends) == ("1.20–1.40", "1.20–1.40")
    assert "the 99 % interval of its own samples" in plain(page.hero.support)
    (line,) = csv.DictReader(commits_csv(comparison).splitlines())
    assert (line["before_low"], line["after_high"]) == ("1200000.0", "1400000.0")


def test_a_page_of_a_thousand_series_shows_some_and_says_how_many_more() -> None:
    history = known(*(a_history(cell=f"n={n}", seed=n) for n in range(260)))
    comparison = compare_imported_commits("trees", EARLY, LATE, history)

    page = compare_page(comparison, PageContext(now="2026-04-01T00:00:00Z", history=history))

    shown = len(page.findings.rows) + len(page.others.rows)
    assert len(page.others.rows) == 250
    assert page.others_notes == (f"{260 - shown} more are not shown; the CSV below has all.",)


def test_the_beginning_of_a_hash_is_enough_where_it_is_one_s_alone() -> None:
    commit = a_point(day=1).commit
    assert commit is not None
    points = HistoryPoints.of(
        replace(a_point(1.0, day=day), commit=replace(commit, sha=sha * 8))
        for day, sha in enumerate(("aaaaa", "aaaab", "bbbbb"))
    )
    series = a_series([], project="trees", points=points)

    assert resolve_commits("aaaaa", "BBBB", [series]) == ("trees", "aaaaa" * 8, "bbbbb" * 8)
    assert resolve_commits("aaa", "cccc", [series]) is None
    for unmeant in ("bbb", "cccc"):
        with pytest.raises(InputError, match="no measured commit of trees matches"):
            resolve_commits(unmeant, "aaaaa", [series])
    with pytest.raises(InputError, match="several commits of trees match"):
        resolve_commits("aaaa", "bbbb", [series])
    with pytest.raises(InputError, match="several projects have both: trees, woods"):
        resolve_commits("aaaaa", "bbbb", [series, replace(series, project="woods")])


def test_a_project_decides_between_two_that_share_commits() -> None:
    commit = a_point(day=1).commit
    assert commit is not None
    points = HistoryPoints.of(
        replace(a_point(1.0, day=day), commit=replace(commit, sha=sha * 40))
        for day, sha in enumerate("ab")
    )
    both = [a_series([], project=name, points=points) for name in ("trees", "woods")]

    assert resolve_commits("aaaa", "bbbb", both, project="woods") == ("woods", "a" * 40, "b" * 40)
    with pytest.raises(InputError, match="no project `lakes`") as caught:
        resolve_commits("aaaa", "bbbb", both, project="lakes")
    assert "trees, woods" in caught.value.fix


def test_our_own_history_is_no_imported_project() -> None:
    assert resolve_commits(EARLY, LATE, [a_history(project=None)]) is None


def test_the_command_tells_it_as_text_and_for_scripts(tmp_path: Path) -> None:
    history_files.keep("trees", [a_history(step=1.2)], tmp_path)
    parts = ["compare", EARLY, LATE, "--records", str(tmp_path)]

    text = CliRunner().invoke(app, parts)
    document = json.loads(CliRunner().invoke(app, [*parts, "--json"]).stdout)

    assert text.exit_code == 0
    assert "▼ slower" in text.stdout
    (one,) = document["series"]
    assert (document["project"], one["verdict"], one["is_significant"]) == ("trees", "slower", True)
    assert one["speedup_interval"][0] < one["speedup_ratio"] < one["speedup_interval"][1]


def test_the_report_has_a_page_of_them_and_the_comparisons_lead_there(tmp_path: Path) -> None:
    history_files.keep("trees", [a_history(step=1.2)], tmp_path / "records")
    parts = ["report", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "site")]

    done = CliRunner().invoke(app, [*parts, "--compare", f"{EARLY}..{LATE}"])

    (page,) = (tmp_path / "site" / "compare").iterdir()
    assert done.exit_code == 0
    assert f"compare/{page.name}" in (tmp_path / "site" / "compare.html").read_text()
    assert "Both commits in the history" in page.read_text()
    (data,) = (tmp_path / "site" / "data" / "compare").iterdir()
    (line,) = csv.DictReader(data.read_text().splitlines())
    assert (line["project"], line["verdict"], line["is_significant"]) == ("trees", "slower", "True")
