"""The index of runs: a file that has not changed is not read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.errors import Fault
from corebound.records import jsonl
from corebound.workflow.run_index import IndexedRun, indexed_runs
from support.build import a_launch, a_run, write_records


@pytest.fixture
def two_nights(tmp_path: Path) -> Path:
    run = a_run()
    later = replace(run, id="r2", started_at="2026-03-15T08:00:00+00:00")
    for one in (run, later):
        write_records(tmp_path, one, *(a_launch(block=block) for block in (1, 2)))
    return tmp_path


def test_an_indexed_run_equals_its_file(two_nights: Path) -> None:
    first, second = indexed_runs(two_nights, [])

    assert [one.summary.run.id for one in (first, second)] == [a_run().id, "r2"]
    assert first.launches[0] == a_launch(block=1)
    assert len(second.launches) == 2
    assert len(first.summary.series[0].points) == 1


def told(found: list[IndexedRun]) -> list[object]:
    return [(one.summary, tuple(one.launches)) for one in found]


def test_an_unchanged_file_is_read_only_for_its_launches(
    two_nights: Path, runs_read: list[str]
) -> None:
    before = told(list(indexed_runs(two_nights, [])))
    runs_read.clear()

    again = list(indexed_runs(two_nights, []))
    assert runs_read == []

    assert told(again) == before
    assert len(runs_read) == 2


def test_a_resumed_run_is_read_again(two_nights: Path, runs_read: list[str]) -> None:
    (_, before) = indexed_runs(two_nights, [])
    file = jsonl.file_of(before.summary.run, two_nights)
    appender = jsonl.Appender(file)
    appender.append(a_launch(block=3))
    appender.close()
    os.utime(file, ns=(1, 1))
    runs_read.clear()

    (_, after) = indexed_runs(two_nights, [])

    assert runs_read == ["r2"]
    assert len(after.summary.series[0].points[0].launches) == 3


def test_a_damaged_line_is_reported_each_time(two_nights: Path) -> None:
    file = next(jsonl.files(two_nights))
    file.write_bytes(file.read_bytes() + b"{}\n")

    for _ in range(2):
        first, _second = indexed_runs(two_nights, [])
        (fault,) = first.summary.faults
        assert "damaged" in str(fault)


def test_a_file_without_a_run_is_reported_and_the_others_are_indexed(two_nights: Path) -> None:
    first, second = sorted(two_nights.glob("*/*.jsonl"))
    first.write_bytes(b"#" + first.read_bytes())
    faults: list[Fault] = []

    (left,) = indexed_runs(two_nights, faults)

    assert left.file == second
    assert [(one.file, one.line) for one in faults] == [(str(first), 1)]
    assert "this run was skipped" in faults[0].what
