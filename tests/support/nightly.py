"""Nightly runs whose steps do nothing but exit."""

import sys
from datetime import UTC, datetime
from pathlib import Path

from corebound.workflow import nightly_steps
from corebound.workflow.nightly_steps import NightlyResult, Step, begin_journal, unfinished_journal

NOW = datetime(2026, 3, 14, 2, 17, 3, tzinfo=UTC)


def a_step(name: str, code: int = 0, *, accepted_codes: frozenset[int] = frozenset({0})) -> Step:
    program = f"import sys; print('out'); print('why', file=sys.stderr); sys.exit({code})"
    return Step(
        name=name, command=(sys.executable, "-S", "-c", program), accepted_codes=accepted_codes
    )


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
