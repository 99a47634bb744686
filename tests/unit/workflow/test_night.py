"""What a night is: steps in order, a journal that survives, a summary of few lines."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from corebound.cli.app import app
from corebound.records import history_files
from corebound.workflow import nightly_steps
from corebound.workflow.nightly_steps import (
    JOURNAL,
    Failure,
    NightlyResult,
    Step,
    begin_journal,
    unfinished_journal,
)
from corebound.workflow.nightly_summary import NightlySummary, summary_document, summary_text
from unit.report.test_regressions_of_rates import a_rate

NOW = datetime(2026, 3, 14, 2, 17, 3, tzinfo=UTC)
ALARM: dict[str, Any] = {
    "alarm": True,
    "title": "Parsing a large file",
    "cell": "threads=1",
    "size": "▼ 5.0 % slower, 95 % interval [4.1, 6.2] %",
    "last_good": {"at": "2026-03-13", "commit": "9be1f0aa17c0", "subject": "before"},
    "first_bad": {"at": "2026-03-14", "commit": "4f0c2a91d3ff", "subject": "look\x1b twice"},
    "link": "https://speed.example.org/history/a.html",
}


def a_step(name: str, code: int = 0, *, accepted_codes: frozenset[int] = frozenset({0})) -> Step:
    program = f"import sys; print('out'); print('why', file=sys.stderr); sys.exit({code})"
    return Step(
        name=name, command=(sys.executable, "-S", "-c", program), accepted_codes=accepted_codes
    )


def a_summary(outcome: NightlyResult, *alarms: dict[str, Any]) -> NightlySummary:
    told = {"changes": [*alarms, {**ALARM, "alarm": False, "title": "no news"}], "failing": []}
    return NightlySummary(
        started_at="20260314T021703Z", host="box-7", project="shop", result=outcome,
        regressions=told, site="https://speed.example.org", partial=False,
    )  # fmt: skip


def test_a_night_of_uncommitted_changes_says_so() -> None:
    told = replace(
        a_summary(NightlyResult(codes={"run": 0}, failure=None)), snapshot="1f0c+dirty.9f8e"
    )

    assert "uncommitted changes (1f0c+dirty.9f8e): not part of the history" in summary_text(told)
    assert summary_document(told)["snapshot"] == "1f0c+dirty.9f8e"


def carry_on(folder: Path, *every: Step, go_on: bool = False) -> tuple[NightlyResult, list[str]]:
    journal = (unfinished_journal(folder, ("asked",), NOW) if go_on else None) or begin_journal(
        folder, ("asked",), NOW
    )
    said: list[str] = []
    with nightly_steps.nightly_lock(folder, patience_s=0.0) as lock:
        outcome = nightly_steps.run_steps(
            every, journal, lock=lock, now=lambda: "2026-03-14T02:17:03Z", notify=said.append
        )
    return outcome, said


def test_a_step_that_fails_ends_the_night_and_its_log_says_why(tmp_path: Path) -> None:
    outcome, said = carry_on(tmp_path, a_step("one"), a_step("two", 3), a_step("three"))

    assert said == ["one …", "two …"]
    assert outcome.failure is not None
    assert (outcome.failure.step, outcome.failure.tail[-1]) == ("two", "why")
    assert outcome.exit_code == 3


def test_an_exit_code_that_a_step_may_have_is_told_and_the_night_goes_on(tmp_path: Path) -> None:
    outcome, said = carry_on(
        tmp_path, a_step("one", 4, accepted_codes=frozenset({0, 4})), a_step("two")
    )

    assert said == ["one …", "two …"]
    assert (outcome.failure, outcome.exit_code) == (None, 4)


def test_a_program_that_is_not_there_is_a_step_that_failed(tmp_path: Path) -> None:
    outcome, _ = carry_on(tmp_path, Step(name="one", command=("/no/such/program",)))

    assert outcome.failure is not None
    assert "No such file" in outcome.failure.tail[-1]
    assert outcome.exit_code == 4


def test_what_is_done_once_is_not_done_again_by_a_night_that_goes_on(tmp_path: Path) -> None:
    once = Step(name="one", command=a_step("one").command, once=True)
    carry_on(tmp_path, once, a_step("two"), a_step("three", 2))

    outcome, said = carry_on(tmp_path, once, a_step("two"), a_step("three"), go_on=True)

    assert said == ["two …", "three …"]
    assert outcome.codes == {"one": 0, "two": 0, "three": 0}


def test_a_journal_torn_anywhere_is_read_and_written_on(tmp_path: Path) -> None:
    carry_on(tmp_path, a_step("one"), a_step("two", 2))
    (file,) = tmp_path.glob(f"*/{JOURNAL}")
    whole = file.read_bytes()

    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        found = unfinished_journal(tmp_path, ("asked",), NOW)
        # Without its first line it is nobody's night.
        assert (found is None) == (length < whole.index(b"\n")), length
        if found is not None:
            found.ended("late", 0, "2026-03-14T02:17:03Z")
            again = unfinished_journal(tmp_path, ("asked",), NOW)
            assert again is not None
            assert again.codes["late"] == 0


def test_a_line_of_the_journal_is_on_the_disk_before_the_step_goes_on(
    tmp_path: Path, synced: Callable[[Path], list[bytes | list[str]]]
) -> None:
    nights = tmp_path / "reports" / "nights"
    journal = begin_journal(nights, ("asked",), NOW)
    file = journal.folder / JOURNAL

    for write in (
        lambda: None,
        lambda: journal.began("run", "2026-03-14T02:17:03Z"),
        lambda: journal.ended("run", 0, "2026-03-14T02:18:03Z"),
        lambda: journal.over(0, "2026-03-14T02:19:03Z"),
    ):
        write()
        assert synced(file)[-1] == file.read_bytes()
    assert JOURNAL in synced(journal.folder)[-1]
    assert journal.folder.name in synced(nights)[-1]
    assert "nights" in synced(nights.parent)[-1]


@pytest.mark.parametrize(
    "line", ['{"event": "ended"}', '{"event": "ended", "step": []}', "[" * 9999]
)
def test_a_damaged_line_of_a_journal_is_passed_over(tmp_path: Path, line: str) -> None:
    carry_on(tmp_path, a_step("one"), a_step("two", 2))
    (file,) = tmp_path.glob(f"*/{JOURNAL}")
    file.write_bytes(file.read_bytes() + f"{line}\n".encode())

    found = unfinished_journal(tmp_path, ("asked",), NOW)

    assert found is not None
    assert found.codes == {"one": 0, "two": 2}


@pytest.mark.parametrize(
    ("asked", "later", "over"),
    [
        (("another",), timedelta(0), False),
        (("asked",), timedelta(hours=13), False),
        (("asked",), timedelta(0), True),
    ],
)
def test_a_night_that_is_over_long_past_or_another_is_not_gone_on_with(
    tmp_path: Path, asked: tuple[str, ...], later: timedelta, over: bool
) -> None:
    journal = begin_journal(tmp_path, ("asked",), NOW)
    if over:
        journal.over(0, "2026-03-14T02:17:03Z")

    assert unfinished_journal(tmp_path, asked, NOW + later) is None
    assert begin_journal(tmp_path, ("asked",), NOW).folder != journal.folder


def test_the_log_of_a_step_begins_with_the_command_to_repeat_it(tmp_path: Path) -> None:
    step = a_step("one")

    nightly_steps.run_step(step, tmp_path, lock=os.open(os.devnull, os.O_RDONLY))

    assert step.log(tmp_path).read_text().splitlines()[0].startswith(f"$ {sys.executable} -S -c")
    assert step.out(tmp_path).read_text() == "out\n"


def test_a_summary_says_what_became_slower_by_which_commit_and_nothing_else() -> None:
    told = a_summary(NightlyResult(codes={"run": 0, "regressions": 1}, failure=None), ALARM)

    assert summary_text(told).splitlines() == [
        "shop on box-7, nightly run of 20260314T021703Z: 1 new regression",
        "Parsing a large file [threads=1]: ▼ 5.0 % slower, 95 % interval [4.1, 6.2] %",
        "  commit 4f0c2a91d3 look  twice (9be1f0aa17..4f0c2a91d3)",
        "  https://speed.example.org/history/a.html",
        "https://speed.example.org",
    ]
    assert summary_document(told)["status"] == "regression"
    assert [one["title"] for one in summary_document(told)["regressions"]] == [
        "Parsing a large file"
    ]


def test_a_subject_calls_nobody_where_a_summary_is_sent() -> None:
    bad = {**ALARM["first_bad"], "subject": "<!channel> R&D"}
    told = a_summary(
        NightlyResult(codes={"regressions": 1}, failure=None), {**ALARM, "first_bad": bad}
    )

    assert "4f0c2a91d3 <!channel> R&D (" in summary_text(told)
    assert "4f0c2a91d3 &lt;!channel&gt; R&amp;D (" in summary_document(told)["text"]


def test_a_rate_that_fell_is_less_and_not_of_less_time(tmp_path: Path) -> None:
    series = replace(a_rate(0.8), title="Matrix product", unit="MB/s")
    history_files.keep("trees", [replace(series, points=series.points[:60])], tmp_path)
    words = ["regressions", "--records", str(tmp_path), "--json"]
    told = json.loads(CliRunner().invoke(app, words).stdout)
    outcome = NightlyResult(codes={"regressions": 1}, failure=None)

    (alarm,) = told["changes"]
    (_, line, *_) = summary_text(replace(a_summary(outcome), regressions=told)).splitlines()

    assert (alarm["unit"], alarm["more_is_better"]) == ("MB/s", True)
    assert re.match(r"Matrix product: ▼ 2\d\.\d % less, 95 % interval \[\d", line), line


def test_a_summary_names_the_series_that_were_not_analysed() -> None:
    outcome = NightlyResult(codes={"run": 0, "regressions": 5, "report": 0}, failure=None)
    lost = {"title": "Matrix product", "cell": "threads=1", "reason": "ValueError: a\nb (c.py)"}
    told = {"changes": [], "failing": [], "not_analysed": [lost]}

    said = summary_text(replace(a_summary(outcome), regressions=told))

    assert "? Matrix product [threads=1]: not analysed: ValueError: a" in said


def test_a_step_that_crashed_is_told_as_a_bug_and_no_regression(tmp_path: Path) -> None:
    outcome, _ = carry_on(tmp_path, a_step("regressions", 70, accepted_codes=frozenset({0, 1})))
    told = a_summary(outcome, ALARM)

    assert outcome.exit_code == 70
    assert told.status == "crashed"
    assert summary_text(told).splitlines()[0].endswith("CRASHED at `regressions`")
    assert "This is a bug in corebound, not a result." in summary_text(told)


def test_a_night_whose_budget_ended_before_anything_was_measured_says_so(tmp_path: Path) -> None:
    outcome, _ = carry_on(
        tmp_path, a_step("run", 5, accepted_codes=frozenset({0, 4, 5})), a_step("report")
    )
    told = a_summary(outcome)

    assert outcome.exit_code == 5
    assert told.status == "nothing measured"
    assert (
        summary_text(told)
        .splitlines()[0]
        .endswith("the budget ran out before anything was measured")
    )


def test_a_summary_of_a_failed_night_names_the_step_and_its_last_words() -> None:
    failure = Failure(step="report", code=4, log=Path("a/report.log"), tail=("no room",))
    told = a_summary(NightlyResult(codes={"run": 0, "report": 4}, failure=failure))

    lines = summary_text(told).splitlines()

    assert lines[0].endswith("FAILED at `report`")
    assert lines[-1] == "  no room"
    assert summary_document(told)["failed"] == {"step": "report", "code": 4}
