"""The steps of a nightly run, and the journal from which it resumes."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from corebound.workflow.nightly_steps import JOURNAL, Step, begin_journal, unfinished_journal
from support.known import known
from support.nightly import NOW, a_step, carry_on


def test_a_failed_step_ends_the_run_with_the_end_of_its_log(tmp_path: Path) -> None:
    outcome, said = carry_on(tmp_path, a_step("one"), a_step("two", 3), a_step("three"))

    assert said == ["one …", "two …"]
    assert (known(outcome.failure).step, known(outcome.failure).tail[-1]) == ("two", "why")
    assert outcome.exit_code == 3


def test_a_resumed_run_skips_completed_steps_that_run_once(tmp_path: Path) -> None:
    once = Step(name="one", command=a_step("one").command, once=True)
    carry_on(tmp_path, once, a_step("two"), a_step("three", 2))

    outcome, said = carry_on(tmp_path, once, a_step("two"), a_step("three"), go_on=True)

    assert said == ["two …", "three …"]
    assert outcome.codes == {"one": 0, "two": 0, "three": 0}


def test_a_journal_truncated_anywhere_can_be_resumed(tmp_path: Path) -> None:
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
            again = known(unfinished_journal(tmp_path, ("asked",), NOW))
            assert again.codes["late"] == 0


def test_each_line_of_the_journal_is_flushed_to_disk(
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


def test_a_journal_that_is_a_pipe_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "20260101T000000Z").mkdir()
    os.mkfifo(tmp_path / "20260101T000000Z" / JOURNAL)

    assert unfinished_journal(tmp_path, ("asked",), NOW) is None


@pytest.mark.parametrize(
    "line", ['{"event": "ended"}', '{"event": "ended", "step": []}', "[" * 9999]
)
def test_a_damaged_line_of_a_journal_is_skipped(tmp_path: Path, line: str) -> None:
    carry_on(tmp_path, a_step("one"), a_step("two", 2))
    (file,) = tmp_path.glob(f"*/{JOURNAL}")
    file.write_bytes(file.read_bytes() + f"{line}\n".encode())

    found = known(unfinished_journal(tmp_path, ("asked",), NOW))

    assert found.codes == {"one": 0, "two": 2}


@pytest.mark.parametrize(
    ("asked", "later", "over"),
    [
        (("another",), timedelta(0), False),
        (("asked",), timedelta(hours=13), False),
        (("asked",), timedelta(0), True),
    ],
)
def test_a_finished_old_or_different_run_is_not_resumed(
    tmp_path: Path, asked: tuple[str, ...], later: timedelta, over: bool
) -> None:
    journal = begin_journal(tmp_path, ("asked",), NOW)
    if over:
        journal.over(0, "2026-03-14T02:17:03Z")

    assert unfinished_journal(tmp_path, asked, NOW + later) is None
    assert begin_journal(tmp_path, ("asked",), NOW).folder != journal.folder
