"""`corebound export` reads only the runs that it writes, and selects histories by name."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from corebound.errors import InputError
from corebound.records import history_files, jsonl
from corebound.workflow.export import export
from support.build import a_series


def test_the_latest_run_is_exported_by_reading_it(records: Path, runs_read: list[str]) -> None:
    export("bencher", records / "out.json", records=records)

    assert runs_read == ["night4"]


def test_a_run_is_exported_by_reading_it(records: Path, runs_read: list[str]) -> None:
    export("csv", records / "out.csv", records=records, run="night2")

    assert runs_read == ["night2"]
    assert len((records / "out.csv").read_text().splitlines()) == 1 + 3 * 2


def test_all_runs_are_a_table_of_all_launches(records: Path, runs_read: list[str]) -> None:
    export("csv", records / "out.csv", records=records)

    assert len(runs_read) == 4
    assert len((records / "out.csv").read_text().splitlines()) == 1 + 4 * 3 * 2


@pytest.mark.parametrize("text", ["", "{}", "{}\n", '{"kind": "run"'])
def test_a_file_that_does_not_begin_with_a_run_is_an_input_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(text)

    with pytest.raises(InputError, match="not a file"):
        jsonl.read_run(file)


def exported_histories(records: Path, *only: str) -> list[tuple[str, str]]:
    """The project and scenario of each exported point."""
    for project in ("trees", "leaves"):
        series = [a_series([1.0, 2.0], project=project, scenario=name) for name in ("cut", "grow")]
        history_files.keep(project, series, records)
    export("history", records / "out.csv", records=records, only=only)
    with (records / "out.csv").open() as lines:
        return [(row["project"], row["scenario"]) for row in csv.DictReader(lines)]


@pytest.mark.parametrize(
    ("only", "points"),
    [
        (["trees"], [("trees", "cut")] * 2 + [("trees", "grow")] * 2),
        (["c*"], [("leaves", "cut")] * 2 + [("trees", "cut")] * 2),
        (["trees/h0/grow[default]"], [("trees", "grow")] * 2),
    ],
)
def test_histories_are_selected_by_project_benchmark_or_series(
    tmp_path: Path, only: list[str], points: list[tuple[str, str]]
) -> None:
    assert exported_histories(tmp_path, *only) == points


def test_without_a_selection_our_own_points_and_imported_ones_are_exported(records: Path) -> None:
    found = Counter(project for project, _ in exported_histories(records))

    assert found == {"": 4 * 2, "trees": 4, "leaves": 4}


def test_a_name_that_no_series_has_is_an_input_error(records: Path) -> None:
    with pytest.raises(InputError, match="no series"):
        exported_histories(records, "flowers")
