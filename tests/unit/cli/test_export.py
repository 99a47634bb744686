"""`corebound export` reads only the runs that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from corebound.cli.commands.export import Format, export
from corebound.errors import InputError
from corebound.records import jsonl
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario

NIGHTS = 4


SCENARIO = a_scenario()


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """As many nights of two cells."""
    for night in range(1, NIGHTS + 1):
        run = a_run(
            scenarios=(SCENARIO,), run_id=f"night{night}", started_at=f"2026-01-0{night}T02:00:00Z"
        )
        appender = jsonl.Appender(jsonl.file_of(run, tmp_path))
        appender.append(run)
        for block in range(3):
            for position, cell in enumerate(expand(SCENARIO, "a.yaml")):
                appender.append(
                    a_launch(cell=cell, block=block, position=position, run=f"night{night}")
                )
        appender.close()
    return tmp_path


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose launches are read from now on, by the ends of their files' names."""
    read: list[str] = []
    really = jsonl.read

    def watched(file: Path) -> jsonl.Stored:
        read.append(file.stem.rpartition("-")[2])
        return really(file)

    monkeypatch.setattr(jsonl, "read", watched)
    return read


def test_the_latest_run_is_exported_by_reading_it(records: Path, whole: list[str]) -> None:
    export(Format.BENCHER, out=records / "out.json", records=records)

    assert whole == [f"night{NIGHTS}"]


def test_a_run_is_exported_by_reading_it(records: Path, whole: list[str]) -> None:
    export(Format.CSV, out=records / "out.csv", run="night2", records=records)

    assert whole == ["night2"]
    assert len((records / "out.csv").read_text().splitlines()) == 1 + 3 * 2


def test_all_runs_are_a_table_of_all_launches(records: Path, whole: list[str]) -> None:
    export(Format.CSV, out=records / "out.csv", records=records)

    assert len(whole) == NIGHTS
    assert len((records / "out.csv").read_text().splitlines()) == 1 + NIGHTS * 3 * 2


def test_the_first_line_of_a_file_identifies_its_run(records: Path) -> None:
    files = list(jsonl.files(records))

    assert [jsonl.read_run(file) for file in files] == [jsonl.read(file).run for file in files]


@pytest.mark.parametrize("text", ["", "{}", "{}\n", '{"kind": "run"'])
def test_a_file_that_does_not_begin_with_a_run_is_an_input_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(text)

    with pytest.raises(InputError, match="not a file of records"):
        jsonl.read_run(file)
