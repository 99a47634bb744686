"""How `regressions --confirm` spends its budget."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from corebound.api.reporter import CallReporter
from corebound.errors import LaunchError
from corebound.machine import discovery, identity
from corebound.records import documents
from corebound.workflow import confirm
from corebound.workflow.prepare import RunRequest
from support.texts import numbers_in


def test_a_budget_is_shared_and_what_it_does_not_hold_is_left_for_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, shares_s, kept, said = 0.0, list[float](), list[object](), list[str]()

    def measured(change: object, _pair: object, request: RunRequest, _reporter: object) -> object:
        nonlocal now_s
        shares_s.append(request.budget_s or 0)
        now_s += 40
        return change

    clock = SimpleNamespace(monotonic=lambda: now_s)
    monkeypatch.setattr(confirm, "time", clock)
    monkeypatch.setattr("corebound.workflow.execute.time", clock)
    monkeypatch.setattr(confirm, "commit_pair", lambda *_: object())
    monkeypatch.setattr(confirm, "confirm_by_commits", measured)
    monkeypatch.setattr(documents.Documents, "keep", lambda _, one, __: kept.append(one))
    host = identity.host(discovery.live_topology()).id
    change = cast("Any", SimpleNamespace(series=SimpleNamespace(host=host), only_on=()))

    confirm.confirm_changes(
        [change] * 4,
        cast("Any", None),
        Path("records"),
        CallReporter(said.append),
        config=Path("asv.conf.json"),
        wait_s=0,
        budget_s=60,
    )

    assert shares_s == [15, pytest.approx(20 / 3)]
    assert kept == [change] * 2
    assert [numbers_in(line) for line in said] == [[2, 4]]


def test_launches_that_do_not_decide_before_the_budget_ends_are_repeated_next_time() -> None:
    with pytest.raises(LaunchError, match="the budget ended after 2 launches of each"):
        confirm._require_time("inconclusive", "out of time", 2)
    confirm._require_time("confirmed", "out of time", 2)
    confirm._require_time("inconclusive", "complete", 6)
