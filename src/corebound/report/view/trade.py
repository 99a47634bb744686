"""Throughput against the tail of latency: every setting of a server in one drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.report.charts.axis import Axis, linear_axis, log_axis
from corebound.report.charts.trade import Spot, TradeCurve
from corebound.report.view.page import Tick
from corebound.report.view.study import CellStudy
from corebound.report.view.ticks import along, levels_of
from corebound.report.view.words import count, full_name, mode_class
from corebound.stats.serving import Estimate, ServedCell
from corebound.units import duration, significant, time_unit

# How hard a server is driven, as against how it is set up.
_LOADS = frozenset({"parameters.rate", "parameters.concurrency"})
_FEWEST = 2
# Throughputs this far apart are told apart on a logarithmic axis only.
_LINEAR_SPAN = 12.0
# Line styles that can be told apart without colour.
_DASHES = 4


class Trade(Struct, frozen=True, kw_only=True):
    """The drawing; the table of the section says the same.

    Attributes:
        marks: (per cent from the left, per cent from the top, number) of each setting's
            last spot; the number is that of `key`.
        key: (number, colour, name) of each setting.
    """

    caption: str
    curves: tuple[TradeCurve, ...]
    across: Axis
    up: Axis
    says: str
    levels: tuple[Tick, ...]
    along: tuple[Tick, ...]
    marks: tuple[tuple[float, float, int], ...]
    key: tuple[tuple[int, str, str], ...]


def trade(known: Sequence[tuple[CellStudy, ServedCell]]) -> Trade | None:
    """Good answers a second against the 99th percentile; None for a single spot.

    Settings that differ only in how hard they are driven are one line.
    """
    if len(known) < _FEWEST:
        return None
    length_ns, unit = time_unit(min(served.p99_ns.value for _, served in known))
    settings = _settings(known)
    curves = tuple(
        TradeCurve(
            mode=mode_class(own[0][0].cell.binding.mode),
            dash=place % _DASHES,
            spots=tuple(
                _spot(served, length_ns)
                for _, served in sorted(own, key=lambda pair: pair[1].per_s.value)
            ),
        )
        for place, own in enumerate(settings.values())
    )
    across, up = _axes(curves)
    names = list(settings)
    said = "; ".join(
        f"{full_name(cell.cell)}: {significant(served.per_s.value)} requests/s at a p99 of"
        f" {duration(served.p99_ns.value)}"
        for cell, served in known
    )
    return Trade(
        caption=f"p99, {unit}, against good answers a second; lower and further right is better",
        curves=curves,
        across=across,
        up=up,
        says=f"Latency against throughput of {count(len(curves), 'setting')}. {said}.",
        levels=levels_of(up),
        along=along(across),
        marks=tuple(_mark(curve, across, up, number) for number, curve in enumerate(curves, 1)),
        key=tuple(
            (number, curve.mode, name)
            for number, (name, curve) in enumerate(zip(names, curves, strict=True), 1)
        ),
    )


def _settings(
    known: Sequence[tuple[CellStudy, ServedCell]],
) -> Mapping[str, list[tuple[CellStudy, ServedCell]]]:
    """Cells by what they are called when their load goes without saying, in their order."""
    found: dict[str, list[tuple[CellStudy, ServedCell]]] = {}
    for cell, served in known:
        axes = tuple(pair for pair in cell.cell.axes if pair[0] not in _LOADS)
        found.setdefault(full_name(replace(cell.cell, axes=axes)), []).append((cell, served))
    return found


def _spot(served: ServedCell, length_ns: float) -> Spot:
    return Spot(
        per_s=served.per_s.value,
        latency=served.p99_ns.value / length_ns,
        per_s_ends=_ends(served.per_s, 1.0),
        latency_ends=_ends(served.p99_ns, length_ns),
    )


def _ends(estimate: Estimate, unit: float) -> tuple[float, float] | None:
    interval = estimate.interval
    return None if interval is None else (interval.low / unit, interval.high / unit)


def _axes(curves: Sequence[TradeCurve]) -> tuple[Axis, Axis]:
    """Over the estimates, with some room; intervals that reach further end at the edge."""
    rates = [spot.per_s for curve in curves for spot in curve.spots]
    tails = [spot.latency for curve in curves for spot in curve.spots]
    if max(rates) / min(rates) > _LINEAR_SPAN:
        across = log_axis(min(rates) / 1.3, max(rates) * 1.3, most_ticks=6)
    else:
        across = linear_axis(0.0, max(rates) * 1.12, most_ticks=6)
    return across, log_axis(min(tails) / 1.4, max(tails) * 1.4, most_ticks=5)


def _mark(curve: TradeCurve, across: Axis, up: Axis, number: int) -> tuple[float, float, int]:
    last = curve.spots[-1]
    left, top = across.clipped(last.per_s), 1 - up.clipped(last.latency)
    return round(left * 100, 2), round(top * 100, 2), number
