"""Which run tells of a scenario: the latest that says the most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from corebound.model.record import Launch
from corebound.model.run import Run, ScenarioSource
from corebound.report.view.study import Study, study


def latest_studies(records: Sequence[tuple[Run, Sequence[Launch]]]) -> tuple[Study, ...]:
    """For every scenario in the records, the latest run that launched it, by name.

    A run that was asked for some of its cells, as the command of a row asks, counts only where
    none was asked for all of the same file. One that recorded a scenario and ended before any
    launch of it counts only where there is no other.

    Raises:
        ScenarioFaults: a recorded scenario is none this version can read.
    """
    latest: dict[str, _Candidate] = {}
    by_time = sorted(records, key=lambda record: (record[0].started_at, record[0].id))
    # The latest first: of most runs nobody has to look at the launches.
    for run, launches in reversed(by_time):
        for source in run.scenarios:
            name = str(source.document.get("name", ""))
            known = latest.get(name)
            if known is not None and not _may_be_better(run, source, known):
                continue
            launched = any(launch.cell.scenario == name for launch in launches)
            if launched or known is None:
                latest[name] = _Candidate(run, source, launches, launched)
    ordered = (latest[name] for name in sorted(latest))
    return tuple(study(one.run, one.source, one.launches) for one in ordered)


class _Candidate(NamedTuple):
    """A run that may be shown for a scenario, and whether it launched any cell of it."""

    run: Run
    source: ScenarioSource
    launches: Sequence[Launch]
    launched: bool


def _may_be_better(run: Run, source: ScenarioSource, known: _Candidate) -> bool:
    """Whether an earlier run may say more of a scenario than the one that is known."""
    if not known.launched:
        return True
    return bool(known.run.only) and not run.only and source.sha256 == known.source.sha256
