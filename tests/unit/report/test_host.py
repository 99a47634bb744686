"""A host's page: what the doctor saw over time, and the noise."""

from __future__ import annotations

from msgspec.structs import replace

from corebound.analysis.host_records import host_studies
from corebound.machine.doctor.result import State
from corebound.records.run_record import Run
from corebound.report.pages.host import CheckHistory, host_page
from support.build import a_host_check, a_run
from support.report_sample import NOW


def looked(day: int, state: State) -> tuple[Run, tuple[()]]:
    """A run of a day, whose doctor saw one thing."""
    check = a_host_check(
        check="governor",
        state=state,
        value=f"seen {day}",
        why="clocks differ",
        fix="cpupower frequency-set -g performance",
    )
    run = a_run(run_id=f"r{day}", started_at=f"2026-03-{day:02}T02:00:00Z")
    return replace(run, preflight=(check,)), ()


def check(*states: State) -> CheckHistory:
    (study,) = host_studies([looked(day, state) for day, state in enumerate(states, 1)])
    (row,) = host_page(study, now=NOW).checks
    return row


def test_a_check_shows_how_it_was_run_by_run() -> None:
    row = check("ok", "ok", "warning", "unavailable", "warning")

    assert row.course == (("good", "✓✓"), ("warn", "!"), ("plain", "–"), ("warn", "!"))
    assert row.warned == "2 of 5"
    assert row.since == "2026-03-05"


def test_what_warns_now_says_why_and_what_mends_it() -> None:
    row = check("ok", "warning")

    assert (row.why, row.fix) == ("clocks differ", "cpupower frequency-set -g performance")


def test_what_is_well_again_says_neither() -> None:
    row = check("warning", "ok")

    assert (row.why, row.fix, row.state) == ("", "", "ok")
