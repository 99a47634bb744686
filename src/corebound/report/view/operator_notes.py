"""What to see in operator profiles that stand side by side, in words."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.profile import OperatorProfile
from corebound.model.wire import Operator
from corebound.report.view.page import Label, Text
from corebound.report.view.words import rich
from corebound.units import duration, percent

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
