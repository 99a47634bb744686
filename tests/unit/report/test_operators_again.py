"""Several profiles of one cell: between what they lie; and that one alone is said to be one."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.analysis.scenario_result import ScenarioResult, profiles_of
from corebound.analysis.selection import latest_studies, with_profiles_before
from corebound.cli.app import app
from corebound.records import jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from corebound.report.downloads import cells_json, operators_csv
from corebound.report.scenario.operators import Operators, operators
from corebound.scenario.matrix import expand
from support.build import a_launch, a_profiled_launch, a_run, a_scenario, an_operator

SCENARIO = a_scenario()
NONE, ONE_CPU = expand(SCENARIO, "a.yaml")


def a_night(name: str, conv_ns: int, day: int = 1, **changed: Any) -> tuple[Run, list[Launch]]:
    """A run that measured both cells and profiled the first of them."""
    run = replace(
        a_run(scenarios=(SCENARIO,), run_id=name, started_at=f"2026-01-{day:02}T00:00:00Z"),
        **changed,
    )
    return run, [
        a_launch(cell=NONE, run=name),
        a_launch(cell=ONE_CPU, run=name, position=1),
        a_profiled_launch(an_operator("conv", conv_ns), cell=NONE, position=2),
    ]


def latest(records: Sequence[tuple[Run, Sequence[Launch]]]) -> ScenarioResult:
    (study,) = with_profiles_before(
        latest_studies(records),
        [run for run, _ in records],
        {run.id: profiles_of(launches) for run, launches in records},
    )
    return study


def section(records: Sequence[tuple[Run, Sequence[Launch]]]) -> Operators:
    made = operators(latest(records), traces={})
    assert made is not None
    return made


def rows_of(made: Operators) -> dict[str, tuple[str, str]]:
    (table,) = made.tables
    return {
        row.name: (row.times[0].time, row.times[0].ends)
        for row in (*table.rows, *table.phases, *table.sums)
    }


def test_a_single_profile_has_no_brackets_and_its_table_says_that_it_is_one_launch() -> None:
    rows = rows_of(section([a_night("r1", 600_000)]))

    assert rows["conv"] == ("600", "")
    assert rows["one step, profiled in one launch"] == ("700", "")


def test_a_step_that_was_measured_has_its_interval_also_here() -> None:
    run, launches = a_night("r1", 600_000)
    second = a_launch(cell=NONE, run="r1", block=1)

    rows = rows_of(section([(run, [*launches, second])]))

    assert rows["median step, measured"] == ("1,000", "[1,000, 1,000]")


def test_profiles_of_earlier_runs_that_are_alike_stand_beneath_as_least_and_most() -> None:
    made = section([a_night("r1", 500_000), a_night("r2", 650_000, 2), a_night("r3", 600_000, 3)])
    rows = rows_of(made)

    # The figure is the latest profile's, so that the column adds up.
    assert rows["conv"] == ("600", "[500, 650]")
    assert rows["outside operators"] == ("100", "")
    assert rows["one step, profiled in the latest of 3 launches"] == ("700", "[600, 750]")
    assert "the least and the most" in made.lead


def test_the_files_tell_the_least_and_the_most_too() -> None:
    study = latest([a_night("r1", 500_000), a_night("r2", 650_000, 2), a_night("r3", 600_000, 3)])

    conv, outside = csv.DictReader(io.StringIO(operators_csv(study)))
    (profile,) = json.loads(cells_json(study, ()))["profiles"]

    ends = ("total_ns", "total_low_ns", "total_high_ns")
    assert [conv[name] for name in ends] == ["600000", "500000", "650000"]
    # Where all say the same there are no ends.
    assert [outside[name] for name in ends] == ["100000", "", ""]
    assert [profile["operators"][0][name] for name in ends] == [600_000, 500_000, 650_000]
    assert profile["others_like_it"] == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"commit": Commit(sha="1" * 40, subject="", committed_at="", dirty=False)},
        {"profile": "nightly"},
        {"scenarios": (replace(a_run(scenarios=(SCENARIO,)).scenarios[0], sha256="f" * 64),)},
        {"host": replace(a_run().host, kernel="6.2.0")},
        {"host": replace(a_run().host, id="another")},
    ],
)
def test_a_profile_of_a_run_that_is_not_alike_says_nothing(changed: dict[str, Any]) -> None:
    rows = rows_of(section([a_night("r1", 500_000, **changed), a_night("r2", 600_000, 2)]))

    assert rows["conv"] == ("600", "")


def test_what_an_earlier_profile_did_not_call_took_no_time_there() -> None:
    before, latest = a_night("r1", 600_000), a_night("r2", 600_000, 2)
    more = a_profiled_launch(
        an_operator("conv", 600_000), an_operator("add", 300_000), cell=NONE, position=2
    )

    rows = rows_of(section([before, (latest[0], [*latest[1][:2], more])]))

    assert rows["add"] == ("0.30", "[0.00, 0.30]")


def test_of_a_long_past_only_the_latest_count() -> None:
    rows = rows_of(section([a_night(f"r{day}", 500_000 + day * 1000, day) for day in range(1, 21)]))

    # Six profiles bound a median with 95 %.
    assert rows["conv"] == ("520", "[515, 520]")
    assert "one step, profiled in the latest of 6 launches" in rows


def test_workers_of_one_launch_have_profiles_of_their_own() -> None:
    run, (*measured, profiled) = a_night("r1", 600_000)
    (worker,) = profiled.workers
    (other,) = a_night("r1", 700_000)[1][-1].workers
    launch = replace(profiled, workers=(worker, replace(other, slot=1)))

    rows = rows_of(section([(run, [*measured, launch])]))

    assert rows["conv"] == ("600", "[600, 700]")


def test_the_site_knows_the_profiles_of_earlier_nights_without_reading_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for run, launches in (a_night("r1", 500_000), a_night("r2", 600_000, 2)):
        file = jsonl.file_of(run, Path("reports/records"))
        with contextlib.closing(jsonl.begin(run, file)) as appender:
            for launch in launches:
                appender.append(launch)

    for _ in range(2):
        assert CliRunner().invoke(app, ["report"]).exit_code == 0
        page = Path("reports/site/scenario/a-scenario.html").read_text()
        assert "one step, profiled in the latest of 2 launches" in page
        assert "[500, 600]" in page
