"""Recorded runs, and a watch on which of them are read."""

from pathlib import Path

import pytest

from corebound.records import jsonl
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario, write_records


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A folder of records: runs `night1` to `night4` of two cells, with three launches of each."""
    scenario = a_scenario()
    for night in (1, 2, 3, 4):
        run = a_run(
            scenarios=(scenario,), run_id=f"night{night}", started_at=f"2026-01-0{night}T02:00:00Z"
        )
        write_records(
            tmp_path,
            run,
            *(
                a_launch(cell=cell, block=block, position=position, run=run.id)
                for block in range(3)
                for position, cell in enumerate(expand(scenario, "a.yaml"))
            ),
        )
    return tmp_path


@pytest.fixture
def runs_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the runs whose launches are read from now on."""
    read: list[str] = []
    really = jsonl.read

    def watched(file: Path) -> jsonl.Stored:
        stored = really(file)
        read.append(stored.run.id)
        return stored

    monkeypatch.setattr(jsonl, "read", watched)
    return read
