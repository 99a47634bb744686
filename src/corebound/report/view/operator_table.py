"""Operator profiles side by side in one table, whoever made them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from corebound.model.profile import OperatorProfile
from corebound.report.view.command import CommandLine
from corebound.report.view.operator_calls import CallRow, call_rows
from corebound.report.view.operator_notes import OUTSIDE, Column, basis_ns, notes
from corebound.report.view.operator_piles import Piles, piles
from corebound.report.view.operator_times import (
    by_type,
    operators_ns,
    outside_ns,
    phase_ns,
    quiet_ns,
    span_ns,
    step_ns,
    together_ns,
)
from corebound.report.view.page import Label, Text
from corebound.report.view.words import count
from corebound.units import counted, percent, significant, time_unit

# More types than this are a list nobody reads; the rest is one line.
_MOST_TYPES = 12
# An end this many units away says that two launches can tell next to nothing.
_MOST_SHOWN = 1e9


class OperatorTime(Struct, frozen=True, kw_only=True):
    """One figure, its share of the step, and beneath it where it lies; each perhaps empty."""

    time: str
    share: str
    ends: str = ""


class OperatorRow(Struct, frozen=True, kw_only=True):
    """One type of operator, or a sum; `bars` pairs each colour with per cent of the longest.

    The colour is empty where there is no figure.
    """

    name: str
    is_type: bool
    times: tuple[OperatorTime, ...]
    calls: str = ""
    bars: tuple[tuple[str, float], ...] = ()


class OperatorTable(Struct, frozen=True, kw_only=True):
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
        commands: As those of the table.
        title: As that of the table.
        traces: As those of the table.
        measured: Whether there may be steps that were measured without a profiler.
        launches: How many launches of ours a column rests on, at most; 0 of what was made
            elsewhere.
    """
    profiles = [one.profile for one in columns]
    length_ns, unit = time_unit(basis_ns(profiles[0]))
    # What an iteration took cannot be held against what all of them took, but shares can.
    mixed = len({profile.iterations is None for profile in profiles}) > 1
    units_ns = [max(1, basis_ns(profile)) if mixed else 1 for profile in profiles]
    writer = _Writer(columns, length_ns, units_ns)
    known_by = [by_type(profile) for profile in profiles]
    types = list(dict.fromkeys(type_ for known in known_by for type_ in known))

    def longest(type_: str) -> float:
        pairs = zip(known_by, units_ns, strict=True)
        return max(known[type_].total_ns / unit_ns for known, unit_ns in pairs if type_ in known)

    ranked = sorted(types, key=lambda type_: (-longest(type_), type_))
    shown, rest = ranked[:_MOST_TYPES], ranked[_MOST_TYPES:]
    gaps_ns = [outside_ns(profile) for profile in profiles]
    gaps = ((time_ns or 0) / unit_ns for time_ns, unit_ns in zip(gaps_ns, units_ns, strict=True))
    scale = max(*map(longest, shown), *gaps, 0.0) or 1.0
    rows = [
        writer.row(
            type_,
            partial(together_ns, types=(type_,)),
            calls=[known[type_].calls if type_ in known else None for known in known_by],
            scale=scale,
        )
        for type_ in shown
    ]
    if rest:
        together = partial(together_ns, types=rest)
        rows.append(writer.row(count(len(rest), "other type"), together, scale=scale))
    if any(time_ns is not None for time_ns in gaps_ns):
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
        sums=_sums(columns, writer, measured=measured, launches=launches),
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
        self._columns = columns
        self._whole_ns = [basis_ns(one.profile) for one in columns]
        self._modes = [one.label.mode for one in columns]
        self._length_ns = length_ns
        self._units_ns = units_ns

    def row(
        self,
        name: str,
        of: Callable[[OperatorProfile], float | None],
        *,
        calls: Sequence[float | None] = (),
        scale: float | None = None,
        shares: bool = True,
    ) -> OperatorRow:
        """A row of what `of` says of each column's profile."""
        times_ns = [of(one.profile) for one in self._columns]
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
                    time_ns, whole_ns if shares else None, span_ns((one.profile, *one.others), of)
                )
                for one, time_ns, whole_ns in zip(
                    self._columns, times_ns, self._whole_ns, strict=True
                )
            ),
            calls=_calls(calls),
            bars=bars,
        )

    def measured(self, name: str) -> OperatorRow:
        """A row of the steps that were measured without a profiler, each with its interval."""
        times = (self._time(one.measured_ns, None, one.measured_ends_ns) for one in self._columns)
        return OperatorRow(name=name, is_type=False, times=tuple(times))

    def _time(
        self, time_ns: float | None, whole_ns: int | None, ends_ns: tuple[float, float] | None
    ) -> OperatorTime:
        if time_ns is None:
            return OperatorTime(time="–", share="")
        share = _share(time_ns / whole_ns) if whole_ns else ""
        return OperatorTime(
            time=_number(time_ns / self._length_ns), share=share, ends=self._between(ends_ns)
        )

    def _between(self, ends_ns: tuple[float, float] | None) -> str:
        if ends_ns is None:
            return ""
        low, high = (end_ns / self._length_ns for end_ns in ends_ns)
        return f"[{_number(low)}, {_number(high) if high <= _MOST_SHOWN else '∞'}]"


def _share(value: float) -> str:
    return "< 1 %" if 0 < value < 0.005 else percent(value, 0)


def _number(value: float) -> str:
    """A time beside larger ones: what is too small for two decimals is said to be."""
    return "< 0.01" if 0 < value < 0.01 else significant(value) if value >= 1 else f"{value:.2f}"


def _calls(calls: Sequence[float | None]) -> str:
    """Calls an iteration, once where all columns make as many."""
    texts = ["–" if number is None else counted(number) for number in calls]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def _phases(profiles: Sequence[OperatorProfile], writer: _Writer) -> tuple[OperatorRow, ...]:
    names = dict.fromkeys(name for profile in profiles for name in profile.phases)
    return tuple(writer.row(f"of it {name}", partial(phase_ns, name=name)) for name in names)


def _sums(
    columns: Sequence[Column], writer: _Writer, *, measured: bool, launches: int
) -> tuple[OperatorRow, ...]:
    """What a column comes to; a line that no column can fill is left out."""
    profiles = [one.profile for one in columns]
    rows: list[OperatorRow] = []
    if any(profile.step_ns is None for profile in profiles):
        rows.append(writer.row("all operators together", operators_ns))
    if any(profile.step_ns is not None for profile in profiles):
        rows.append(writer.row(f"{_whole(profiles)}{_rests_on(launches)}", step_ns))
    if any(quiet_ns(profile) is not None for profile in profiles):
        rows.append(writer.row("its operators, each call at its shortest", quiet_ns, shares=False))
    if measured:
        rows.append(writer.measured("median step, measured"))
    return tuple(rows)


def _rests_on(launches: int) -> str:
    """What a column is of, for the row of its whole."""
    if not launches:
        return ""
    return " in one launch" if launches == 1 else f" in the latest of {launches} launches"


def _whole(profiles: Sequence[OperatorProfile]) -> str:
    whole = [profile.iterations is None for profile in profiles if profile.step_ns is not None]
    if all(whole):
        return "all that was profiled"
    return "one step, or all that was profiled" if any(whole) else "one step, profiled"
