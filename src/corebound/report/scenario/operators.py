"""The operators of the profiled cells side by side: where the time of a step is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.launch_metrics import mend_of
from corebound.analysis.operator_profiles import Profiled, _attempt, profiled
from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import title_of, varying_axes, without
from corebound.analysis.wording import Label, full_name, label
from corebound.report.scenario.intervals import Unmeasured
from corebound.report.scenario.operator_table import (
    Column,
    OperatorTable,
    basis_ns,
    dominant,
    operator_table,
)
from corebound.units import percent


class Operators(Struct, frozen=True, kw_only=True):
    """The section: a table for each baseline, and the cells that could not be profiled."""

    title: str
    lead: str
    tables: tuple[OperatorTable, ...]
    unprofiled: tuple[Unmeasured, ...]


def operators(study: ScenarioResult, *, traces: Mapping[str, str]) -> Operators | None:
    """Build the operator tables of a scenario; None if no profile was requested.

    Args:
        study: The scenario's result.
        traces: For each launch whose trace is in the site, its address.
    """
    if not study.profiles:
        return None
    groups = _groups(study)
    axes = varying_axes([group[0].cell for group in groups])
    tables = tuple(
        _table(
            [replace(one, cell=without(one.cell, axes)) for one in group],
            title_of(group[0].cell, axes),
            traces,
            reproduce_command(study, [one.cell for one in group]),
        )
        for group in groups
    )
    return Operators(
        title=_heading(groups),
        lead=(
            "Self time an iteration, from a launch of its own under the framework's profiler, so"
            " that profiling touches no other figure. What operators of several threads share is"
            " divided among them, so that a column adds up to its step."
            f" {_rests_on(groups)} What single calls took stands beneath, shortest to longest."
            if tables
            else "Profiles were asked for, and there is none."
        ),
        tables=tables,
        unprofiled=_unprofiled(study),
    )


def _rests_on(groups: Sequence[Sequence[Profiled]]) -> str:
    """What the values of a column come from, and so what the brackets below them contain."""
    if any(one.others for group in groups for one in group):
        return (
            "Figures are of the latest launch alone; in brackets the least and the most of all"
            " profiles of the cell under the same circumstances, which bound their median with"
            " 95 % from six on."
        )
    return "It is one launch a cell, and so has no interval."


def _groups(study: ScenarioResult) -> list[list[Profiled]]:
    """Profiled cells by baseline, which comes first, then fastest first."""
    groups: dict[str, list[Profiled]] = {}
    for one in profiled(study):
        known = study.find(one.cell)
        base = known.baseline.key if known and known.baseline else one.cell.key
        groups.setdefault(base, []).append(one)
    return [
        sorted(
            group, key=lambda one: (one.cell.key != base, one.measured_ns or basis_ns(one.profile))
        )
        for base, group in groups.items()
    ]


def _heading(groups: Sequence[Sequence[Profiled]]) -> str:
    leaders = [None if group[0].disturbed else dominant(group[0].profile) for group in groups]
    if len(leaders) == 1 and leaders[0] is not None:
        operator, share = leaders[0]
        return f"Where the time goes: {percent(share, 0)} into {operator.type}"
    return "Where the time goes"


def _table(
    group: Sequence[Profiled], title: str, traces: Mapping[str, str], command: CommandLine
) -> OperatorTable:
    columns = [
        Column(
            label=_marked(label(one.cell)) if one.disturbed else label(one.cell),
            name=full_name(one.cell),
            profile=one.profile,
            measured_ns=one.measured_ns,
            measured_ends_ns=(one.measured.low, one.measured.high) if one.measured else None,
            others=one.others,
            disturbed=one.disturbed,
        )
        for one in group
    ]
    found = ((full_name(one.cell), traces.get(one.launch.id)) for one in group)
    return operator_table(
        columns,
        commands=(command,),
        launches=max(one.launches for one in group),
        title=title,
        traces=tuple((name, address) for name, address in found if address is not None),
    )


def _marked(named: Label) -> Label:
    return replace(named, more=", ".join(filter(None, (named.more, "disturbed"))))


def _unprofiled(study: ScenarioResult) -> tuple[Unmeasured, ...]:
    """Cells without a profile and why, grouped by reason under the first cell's name."""
    seen: dict[tuple[str, str], Unmeasured] = {}
    latest = {launch.cell.key: launch for launch in sorted(study.profiles, key=_attempt)}
    for launch in latest.values():
        if launch.status == "ok":
            continue
        reason = launch.reason or "no reason was recorded."
        named = label(launch.cell)
        seen.setdefault(
            (launch.status, reason),
            Unmeasured(
                label=named,
                status=launch.status,
                reason=reason,
                fix=mend_of(launch, study.profiles),
                command=reproduce_command(study, (launch.cell,)),
            ),
        )
    return tuple(seen.values())
