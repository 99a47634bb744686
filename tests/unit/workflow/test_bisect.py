"""The exit code of a bisection."""

from __future__ import annotations

import pytest

from corebound.stats import bisection
from corebound.workflow import bisect


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("found", 0), ("range", 0), ("no difference", 5), ("undecided", 5), ("broken", 4)],
)
def test_a_bisection_without_a_commit_has_its_own_exit_code(
    outcome: bisection.Outcome, code: int
) -> None:
    ending = bisection.BisectionOutcome(
        outcome=outcome, suspects=(), good=0, bad=1, slowdown_ratio=None, interval=None, tests=1
    )

    assert bisect.exit_code(ending) == code
    assert bisect.exit_code(None) == 5
