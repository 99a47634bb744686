"""A series whose analysis fails is named everywhere, and costs no other its answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from defusedxml.ElementTree import fromstring
from typer.testing import CliRunner, Result

from corebound.analysis.change_history import build_change_history
from corebound.analysis.commit_comparison import compare_commits
from corebound.cli.app import app
from corebound.records import history_files
from corebound.records.history import Series
from corebound.stats.history import regressions
from corebound.stats.history.change_point import HistoryArrays
from corebound.stats.history.regressions import analyse
from support.build import a_series

STEADY = [1e6 * (1 + night * 7 % 5 / 1000) for night in range(60)]
STEPPED = [figure * (1.2 if night >= 40 else 1.0) for night, figure in enumerate(STEADY)]


def named(scenario: str, figures: list[float]) -> Series:
    return a_series(figures, project="p", scenario=scenario, title=scenario)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the analysis of the history called `odd` fail."""
    course_of = regressions.arrays_of

    def failing(series: Series) -> HistoryArrays:
        if series.scenario == "odd":
            raise ZeroDivisionError("float\ndivision by zero")
        return course_of(series)

    monkeypatch.setattr(regressions, "arrays_of", failing)


@pytest.fixture
def records(tmp_path: Path, broken: None) -> Path:
    """Enough series for several processes, one of which cannot be analysed."""
    others = [named(f"steady{number}", STEADY) for number in range(20)]
    history_files.keep("p", [*others, named("odd", STEADY)], tmp_path)
    return tmp_path


def call(*words: str) -> Result:
    return CliRunner().invoke(app, [*words], catch_exceptions=False)


def test_the_others_are_analysed(broken: None) -> None:
    odd = named("odd", STEADY)

    found = analyse([named("a", STEPPED), odd, named("b", STEADY)])

    assert [change.series.scenario for change in found.changes] == ["a"]
    (one,) = found.not_analysed
    assert one.series == odd
    assert one.reason.startswith("ZeroDivisionError: float division by zero (test_not_analysed.py")


def test_a_figure_without_a_logarithm_is_a_reason() -> None:
    (one,) = analyse([named("odd", [0.0, *STEADY])]).not_analysed

    assert one.reason.startswith("ValueError: a figure is above 0 and finite, or absent (")


@pytest.mark.parametrize("form", ["text", "md", "json", "junit"])
def test_the_gate_names_it_and_has_no_answer(records: Path, form: str) -> None:
    result = call("regressions", "--format", form, "--records", str(records))

    assert result.exit_code == 5
    assert "ZeroDivisionError: float division by zero" in result.stdout
    assert "Traceback" not in result.output
    if form == "text":
        assert "No new regression, 1 not analysed, in 21 series." in result.stdout
    elif form == "json":
        (told,) = json.loads(result.stdout)["not_analysed"]
        assert told["scenario"] == "odd"
    elif form == "junit":
        suite = fromstring(result.stdout)
        assert suite.attrib["errors"] == "1"


def test_a_regression_elsewhere_is_told_as_ever(records: Path) -> None:
    history_files.keep("q", [named("stepped", STEPPED)], records)

    result = call("regressions", "--records", str(records))

    assert result.exit_code == 1
    assert "1 new regression, 1 not analysed" in result.stdout


def test_the_site_has_its_page_and_names_it(records: Path) -> None:
    out = records / "site"

    result = call("report", "--records", str(records), "--out", str(out))

    assert result.exit_code == 0
    assert "its changes could not be analysed: ZeroDivisionError" in result.stderr
    assert "1 series could not be analysed" in (out / "index.html").read_text()
    history = (out / "history.html").read_text()
    assert 'id="not-analysed"' in history
    assert "ZeroDivisionError: float division by zero" in history
    (page,) = [file for file in (out / "history").iterdir() if "odd" in file.name]
    assert "could not be analysed" in page.read_text()
    assert len([*(out / "history").iterdir()]) == 21


def test_two_of_its_commits_are_not_compared(broken: None) -> None:
    odd, other = named("odd", STEADY), named("other", STEADY)
    one, two = (other.points.moments[at].commit for at in (20, 50))
    assert one is not None
    assert two is not None

    found = compare_commits("p", one.sha, two.sha, build_change_history([odd, other]))

    assert [one.series.scenario for one in found.series] == ["other"]
    ((name, why),) = found.unlike
    assert "odd" in name
    assert why == "its history could not be analysed"
