"""What asv measured in an environment that it did not make: it takes no range of commits there."""

from __future__ import annotations

from typing import Any

import pytest

from corebound.analysis.commands import (
    CommandLine,
    asv_continuous_arguments,
    between_command,
    point_command,
)
from corebound.records.history import Series
from support.build import a_point, a_series

GOOD, BAD = a_point(1.0, day=1), a_point(1.0, day=17)
ASV = ("asv", "run", "--bench", r"^io\.read\b")


def of_asv(cell: str, **changes: Any) -> Series:
    return a_series([], project="trees", cell=cell, reproduce=ASV, **changes)


@pytest.mark.parametrize("parameters", ["", "n=1,"])
def test_a_commit_is_only_told_there(parameters: str) -> None:
    series = of_asv(f"{parameters}environment=existing-py_usr_bin_python")

    assert point_command(series, BAD) == CommandLine(
        r"asv run --python=same --set-commit-hash 0000000000 --bench '^io\.read\b'",
        reads_records=False,
    )


def test_two_commits_are_not_measured_in_turns_there() -> None:
    series = of_asv("environment=existing-py_usr_bin_python")

    assert asv_continuous_arguments(series, GOOD.commit, BAD.commit) == ()
    assert between_command((series,), GOOD, BAD) == CommandLine(
        r"asv run --bench '^io\.read\b'", reads_records=False
    )


@pytest.mark.parametrize(
    "cell",
    ["environment=virtualenv-py3.11", "n=environment=existing,environment=virtualenv-py3.11"],
)
def test_everywhere_else_asv_takes_the_commit_itself(cell: str) -> None:
    command = point_command(of_asv(cell), BAD)

    assert command is not None
    assert command.line == r"asv run --bench '^io\.read\b' '0000000000^!'"
