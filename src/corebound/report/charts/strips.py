"""Strips: one dot per launch beside their summary value, and the CPUs of each thread over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from msgspec import Struct

from corebound.report.charts.alt_text import describe_spread, img_attributes
from corebound.report.charts.axis import Axis

_WIDTH, _HEIGHT = 1000, 24
# Three alternating heights, so that neighbours do not hide each other.
_YS = (7, 12, 17)


def dots_svg(
    values: Sequence[float], middle: float, axis: Axis, mode: str, slow: Sequence[bool] = ()
) -> str:
    """Draw one row.

    Args:
        values: One value per launch, in the order they ran.
        middle: Their summary value.
        axis: Horizontal; values beyond it are drawn at its edge.
        mode: CSS class of the colour.
        slow: For each value, whether its launch is of the slow mode, which is drawn as a ring;
            empty if launches have one mode.
    """
    dots = [f"M{_x(axis, value)} {_YS[index % len(_YS)]}h0" for index, value in enumerate(values)]
    holes = "".join(dot for dot, is_slow in zip(dots, slow, strict=False) if is_slow)
    hole_path = f'<path class="hole" d="{holes}"/>' if holes else ""
    return (
        f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none"'
        f"{img_attributes(describe_spread(values, middle, slow=sum(slow)))}>"
        f'<path class="level {mode}" d="M{_x(axis, middle)} 0V{_HEIGHT}"/>'
        f'<path class="spot {mode}" d="{"".join(dots)}"/>{hole_path}</svg>'
    )


def _x(axis: Axis, value: float) -> int:
    return round(axis.clipped(value) * _WIDTH)


_SIZE = 1000


class CpuStay(Struct, frozen=True, kw_only=True):
    """A thread on a row, from one time to a later one, both in [0, 1] of the width."""

    row: int
    begin: float
    end: float


class ThreadTrack(Struct, frozen=True, kw_only=True):
    """The CPUs of one thread over time; `colour` numbers its class, `name` is its title."""

    colour: int
    name: str
    stretches: tuple[CpuStay, ...]


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
    """Draw a strip; threads on one CPU at the same time share the height of its row."""
    height = _SIZE / strip.rows
    paths: dict[int, list[str]] = {index: [] for index in range(len(strip.tracks))}
    for row in range(strip.rows):
        runs = [
            (round(stretch.begin * _SIZE), round(stretch.end * _SIZE), index)
            for index, track in enumerate(strip.tracks)
            for stretch in track.stretches
            if stretch.row == row
        ]
        for begin, end, index, lane, lanes in _lanes(_joined(runs)):
            top = row * height + lane * height / lanes
            paths[index].append(f"M{begin} {top:.1f}h{end - begin}v{height / lanes:.1f}H{begin}z")
    drawn = "".join(
        f'<path class="h{track.colour}" aria-hidden="true" d="{"".join(paths[index])}">'
        f"<title>{escape(track.name)}</title></path>"
        for index, track in enumerate(strip.tracks)
        if paths[index]
    )
    return (
        f'<svg viewBox="0 0 {_SIZE} {_SIZE}" preserveAspectRatio="none"'
        f"{img_attributes(strip.alt_text)}>{drawn}"
        f"{_rules('core', strip.cores, height)}{_rules('node', strip.nodes, height)}</svg>"
    )


def _joined(runs: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Segments in order of time; adjacent segments of one thread are joined.

    Segments narrower than a thousandth of the width get that width, so that nothing disappears. A
    strip therefore has at most a thousand segments per row and thread.
    """
    joined: list[tuple[int, int, int]] = []
    last: dict[int, int] = {}
    for begin, seen_until, index in sorted(runs):
        end = max(seen_until, begin + 1)
        at = last.get(index)
        if at is not None and joined[at][1] >= begin:
            joined[at] = (joined[at][0], max(end, joined[at][1]), index)
        else:
            last[index] = len(joined)
            joined.append((begin, end, index))
    return joined


def _lanes(runs: Sequence[tuple[int, int, int]]) -> Iterable[tuple[int, int, int, int, int]]:
    """Give overlapping segments a lane each: (begin, end, thread, lane, lanes)."""
    cluster: list[tuple[int, int, int, int]] = []
    lane_ends: list[int] = []
    for begin, end, index in runs:
        if lane_ends and begin >= max(lane_ends):
            yield from ((*run, len(lane_ends)) for run in cluster)
            cluster, lane_ends = [], []
        free = next((lane for lane, until in enumerate(lane_ends) if until <= begin), None)
        if free is None:
            free = len(lane_ends)
            lane_ends.append(end)
        else:
            lane_ends[free] = end
        cluster.append((begin, end, index, free))
    yield from ((*run, len(lane_ends)) for run in cluster)


def _rules(kind: str, rows: Sequence[int], height: float) -> str:
    if not rows:
        return ""
    path = "".join(f"M0 {row * height:.1f}H{_SIZE}" for row in rows)
    return f'<path class="{kind}" d="{path}"/>'
