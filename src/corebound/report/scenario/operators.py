"""Operator profiles side by side: where the time of a step is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.launch_metrics import fix_of
from corebound.analysis.scenario_result import CellProfile, ScenarioResult, cell_profiles
from corebound.analysis.selection import drop_axes, title_of, varying_axes
from corebound.analysis.wording import Label, Text, count, full_name, label, rich
from corebound.records.launch_record import OperatorProfile
from corebound.report.scenario.configurations import UnmeasuredCells
from corebound.units import counted, duration, percent, significant, time_unit
from corebound.worker.operator_table import Operator


def by_type(profile: OperatorProfile) -> dict[str, Operator]:
    """Its operators by type."""
    return {operator.type: operator for operator in profile.operators}


def types_ns(profile: OperatorProfile, *, types: Sequence[str]) -> float | None:
    """The total time of operators of these types; None if it has none of them."""
    times_ns = [operator.total_ns for operator in profile.operators if operator.type in types]
    return sum(times_ns) if times_ns else None


def outside_ns(profile: OperatorProfile) -> float | None:
    """An iteration's time outside operators, if the profile has it."""
    return profile.outside_ns


def step_ns(profile: OperatorProfile) -> float | None:
    """The time of an iteration, if the profile has it."""
    return profile.step_ns


def phase_ns(profile: OperatorProfile, *, name: str) -> float | None:
    """An iteration's time in this phase, if the profile has it."""
    return profile.phases.get(name)


def operators_ns(profile: OperatorProfile) -> float:
    """The total time of all operators of an iteration."""
    return sum(operator.total_ns for operator in profile.operators)


def shortest_ns(profile: OperatorProfile) -> int | None:
    """The same total with each call at its shortest, if the profile has that for all operators."""
    times_ns = [
        operator.quiet_ns for operator in profile.operators if operator.quiet_ns is not None
    ]
    return sum(times_ns) if len(times_ns) == len(profile.operators) else None


def span_ns(
    profiles: Sequence[OperatorProfile], time_of: Callable[[OperatorProfile], float | None]
) -> tuple[float, float] | None:
    """The minimum and maximum over a profile and comparable ones; None if all are equal.

    An operator that another profile did not call counts as zero there. None if the first profile
    did not call it.
    """
    if time_of(profiles[0]) is None:
        return None
    times_ns = [time_of(profile) or 0.0 for profile in profiles]
    ends_ns = min(times_ns), max(times_ns)
    return None if ends_ns[0] == ends_ns[1] else ends_ns


# Beyond this share of a step, one type of operator dominates it.
_DOMINANT = 0.5
# A smaller difference between steps does not justify naming an operator.
_MIN_DIFFERENCE = 0.05

OUTSIDE = "outside operators"


class Column(Struct, frozen=True, kw_only=True):
    """A profile with its name.

    Attributes:
        name: Its name in running text.
        kind: Profiles of the same kind use the same operator names.
        measured_ns: The median of a step that was measured without a profiler, if there is one.
        measured_ends_ns: Its 95 % interval, if known.
        others: Other profiles of the same cell.
        disturbed: Whether it was disturbed from outside, so that no sentence uses it.
    """

    label: Label
    name: str
    profile: OperatorProfile
    kind: str = ""
    measured_ns: float | None = None
    measured_ends_ns: tuple[float, float] | None = None
    others: tuple[OperatorProfile, ...] = ()
    disturbed: bool = False


def basis_ns(profile: OperatorProfile) -> int:
    """The time that shares refer to: the step, or all operators together if the step is unknown."""
    if profile.step_ns is not None:
        return profile.step_ns
    return sum(operator.total_ns for operator in profile.operators)


def dominant(profile: OperatorProfile) -> tuple[Operator, float] | None:
    """The type that takes more than half of the time, and its share; None if there is none."""
    longest = max(profile.operators, key=lambda operator: operator.total_ns, default=None)
    whole_ns = basis_ns(profile)
    if longest is None or longest.total_ns <= _DOMINANT * whole_ns:
        return None
    return longest, longest.total_ns / whole_ns


def operator_notes(columns: Sequence[Column]) -> tuple[Text, ...]:
    """What dominates each step, once for each operator, then what makes steps differ.

    Disturbed columns are left out, with a note that says so.
    """
    tops: dict[str, Text] = {}
    for column in columns:
        longest = None if column.disturbed else dominant(column.profile)
        if longest is not None:
            operator, share = longest
            basis = _share_basis(column.profile)
            name = f" with {column.name}" if len(columns) > 1 else ""
            note = rich(f"{operator.type} alone takes {percent(share, 0)} of {basis}{name}.")
            tops.setdefault(operator.type, note)
    differences = (_difference_note(columns[0], column) for column in columns[1:])
    disturbed = (
        rich(f"The profile of {column.name} was disturbed from outside and is not interpreted.")
        for column in columns
        if column.disturbed
    )
    return (*disturbed, *tops.values(), *(note for note in differences if note is not None))


def _difference_note(base: Column, other: Column) -> Text | None:
    """The type of operator with most of the difference between two steps; None if there is none."""
    if base.disturbed or other.disturbed or base.kind != other.kind:
        return None
    if not base.profile.iterations or not other.profile.iterations:
        return None
    from_ns, to_ns = base.profile.step_ns, other.profile.step_ns
    if from_ns is None or to_ns is None or abs(to_ns - from_ns) <= _MIN_DIFFERENCE * from_ns:
        return None
    gap_ns = to_ns - from_ns
    parts_ns = {operator.type: -operator.total_ns for operator in base.profile.operators}
    for operator in other.profile.operators:
        parts_ns[operator.type] = parts_ns.get(operator.type, 0) + operator.total_ns
    if base.profile.outside_ns is not None and other.profile.outside_ns is not None:
        parts_ns[OUTSIDE] = other.profile.outside_ns - base.profile.outside_ns
    sign = 1 if gap_ns > 0 else -1
    name = max(parts_ns, key=lambda type_: sign * parts_ns[type_])
    return rich(
        f"A step with {other.name} takes {duration(abs(gap_ns))}"
        f" {'more' if gap_ns > 0 else 'less'}; {duration(abs(parts_ns[name]))} of that is {name}."
    )


def _share_basis(profile: OperatorProfile) -> str:
    """What the shares of a profile refer to."""
    if profile.step_ns is None:
        return "the operators' time"
    return "all that was profiled" if profile.iterations is None else "the step"


# A bar cannot have more distinguishable colours; the rest is grey.
_MAX_PARTS = 6
_OTHERS, _OUTSIDE = "h8", "gap"


class StackedBar(Struct, frozen=True, kw_only=True):
    """The bar of one step: its name, length, and (colour, per cent of the width) of each piece.

    `says` has its length and its longest piece in words.
    """

    label: Label
    says: str
    whole: str
    pieces: tuple[tuple[str, float], ...]


class StackedBars(Struct, frozen=True, kw_only=True):
    """Bars of several steps, with pieces in the same order; `key` is (colour, name) of each."""

    title: str
    key: tuple[tuple[str, str], ...]
    rows: tuple[StackedBar, ...]


def stacked_bars(columns: Sequence[Column]) -> tuple[StackedBars, ...]:
    """Bars of the operators of profiles and, if any profile has them, of their phases.

    If some profiles cover one iteration and others all iterations, each bar has full width and
    shows shares.

    Args:
        columns: At least one.
    """
    parts = [_times_by_type(column.profile) for column in columns]
    charts = [_bars_of_kind("operator", columns, parts)] if any(parts) else []
    if with_phases := [column for column in columns if column.profile.phases]:
        charts.append(
            _bars_of_kind("phase", with_phases, [column.profile.phases for column in with_phases])
        )
    return tuple(charts)


def _times_by_type(profile: OperatorProfile) -> dict[str, int]:
    return {operator.type: operator.total_ns for operator in profile.operators}


def _bars_of_kind(
    kind: str, columns: Sequence[Column], parts: Sequence[Mapping[str, int]]
) -> StackedBars:
    profiles = [column.profile for column in columns]
    steps_ns = [max(1, basis_ns(profile)) for profile in profiles]
    mixed = len({profile.iterations is None for profile in profiles}) > 1
    widths_ns = steps_ns if mixed else [max(steps_ns)] * len(columns)
    names = _longest_parts(parts, steps_ns)
    others_ns = [sum(times.values()) - sum(times.get(name, 0) for name in names) for times in parts]
    outside_ns = [
        _outside_parts_ns(step_ns, times) for step_ns, times in zip(steps_ns, parts, strict=True)
    ]
    key = [(f"h{index}", name) for index, name in enumerate(names)]
    if any(others_ns):
        key.append((_OTHERS, "others"))
    if any(outside_ns):
        key.append((_OUTSIDE, OUTSIDE))
    rows = tuple(
        _bar(
            column.label,
            [
                *((name, f"h{index}", times.get(name, 0)) for index, name in enumerate(names)),
                ("others", _OTHERS, other_ns),
                (OUTSIDE, _OUTSIDE, gap_ns),
            ],
            step_ns=step_ns,
            width_ns=width_ns,
        )
        for column, times, width_ns, step_ns, other_ns, gap_ns in zip(
            columns, parts, widths_ns, steps_ns, others_ns, outside_ns, strict=True
        )
    )
    title = "Shares of a step" if mixed else "A step"
    return StackedBars(title=f"{title}, by {kind}", key=tuple(key), rows=rows)


def _bar(
    label: Label, parts: Sequence[tuple[str, str, int]], *, step_ns: int, width_ns: int
) -> StackedBar:
    """One bar; `parts` has (name, colour, time) of each part."""
    return StackedBar(
        label=label,
        says=_bar_text(label, step_ns, {name: time_ns for name, _, time_ns in parts}),
        whole=duration(step_ns),
        pieces=tuple(
            (colour, round(time_ns / width_ns * 100, 2))
            for _, colour, time_ns in parts
            if time_ns > 0
        ),
    )


def _bar_text(label: Label, whole_ns: int, times: Mapping[str, int]) -> str:
    longest = max(times, key=lambda name: times[name])
    share = percent(times[longest] / whole_ns, 0)
    return f"{label.whole}: {duration(whole_ns)}, {share} of it {longest}"


def _longest_parts(parts: Sequence[Mapping[str, int]], wholes_ns: Sequence[int]) -> list[str]:
    """The names that take the largest share of any step, in that order."""
    shares: dict[str, float] = {}
    for times, whole_ns in zip(parts, wholes_ns, strict=True):
        for name, time_ns in times.items():
            shares[name] = max(shares.get(name, 0.0), time_ns / whole_ns)
    return sorted(shares, key=lambda name: (-shares[name], name))[:_MAX_PARTS]


def _outside_parts_ns(whole_ns: int, times: Mapping[str, int]) -> int:
    """The part of a step outside its parts; parallel parts may add up to more than the step."""
    return max(0, whole_ns - sum(times.values()))


# The number of types listed; the others are summed in one line.
_MAX_TYPES = 12
# Bounds this many units away come from two launches that determine almost nothing.
_MAX_SHOWN = 1e9


class OperatorTime(Struct, frozen=True, kw_only=True):
    """A value, its share of the step, and its bounds; each may be empty."""

    time: str
    share: str
    ends: str = ""


class OperatorRow(Struct, frozen=True, kw_only=True):
    """One type of operator, or a sum; `bars` has a colour and a percentage of the longest bar each.

    The colour is empty if there is no value.
    """

    name: str
    is_type: bool
    times: tuple[OperatorTime, ...]
    calls: str = ""
    bars: tuple[tuple[str, float], ...] = ()


class OperatorTable(Struct, frozen=True, kw_only=True):
    """Profiles side by side; the first is the one that the others are compared with.

    Attributes:
        title: What distinguishes this table from other tables; may be empty.
        notes: Observations about the table.
        piles: Its columns drawn as bars.
        columns: What was profiled.
        unit: The unit of all times in it; per: what each time is of.
        rows: Types of operators, most time first, then the remaining time.
        calls: For each of those types the operator of each column, for the time of its calls.
        phases: The same time by phase.
        sums: The totals of each column.
        traces: (name, address) of each column's trace, if it is in the site.
        commands: The commands that reproduce its columns, a line each.
    """

    title: str
    notes: tuple[Text, ...]
    stacked_bars: tuple[StackedBars, ...]
    columns: tuple[Label, ...]
    unit: str
    per: str
    rows: tuple[OperatorRow, ...]
    calls: tuple[tuple[str, tuple[Operator | None, ...]], ...]
    phases: tuple[OperatorRow, ...]
    sums: tuple[OperatorRow, ...]
    traces: tuple[tuple[str, str], ...]
    commands: tuple[CommandLine, ...]


def operator_table(
    columns: Sequence[Column],
    *,
    commands: Sequence[CommandLine],
    title: str = "",
    traces: tuple[tuple[str, str], ...] = (),
    measured: bool = True,
    launches: int = 0,
) -> OperatorTable:
    """Put profiles side by side.

    Args:
        columns: At least one; the others are compared with the first.
        commands: As in `OperatorTable`.
        title: As in `OperatorTable`.
        traces: As in `OperatorTable`.
        measured: Whether there may be steps that were measured without a profiler.
        launches: The largest number of our launches behind a column; 0 for imported profiles.
    """
    profiles = [column.profile for column in columns]
    length_ns, unit = time_unit(basis_ns(profiles[0]))
    # The time of one iteration cannot be compared with the time of all iterations, but shares can.
    mixed = len({profile.iterations is None for profile in profiles}) > 1
    units_ns = [max(1, basis_ns(profile)) if mixed else 1 for profile in profiles]
    writer = _RowBuilder(columns, length_ns, units_ns)
    by_column = [by_type(profile) for profile in profiles]
    types = list(dict.fromkeys(type_ for operators in by_column for type_ in operators))

    def longest(type_: str) -> float:
        pairs = zip(by_column, units_ns, strict=True)
        return max(
            operators[type_].total_ns / unit_ns
            for operators, unit_ns in pairs
            if type_ in operators
        )

    ranked = sorted(types, key=lambda type_: (-longest(type_), type_))
    shown, others = ranked[:_MAX_TYPES], ranked[_MAX_TYPES:]
    gaps_ns = [outside_ns(profile) for profile in profiles]
    gaps = ((time_ns or 0) / unit_ns for time_ns, unit_ns in zip(gaps_ns, units_ns, strict=True))
    scale = max(*map(longest, shown), *gaps, 0.0) or 1.0
    rows = [
        writer.row(
            type_,
            partial(types_ns, types=(type_,)),
            calls=[
                operators[type_].calls if type_ in operators else None for operators in by_column
            ],
            scale=scale,
        )
        for type_ in shown
    ]
    if others:
        others_ns = partial(types_ns, types=others)
        rows.append(writer.row(count(len(others), "other type"), others_ns, scale=scale))
    if any(time_ns is not None for time_ns in gaps_ns):
        rows.append(writer.row(OUTSIDE, outside_ns, scale=scale))
    return OperatorTable(
        title=title,
        notes=operator_notes(columns),
        stacked_bars=stacked_bars(columns),
        columns=tuple(column.label for column in columns),
        unit=unit,
        per=_period(profiles),
        rows=tuple(rows),
        calls=tuple(
            (type_, tuple(operators.get(type_) for operators in by_column)) for type_ in shown
        ),
        phases=_phase_rows(profiles, writer),
        sums=_total_rows(columns, writer, measured=measured, launches=launches),
        traces=traces,
        commands=tuple(commands),
    )


def _period(profiles: Sequence[OperatorProfile]) -> str:
    is_total = [profile.iterations is None for profile in profiles]
    if all(is_total):
        return "in total"
    return "an iteration or in total" if any(is_total) else "an iteration"


class _RowBuilder:
    """Formats times of several columns in one unit."""

    def __init__(
        self, columns: Sequence[Column], length_ns: float, units_ns: Sequence[int]
    ) -> None:
        """Set the unit of times, and that of bars, which may differ between columns."""
        self._columns = columns
        self._whole_ns = [basis_ns(column.profile) for column in columns]
        self._modes = [column.label.mode for column in columns]
        self._length_ns = length_ns
        self._units_ns = units_ns

    def row(
        self,
        name: str,
        time_of: Callable[[OperatorProfile], float | None],
        *,
        calls: Sequence[float | None] = (),
        scale: float | None = None,
        shares: bool = True,
    ) -> OperatorRow:
        """A row with the value that `time_of` returns for each column's profile."""
        times_ns = [time_of(column.profile) for column in self._columns]
        bars: tuple[tuple[str, float], ...] = ()
        if scale:
            bars = tuple(
                (
                    mode if time_ns is not None else "",
                    round(min((time_ns or 0) / unit_ns / scale, 1.0) * 100, 1),
                )
                for mode, time_ns, unit_ns in zip(
                    self._modes, times_ns, self._units_ns, strict=True
                )
            )
        return OperatorRow(
            name=name,
            is_type=bool(calls),
            times=tuple(
                self._time(
                    time_ns,
                    whole_ns if shares else None,
                    span_ns((column.profile, *column.others), time_of),
                )
                for column, time_ns, whole_ns in zip(
                    self._columns, times_ns, self._whole_ns, strict=True
                )
            ),
            calls=_calls_text(calls),
            bars=bars,
        )

    def measured(self, name: str) -> OperatorRow:
        """A row of the steps that were measured without a profiler, each with its interval."""
        times = (
            self._time(column.measured_ns, None, column.measured_ends_ns, sign="–")
            for column in self._columns
        )
        return OperatorRow(name=name, is_type=False, times=tuple(times))

    def _time(
        self,
        time_ns: float | None,
        whole_ns: int | None,
        ends_ns: tuple[float, float] | None,
        *,
        sign: str = " … ",
    ) -> OperatorTime:
        if time_ns is None:
            return OperatorTime(time="–", share="")
        share = _share_text(time_ns / whole_ns) if whole_ns else ""
        return OperatorTime(
            time=_time_text(time_ns / self._length_ns),
            share=share,
            ends=self._between(ends_ns, sign),
        )

    def _between(self, ends_ns: tuple[float, float] | None, sign: str) -> str:
        if ends_ns is None:
            return ""
        low, high = (end_ns / self._length_ns for end_ns in ends_ns)
        return f"{_time_text(low)}{sign}{_time_text(high) if high <= _MAX_SHOWN else '∞'}"


def _share_text(value: float) -> str:
    return "< 1 %" if 0 < value < 0.005 else percent(value, 0)


def _time_text(value: float) -> str:
    """A time beside larger ones; a value too small for two decimals is marked as such."""
    return "< 0.01" if 0 < value < 0.01 else significant(value) if value >= 1 else f"{value:.2f}"


def _calls_text(calls: Sequence[float | None]) -> str:
    """Calls per iteration, written once if all columns have the same number."""
    texts = ["–" if number is None else counted(number) for number in calls]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _phase_rows(
    profiles: Sequence[OperatorProfile], writer: _RowBuilder
) -> tuple[OperatorRow, ...]:
    names = dict.fromkeys(name for profile in profiles for name in profile.phases)
    return tuple(writer.row(f"of it {name}", partial(phase_ns, name=name)) for name in names)


def _total_rows(
    columns: Sequence[Column], writer: _RowBuilder, *, measured: bool, launches: int
) -> tuple[OperatorRow, ...]:
    """The totals of each column; a line without any value is left out."""
    profiles = [column.profile for column in columns]
    rows: list[OperatorRow] = []
    if any(profile.step_ns is None for profile in profiles):
        rows.append(writer.row("all operators together", operators_ns))
    if any(profile.step_ns is not None for profile in profiles):
        rows.append(writer.row(f"{_step_name(profiles)}{_launches_note(launches)}", step_ns))
    if any(shortest_ns(profile) is not None for profile in profiles):
        rows.append(
            writer.row(
                "its operators, with the shortest time of each call", shortest_ns, shares=False
            )
        )
    if measured:
        rows.append(writer.measured("median step, measured"))
    return tuple(rows)


def _launches_note(launches: int) -> str:
    """The number of launches behind a column, for the row of its total."""
    if not launches:
        return ""
    return " in one launch" if launches == 1 else f" in the latest of {launches} launches"


def _step_name(profiles: Sequence[OperatorProfile]) -> str:
    is_total = [profile.iterations is None for profile in profiles if profile.step_ns is not None]
    if all(is_total):
        return "all that was profiled"
    return "one step, or all that was profiled" if any(is_total) else "one step, profiled"


class Operators(Struct, frozen=True, kw_only=True):
    """The section: a table for each baseline, and the cells that could not be profiled.

    `reading` pairs each term with its meaning.
    """

    lead: str
    reading: tuple[tuple[str, str], ...]
    tables: tuple[OperatorTable, ...]
    unprofiled: tuple[UnmeasuredCells, ...]


def operators(result: ScenarioResult, *, traces: Mapping[str, str]) -> Operators | None:
    """Build the operator tables of a scenario; None if no profile was requested.

    Args:
        result: The scenario's result.
        traces: For each launch whose trace is in the site, its address.
    """
    if not result.profiles:
        return None
    groups = _by_baseline(result)
    axes = varying_axes([group[0].cell for group in groups])
    tables = tuple(
        _group_table(
            [replace(cell, cell=drop_axes(cell.cell, axes)) for cell in group],
            title_of(group[0].cell, axes),
            traces,
            reproduce_command(result, [cell.cell for cell in group]),
        )
        for group in groups
    )
    return Operators(
        lead=_operators_lead(groups),
        reading=_reading(groups) if tables else (),
        tables=tables,
        unprofiled=_unprofiled_cells(result),
    )


def _reading(groups: Sequence[Sequence[CellProfile]]) -> tuple[tuple[str, str], ...]:
    return (
        (
            "Time",
            "Self time an iteration, from a launch of its own under the framework's profiler.",
        ),
        ("Several threads", "Time that operators share is divided among them: columns add up."),
        ("Minimum … maximum", _basis_note(groups)),
        ("Single calls", "Folded below the table, shortest to longest."),
    )


def _basis_note(groups: Sequence[Sequence[CellProfile]]) -> str:
    """What the values of a column come from, and so what the range below them contains."""
    if any(profile.others for group in groups for profile in group):
        return (
            "Of all profiles of the configuration in the same environment; the value is of the"
            " latest launch. From six profiles on, they bound the median with 95 % confidence."
        )
    return "There is one launch for each configuration, so there is no interval."


def _by_baseline(result: ScenarioResult) -> list[list[CellProfile]]:
    """Profiled cells by baseline, which comes first, then fastest first."""
    groups: dict[str, list[CellProfile]] = {}
    for cell in cell_profiles(result):
        measured = result.find(cell.cell)
        baseline = measured.baseline if measured else None
        groups.setdefault((baseline or cell.cell).key, []).append(cell)
    return [
        sorted(
            group,
            key=lambda cell: (cell.cell.key != base, cell.measured_ns or basis_ns(cell.profile)),
        )
        for base, group in groups.items()
    ]


def _operators_lead(groups: Sequence[Sequence[CellProfile]]) -> str:
    if not groups:
        return "Profiles were requested, but there are none."
    dominants = [None if group[0].disturbed else dominant(group[0].profile) for group in groups]
    if len(dominants) == 1 and dominants[0] is not None:
        operator, share = dominants[0]
        return f"{percent(share, 0)} of the time goes into {operator.type}."
    return "Where the time of a step goes."


def _group_table(
    group: Sequence[CellProfile], title: str, traces: Mapping[str, str], command: CommandLine
) -> OperatorTable:
    columns = [
        Column(
            label=_with_disturbed(label(cell.cell)) if cell.disturbed else label(cell.cell),
            name=full_name(cell.cell),
            profile=cell.profile,
            measured_ns=cell.measured_ns,
            measured_ends_ns=(cell.measured.low, cell.measured.high) if cell.measured else None,
            others=cell.others,
            disturbed=cell.disturbed,
        )
        for cell in group
    ]
    addresses = ((full_name(cell.cell), traces.get(cell.launch.id)) for cell in group)
    return operator_table(
        columns,
        commands=(command,),
        launches=max(cell.launches for cell in group),
        title=title,
        traces=tuple((name, address) for name, address in addresses if address is not None),
    )


def _with_disturbed(cell_label: Label) -> Label:
    return replace(cell_label, more=", ".join(filter(None, (cell_label.more, "disturbed"))))


def _unprofiled_cells(result: ScenarioResult) -> tuple[UnmeasuredCells, ...]:
    """Cells without a profile and why, grouped by reason under the first cell's name."""
    by_reason: dict[tuple[str, str], UnmeasuredCells] = {}
    latest = {
        launch.cell.key: launch
        for launch in sorted(result.profiles, key=lambda launch: launch.attempt)
    }
    for launch in latest.values():
        if launch.status == "ok":
            continue
        reason = launch.reason or "no reason was recorded."
        cell_label = label(launch.cell)
        by_reason.setdefault(
            (launch.status, reason),
            UnmeasuredCells(
                label=cell_label,
                status=launch.status,
                reason=reason,
                fix=fix_of(launch, result.profiles),
                cells=(launch.cell,),
                command=reproduce_command(result, (launch.cell,)),
            ),
        )
    return tuple(by_reason.values())
