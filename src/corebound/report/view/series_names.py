"""What to call a series among others: whole, or without what they all share."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.model.series import Series

_NO_CELL = ("", "default")


def series_name(series: Series) -> str:
    """What to call a series among all of its project."""
    cell = "" if series.cell in _NO_CELL else f"[{series.cell}]"
    return f"{series.scenario}{cell} on {series.host_name}"


def short_names(series: Sequence[Series]) -> tuple[str, ...]:
    """What to call each among these: without the parameters and the machine that all share."""
    return tuple(
        f"{one.scenario}{f'[{axes}]' if axes else ''}{f' on {host}' if host else ''}"
        for one, axes, host in zip(series, _own_axes(series), _own_hosts(series), strict=True)
    )


def short_cells(series: Sequence[Series]) -> tuple[str, ...]:
    """The same of one benchmark's, without its name; never empty."""
    return tuple(
        ", ".join(part for part in (axes, f"on {host}" if host else "") if part)
        or f"on {one.host_name}"
        for one, axes, host in zip(series, _own_axes(series), _own_hosts(series), strict=True)
    )


def shared_axes(series: Sequence[Series]) -> str:
    """The parameters that all share, in words."""
    shared = _shared(series)
    return ", ".join(axis.strip() for axis in _axes(series[0]) if axis in shared) if series else ""


def _own_axes(series: Sequence[Series]) -> list[str]:
    shared = _shared(series)
    return [",".join(axis for axis in _axes(one) if axis not in shared).strip() for one in series]


def _own_hosts(series: Sequence[Series]) -> list[str]:
    several = len({one.host for one in series}) > 1
    return [one.host_name if several else "" for one in series]


def _axes(series: Series) -> list[str]:
    return [] if series.cell in _NO_CELL else series.cell.split(",")


def _shared(series: Sequence[Series]) -> frozenset[str]:
    every = [frozenset(_axes(one)) for one in series]
    return frozenset.intersection(*every) if every else frozenset()
