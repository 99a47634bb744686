"""Steps as bars one under another, each piled up of its operators, and of its phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.model.profile import OperatorProfile
from corebound.report.view.operator_notes import OUTSIDE, Column, basis_ns
from corebound.report.view.page import Label
from corebound.units import duration, percent

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
