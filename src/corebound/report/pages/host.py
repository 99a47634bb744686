"""A host's page: its topology, its noise, and the doctor's results over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from corebound.analysis.commands import CALIBRATE, DOCTOR, TOPOLOGY, CommandLine, original_command
from corebound.analysis.host_records import HostRecords
from corebound.analysis.noise_floor import noise_floor_note
from corebound.analysis.wording import count, day, rich
from corebound.machine.doctor.result import HostCheck, State
from corebound.machine.topology import Topology
from corebound.present.sections import Fact
from corebound.records.calibration import Calibration
from corebound.records.run_record import Run
from corebound.report.elements import Head, Hero
from corebound.report.scenario.provenance import host_facts, topology_text
from corebound.report.urls import host_data, host_file

# As many as a column can hold.
_MOST_STATES = 20


class CheckHistory(Struct, frozen=True, kw_only=True):
    """A check over the runs that made it.

    Attributes:
        latest: Its latest result.
        since: The first run of those with the same state as the latest.
        runs: The number of runs that made it; `warned` of those in which it warned.
        recent_states: (state, number of consecutive runs with it), the latest last.
    """

    latest: HostCheck
    since: Run
    runs: int
    warned: int
    recent_states: tuple[tuple[State, int], ...]


class HostPage(Struct, frozen=True, kw_only=True):
    """A host.

    Attributes:
        address: The address of the page, from the site's top.
        machine: Its sockets, nodes, caches, cores and CPUs.
        noise: The results of calibrations; empty without any.
        checks: The doctor's results; empty if it never ran.
        checked_runs: The number of runs it checked, in words.
        runs: Its latest runs with the commands that repeat them, latest first.
        older: How many more are recorded, in words; empty if there are none.
        data: Address of this data as JSON, from the page.
        topology, doctor, calibrate: The commands that show the machine, check it, and measure its
            noise.
    """

    address: str
    head: Head
    hero: Hero
    facts: tuple[Fact, ...]
    machine: Topology
    noise: tuple[Fact, ...]
    checks: tuple[CheckHistory, ...]
    checked_runs: str
    runs: tuple[tuple[Run, CommandLine], ...]
    older: str
    data: str
    topology: CommandLine = TOPOLOGY
    doctor: CommandLine = DOCTOR
    calibrate: CommandLine = CALIBRATE


def _noise(calibration: Calibration) -> Fact:
    return Fact(
        term=f"{calibration.scenario}, {calibration.profile or 'no profile'}",
        value=noise_floor_note(
            calibration, launches=max(each.launches for each in calibration.noise)
        ),
    )


def host_page(result: HostRecords, *, now: str) -> HostPage:
    """Build the page of a host.

    Args:
        result: The host with its runs.
        now: ISO timestamp of the page.
    """
    runs = result.runs
    latest = runs[-1]
    host = latest.host
    older = result.recorded - len(result.latest_runs)
    checked = [run for run in runs if run.preflight is not None]
    return HostPage(
        address=host_file(host.id),
        head=Head(
            title=f"Host {host.name}",
            description=topology_text(host.topology),
            root="../",
            made=f"From its latest run, {day(latest.started_at)}; page made {day(now)}.",
        ),
        hero=Hero(
            title="Host",
            question="",
            context=host.id,
            verdict=rich(f"{host.name}: {host.cpu_model}"),
            support=rich(
                f"{topology_text(host.topology)}. {count(result.recorded, 'run')} recorded."
            ),
            flags=(),
        ),
        facts=host_facts(latest),
        machine=host.topology,
        noise=tuple(map(_noise, result.calibrations)),
        checks=_checks(checked),
        checked_runs=f"each of {len(checked):,} runs" if len(checked) > 1 else "one run",
        runs=tuple((run, original_command(run)) for run in result.latest_runs),
        older=f"{count(older, 'older run')} in the records." if older else "",
        data=f"../{host_data(host.id)}",
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
