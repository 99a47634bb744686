"""Where a step's time goes: operators of the cells that were profiled, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from corebound.model.plan import Cell
from corebound.model.record import Launch, OperatorProfile
from corebound.model.wire import Operator
from corebound.report.view.page import Label, Text, Unmeasured
from corebound.report.view.study import Study
from corebound.report.view.words import axis_value, count, full_name, label, rich
from corebound.units import duration, percent, significant, time_unit

# More types than this are a list nobody reads; the rest is one line.
_MOST_TYPES = 12
# Beyond this share of a step one type of operator is the whole story.
_DOMINANT = 0.5
# Steps that differ by less are not worth naming an operator for.
_LEAST_DIFFERENCE = 0.05

OUTSIDE = "outside operators"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """One figure and its share of the step, either of them perhaps empty."""

    time: str
    share: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One type of operator, or a sum; `bars` pairs a cell's colour with per cent of the longest."""

    name: str
    is_type: bool
    times: tuple[OperatorTime, ...]
    calls: str = ""
    bars: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable:
    """Cells side by side, the one that the others are compared with first.

    Attributes:
        title: What sets this table's cells apart from other tables'; may be empty.
        notes: What to see in it.
        columns: The cells.
        unit: Of all times in it.
        rows: Types of operators, most time first, then what is left.
        phases: The same time by what it is for.
        sums: What a step comes to.
        traces: (name, address) of each cell's trace, where it is in the site.
    """

    title: str
    notes: tuple[Text, ...]
    columns: tuple[Label, ...]
    unit: str
    rows: tuple[OperatorRow, ...]
    phases: tuple[OperatorRow, ...]
    sums: tuple[OperatorRow, ...]
    traces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """The section: a table for each baseline, and what could not be profiled."""

    title: str
    lead: str
    tables: tuple[OperatorTable, ...]
    unprofiled: tuple[Unmeasured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A cell's profile: that of its first worker."""

    cell: Cell
    launch: Launch
    profile: OperatorProfile
    measured_ns: float | None


def profiled(study: Study) -> tuple[Profiled, ...]:
    """The cells with a profile, in the order of the file."""
    found = []
    for launch in study.profiles:
        profile = launch.workers[0].profile if launch.workers else None
        if launch.status == "ok" and profile is not None:
            known = study.find(launch.cell)
            found.append(
                Profiled(
                    cell=launch.cell,
                    launch=launch,
                    profile=profile,
                    measured_ns=known.summary.median_ns if known else None,
                )
            )
    return tuple(found)


def operators(study: Study, *, traces: Mapping[str, str]) -> Operators | None:
    """The operator tables of a scenario; None where no profile was asked for.

    Args:
        study: The scenario.
        traces: For launches whose trace is in the site, its address.
    """
    if not study.profiles:
        return None
    groups = _groups(study)
    apart = _apart([group[0].cell for group in groups])
    tables = tuple(
        _table(
            [replace(one, cell=_without(one.cell, apart)) for one in group],
            ", ".join(axis_value(group[0].cell, axis) for axis in apart),
            traces,
        )
        for group in groups
    )
    return Operators(
        title=_heading(groups),
        lead=(
            "Self time an iteration, from a launch of its own under the framework's profiler, so"
            " that profiling touches no other figure. What operators of several threads share is"
            " divided among them, so that a column adds up to its step."
            if tables
            else "Profiles were asked for, and there is none."
        ),
        tables=tables,
        unprofiled=_unprofiled(study),
    )


def _groups(study: Study) -> list[list[Profiled]]:
    """Profiled cells by baseline, which comes first, then fastest first."""
    groups: dict[str, list[Profiled]] = {}
    for one in profiled(study):
        known = study.find(one.cell)
        base = known.baseline.key if known and known.baseline else one.cell.key
        groups.setdefault(base, []).append(one)
    return [
        sorted(
            group, key=lambda one: (one.cell.key != base, one.measured_ns or one.profile.step_ns)
        )
        for base, group in groups.items()
    ]


def _apart(bases: Sequence[Cell]) -> tuple[str, ...]:
    """The axes that set baselines apart: they name their tables, not each column."""
    axes = dict.fromkeys(axis for base in bases for axis, _ in base.axes)
    return tuple(axis for axis in axes if len({dict(base.axes).get(axis) for base in bases}) > 1)


def _without(cell: Cell, axes: Sequence[str]) -> Cell:
    return replace(cell, axes=tuple(pair for pair in cell.axes if pair[0] not in axes))


def _heading(groups: Sequence[Sequence[Profiled]]) -> str:
    leaders = [_dominant(group[0].profile) for group in groups]
    if len(leaders) == 1 and leaders[0] is not None:
        operator, share = leaders[0]
        return f"Where the time goes: {percent(share, 0)} into {operator.type}"
    return "Where the time goes"


def _dominant(profile: OperatorProfile) -> tuple[Operator, float] | None:
    top = max(profile.operators, key=lambda one: one.total_ns, default=None)
    if top is None or top.total_ns <= _DOMINANT * profile.step_ns:
        return None
    return top, top.total_ns / profile.step_ns


def _table(group: Sequence[Profiled], title: str, traces: Mapping[str, str]) -> OperatorTable:
    profiles = [one.profile for one in group]
    length_ns, unit = time_unit(profiles[0].step_ns)
    writer = _Writer(group, length_ns)
    by_type = [{one.type: one for one in profile.operators} for profile in profiles]
    types = list(dict.fromkeys(type_ for known in by_type for type_ in known))

    def longest_ns(type_: str) -> int:
        return max(known[type_].total_ns for known in by_type if type_ in known)

    ranked = sorted(types, key=lambda type_: (-longest_ns(type_), type_))
    shown, rest = ranked[:_MOST_TYPES], ranked[_MOST_TYPES:]
    scale_ns = max(1, *map(longest_ns, shown), *(profile.outside_ns for profile in profiles))
    rows = [
        writer.row(
            type_,
            [known[type_].total_ns if type_ in known else None for known in by_type],
            calls=[known[type_].calls if type_ in known else None for known in by_type],
            scale_ns=scale_ns,
        )
        for type_ in shown
    ]
    if rest:
        left = [sum(known[type_].total_ns for type_ in rest if type_ in known) for known in by_type]
        rows.append(writer.row(count(len(rest), "other type"), left, scale_ns=scale_ns))
    rows.append(writer.row(OUTSIDE, [one.outside_ns for one in profiles], scale_ns=scale_ns))
    return OperatorTable(
        title=title,
        notes=_notes(group),
        columns=tuple(label(one.cell) for one in group),
        unit=unit,
        rows=tuple(rows),
        phases=_phases(profiles, writer),
        sums=_sums(group, writer),
        traces=tuple(
            (full_name(one.cell), traces[one.launch.id]) for one in group if one.launch.id in traces
        ),
    )


class _Writer:
    """Writes times of several cells in one unit."""

    def __init__(self, group: Sequence[Profiled], length_ns: float) -> None:
        self._steps_ns = [one.profile.step_ns for one in group]
        self._modes = [label(one.cell).mode for one in group]
        self._length_ns = length_ns

    def row(
        self,
        name: str,
        times_ns: Sequence[float | None],
        *,
        calls: Sequence[float | None] = (),
        scale_ns: float | None = None,
        shares: bool = True,
    ) -> OperatorRow:
        bars: tuple[tuple[str, float], ...] = ()
        if scale_ns:
            bars = tuple(
                (mode, round(min((time_ns or 0) / scale_ns, 1.0) * 100, 1))
                for mode, time_ns in zip(self._modes, times_ns, strict=True)
            )
        return OperatorRow(
            name=name,
            is_type=bool(calls),
            times=tuple(
                self._time(time_ns, step_ns if shares else None)
                for time_ns, step_ns in zip(times_ns, self._steps_ns, strict=True)
            ),
            calls=_calls(calls),
            bars=bars,
        )

    def _time(self, time_ns: float | None, step_ns: int | None) -> OperatorTime:
        if time_ns is None:
            return OperatorTime(time="–", share="")
        share = _share(time_ns / step_ns) if step_ns else ""
        return OperatorTime(time=_number(time_ns / self._length_ns), share=share)


def _share(value: float) -> str:
    return "< 1 %" if 0 < value < 0.005 else percent(value, 0)


def _number(value: float) -> str:
    """A time beside larger ones: what is too small for two decimals is said to be."""
    return "< 0.01" if 0 < value < 0.01 else significant(value) if value >= 1 else f"{value:.2f}"


def _calls(calls: Sequence[float | None]) -> str:
    """Calls an iteration, once where all cells make as many."""
    texts = ["–" if number is None else f"{number:.3g}" for number in calls]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _phases(profiles: Sequence[OperatorProfile], writer: _Writer) -> tuple[OperatorRow, ...]:
    names = dict.fromkeys(name for profile in profiles for name in profile.phases)
    return tuple(
        writer.row(f"of it {name}", [profile.phases.get(name) for profile in profiles])
        for name in names
    )


def _sums(group: Sequence[Profiled], writer: _Writer) -> tuple[OperatorRow, ...]:
    quiet_ns = [sum(each.quiet_ns for each in one.profile.operators) for one in group]
    return (
        writer.row("one step, profiled", [one.profile.step_ns for one in group]),
        writer.row("its operators, each call at its shortest", quiet_ns, shares=False),
        writer.row("median step, measured", [one.measured_ns for one in group], shares=False),
    )


def _notes(group: Sequence[Profiled]) -> tuple[Text, ...]:
    """What takes most of each step, once for each operator, then what makes steps differ."""
    dominant: dict[str, Text] = {}
    for one in group:
        if (found := _dominant(one.profile)) is not None:
            operator, share = found
            where = f" with {full_name(one.cell)}" if len(group) > 1 else ""
            says = f"{operator.type} alone takes {percent(share, 0)} of the step{where}."
            dominant.setdefault(operator.type, rich(says))
    differences = (_difference(group[0], one) for one in group[1:] if _differs(group[0], one))
    return (*dominant.values(), *differences)


def _differs(base: Profiled, other: Profiled) -> bool:
    step_ns = base.profile.step_ns
    return abs(other.profile.step_ns - step_ns) > _LEAST_DIFFERENCE * step_ns


def _difference(base: Profiled, other: Profiled) -> Text:
    """Which type of operator most of the difference between two steps is in."""
    gap_ns = other.profile.step_ns - base.profile.step_ns
    parts_ns = {one.type: -one.total_ns for one in base.profile.operators}
    for one in other.profile.operators:
        parts_ns[one.type] = parts_ns.get(one.type, 0) + one.total_ns
    parts_ns[OUTSIDE] = other.profile.outside_ns - base.profile.outside_ns
    sign = 1 if gap_ns > 0 else -1
    name = max(parts_ns, key=lambda type_: sign * parts_ns[type_])
    return rich(
        f"A step with {full_name(other.cell)} takes {duration(abs(gap_ns))}"
        f" {'more' if gap_ns > 0 else 'less'}; {duration(abs(parts_ns[name]))} of that is {name}."
    )


def _unprofiled(study: Study) -> tuple[Unmeasured, ...]:
    """Launches that gave no profile; those of one reason together, by their first cell."""
    seen: dict[tuple[str, str], Unmeasured] = {}
    for launch in study.profiles:
        if launch.status == "ok":
            continue
        reason = launch.reason or "no reason was recorded."
        named = label(launch.cell)
        seen.setdefault(
            (launch.status, reason),
            Unmeasured(label=named, status=launch.status, reason=reason, mend=launch.mend or ""),
        )
    return tuple(seen.values())
