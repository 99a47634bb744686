"""What is shown while a command runs: a clock, and the warnings before a run."""

import io

import pytest

from corebound.analysis.forecast import TimeLeft
from corebound.cli.output.console import Console
from corebound.cli.output.progress import RunProgress, clock, warning_lines
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Launch
from corebound.runner import Job
from support.build import a_cell, a_launch, a_scenario, a_worker
from support.machine_trees import checks_of_a_busy_laptop
from support.texts import in_order


@pytest.mark.parametrize(
    ("length_s", "shown"), [(0, "0:00"), (65, "1:05"), (599.6, "10:00"), (7205, "2:00:05")]
)
def test_a_duration_is_shown_like_a_clock(length_s: float, shown: str) -> None:
    assert clock(length_s) == shown


def test_each_warning_before_a_run_is_one_line() -> None:
    lines = warning_lines(checks_of_a_busy_laptop())

    assert lines[:2] == ("warning: governor: schedutil", "warning: turbo: on")
    assert all(line.startswith("warning: ") and len(line) <= 80 for line in lines)


def printed(*launches: Launch) -> list[str]:
    """What a log says of launches."""
    stream = io.StringIO()
    progress = RunProgress(
        Console(file=stream, width=100), done=0, budget_s=None, time_left=TimeLeft({})
    )
    for launch in launches:
        progress.ended(launch)
    return stream.getvalue().splitlines()


def test_the_number_of_iterations_is_said_of_the_launch_that_has_it() -> None:
    stream = io.StringIO()
    progress = RunProgress(
        Console(file=stream, width=200), done=0, budget_s=None, time_left=TimeLeft({})
    )
    planned = PlannedCell(
        cell=a_cell(),
        measure=a_scenario().measure,
        placement=None,
        commands=(),
        requests=(),
        unfit=None,
    )

    for iterations in (1_335, 27):  # those of the next launch follow from one more
        job = Job(
            name="a", kind="measure", block=2, position=0, planned=planned, iterations=iterations
        )
        progress.started(job, left={})

    (line,) = stream.getvalue().splitlines()
    assert line.endswith("this one 1,335.")


def test_a_line_shows_the_time_of_a_step_and_how_far_the_run_is() -> None:
    (line,) = printed(a_launch(workers=(a_worker(wall_ns=(1_000_000, 2_000_000, 2_000_000)),)))

    assert in_order(line, "✓ a-scenario: default", "2.00 ms", "block 1", "launch 1")


def test_a_failure_shows_the_end_of_its_traceback_and_where_the_rest_is() -> None:
    log = "".join(f"line {number}\n\n" for number in range(9)) + "ValueError: no\n"
    failed = a_launch(status="failed", reason="no.", fix="Mend it.", log=log, workers=())

    first, *details = printed(failed, failed)

    assert first.startswith("✗ a-scenario: default")
    assert details[:-2] == [
        "  failed: no.",
        *(f"  | line {number}" for number in range(4, 9)),
        "  | ValueError: no",
        "  Mend it.",
    ]
    assert "`corebound log r1 0-0`" in details[-2]


def test_a_launch_that_a_race_drops_did_not_fail() -> None:
    first, second = printed(a_launch(status="dropped", reason="too slow.", workers=()))

    assert first.startswith("– a-scenario: default")
    assert second == "  dropped: too slow."


def test_alike_launches_are_explained_once() -> None:
    lines = printed(
        *(
            a_launch(status="invalid", reason=f"{share} % disturbed.", fix="Again.")
            for share in ("97.5", "12")
        )
    )

    assert sum("disturbed" in line for line in lines) == 1


def test_what_a_launch_left_behind_is_said() -> None:
    lines = printed(a_launch(leftover_processes=("sleep", "sleep")))

    assert in_order(lines[1], "left processes behind", ": sleep.")
