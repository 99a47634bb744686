"""Operator profiles side by side: where the time of a step is spent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.scenario_result import CellProfile, ScenarioResult, cell_profiles
from corebound.analysis.selection import drop_axes, title_of, varying_axes
from corebound.analysis.suggested_commands import CommandLine, reproduce_command
from corebound.analysis.wording import Label, Text, count, full_name, label, rich
from corebound.records.launch_record import OperatorProfile
from corebound.report.elements import Content
from corebound.report.scenario.configurations import unmeasured_cells
from corebound.units import counted, duration, percent, significant, time_unit
from corebound.worker.operator_table import Operator

TimeOf = Callable[[OperatorProfile], float | None]


def types_ns(profile: OperatorProfile, *, types: Sequence[str]) -> float | None:
    """The total time of operators of these types; None if it has none of them."""
    times_ns = [operator.total_ns for operator in profile.operators if operator.type in types]
    return sum(times_ns) if times_ns else None


def operators_ns(profile: OperatorProfile) -> int:
    """The total time of all operators of an iteration."""
    return sum(operator.total_ns for operator in profile.operators)


def _phase_ns(profile: OperatorProfile, *, name: str) -> float | None:
    """The time of a phase of an iteration, if the profile has it."""
    return profile.phases.get(name)


def _shortest_ns(profile: OperatorProfile) -> int | None:
    """The same total with each call at its shortest, if the profile has that for all operators."""
    times_ns = [
        operator.quiet_ns for operator in profile.operators if operator.quiet_ns is not None
    ]
    return sum(times_ns) if len(times_ns) == len(profile.operators) else None


def span_ns(profiles: Sequence[OperatorProfile], time_of: TimeOf) -> tuple[float, float] | None:
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


class ProfileColumn(Struct, frozen=True, kw_only=True):
    """A profile with its name.

    Attributes:
        kind: Profiles of the same kind use the same operator names.
        measured_ns: The median of a step that was measured without a profiler, if there is one.
        measured_ends_ns: Its 95 % interval, if known.
        others: The profiles of its other workers.
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
    return operators_ns(profile) if profile.step_ns is None else profile.step_ns


def dominant(profile: OperatorProfile) -> tuple[Operator, float] | None:
    """The type that takes more than half of the time, and its share; None if there is none."""
    longest = max(profile.operators, key=lambda operator: operator.total_ns, default=None)
    whole_ns = basis_ns(profile)
    if longest is None or longest.total_ns <= _DOMINANT * whole_ns:
        return None
    return longest, longest.total_ns / whole_ns


def operator_notes(columns: Sequence[ProfileColumn]) -> tuple[Text, ...]:
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


def _difference_note(base: ProfileColumn, other: ProfileColumn) -> Text | None:
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


def stacked_bars(columns: Sequence[ProfileColumn]) -> tuple[Content, ...]:
    """Bars of the operators of profiles and, if any profile has them, of their phases.

    If some profiles cover one iteration and others all iterations, each bar has full width and
    shows shares.

    Args:
        columns: At least one.
    """
    by_operator = [
        {operator.type: operator.total_ns for operator in column.profile.operators}
        for column in columns
    ]
    charts = [_bars_by("operator", columns, by_operator)] if any(by_operator) else []
    if with_phases := [column for column in columns if column.profile.phases]:
        phases = [column.profile.phases for column in with_phases]
        charts.append(_bars_by("phase", with_phases, phases))
    return tuple(charts)


def _bars_by(
    kind: str, columns: Sequence[ProfileColumn], parts: Sequence[Mapping[str, int]]
) -> Content:
    """Bars of steps, with pieces in the same order: (colour, per cent of the width) of each."""
    steps_ns = [max(1, basis_ns(column.profile)) for column in columns]
    mixed = _is_mixed(columns)
    longest = _longest_parts(parts, steps_ns)
    names = {f"h{index}": name for index, name in enumerate(longest)}
    names |= {_OTHERS: "others", _OUTSIDE: OUTSIDE}
    pieces_ns = [
        {
            **{f"h{index}": times.get(name, 0) for index, name in enumerate(longest)},
            _OTHERS: sum(times.values()) - sum(times.get(name, 0) for name in longest),
            # Parallel parts may add up to more than the step.
            _OUTSIDE: max(0, step_ns - sum(times.values())),
        }
        for times, step_ns in zip(parts, steps_ns, strict=True)
    ]
    rows = []
    for column, step_ns, pieces in zip(columns, steps_ns, pieces_ns, strict=True):
        most = max(pieces, key=pieces.__getitem__)
        share = f"{percent(pieces[most] / step_ns, 0)} of it {names[most]}"
        width_ns = step_ns if mixed else max(steps_ns)
        rows.append(
            Content(
                label=column.label,
                says=f"{column.label.whole}: {duration(step_ns)}, {share}",
                whole=duration(step_ns),
                pieces=tuple(
                    (colour, round(time_ns / width_ns * 100, 2))
                    for colour, time_ns in pieces.items()
                    if time_ns > 0
                ),
            )
        )
    return Content(
        title=f"{'Shares of a step' if mixed else 'A step'}, by {kind}",
        key=tuple(
            (colour, name)
            for colour, name in names.items()
            if colour not in {_OTHERS, _OUTSIDE} or any(pieces[colour] for pieces in pieces_ns)
        ),
        rows=tuple(rows),
    )


def _is_mixed(columns: Sequence[ProfileColumn]) -> bool:
    """Whether some profiles cover one iteration and others all iterations.

    Their times cannot be compared, but shares can.
    """
    return len({column.profile.iterations is None for column in columns}) > 1


def _longest_parts(parts: Sequence[Mapping[str, int]], wholes_ns: Sequence[int]) -> list[str]:
    """The names that take the largest share of any step, in that order."""
    shares: dict[str, float] = {}
    for times, whole_ns in zip(parts, wholes_ns, strict=True):
        for name, time_ns in times.items():
            shares[name] = max(shares.get(name, 0.0), time_ns / whole_ns)
    return sorted(shares, key=lambda name: (-shares[name], name))[:_MAX_PARTS]


# The number of types listed; the others are summed in one line.
_MAX_TYPES = 12
# Bounds this many units away come from two launches that determine almost nothing.
_MAX_SHOWN = 1e9


class OperatorTime(Struct, frozen=True, kw_only=True):
    """A value, its share of the step, and its bounds; each may be empty."""

    time: str
    share: str = ""
    ends: str = ""


def operator_table(
    columns: Sequence[ProfileColumn],
    *,
    commands: Sequence[CommandLine],
    title: str = "",
    traces: tuple[tuple[str, str], ...] = (),
    is_of_launch: bool = False,
) -> Content:
    """Put profiles side by side.

    Args:
        columns: At least one; the others are compared with the first.
        commands: They reproduce its columns, a line each.
        title: What distinguishes this table from other tables; may be empty.
        traces: (name, address) of each column's trace, if it is in the site.
        is_of_launch: Whether a launch of corebound profiled each column.
    """
    writer = _RowBuilder(columns)
    names = dict.fromkeys(name for column in columns for name in column.profile.phases)
    return Content(
        title=title,
        notes=operator_notes(columns),
        stacked_bars=stacked_bars(columns),
        columns=tuple(columns),
        unit=writer.unit,
        per=_by_period(columns, "in total", "per iteration", "per iteration or in total"),
        rows=writer.type_rows(),
        phases=tuple(writer.row(f"of it {name}", partial(_phase_ns, name=name)) for name in names),
        sums=tuple(_total_rows(columns, writer, is_of_launch=is_of_launch)),
        traces=traces,
        commands=tuple(commands),
    )


def _by_period(columns: Sequence[ProfileColumn], total: str, iteration: str, both: str) -> str:
    """The text that fits whether columns are of an iteration or of all that was profiled."""
    is_total = [column.profile.iterations is None for column in columns]
    return total if all(is_total) else both if any(is_total) else iteration


class _RowBuilder:
    """Formats times of several columns in one unit."""

    def __init__(self, columns: Sequence[ProfileColumn]) -> None:
        """Set the unit of times, and that of bars, which may differ between columns."""
        self._columns = columns
        self._length_ns, self.unit = time_unit(basis_ns(columns[0].profile))
        mixed = _is_mixed(columns)
        self._is_pair = (
            len(columns) == 2
            and not mixed
            and len({column.kind for column in columns}) == 1
            and not any(column.disturbed for column in columns)
        )
        self._bar_units_ns = [
            max(1, basis_ns(column.profile)) if mixed else 1 for column in columns
        ]

    def type_rows(self) -> tuple[Content, ...]:
        """Types of operators, most time first, then the remaining time."""
        by_column = [
            {operator.type: operator for operator in column.profile.operators}
            for column in self._columns
        ]
        types = {
            type_: tuple(operators.get(type_) for operators in by_column)
            for type_ in dict.fromkeys(type_ for operators in by_column for type_ in operators)
        }
        lengths = {
            type_: max(self._lengths([each.total_ns if each else None for each in operators]))
            for type_, operators in types.items()
        }
        ranked = sorted(types, key=lambda type_: (-lengths[type_], type_))
        shown, others = ranked[:_MAX_TYPES], ranked[_MAX_TYPES:]
        gaps_ns = [column.profile.outside_ns for column in self._columns]
        scale = max(*(lengths[type_] for type_ in shown), *self._lengths(gaps_ns), 0.0) or 1.0
        rows = [
            self.row(type_, partial(types_ns, types=(type_,)), operators=types[type_], scale=scale)
            for type_ in shown
        ]
        if others:
            others_ns = partial(types_ns, types=others)
            rows.append(self.row(count(len(others), "other type"), others_ns, scale=scale))
        if any(gap_ns is not None for gap_ns in gaps_ns):
            rows.append(self.row(OUTSIDE, attrgetter("outside_ns"), scale=scale))
        return tuple(rows)

    def _lengths(self, times_ns: Sequence[float | None]) -> list[float]:
        """The lengths of the bars of the columns for these times."""
        return [
            (time_ns or 0) / unit_ns
            for time_ns, unit_ns in zip(times_ns, self._bar_units_ns, strict=True)
        ]

    def row(
        self,
        name: str,
        time_of: TimeOf,
        *,
        operators: tuple[Operator | None, ...] = (),
        scale: float | None = None,
        shares: bool = True,
    ) -> Content:
        """A row with the value that `time_of` returns for each column's profile."""
        times_ns = [time_of(column.profile) for column in self._columns]
        difference, difference_bar = self._difference(times_ns, scale)
        calls = ["–" if each is None else counted(each.calls) for each in operators]
        return Content(
            name=name,
            operators=operators,
            # Per iteration, written once if all columns have the same number.
            calls=tuple(calls[:1] if len(set(calls)) == 1 else calls),
            difference=difference,
            difference_bar=difference_bar,
            times=tuple(
                self.time(
                    time_ns,
                    span_ns((column.profile, *column.others), time_of),
                    whole_ns=basis_ns(column.profile) if shares else 0,
                )
                for column, time_ns in zip(self._columns, times_ns, strict=True)
            ),
            # A colour, empty if there is no value, and a percentage of the longest bar.
            bars=tuple(
                (
                    "" if time_ns is None else column.label.mode,
                    round(min(length / scale, 1.0) * 100, 1),
                )
                for column, time_ns, length in zip(
                    self._columns, times_ns, self._lengths(times_ns), strict=True
                )
            )
            if scale
            else (),
        )

    def _difference(
        self, times_ns: Sequence[float | None], scale: float | None
    ) -> tuple[str, tuple[str, float] | None]:
        """The difference of two columns, with its bar; an operator that was not called takes 0."""
        if not self._is_pair:
            return "", None
        more_ns = (times_ns[1] or 0) - (times_ns[0] or 0)
        sign = "+" if more_ns > 0 else "\N{MINUS SIGN}" if more_ns < 0 else ""
        text = f"{sign}{_time_text(abs(more_ns) / self._length_ns)}"
        tone = "bad" if more_ns > 0 else "good"
        bar = (tone, round(abs(more_ns) / scale * 50, 1)) if scale and more_ns else None
        return text, bar

    def time(
        self,
        time_ns: float | None,
        ends_ns: tuple[float, float] | None,
        *,
        whole_ns: int = 0,
        sign: str = " … ",
    ) -> OperatorTime:
        """A value with its bounds, and with its share of the whole if that is known."""
        if time_ns is None:
            return OperatorTime(time="–")
        ends = ""
        if ends_ns is not None:
            low, high = (end_ns / self._length_ns for end_ns in ends_ns)
            ends = f"{_time_text(low)}{sign}{_time_text(high) if high <= _MAX_SHOWN else '∞'}"
        return OperatorTime(
            time=_time_text(time_ns / self._length_ns),
            share=_share_text(time_ns / whole_ns) if whole_ns else "",
            ends=ends,
        )


def _share_text(value: float) -> str:
    return "< 1 %" if 0 < value < 0.005 else percent(value, 0)


def _time_text(value: float) -> str:
    """A time beside larger ones; a value too small for two decimals is marked as such."""
    return "< 0.01" if 0 < value < 0.01 else significant(value) if value >= 1 else f"{value:.2f}"


def _total_rows(
    columns: Sequence[ProfileColumn], writer: _RowBuilder, *, is_of_launch: bool
) -> Iterator[Content]:
    """The totals of each column; a line without any value is left out."""
    with_step = [column for column in columns if column.profile.step_ns is not None]
    if len(with_step) < len(columns):
        yield writer.row("all operators together", operators_ns)
    if with_step:
        name = _by_period(
            with_step,
            "all that was profiled",
            "one step, profiled",
            "one step, or all that was profiled",
        )
        behind = " in one launch" if is_of_launch else ""
        yield writer.row(f"{name}{behind}", attrgetter("step_ns"))
    if any(_shortest_ns(column.profile) is not None for column in columns):
        yield writer.row(
            "its operators, with the shortest time of each call", _shortest_ns, shares=False
        )
    if any(column.measured_ns is not None for column in columns):
        yield Content(
            name="median step, measured",
            difference="",
            times=tuple(
                writer.time(column.measured_ns, column.measured_ends_ns, sign="–")
                for column in columns
            ),
        )


def operators(result: ScenarioResult, *, traces: Mapping[str, str]) -> Content | None:
    """Build the operator tables of a scenario; None if no profile was requested.

    Args:
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
    latest = {
        launch.cell.key: launch
        for launch in sorted(result.profiles, key=lambda launch: launch.attempt)
    }
    return Content(
        lead=_operators_lead(groups),
        tables=tables,
        unprofiled=unmeasured_cells(
            (launch for launch in latest.values() if launch.status != "ok"), result.profiles
        ),
    )


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
) -> Content:
    columns = [
        ProfileColumn(
            label=_with_disturbed(label(cell.cell)) if cell.disturbed else label(cell.cell),
            name=full_name(cell.cell),
            profile=cell.profile,
            measured_ns=cell.measured_ns,
            measured_ends_ns=cell.measured.ends if cell.measured else None,
            others=cell.others,
            disturbed=cell.disturbed,
        )
        for cell in group
    ]
    addresses = ((full_name(cell.cell), traces.get(cell.launch.id)) for cell in group)
    return operator_table(
        columns,
        commands=(command,),
        is_of_launch=True,
        title=title,
        traces=tuple((name, address) for name, address in addresses if address is not None),
    )


def _with_disturbed(cell_label: Label) -> Label:
    return replace(cell_label, more=", ".join(filter(None, (cell_label.more, "disturbed"))))
