"""The exit code of a bisection."""

from __future__ import annotations

from typing import Any, cast

import pytest

from corebound.stats import bisection
from corebound.workflow import bisect
from support.build import a_cell


def a_result(ending: bisection.BisectionOutcome) -> bisect.BisectResult:
    return bisect.BisectResult(
        measured=a_cell(), project="shop", commits=(), ending=ending, is_merge=False, noise=(),
        records=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        ("found", 0),
        ("range", 0),
        ("no difference", 5),
        ("inconclusive", 5),
        ("broken", 4),
        ("out of time", 5),
    ],
)
def test_a_bisection_without_a_commit_has_its_own_exit_code(
    outcome: bisection.Outcome, code: int
) -> None:
    ending = bisection.BisectionOutcome(
        outcome=outcome, suspects=(), good=0, bad=1, slowdown_ratio=None, interval=None, tests=1
    )

    assert a_result(ending).exit_code == code


def test_a_budget_that_building_has_used_up_begins_no_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def launched(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(bisect, "execute_run", launched)
    nothing = cast("Any", None)
    search = bisect._Bisection(
        commits=(),
        loaded=nothing,
        request=nothing,
        max_launches=3,
        budget=bisect.Budget(1.0, since_s=-1.0),
        reporter=nothing,
        runs={(0, 1): cast("Any", object())},
    )

    assert search._answer(bisection.LaunchRequest(places=(0, 1), launches=3)) is None
