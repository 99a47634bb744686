"""What is shown while a command runs: a clock, and the warnings before a run."""

from __future__ import annotations

import pytest

from corebound.cli.output.progress import clock, warning_lines
from support.machine_trees import checks_of_a_busy_laptop


@pytest.mark.parametrize(
    ("length_s", "shown"), [(0, "0:00"), (65, "1:05"), (599.6, "10:00"), (7205, "2:00:05")]
)
def test_a_duration_is_shown_like_a_clock(length_s: float, shown: str) -> None:
    assert clock(length_s) == shown


def test_each_warning_before_a_run_is_one_line() -> None:
    lines = warning_lines(checks_of_a_busy_laptop())

    assert lines[:2] == ("warning: governor: schedutil", "warning: turbo: on")
    assert all(line.startswith("warning: ") and len(line) <= 80 for line in lines)
