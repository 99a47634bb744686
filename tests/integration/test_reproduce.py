"""`corebound reproduce` measures a value again: same commit, environment, cell and seed."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.records import codec, jsonl
from support.commands import corebound
from support.repositories import NAP_SIZE, git, two_sizes_suite


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with one run; its second commit naps a hundred times as long."""
    made = two_sizes_suite(tmp_path_factory.mktemp("suite") / "suite")
    code, _, err = corebound(made, "run", "scenarios", "--seed", "5", "--json")
    assert code == 0, err
    (made / "scenarios" / "steps.py").write_text(NAP_SIZE.replace("0.003", "0.3"))
    git(made, "commit", "--quiet", "--all", "--message", "nap longer")
    return made


def the_run(suite: Path) -> jsonl.Stored:
    (file,) = jsonl.files(suite / "reports" / "records")
    return jsonl.read(file)


@pytest.mark.quick
def test_reproduce_runs_the_recorded_commit_with_the_recorded_seed(suite: Path) -> None:
    before = the_run(suite)

    code, out, err = corebound(suite, "reproduce", f"{before.run.id}:size=1", "--json")

    document: dict[str, Any] = json.loads(out or "{}")
    assert document, err
    # A hundred times as long is what the commit that is checked out would take.
    assert document["slowdown_ratio"] < 30
    assert (document["id"], document["seed"]) == ("counting[size=1]", 5)
    assert code == (1 if document["holds"] is False else 0)
    reproduced = jsonl.read(suite / document["records"][1])
    assert reproduced.run.commit == before.run.commit
    assert [launch.cell.key for launch in reproduced.launches] == ["size=1"] * 3
    # Those that nothing disturbed are compared.
    assert set(document["launches"]) <= {2, 3}
    # It is no night.
    assert the_run(suite) == before


def test_a_value_that_does_not_reproduce_sets_the_exit_code(suite: Path, tmp_path: Path) -> None:
    before = the_run(suite)
    lines = before.file.read_bytes().splitlines(keepends=True)
    # A record that says the launches took a thousandth of what they did: so much that a busy
    # machine cannot hide it.
    shorter = [
        replace(
            launch,
            workers=tuple(
                replace(worker, wall_ns=tuple(ns // 1000 for ns in worker.wall_ns))
                for worker in launch.workers
            ),
        )
        for launch in before.launches
    ]
    changed = [lines[0], *map(codec.encode, shorter)]
    file = tmp_path / "told.jsonl"
    file.write_bytes(b"".join(changed))

    code, out, err = corebound(suite, "reproduce", f"{file}:counting[size=2]")

    assert code == 1, err
    assert "does not hold: slower" in out


def test_another_host_is_refused_and_named(suite: Path, tmp_path: Path) -> None:
    before = the_run(suite)
    file = tmp_path / "elsewhere.jsonl"
    text = before.file.read_text().replace(before.run.host.id, "0123456789ab")
    file.write_text(text.replace(before.run.corebound, "0.0.0-other", 1))

    code, _, err = corebound(suite, "reproduce", str(file), "--cell", "size=1")

    assert code == 3
    message = " ".join(err.split())
    assert "0123456789ab" in message
    assert "0.0.0-other" in message


def test_another_environment_is_refused_and_the_difference_is_named(
    suite: Path, tmp_path: Path
) -> None:
    before = the_run(suite)
    (lock,) = before.run.environments
    package = next(package for package in lock.packages if package.startswith("numpy=="))
    file = tmp_path / "before.jsonl"
    file.write_text(before.file.read_text().replace(package, "numpy==1.0"))

    code, _, err = corebound(suite, "reproduce", str(file), "--cell", "size=1")

    assert code == 3
    message = " ".join(err.split())
    assert f"+{package}" in message
    assert "−numpy==1.0" in message


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nowhere",), "No run, commit or file matches"),
        (("RUN",), "2 cells with results"),
        (("RUN:size=9",), "0 cells with results"),
    ],
)
def test_bad_input_is_an_error_message(
    suite: Path, arguments: tuple[str, ...], expected: str
) -> None:
    name = the_run(suite).run.id

    code, _, err = corebound(
        suite, "reproduce", *(argument.replace("RUN", name) for argument in arguments)
    )

    assert code == 2
    assert expected in " ".join(err.split())
