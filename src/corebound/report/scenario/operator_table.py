"""Operator profiles side by side in one table, whoever made them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from corebound.analysis.commands import CommandLine
from corebound.analysis.wording import Label, Text, count, rich
from corebound.records.launch_record import OperatorProfile
from corebound.units import counted, duration, percent, significant, time_unit
from corebound.worker.protocol import Operator


def by_type(profile: OperatorProfile) -> dict[str, Operator]:
    """Its operators by their types."""
    return {one.type: one for one in profile.operators}


def together_ns(profile: OperatorProfile, *, types: Sequence[str]) -> float | None:
    """What operators of these types take; None where it has none of them."""
    times_ns = [one.total_ns for one in profile.operators if one.type in types]
    return sum(times_ns) if times_ns else None


def outside_ns(profile: OperatorProfile) -> float | None:
    """An iteration's time in no operator, where that is told."""
    return profile.outside_ns


def step_ns(profile: OperatorProfile) -> float | None:
    """An iteration, where that is told."""
    return profile.step_ns


def phase_ns(profile: OperatorProfile, *, name: str) -> float | None:
    """An iteration's time for this phase, where that is told."""
    return profile.phases.get(name)


def operators_ns(profile: OperatorProfile) -> float:
    """All operators of an iteration."""
    return sum(one.total_ns for one in profile.operators)


def quiet_ns(profile: OperatorProfile) -> int | None:
    """The same where each call is at its shortest, where that is told of all."""
    told = [one.quiet_ns for one in profile.operators if one.quiet_ns is not None]
    return sum(told) if len(told) == len(profile.operators) else None


def span_ns(
    profiles: Sequence[OperatorProfile], of: Callable[[OperatorProfile], float | None]
) -> tuple[float, float] | None:
    """The least and the most over a profile and others like it; None where all say the same.

    What one of the others has not called took it no time; of what the first has not there is none.
    """
    if of(profiles[0]) is None:
        return None
    times_ns = [of(one) or 0.0 for one in profiles]
    ends_ns = min(times_ns), max(times_ns)
    return None if ends_ns[0] == ends_ns[1] else ends_ns


# Beyond this share of a step one type of operator is the whole story.
_DOMINANT = 0.5
# Steps that differ by less are not worth naming an operator for.
_LEAST_DIFFERENCE = 0.05

OUTSIDE = "outside operators"


class Column(Struct, frozen=True, kw_only=True):
    """A profile with what it is called.

    Attributes:
        name: In running text.
        kind: Profiles of the same kind call the same operators the same.
        measured_ns: The median of a step that was not profiled, where there is one.
        measured_ends_ns: Where that lies with 95 %, where it is known.
        others: Profiles of the same beside this one.
        disturbed: Whether something outside disturbed it: then no sentence rests on it.
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
    """What shares are of: the step, or where it is not known all operators together."""
    if profile.step_ns is not None:
        return profile.step_ns
    return sum(one.total_ns for one in profile.operators)


def dominant(profile: OperatorProfile) -> tuple[Operator, float] | None:
    """The type that takes more than half of the time, and its share; None without one."""
    top = max(profile.operators, key=lambda one: one.total_ns, default=None)
    whole_ns = basis_ns(profile)
    if top is None or top.total_ns <= _DOMINANT * whole_ns:
        return None
    return top, top.total_ns / whole_ns


def notes(columns: Sequence[Column]) -> tuple[Text, ...]:
    """What takes most of each step, once for each operator, then what makes steps differ.

    Columns that were disturbed are left out, and said to be.
    """
    tops: dict[str, Text] = {}
    for one in columns:
        found = None if one.disturbed else dominant(one.profile)
        if found is not None:
            operator, share = found
            where = f" with {one.name}" if len(columns) > 1 else ""
            says = f"{operator.type} alone takes {percent(share, 0)} of {_of(one.profile)}{where}."
            tops.setdefault(operator.type, rich(says))
    differences = (_difference(columns[0], one) for one in columns[1:])
    aside = (
        rich(f"The profile of {one.name} was disturbed from outside and is not interpreted.")
        for one in columns
        if one.disturbed
    )
    return (*aside, *tops.values(), *(note for note in differences if note is not None))


def _difference(base: Column, other: Column) -> Text | None:
    """Which type of operator most of the difference between two steps is in; None without one."""
    if base.disturbed or other.disturbed or base.kind != other.kind:
        return None
    if not base.profile.iterations or not other.profile.iterations:
        return None
    from_ns, to_ns = base.profile.step_ns, other.profile.step_ns
    if from_ns is None or to_ns is None or abs(to_ns - from_ns) <= _LEAST_DIFFERENCE * from_ns:
        return None
    gap_ns = to_ns - from_ns
    parts_ns = {one.type: -one.total_ns for one in base.profile.operators}
    for one in other.profile.operators:
        parts_ns[one.type] = parts_ns.get(one.type, 0) + one.total_ns
    if base.profile.outside_ns is not None and other.profile.outside_ns is not None:
        parts_ns[OUTSIDE] = other.profile.outside_ns - base.profile.outside_ns
    sign = 1 if gap_ns > 0 else -1
    name = max(parts_ns, key=lambda type_: sign * parts_ns[type_])
    return rich(
        f"A step with {other.name} takes {duration(abs(gap_ns))}"
        f" {'more' if gap_ns > 0 else 'less'}; {duration(abs(parts_ns[name]))} of that is {name}."
    )


def _of(profile: OperatorProfile) -> str:
    """What its shares are of."""
    if profile.step_ns is None:
        return "the operators' time"
    return "all that was profiled" if profile.iterations is None else "the step"


class CallRow(Struct, frozen=True, kw_only=True):
    """One type of operator: for each column the mean and (may be empty) the ends."""

    name: str
    times: tuple[tuple[str, str], ...]


def call_rows(columns: Sequence[Column], types: Sequence[str]) -> tuple[CallRow, ...]:
    """A row for each of these types, in this order; a dash where a column has no such calls."""
    known = [{one.type: one for one in column.profile.operators} for column in columns]
    return tuple(
        CallRow(name=name, times=tuple(_times(each.get(name)) for each in known)) for name in types
    )


def _times(one: Operator | None) -> tuple[str, str]:
    if one is None:
        return "–", ""
    if one.min_ns is None or one.max_ns is None:
        return duration(one.mean_ns), ""
    return duration(one.mean_ns), f"{duration(one.min_ns)} to {duration(one.max_ns)}"


# More colours than this cannot be told apart in a bar; the rest is grey.
_MOST_PIECES = 6
_REST, _OUTSIDE = "h8", "gap"


class Pile(Struct, frozen=True, kw_only=True):
    """One step: what it is of, how long, and (colour, per cent of the room) of each piece.

    `says` is the same in words: how long, and its longest piece.
    """

    label: Label
    says: str
    whole: str
    pieces: tuple[tuple[str, float], ...]


class Piles(Struct, frozen=True, kw_only=True):
    """Steps beside one another, in pieces of the same order; `key` is (colour, name) of each."""

    title: str
    key: tuple[tuple[str, str], ...]
    rows: tuple[Pile, ...]


def piles(columns: Sequence[Column]) -> tuple[Piles, ...]:
    """Bars of the operators of profiles and, where any tells them, of their phases.

    Where an iteration of one stands beside all of another's, each bar is as long as the room,
    and shows shares.

    Args:
        columns: At least one.
    """
    parts = [_operators(one.profile) for one in columns]
    made = [_piles("operator", columns, parts)] if any(parts) else []
    if told := [one for one in columns if one.profile.phases]:
        made.append(_piles("phase", told, [one.profile.phases for one in told]))
    return tuple(made)


def _operators(profile: OperatorProfile) -> dict[str, int]:
    return {one.type: one.total_ns for one in profile.operators}


def _piles(kind: str, columns: Sequence[Column], parts: Sequence[Mapping[str, int]]) -> Piles:
    profiles = [one.profile for one in columns]
    wholes_ns = [max(1, basis_ns(profile)) for profile in profiles]
    mixed = len({profile.iterations is None for profile in profiles}) > 1
    rooms_ns = wholes_ns if mixed else [max(wholes_ns)] * len(columns)
    named = _longest(parts, wholes_ns)
    rests_ns = [sum(times.values()) - sum(times.get(name, 0) for name in named) for times in parts]
    gaps_ns = [_gap_ns(whole, times) for whole, times in zip(wholes_ns, parts, strict=True)]
    key = [(f"h{place}", name) for place, name in enumerate(named)]
    if any(rests_ns):
        key.append((_REST, "others"))
    if any(gaps_ns):
        key.append((_OUTSIDE, OUTSIDE))
    rows = []
    for column, times, room, whole, rest, gap in zip(
        columns, parts, rooms_ns, wholes_ns, rests_ns, gaps_ns, strict=True
    ):
        lengths_ns = [*(times.get(name, 0) for name in named), rest, gap]
        colours = [*(f"h{place}" for place in range(len(named))), _REST, _OUTSIDE]
        rows.append(
            Pile(
                label=column.label,
                says=_says(
                    column.label,
                    whole,
                    dict(zip((*named, "others", OUTSIDE), lengths_ns, strict=True)),
                ),
                whole=duration(whole),
                pieces=tuple(
                    (colour, round(length / room * 100, 2))
                    for colour, length in zip(colours, lengths_ns, strict=True)
                    if length > 0
                ),
            )
        )
    whole = "Shares of a step" if mixed else "A step"
    return Piles(title=f"{whole}, by {kind}", key=tuple(key), rows=tuple(rows))


def _says(label: Label, whole_ns: int, times: Mapping[str, int]) -> str:
    longest = max(times, key=lambda one: times[one])
    share = percent(times[longest] / whole_ns, 0)
    return f"{label.whole}: {duration(whole_ns)}, {share} of it {longest}"


def _longest(parts: Sequence[Mapping[str, int]], wholes_ns: Sequence[int]) -> list[str]:
    """The names that take the largest share of any step, in that order."""
    shares: dict[str, float] = {}
    for times, whole_ns in zip(parts, wholes_ns, strict=True):
        for name, time_ns in times.items():
            shares[name] = max(shares.get(name, 0.0), time_ns / whole_ns)
    return sorted(shares, key=lambda name: (-shares[name], name))[:_MOST_PIECES]


def _gap_ns(whole_ns: int, times: Mapping[str, int]) -> int:
    """What of a step no part takes; where parts ran at once they may come to more than it."""
    return max(0, whole_ns - sum(times.values()))


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
