"""Strips: lanes of a race, and CPUs of threads over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

from msgspec import Struct

from corebound.present.sections import Lane
from corebound.report.charts.svg import path, svg

_WIDTH = 1000


def lane_svg(lane: Lane) -> str:
    """Draw a lane: a line for its blocks, a bar where it left, a thick line for fresh launches."""
    scale = _WIDTH / max(lane.total, 1)
    end = lane.blocks * scale
    begin = lane.race_blocks * scale
    return svg(
        _WIDTH,
        20,
        lane.text,
        path("ran", f"M0 10H{end:.0f}"),
        path("left", f"M{end:.0f} 4V16") if lane.dropped else "",
        path("fresh", f"M{begin:.0f} 10H{begin + lane.fresh * scale:.0f}") if lane.fresh else "",
        kind="spark lane",
    )


_SIZE = 1000
# A column is at most a few pixels wide; with many rows, the file size limits their number.
_MOST_COLUMNS, _LEAST_COLUMNS, _MOST_CELLS = 250, 40, 5_000


class CpuStay(Struct, frozen=True, kw_only=True):
    """A thread on a row, from one time to a later one, both in [0, 1] of the width."""

    row: int
    begin: float
    end: float


class ThreadTrack(Struct, frozen=True, kw_only=True):
    """The CPUs of one thread over time.

    Attributes:
        colour: The number of its colour. The threads of one colour are drawn as one.
        name: The title of its colour; that of the first thread counts.
        stretches: Where it was seen; it used CPU time in all of them.
        share: Its CPU time as a share of its stretches. 1 if it is unknown.
    """

    colour: int
    name: str
    stretches: tuple[CpuStay, ...]
    share: float = 1.0


class ThreadStrip(Struct, frozen=True, kw_only=True):
    """The content of a CPU × time strip.

    Attributes:
        rows: The number of CPUs; each is one row, from the top.
        tracks: One per thread.
        cores, nodes: Rows where another core or another node begins.
        alt_text: Alternative text.
    """

    rows: int
    tracks: tuple[ThreadTrack, ...]
    cores: tuple[int, ...]
    nodes: tuple[int, ...]
    alt_text: str


def threads_svg(strip: ThreadStrip) -> str:
    """Draw a strip: the filled share of a row is the share of time for which its CPU was used.

    Threads that use a CPU at the same time are stacked from the bottom of its row. A CPU without
    idle time fills its row, whatever the number of its threads.
    """
    columns = max(_LEAST_COLUMNS, min(_MOST_COLUMNS, _MOST_CELLS // strip.rows))
    height = _SIZE / strip.rows
    names = {track.colour: track.name for track in reversed(strip.tracks)}
    paths: dict[int, list[str]] = {colour: [] for colour in sorted(names)}
    by_row: dict[int, list[tuple[ThreadTrack, CpuStay]]] = {}
    for track in strip.tracks:
        for stretch in track.stretches:
            by_row.setdefault(stretch.row, []).append((track, stretch))
    for row, stays in by_row.items():
        tops = [(row + 1) * height] * columns
        for colour, heights in _stacked(stays, columns).items():
            bottoms = tops
            tops = [y - share * height for y, share in zip(bottoms, heights, strict=True)]
            paths[colour] += _blocks(bottoms, tops)
    drawn = (
        f'<path class="h{colour}" aria-hidden="true" d="{"".join(blocks)}">'
        f"<title>{escape(names[colour])}</title></path>"
        for colour, blocks in paths.items()
        if blocks
    )
    return svg(
        columns,
        _SIZE,
        strip.alt_text,
        *drawn,
        *(
            path(kind, "".join(f"M0 {row * height:.1f}H{columns}" for row in rows))
            for kind, rows in (("core", strip.cores), ("node", strip.nodes))
        ),
    )


def _stacked(stays: Sequence[tuple[ThreadTrack, CpuStay]], columns: int) -> dict[int, list[float]]:
    """The share of each column of one CPU's row that each colour fills.

    The CPU time of a thread is known in total only, so that threads may seem to use more than a CPU
    at one time and less at another. What exceeds the CPU is moved to the times at which these
    threads were seen there as well.
    """
    by_colour: dict[int, list[float]] = {}
    for track, stay in sorted(stays, key=lambda pair: pair[0].colour):
        heights = by_colour.setdefault(track.colour, [0.0] * columns)
        _spread(heights, stay.begin, stay.end, track.share)
    used = [sum(heights) for heights in zip(*by_colour.values(), strict=True)]
    seen = _seen([stay for _, stay in stays], columns)
    factor = _factor(used, seen)
    scales = [min(most / use, factor) if use else 0.0 for use, most in zip(used, seen, strict=True)]
    return {
        colour: [height * scale for height, scale in zip(heights, scales, strict=True)]
        for colour, heights in by_colour.items()
    }


def _spread(heights: list[float], begin: float, end: float, weight: float) -> None:
    """Add a weight to the columns between two times, by the part of each that lies between them."""
    columns = len(heights)
    for column in range(int(begin * columns), min(columns, int(end * columns) + 1)):
        part = min(end * columns, column + 1) - max(begin * columns, column)
        heights[column] += max(0.0, part) * weight


def _seen(stays: Iterable[CpuStay], columns: int) -> list[float]:
    """The part of each column in which any thread was seen on the CPU."""
    seen, until = [0.0] * columns, 0.0
    for stay in sorted(stays, key=lambda stay: stay.begin):
        if stay.end > until:
            _spread(seen, max(stay.begin, until), stay.end, 1.0)
            until = stay.end
    return seen


def _factor(used: Sequence[float], seen: Sequence[float]) -> float:
    """By what to multiply the columns so that they keep their sum if none exceeds `seen`."""
    pairs = sorted((most / use, most, use) for use, most in zip(used, seen, strict=True) if use)
    left, room = sum(used), sum(used)
    for most_factor, most, use in pairs:
        if left <= most_factor * room:
            return left / room
        left, room = left - most, room - use
    return pairs[-1][0] if pairs else 0.0


def _blocks(bottoms: Sequence[float], tops: Sequence[float]) -> Iterable[str]:
    """Rectangles between two lines; columns of equal height are one."""
    at = 0
    ends = zip((round(y, 2) for y in bottoms), (round(y, 2) for y in tops), strict=True)
    for (bottom, top), group in groupby(ends):
        width = sum(1 for _ in group)
        if bottom > top:
            yield f"M{at} {top:g}h{width}V{bottom:g}H{at}z"
        at += width
