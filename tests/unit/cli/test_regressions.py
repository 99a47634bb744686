"""`corebound regressions`: one entry for a commit, and what one can do about it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from corebound.cli.app import app
from corebound.cli.commands import regressions
from corebound.records import history_files
from corebound.records.decisions import DECISIONS_FILE, read_decisions_file
from corebound.records.history import Series
from corebound.stats.history.regressions import analyse
from corebound.workflow.regressions import RegressionsResult
from support.build import a_series
from support.series import a_stepped_series

RECORDS = Path("reports/records")


def test_the_headline_separates_thousands() -> None:
    series = (a_series([1.0]),) * 1200
    told = RegressionsResult(
        changes=(),
        failing=(),
        not_analysed=(),
        series=series,
        active=series,
        too_short=series,
    )

    said = "No new regression, in 1,200 series. All 1,200 series have too little data"
    assert regressions.headline(told).startswith(said)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(series: Sequence[Series], *words: str) -> Result:
    history_files.keep("p", series, RECORDS)
    return command(*words)


def command(*words: str) -> Result:
    return CliRunner().invoke(app, ["regressions", *words])


def test_short_series_have_their_latest_value_with_its_uncertainty() -> None:
    short = [a_series(values, project="p") for values in ([1e6], [1e6, 1.1e6])]
    short = [replace(series, cell=f"n={number}") for number, series in enumerate(short)]
    spread = a_series([1e6, 1.01e6, 0.99e6, 1.2e6], project="p", cell="n=9")

    said = listed([*short, spread]).stdout

    assert "7 more values" in said
    assert "1.10× slower" in said
    assert "(95 % CI 1.14–1.26)" in said
    (document,) = [
        each for each in json.loads(command("--json").stdout)["latest"] if each["cell"] == "n=9"
    ]
    assert (document["values_before"], document["ratio"]) == (3, pytest.approx(1.2, rel=1e-3))
    assert "Latest values" not in listed([spread, a_stepped_series("b", 1.2)]).stdout


def two_commits(*, cells: int = 20) -> list[Series]:
    """One commit made many series of two benchmarks slower, a later one a third benchmark."""
    many = [
        a_stepped_series(f"b{number % 2}", 1.2 + number / 100, at=40, cell=f"n={number}")
        for number in range(cells)
    ]
    return [*many, a_stepped_series("late", 1.5, at=50)]


def test_many_regressions_of_two_commits_are_two_entries() -> None:
    said = listed(two_commits()).stdout

    assert said.startswith("21 new regressions")
    assert len(re.findall(r"^  ▼ ", said, re.MULTILINE)) == 2
    assert "largest 1.39×" in said
    assert "18 more" in said


def test_all_lists_every_series() -> None:
    said = listed(two_commits(), "--all").stdout

    assert all(f"[n={number}]" in said for number in range(20))


def test_an_entry_has_commands_and_links_to_its_place_on_the_page() -> None:
    said = listed([a_stepped_series("a", 1.2)], "--site", "https://example.org/perf/").stdout

    assert "compare: corebound compare 0000000000 0000000000" in said
    assert "acknowledge: corebound regressions --accept 0000000000 --because REASON" in said
    assert "https://example.org/perf/history.html#commit-0000000000" in said


def test_markdown_has_one_line_for_a_commit() -> None:
    said = listed(two_commits(), "--format", "md").stdout

    bullets = [line for line in said.splitlines() if line.startswith("- ")]
    assert len(bullets) == 2
    assert re.match(
        r"- ▼ \*\*\[0{10}\]\(reports/site/history\.html#commit-0{10}\)\*\* change 50: 1 series",
        bullets[0],
    )


def test_markdown_of_a_history_with_many_commits_stays_short() -> None:
    all_series = [a_stepped_series(f"b{at}", 1.3, at=at) for at in range(31, 56, 2)]

    lines = listed(all_series, "--format", "md").stdout.splitlines()

    assert len([line for line in lines if line.startswith("- ▼")]) == 10
    assert any(line.startswith("- and 3") for line in lines)


def early_warnings() -> list[Series]:
    """Series whose last two nightly runs stand out, which no detector can confirm yet."""
    slight = [a_stepped_series("b", 1.025, at=58, cell=f"n={number}") for number in range(30)]
    return [warning.series for warning in analyse(slight).early_warnings]


def test_early_warnings_of_one_commit_are_one_entry() -> None:
    warned = early_warnings()

    said = listed(warned).stdout

    number = len(warned)
    assert number > 4
    assert said.startswith(f"No new regression, {number} suspected, in {number} series.")
    assert said.count("early warning") == 1
    assert f"{number} series of 1 benchmark: 1.0" in said
    assert f"and {number - 3} more series" in said


def test_markdown_has_one_line_for_the_early_warnings_of_one_commit() -> None:
    warned = early_warnings()
    said = listed(warned, "--format", "md").stdout

    (line,) = [line for line in said.splitlines() if line.startswith("- ")]
    assert f"{len(warned)} series of 1 benchmark" in line
    assert "early warning" in line


def test_the_json_has_the_commits_with_the_ids_of_their_changes() -> None:
    document = json.loads(listed(two_commits(), "--json").stdout)

    late, early = document["commits"]
    assert [entry["status"] for entry in (late, early)] == ["new", "new"]
    assert (early["regressions"]["benchmarks"], early["regressions"]["series"]) == (2, 20)
    assert early["regressions"]["geometric_mean"] == pytest.approx(1.29, abs=0.02)
    assert early["improvements"] is None
    ids = {change["id"] for change in document["changes"]}
    assert {*late["changes"], *early["changes"]} == ids


def test_a_commit_is_acknowledged_with_all_its_regressions() -> None:
    (late, early) = json.loads(listed(two_commits(), "--json").stdout)["commits"]

    accepted = command("--accept", early["id"], "--because", "checks its input")

    assert accepted.exit_code == 0
    assert "20 changes" in accepted.stdout
    decisions, _ = read_decisions_file(DECISIONS_FILE)
    assert {decision.id for decision in decisions} == {*early["changes"]}
    after = json.loads(command("--json").stdout)
    assert [entry["status"] for entry in after["commits"]] == ["new", "acknowledged"]
    assert after["alarms"] == 1
    assert late["id"] != early["id"]


def test_a_reopened_commit_is_new_again() -> None:
    (entry,) = json.loads(listed([a_stepped_series("a", 1.2)], "--json").stdout)["commits"]
    command("--accept", entry["id"], "--because", "checks its input")
    assert command().exit_code == 0

    command("--reopen", entry["id"])

    assert command().exit_code == 1


def test_the_beginning_of_several_commits_is_refused() -> None:
    listed(two_commits())

    refused = command("--accept", "00000", "--because", "why")

    assert "several commits" in str(refused.exception)


@pytest.mark.parametrize("form", ["text", "md", "json", "junit"])
def test_a_regression_of_a_secondary_benchmark_does_not_fail(form: str) -> None:
    result = listed([a_stepped_series("a", 1.3, importance="secondary")], "--format", form)

    assert result.exit_code == 0
    assert "a" in result.stdout
    if form == "json":
        document = json.loads(result.stdout)
        assert (document["alarms"], document["secondary_alarms"]) == (0, 1)
    elif form == "junit":
        assert 'failures="0"' in result.stdout
    else:
        assert "1 in secondary" in result.stdout
        assert "of secondary benchmarks" in result.stdout


def test_a_primary_regression_fails_whatever_is_secondary() -> None:
    result = listed(
        [a_stepped_series("a", 1.1), a_stepped_series("b", 3.0, importance="secondary")]
    )

    assert result.exit_code == 1
    assert "1 in secondary" in result.stdout


def test_improvements_follow_regressions() -> None:
    said = listed(
        [a_stepped_series("better", 0.8, at=50), a_stepped_series("worse", 1.2, at=35)]
    ).stdout

    assert said.index("New regressions") < said.index("New improvements")


def test_a_commit_listed_for_its_improvement_is_described_by_it() -> None:
    series = [a_stepped_series("worse", 1.5, at=40), a_stepped_series("better", 0.7, at=40)]
    history_files.keep("p", series, RECORDS)
    (entry,) = json.loads(command("--format", "json").stdout)["commits"]
    command("--accept", entry["id"], "--because", "checks its input")

    said = command().stdout

    section = said.partition("New improvements")[2]
    assert "  ▲ " in section
    assert "▼ " not in section.partition("also")[0]
    assert section.index("faster") < section.index("also 1 series of 1 benchmark")


def test_series_without_values_are_grouped_by_reason() -> None:
    series = [a_series([*[1e6] * 18, None, None], scenario=name, project="p") for name in "abcde"]

    said = listed(series).stdout

    assert said.count("no result since") == 1
    assert "and 2 more" in said
