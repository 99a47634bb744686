"""`corebound export` reads only the runs that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from corebound.errors import InputError
from corebound.records import jsonl
from corebound.workflow.export import Format, export_runs


def test_the_latest_run_is_exported_by_reading_it(records: Path, runs_read: list[str]) -> None:
    export_runs(Format.BENCHER, records / "out.json", records)

    assert runs_read == ["night4"]


def test_a_run_is_exported_by_reading_it(records: Path, runs_read: list[str]) -> None:
    export_runs(Format.CSV, records / "out.csv", records, run="night2")

    assert runs_read == ["night2"]
    assert len((records / "out.csv").read_text().splitlines()) == 1 + 3 * 2


def test_all_runs_are_a_table_of_all_launches(records: Path, runs_read: list[str]) -> None:
    export_runs(Format.CSV, records / "out.csv", records)

    assert len(runs_read) == 4
    assert len((records / "out.csv").read_text().splitlines()) == 1 + 4 * 3 * 2


def test_the_first_line_of_a_file_identifies_its_run(records: Path) -> None:
    files = list(jsonl.files(records))

    assert [jsonl.read_run(file) for file in files] == [jsonl.read(file).run for file in files]


@pytest.mark.parametrize("text", ["", "{}", "{}\n", '{"kind": "run"'])
def test_a_file_that_does_not_begin_with_a_run_is_an_input_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(text)

    with pytest.raises(InputError, match="not a file of records"):
        jsonl.read_run(file)
