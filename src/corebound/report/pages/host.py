"""A host's page: its topology, its noise, and the doctor's results over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from corebound.analysis.commands import CALIBRATE, DOCTOR, TOPOLOGY, CommandLine, original_command
from corebound.analysis.host_records import HostRecords, Record
from corebound.analysis.noise_floor import noise_floor_note
from corebound.analysis.run_comparison import commit_title
from corebound.analysis.wording import Tone, check_sign, count, day, rich
from corebound.machine.doctor.result import HostCheck, State
from corebound.records.calibration import Calibration
from corebound.records.run_record import Run
from corebound.report.charts.topology import Box, node_rows, topology_boxes
from corebound.report.elements import Head, Hero
from corebound.report.scenario.provenance import Fact, host_facts, topology_text
from corebound.report.urls import host_data, host_file, run_file

# As many as a column can hold.
_MOST_SIGNS = 20


class CheckHistory(Struct, frozen=True, kw_only=True):
    """A check over the runs: its latest state, since when, and how often it warned.

    Attributes:
        recent_states: (tone, signs) of the latest runs, the last at the right; consecutive runs
            with the same result are merged.
        why, fix: The cause and fix of a warning; else empty.
    """

    check: str
    tone: Tone
    sign: str
    state: str
    value: str
    since: str
    warned: str
    recent_states: tuple[tuple[Tone, str], ...]
    recent_states_text: str
    why: str
    fix: str


class HostPage(Struct, frozen=True, kw_only=True):
    """A host.

    Attributes:
        address: The address of the page, from the site's top.
        boxes: The machine, to be drawn.
        nodes: The same as a table: node, CPUs, memory, distances.
        noise: The results of calibrations; empty without any.
        checks: The doctor's results; empty if it never ran.
        checked_runs: The number of runs it checked, in words.
        runs: (time, address, commit, kernel, command) of its runs, latest first.
        data: Address of this data as JSON, from the page.
        topology, doctor, calibrate: The commands that show the machine, check it, and measure its
            noise.
    """

    address: str
    head: Head
    hero: Hero
    facts: tuple[Fact, ...]
    boxes: tuple[Box, ...]
    nodes: tuple[tuple[str, str, str, str], ...]
    noise: tuple[Fact, ...]
    checks: tuple[CheckHistory, ...]
    checked_runs: str
    runs: tuple[tuple[str, str, str, str, CommandLine], ...]
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
    looked = [run for run in runs if run.preflight is not None]
    return HostPage(
        address=host_file(host.id),
        head=Head(
            title=f"Host {host.name}",
            description=topology_text(host.topology),
            root="../",
            breadcrumb=host.name,
            made=f"As its latest run saw it, {day(latest.started_at)}; page made {day(now)}.",
        ),
        hero=Hero(
            title="Host",
            question="",
            context=host.id,
            verdict=rich(f"{host.name}: {host.cpu_model}"),
            support=rich(f"{topology_text(host.topology)}. {count(len(runs), 'run')} recorded."),
            flags=(),
        ),
        facts=host_facts(latest),
        boxes=topology_boxes(host.topology),
        nodes=node_rows(host.topology),
        noise=tuple(map(_noise, result.calibrations)),
        checks=_checks(looked),
        checked_runs=f"each of {len(looked):,} runs" if len(looked) > 1 else "one run",
        runs=tuple(
            (
                day(run.started_at),
                f"../{run_file(run)}",
                commit_title(run.commit) if run.commit else "–",
                run.host.kernel,
                original_command(run),
            )
            for run in result.latest_runs
        ),
        data=f"../{host_data(host.id)}",
    )


def _checks(runs: Sequence[Run]) -> tuple[CheckHistory, ...]:
    """Checks that warn now come first, then those that warned before, then the others."""
    groups: dict[str, list[tuple[Run, HostCheck]]] = {}
    for run in runs:
        for host_check in run.preflight or ():
            groups.setdefault(host_check.check, []).append((run, host_check))
    rows = [_check(check, looks) for check, looks in groups.items()]
    order = {"warning": 0, "ok": 1, "unavailable": 2}
    return tuple(
        row
        for _, row in sorted(rows, key=lambda pair: (order[pair[1].state], -pair[0], pair[1].check))
    )


def _check(check: str, looks: Sequence[tuple[Run, HostCheck]]) -> tuple[int, CheckHistory]:
    since, latest = looks[-1]
    for earlier, was in reversed(looks):
        if was.state != latest.state:
            break
        since = earlier
    warned = sum(was.state == "warning" for _, was in looks)
    tone, sign = check_sign(latest.state)
    warns = latest.state == "warning"
    return warned, CheckHistory(
        check=check,
        tone=tone,
        sign=sign,
        state=latest.state,
        value=latest.value,
        since=since.started_at[:10],
        warned=f"{warned} of {len(looks)}",
        recent_states=_state_spans([was.state for _, was in looks[-_MOST_SIGNS:]]),
        recent_states_text=_state_counts([was.state for _, was in looks[-_MOST_SIGNS:]]),
        why=latest.why if warns else "",
        fix=(latest.fix or "") if warns else "",
    )


def _state_spans(states: Sequence[State]) -> tuple[tuple[Tone, str], ...]:
    """The signs of the states, merged if adjacent ones have the same tone."""
    return tuple(
        (tone, sign * len(tuple(alike)))
        for (tone, sign), alike in groupby(check_sign(state) for state in states)
    )


def _state_counts(states: Sequence[State]) -> str:
    """The same as alternative text: `ok in 2, warning in 1`."""
    return ", ".join(f"{state} in {len(tuple(alike))}" for state, alike in groupby(states))


def host_links(records: Sequence[Record]) -> tuple[tuple[str, str], ...]:
    """The link text and address of each host's page."""
    names = {run.host.id: run.host.name for run, _ in records}
    return tuple((f"Host {name}", host_file(host)) for host, name in sorted(names.items()))
