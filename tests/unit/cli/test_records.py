"""`corebound list`, `show` and `log` on stored runs."""

import json
from pathlib import Path

import pytest

from support.build import a_launch, a_run, write_records
from support.commands import corebound


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "reports" / "records"
    write_records(folder, a_run(), a_launch(run=a_run().id, status="failed", log="Boom\n"))
    return tmp_path


def test_runs_are_listed_with_their_launches(records: Path) -> None:
    text = corebound(records, "list").out
    (run,) = json.loads(corebound(records, "list", "--json").out)["results"]

    assert a_run().id in text
    assert "discarded: failed" in " ".join(text.split())
    assert (run["run"], run["launches"]) == (a_run().id, {"failed": 1})


def test_a_run_is_shown_as_when_it_ended(records: Path) -> None:
    (file,) = records.rglob("*.jsonl")

    for name in (a_run().id, file.stem, file.name, str(file)):
        assert "discarded: failed" in corebound(records, "show", name).out


def test_the_log_of_the_last_failure_is_the_default(records: Path) -> None:
    assert corebound(records, "log").out == "Boom\n"
    assert corebound(records, "log", a_run().id, "0-0").out == "Boom\n"

    absent = corebound(records, "log", a_run().id, "7-7")

    assert absent.code == 2
    assert "no launch `7-7`" in absent.err
    assert "0-0" in absent.err


@pytest.mark.parametrize("command", ["list", "show", "log"])
def test_without_records_the_user_is_told_what_to_do(tmp_path: Path, command: str) -> None:
    completed = corebound(tmp_path, command)

    assert completed.code == 2
    assert "corebound run" in completed.err
