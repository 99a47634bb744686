"""What the command line reads and writes: times, machines, exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import pytest

from corebound.cli.app import app, main
from corebound.cli.commands import regressions
from corebound.cli.commands.plan import describe
from corebound.cli.options import seconds
from corebound.cli.output.progress import clock
from corebound.errors import InputError
from corebound.planning.models import CannotRun
from corebound.records.launch_record import Status
from corebound.runner import Ending
from corebound.stats import bisection
from corebound.workflow import bisect
from corebound.workflow.execute import RunResult
from corebound.workflow.regressions import RegressionsResult
from support.build import a_host, a_launch, a_run, a_series


@pytest.mark.parametrize(
    ("text", "length_s"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2h", 7200), ("0s", 0)]
)
def test_a_budget_is_written_as_people_say_it(text: str, length_s: float) -> None:
    assert seconds(text) == length_s


@pytest.mark.parametrize("text", ["", "10", "m", "ten minutes", "-5m", "1m1h", "1.5h"])
def test_what_is_no_length_of_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="10m or 1h30m"):
        seconds(text)


@pytest.mark.parametrize(
    ("length_s", "shown"), [(0, "0:00"), (65, "1:05"), (599.6, "10:00"), (7205, "2:00:05")]
)
def test_time_is_shown_as_a_clock_does(length_s: float, shown: str) -> None:
    assert clock(length_s) == shown


def test_a_machine_is_described_from_package_to_cpu() -> None:
    host = a_host(nodes=2, cores_per_node=1, cpus_per_core=2, allowed=frozenset({0, 1, 2}))

    assert describe(host).splitlines() == [
        "2 packages, 2 nodes, 2 cores, 4 CPUs, SMT, allowed 0-2",
        "package 0",
        "  node 0, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 0,2",
        "package 1",
        "  node 1, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 1,3, not allowed: 3",
    ]


@pytest.mark.parametrize(
    ("statuses", "ending", "code"),
    [
        (("ok", "skipped"), "complete", 0),
        (("ok", "invalid"), "complete", 4),
        (("failed",), "out of time", 4),
        (("skipped", "skipped"), "complete", 3),
        (("skipped",), "out of time", 5),
        ((), "out of time", 5),
        (("ok",), "out of time", 0),
    ],
)
def test_the_exit_code_tells_what_came_of_the_launches(
    statuses: tuple[Status, ...], ending: Ending, code: int
) -> None:
    launches = tuple(a_launch(block=block, status=one) for block, one in enumerate(statuses))
    told = RunResult(run=a_run(), file=Path("run.jsonl"), launches=launches, ending=ending)

    assert told.exit_code == code


@pytest.mark.parametrize(("cause", "code"), [("host", 0), ("environment", 3), ("build", 4)])
def test_an_environment_that_is_not_there_is_in_the_exit_code_though_others_were_measured(
    cause: Literal["host", "environment", "build"], code: int
) -> None:
    launches = (a_launch(status="ok"), a_launch(status="skipped"))
    not_launched = (CannotRun(what="it is not there.", fix="Make it.", cause=cause),)
    told = RunResult(
        run=a_run(), file=Path("f"), launches=launches, ending="complete", not_launched=not_launched
    )

    assert told.exit_code == code


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("found", 0), ("range", 0), ("no difference", 5), ("undecided", 5), ("broken", 4)],
)
def test_a_search_that_names_no_commit_has_an_exit_code_of_its_own(
    outcome: bisection.Outcome, code: int
) -> None:
    ending = bisection.BisectionOutcome(
        outcome=outcome, suspects=(), good=0, bad=1, slowdown_ratio=None, interval=None, tests=1
    )

    assert bisect.exit_code(ending) == code
    assert bisect.exit_code(None) == 5


def test_thousands_are_written_as_the_pages_write_them() -> None:
    series = (a_series([1.0]),) * 1200
    told = RegressionsResult(
        judged=(),
        failing=(),
        not_analysed=(),
        series=series,
        active=series,
    )

    said = "No new regression, in 1,200 series. All 1,200 series are too short to tell"
    assert regressions.headline(told).startswith(said)


@pytest.mark.parametrize("words", [("check",), ("import", "asv"), ("report", "--records")])
def test_a_path_that_no_file_can_have_is_told_and_no_traceback(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["corebound", *words, "n" * 256])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(
        "File name too long.\n  Check the path and its permissions.\n"
    )


def test_a_crash_has_an_exit_code_of_its_own_and_its_traceback_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As a template that was not installed.
    missing = tmp_path / "templates\n::error::"
    monkeypatch.setattr("corebound.cli.app.app", missing.read_bytes)
    monkeypatch.setattr(sys, "argv", ["corebound", "--webhook", "https://chat.example/key"])
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    with pytest.raises(SystemExit) as ended:
        main()

    said = capsys.readouterr().err
    (saved,) = (tmp_path / "corebound").iterdir()
    assert ended.value.code == 70
    assert said.count("\n") == 1
    assert "This is a bug in corebound, not a result. Please report it" in said
    assert str(saved) in said
    kept = saved.read_text()
    assert "Traceback (most recent call last)" in kept
    assert "https://chat.example/…" in kept
    assert "key" not in kept


def refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> str:
    monkeypatch.setattr(sys, "argv", ["corebound", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_a_value_that_is_none_of_a_choice_is_told_without_the_words_of_a_library(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refused(capsys, monkeypatch, "regressions", "--format", "xml")

    assert "Invalid value for '--format': 'xml' is not one of 'text'" in said


@pytest.mark.parametrize("option", ["--out", "--records"])
def test_a_file_where_a_folder_is_needed_is_called_a_file(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").touch()

    said = refused(capsys, monkeypatch, "report", option, str(tmp_path / "README.md"))

    assert "README.md: not a folder" in said


def test_a_site_without_any_record_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records"
    records.mkdir()

    app(
        ["report", "--records", str(records), "--out", str(tmp_path / "site")],
        standalone_mode=False,
    )

    assert f"no records in {records}" in capsys.readouterr().err
