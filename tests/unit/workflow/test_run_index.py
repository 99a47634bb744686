"""The index of runs: a file that has not changed is not read again."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.errors import Fault
from corebound.records import jsonl
from corebound.records.history import Series
from corebound.workflow.run_index import IndexedRun, indexed_folders, read_suite
from support.build import a_launch, a_run, write_records


@pytest.fixture
def two_nights(tmp_path: Path) -> Path:
    run = a_run()
    later = replace(run, id="r2", started_at="2026-03-15T08:00:00+00:00")
    for one in (run, later):
        write_records(tmp_path, one, *(a_launch(block=block) for block in (1, 2)))
    return tmp_path


def index(records: Path) -> tuple[tuple[Series, ...], tuple[IndexedRun, ...]]:
    """The series and runs of the only folder."""
    ((folder, runs),) = indexed_folders(records, [])
    return folder.series, runs


def test_an_indexed_run_equals_its_file(two_nights: Path) -> None:
    (series,), (first, second) = index(two_nights)

    assert [one.read().id for one in (first, second)] == [a_run().id, "r2"]
    assert first.launches[0] == a_launch(block=1)
    assert len(second.launches) == 2
    assert [point.run for point in series.points] == [a_run().id, "r2"]


def content(found: tuple[tuple[Series, ...], tuple[IndexedRun, ...]]) -> list[object]:
    series, runs = found
    return [
        [[*one.points] for one in series],
        *((one.summary, tuple(one.launches)) for one in runs),
    ]


def test_an_unchanged_file_is_read_only_for_its_launches(
    two_nights: Path, runs_read: list[str]
) -> None:
    before = content(index(two_nights))
    runs_read.clear()

    again = index(two_nights)
    assert runs_read == []

    assert content(again) == before
    assert len(runs_read) == 2


def test_a_resumed_run_is_read_again(two_nights: Path, runs_read: list[str]) -> None:
    _, (_, before) = index(two_nights)
    file = jsonl.file_of(before.read(), two_nights)
    appender = jsonl.Appender(file)
    appender.append(a_launch(block=3))
    appender.close()
    os.utime(file, ns=(1, 1))
    runs_read.clear()

    (series,), _ = index(two_nights)

    assert runs_read == ["r2"]
    assert [len(point.launches) for point in series.points] == [2, 3]


def test_a_damaged_line_is_reported_each_time(two_nights: Path) -> None:
    file = next(jsonl.files(two_nights))
    file.write_bytes(file.read_bytes() + b"{}\n")

    for _ in range(2):
        _, (first, _second) = index(two_nights)
        (fault,) = first.summary.faults
        assert "damaged" in str(fault)


def test_a_file_without_a_run_is_reported_and_the_others_are_indexed(two_nights: Path) -> None:
    first, second = sorted(two_nights.glob("*/*.jsonl"))
    first.write_bytes(b"#" + first.read_bytes())
    faults: list[Fault] = []

    ((_, (left,)),) = indexed_folders(two_nights, faults)

    assert left.file == second
    assert [(one.file, one.line) for one in faults] == [(str(first), 1)]
    assert "was skipped" in faults[0].what


def test_the_points_of_a_removed_run_are_removed(two_nights: Path) -> None:
    _, (first, _) = index(two_nights)
    first.file.unlink()

    (series,), (left,) = index(two_nights)

    assert [point.run for point in series.points] == [left.summary.id] == ["r2"]


def test_points_stay_as_they_were_read_if_another_process_adds_a_run(two_nights: Path) -> None:
    (series,), _ = index(two_nights)
    later = replace(a_run(), id="r3", started_at="2026-03-16T08:00:00+00:00")
    write_records(two_nights, later, a_launch(block=1))

    (longer,), _ = index(two_nights)

    assert [point.run for point in series.points] == [a_run().id, "r2"]
    assert [point.run for point in longer.points] == [a_run().id, "r2", "r3"]


def test_an_index_that_cannot_be_kept_still_has_the_points(two_nights: Path) -> None:
    (two_nights / "cache").write_text("in the way")

    (series,), _ = index(two_nights)

    assert [point.run for point in series.points] == [a_run().id, "r2"]


def test_runs_of_one_host_in_two_folders_are_one_series(two_nights: Path) -> None:
    _, (_, second) = index(two_nights)
    (two_nights / "copied").mkdir()
    second.file.rename(two_nights / "copied" / second.file.name)

    suite = read_suite(two_nights)

    (series,) = suite.series
    assert [point.run for point in series.points] == [a_run().id, "r2"]
    runs = [suite.run_of(series, point) for point in series.points]
    assert [run and run.id for run in runs] == [a_run().id, "r2"]
