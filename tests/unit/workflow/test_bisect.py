"""The exit code of a bisection."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from corebound.cli.commands.bisect import _answer
from corebound.records.run_record import Commit
from corebound.scenario.metrics import Metric
from corebound.stats import bisection
from corebound.stats.intervals import Interval
from corebound.workflow import bisect
from corebound.workflow.execute import Budget
from support.build import a_cell, a_run
from support.texts import in_order


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


def test_the_answer_is_in_the_words_of_the_metric() -> None:
    rate = Metric(name="rate", unit="op/s", better="higher")
    ending = bisection.BisectionOutcome(
        outcome="found", suspects=(1,), good=0, bad=1, slowdown_ratio=1.5, tests=1,
        interval=Interval(low=1.4, high=1.6, confidence=0.95),
    )  # fmt: skip
    result = replace(
        a_result(ending),
        measured=replace(a_cell(), metrics=(rate,)),
        commits=tuple(
            Commit(sha=letter * 40, subject="change", committed_at="", dirty=False)
            for letter in "ab"
        ),
    )

    assert in_order("\n".join(_answer(result)), "1.500×", "less", "1.400–1.600")


def test_a_budget_that_building_has_used_up_begins_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def launched(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(bisect, "execute_run", launched)
    nothing = cast("Any", None)
    search = bisect._Bisection(
        commits=(),
        loaded=nothing,
        request=nothing,
        max_launches=3,
        budget=Budget(1.0, since_s=-1.0),
        reporter=nothing,
        runs={(0, 1): cast("Any", object())},
    )

    with pytest.raises(bisection.OutOfTimeError):
        search._answer(bisection.LaunchRequest(places=(0, 1), launches=3))


@pytest.mark.parametrize(("budget_s", "is_told"), [(38.0, True), (39.0, False), (None, False)])
def test_a_budget_that_is_too_short_for_the_search_is_told_before_it_starts(
    monkeypatch: pytest.MonkeyPatch, budget_s: float | None, is_told: bool
) -> None:
    monkeypatch.setattr(bisect, "forecast_tasks", lambda *_, **__: [SimpleNamespace(launch_s=1.0)])
    anything = cast("Any", SimpleNamespace(records=None, tasks=(), done=(), run=a_run()))
    measure = SimpleNamespace(launches=SimpleNamespace(min=3))
    search = bisect._Bisection(
        commits=cast("Any", range(9)),
        loaded=cast("Any", SimpleNamespace(scenario=SimpleNamespace(measure=measure))),
        request=anything,
        max_launches=30,
        budget=Budget(budget_s, since_s=0.0),
        reporter=anything,
    )

    note = search._shortage_note(anything)

    assert (note is not None) == is_told
    assert note is None or in_order(note, "8 commits", "39 launches", "39.0 s")
