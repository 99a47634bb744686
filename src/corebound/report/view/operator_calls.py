"""What one call of each operator takes: mean, shortest, longest."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.model.wire import Operator
from corebound.report.view.operator_notes import Column
from corebound.units import duration


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
