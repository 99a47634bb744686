"""Operator profiles side by side in one table, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corebound.model.profile import OperatorProfile
from corebound.report.view.operator_calls import CallRow, call_rows
from corebound.report.view.operator_notes import OUTSIDE, Column, basis_ns, notes
from corebound.report.view.operator_piles import Piles, piles
from corebound.report.view.page import Label, Text
from corebound.report.view.words import count
from corebound.units import percent, significant, time_unit

# More types than this are a list nobody reads; the rest is one line.
_MOST_TYPES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """One figure and its share of the step, either of them perhaps empty."""

    time: str
    share: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One type of operator, or a sum; `bars` pairs each colour with per cent of the longest."""

    name: str
    is_type: bool
    times: tuple[OperatorTime, ...]
    calls: str = ""
    bars: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTable:
    """Profiles side by side, the one that the others are compared with first.

    Attributes:
        title: What sets this table apart from other tables; may be empty.
        notes: What to see in it.
        piles: Its columns drawn.
        columns: What was profiled.
        unit: Of all times in it; per: what each time is of.
        rows: Types of operators, most time first, then what is left.
        each: What a call of those types takes.
        phases: The same time by what it is for.
        sums: What a step comes to.
        traces: (name, address) of each column's trace, where it is in the site.
        commands: What makes every one of its rows again, a line each.
    """

    title: str
    notes: tuple[Text, ...]
    piles: tuple[Piles, ...]
    columns: tuple[Label, ...]
    unit: str
    per: str
    rows: tuple[OperatorRow, ...]
    each: tuple[CallRow, ...]
    phases: tuple[OperatorRow, ...]
    sums: tuple[OperatorRow, ...]
    traces: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def operator_table(
    columns: Sequence[Column],
    *,
    commands: Sequence[str],
    title: str = "",
    traces: tuple[tuple[str, str], ...] = (),
    measured: bool = True,
) -> OperatorTable:
    """Put profiles side by side.

    Args:
        columns: At least one; the others are compared with the first.
        commands: As those of the table.
        title: As that of the table.
        traces: As those of the table.
        measured: Whether there may be steps that were measured without a profiler.
    """
    profiles = [one.profile for one in columns]
    length_ns, unit = time_unit(basis_ns(profiles[0]))
    # What an iteration took cannot be held against what all of them took, but shares can.
    mixed = len({profile.iterations is None for profile in profiles}) > 1
    units_ns = [max(1, basis_ns(profile)) if mixed else 1 for profile in profiles]
    writer = _Writer(columns, length_ns, units_ns)
    by_type = [{one.type: one for one in profile.operators} for profile in profiles]
    types = list(dict.fromkeys(type_ for known in by_type for type_ in known))

    def longest(type_: str) -> float:
        pairs = zip(by_type, units_ns, strict=True)
        return max(known[type_].total_ns / unit_ns for known, unit_ns in pairs if type_ in known)

    ranked = sorted(types, key=lambda type_: (-longest(type_), type_))
    shown, rest = ranked[:_MOST_TYPES], ranked[_MOST_TYPES:]
    outside_ns = [profile.outside_ns for profile in profiles]
    gaps = ((time_ns or 0) / unit_ns for time_ns, unit_ns in zip(outside_ns, units_ns, strict=True))
    scale = max(*map(longest, shown), *gaps, 0.0) or 1.0
    rows = [
        writer.row(
            type_,
            [known[type_].total_ns if type_ in known else None for known in by_type],
            calls=[known[type_].calls if type_ in known else None for known in by_type],
            scale=scale,
        )
        for type_ in shown
    ]
    if rest:
        left = [[known[type_].total_ns for type_ in rest if type_ in known] for known in by_type]
        sums_ns = [sum(times_ns) if times_ns else None for times_ns in left]
        rows.append(writer.row(count(len(rest), "other type"), sums_ns, scale=scale))
    if any(time_ns is not None for time_ns in outside_ns):
        rows.append(writer.row(OUTSIDE, outside_ns, scale=scale))
    return OperatorTable(
        title=title,
        notes=notes(columns),
        piles=piles(columns),
        columns=tuple(one.label for one in columns),
        unit=unit,
        per=_per(profiles),
        rows=tuple(rows),
        each=call_rows(columns, shown),
        phases=_phases(profiles, writer),
        sums=_sums(columns, writer, measured=measured),
        traces=traces,
        commands=tuple(commands),
    )


def _per(profiles: Sequence[OperatorProfile]) -> str:
    whole = [profile.iterations is None for profile in profiles]
    if all(whole):
        return "in all"
    return "an iteration or in all" if any(whole) else "an iteration"


class _Writer:
    """Writes times of several columns in one unit."""

    def __init__(
        self, columns: Sequence[Column], length_ns: float, units_ns: Sequence[int]
    ) -> None:
        """Take the unit of times, and that of bars, which may be each column's own."""
        self._whole_ns = [basis_ns(one.profile) for one in columns]
        self._modes = [one.label.mode for one in columns]
        self._length_ns = length_ns
        self._units_ns = units_ns

    def row(
        self,
        name: str,
        times_ns: Sequence[float | None],
        *,
        calls: Sequence[float | None] = (),
        scale: float | None = None,
        shares: bool = True,
    ) -> OperatorRow:
        bars: tuple[tuple[str, float], ...] = ()
        if scale:
            bars = tuple(
                (mode, round(min((time_ns or 0) / unit_ns / scale, 1.0) * 100, 1))
                for mode, time_ns, unit_ns in zip(
                    self._modes, times_ns, self._units_ns, strict=True
                )
            )
        return OperatorRow(
            name=name,
            is_type=bool(calls),
            times=tuple(
                self._time(time_ns, whole_ns if shares else None)
                for time_ns, whole_ns in zip(times_ns, self._whole_ns, strict=True)
            ),
            calls=_calls(calls),
            bars=bars,
        )

    def _time(self, time_ns: float | None, whole_ns: int | None) -> OperatorTime:
        if time_ns is None:
            return OperatorTime(time="–", share="")
        share = _share(time_ns / whole_ns) if whole_ns else ""
        return OperatorTime(time=_number(time_ns / self._length_ns), share=share)


def _share(value: float) -> str:
    return "< 1 %" if 0 < value < 0.005 else percent(value, 0)


def _number(value: float) -> str:
    """A time beside larger ones: what is too small for two decimals is said to be."""
    return "< 0.01" if 0 < value < 0.01 else significant(value) if value >= 1 else f"{value:.2f}"


def _calls(calls: Sequence[float | None]) -> str:
    """Calls an iteration, once where all columns make as many."""
    texts = ["–" if number is None else _count(number) for number in calls]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _count(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def _phases(profiles: Sequence[OperatorProfile], writer: _Writer) -> tuple[OperatorRow, ...]:
    names = dict.fromkeys(name for profile in profiles for name in profile.phases)
    return tuple(
        writer.row(f"of it {name}", [profile.phases.get(name) for profile in profiles])
        for name in names
    )


def _sums(columns: Sequence[Column], writer: _Writer, *, measured: bool) -> tuple[OperatorRow, ...]:
    """What a column comes to; a line that no column can fill is left out."""
    profiles = [one.profile for one in columns]
    rows: list[OperatorRow] = []
    if any(profile.step_ns is None for profile in profiles):
        together = [sum(one.total_ns for one in profile.operators) for profile in profiles]
        rows.append(writer.row("all operators together", together))
    steps_ns = [profile.step_ns for profile in profiles]
    if any(step_ns is not None for step_ns in steps_ns):
        rows.append(writer.row(_whole(profiles), steps_ns))
    quiet_ns = [_quiet_ns(profile) for profile in profiles]
    if any(time_ns is not None for time_ns in quiet_ns):
        rows.append(writer.row("its operators, each call at its shortest", quiet_ns, shares=False))
    if measured:
        medians_ns = [one.measured_ns for one in columns]
        rows.append(writer.row("median step, measured", medians_ns, shares=False))
    return tuple(rows)


def _whole(profiles: Sequence[OperatorProfile]) -> str:
    whole = [profile.iterations is None for profile in profiles if profile.step_ns is not None]
    if all(whole):
        return "all that was profiled"
    return "one step, or all that was profiled" if any(whole) else "one step, profiled"


def _quiet_ns(profile: OperatorProfile) -> int | None:
    told = [one.quiet_ns for one in profile.operators if one.quiet_ns is not None]
    return sum(told) if len(told) == len(profile.operators) else None
