"""`corebound regressions`: one entry for a commit, and what one can do about it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from corebound.cli.app import app
from corebound.records import history_files
from corebound.records.decisions import DECISIONS_FILE, read_decisions_file
from corebound.records.history import Series
from support.series import a_stepped_series
from unit.present.test_regressions import two_commits

RECORDS = Path("reports/records")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(series: Sequence[Series], *words: str) -> Result:
    history_files.keep("p", series, RECORDS)
    return command(*words)


def command(*words: str) -> Result:
    return CliRunner().invoke(app, ["regressions", *words])


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
