"""A host's page: its topology, its noise, and the doctor's results over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from corebound.analysis.host_records import HostRecords
from corebound.analysis.noise_floor import noise_floor_note
from corebound.analysis.suggested_commands import CALIBRATE, DOCTOR, TOPOLOGY
from corebound.analysis.wording import count, day, rich
from corebound.machine.doctor.result import HostCheck, State
from corebound.present.sections import Fact
from corebound.records.run_record import Run
from corebound.report.elements import Head, Hero, Page
from corebound.report.scenario.provenance import host_facts, topology_text

# As many as a column can hold.
_MOST_STATES = 20


class CheckHistory(Struct, frozen=True, kw_only=True):
    """A check over the runs that made it.

    Attributes:
        since: The first run of those with the same state as the latest.
        runs: The number of runs that made it; `warned` of those in which it warned.
        recent_states: (state, number of consecutive runs with it), the latest last.
    """

    latest: HostCheck
    since: Run
    runs: int
    warned: int
    recent_states: tuple[tuple[State, int], ...]


def host_page(records: HostRecords, *, now: str) -> Page:
    """Build the page of a host.

    Args:
        now: ISO timestamp of the page.
    """
    latest = records.runs[-1]
    host, topology = latest.host, topology_text(latest.host.topology)
    checked = [run for run in records.runs if run.preflight is not None]
    return Page(
        head=Head(
            title=f"Host {host.name}",
            description=topology,
            made=f"From its latest run, {day(latest.started_at)}; page made {day(now)}.",
        ),
        hero=Hero(
            title="Host",
            context=host.id,
            verdict=rich(f"{host.name}: {host.cpu_model}"),
            support=rich(f"{topology}. {count(records.recorded, 'run')} recorded."),
        ),
        host=host,
        records=records,
        facts=host_facts(latest),
        noise=tuple(
            Fact(
                term=f"{calibration.scenario}, {calibration.profile or 'no profile'}",
                value=noise_floor_note(
                    calibration, launches=max(each.launches for each in calibration.noise)
                ),
            )
            for calibration in records.calibrations
        ),
        checks=_checks(checked),
        checked_runs=f"each of {len(checked):,} runs" if len(checked) > 1 else "one run",
        topology=TOPOLOGY,
        doctor=DOCTOR,
        calibrate=CALIBRATE,
    )


def _checks(runs: Sequence[Run]) -> tuple[CheckHistory, ...]:
    """Checks that warn now come first, then those that warned before, then the others."""
    groups: dict[str, list[tuple[Run, HostCheck]]] = {}
    for run in runs:
        for host_check in run.preflight or ():
            groups.setdefault(host_check.check, []).append((run, host_check))
    order = {"warning": 0, "ok": 1, "unavailable": 2}
    return tuple(
        sorted(
            map(_check, groups.values()),
            key=lambda row: (order[row.latest.state], -row.warned, row.latest.check),
        )
    )


def _check(results: Sequence[tuple[Run, HostCheck]]) -> CheckHistory:
    since, latest = results[-1]
    for earlier, result in reversed(results):
        if result.state != latest.state:
            break
        since = earlier
    states = [result.state for _, result in results]
    return CheckHistory(
        latest=latest,
        since=since,
        runs=len(states),
        warned=states.count("warning"),
        recent_states=tuple(
            (state, len(tuple(equal))) for state, equal in groupby(states[-_MOST_STATES:])
        ),
    )
