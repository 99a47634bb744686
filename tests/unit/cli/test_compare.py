"""`corebound compare` reads only the two runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from corebound.cli.commands.compare import compare
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


def test_two_runs_are_compared_by_reading_two(records: Path, whole: list[str]) -> None:
    compare("night1", "night3", records=records)
    # What the runs before them said is kept from the first time on.
    assert whole == ["night1", "night3", "night2"]
    whole.clear()

    compare("night1", "night3", records=records)

    assert whole == ["night1", "night3"]
