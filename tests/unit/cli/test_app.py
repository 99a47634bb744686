"""The entry point: help, errors of the system, crashes."""

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from corebound.cli.app import app, main
from corebound.cli.command_table import COMMANDS, command_words
from corebound.machine import lock
from support.texts import in_order


@pytest.mark.parametrize("words", [("check",), ("import", "asv"), ("report", "--records")])
def test_an_impossible_path_is_an_error_without_a_traceback(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["corebound", *words, "n" * 256])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert in_order(said, os.strerror(errno.ENAMETOOLONG), "\n  Check", "permissions")


def test_a_crash_has_its_own_exit_code_and_its_traceback_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As a template that was not installed.
    missing = tmp_path / "templates\n::error::"

    def crashing(**_: object) -> None:
        missing.read_bytes()

    monkeypatch.setattr("corebound.cli.app.app", crashing)
    monkeypatch.setattr(sys, "argv", ["corebound", "--webhook", "https://chat.example/key"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr().err
    (saved,) = (tmp_path / "corebound").iterdir()
    assert ended.value.code == 70
    assert said.count("\n") == 1
    assert "a bug" in said
    assert str(saved) in said
    kept = saved.read_text()
    assert "Traceback" in kept
    assert "https://chat.example/…" in kept
    assert "key" not in kept


@pytest.mark.parametrize(
    "words", [("run",), ("run", "--resume"), ("calibrate",), ("tune",), ("tune", "--verify")]
)
def test_a_wrong_path_is_reported_even_if_another_run_is_measuring(
    words: tuple[str, ...],
    rejection_of: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(lock.LOCK_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    with lock.host_lock():
        assert rejection_of(*words, "nowhere.yaml").startswith("nowhere.yaml: ")


@pytest.mark.parametrize("command", ["plan", "check", "calibrate", "tune"])
def test_a_missing_argument_is_explained_by_its_help_and_an_example(
    command: str, rejection_of: Callable[..., str]
) -> None:
    assert f"`corebound {command} " in rejection_of(command).splitlines()[-1]


def test_each_command_has_a_complete_line_in_the_help() -> None:
    # The runner's terminal is 80 columns wide, whatever ours is.
    done = CliRunner().invoke(app, ["--help"])

    told = done.output.split("Commands:")[1].splitlines()[1:]
    assert [line.split()[0] for line in told if line] == list(COMMANDS)
    assert [line for line in told if line.endswith("...")] == []


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("--version run", "run"),
        ("run run", "run"),
        ("fleet", "fleet"),
        ("fleet plan fleet.yaml", "fleet plan"),
        ("fleet hosts forget fleet.yaml n1", "fleet hosts forget"),
        ("import none x", "import none"),
        ("none", ""),
    ],
)
def test_the_command_that_was_typed_includes_its_groups(typed: str, command: str) -> None:
    assert " ".join(command_words(typed.split())) == command


def _helps(command: Any, *words: str) -> Iterator[tuple[str, str]]:
    """The help of each command and each group, with its words."""
    if words:
        yield " ".join(words), command.help
    if hasattr(command, "list_commands"):
        context = command.make_context("corebound", [], resilient_parsing=True)
        for name in command.list_commands(context):
            yield from _helps(command.get_command(context, name), *words, name)


HELPS = dict(_helps(get_command(app)))


@pytest.mark.parametrize("words", sorted(HELPS))
def test_each_help_has_examples_of_commands_that_exist(words: str) -> None:
    _, _, examples = HELPS[words].partition("Examples:\n")

    assert examples.strip()
    for typed in re.findall(r"corebound ([a-z-]+)", examples):
        assert typed in HELPS
