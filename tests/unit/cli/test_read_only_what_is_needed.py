"""Of years of records a command reads those whole that it is about, and of others one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from corebound.cli.commands.compare import compare
from corebound.cli.commands.export import Format, export
from corebound.errors import InputError
from corebound.records import jsonl
from corebound.scenario.matrix import expand
from corebound.workflow.prepare import RunRequest, prepare_comparison
from corebound.workflow.scenarios import load_all
from support.build import a_launch, a_run, a_scenario

NIGHTS = 4
SCENARIO = a_scenario()
YAML = """\
schema: 1
name: nothing
title: Nothing
question: How long does nothing take?
workload: {command: ["true"]}
matrix: {binding: [none, one-cpu]}
"""


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


def test_two_runs_are_compared_by_reading_two(records: Path, whole: list[str]) -> None:
    compare("night1", "night3", records=records)
    # What the runs before them said is kept from the first time on.
    assert whole == ["night1", "night3", "night2"]
    whole.clear()

    compare("night1", "night3", records=records)

    assert whole == ["night1", "night3"]


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


def test_a_search_goes_on_by_reading_the_run_that_it_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "true.yaml").write_text(YAML)
    wanted = RunRequest(files=(Path("true.yaml"),))
    loaded = load_all(wanted.files, (), None)
    both = prepare_comparison(loaded, wanted, tmp_path, print, resume=False)
    narrowed = load_all(wanted.files, ("binding=none",), None)
    other = prepare_comparison(
        narrowed,
        RunRequest(files=wanted.files, profile=None, only=("binding=none",), seed=None),
        tmp_path,
        print,
        resume=False,
    )
    for one in (both, other):
        jsonl.begin(one.run, one.file).close()

    again = prepare_comparison(loaded, wanted, tmp_path, print, resume=True)

    assert again.run == both.run
    assert whole == [both.run.id]


def test_the_first_line_says_what_a_file_is_of(records: Path) -> None:
    files = list(jsonl.files(records))

    assert [jsonl.read_run(file) for file in files] == [jsonl.read(file).run for file in files]


@pytest.mark.parametrize("text", ["", "{}", "{}\n", '{"kind": "run"'])
def test_a_file_that_begins_with_no_run_is_an_error_for_people(tmp_path: Path, text: str) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(text)

    with pytest.raises(InputError, match="not a file of records"):
        jsonl.read_run(file)
