"""CPU × time: who used each CPU, how many threads waited for one, and what was taken away."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from msgspec import Struct

from corebound.groups import grouped
from corebound.report.charts.svg import path, svg

# More are not distinguishable.
INKS = 12
# The height of the CPUs; a row is at least a few pixels high.
_SIZE, _MOST_ROWS = 1000, 32
# A column is at most a few pixels wide; with many rows, the file size limits their number.
_MOST_COLUMNS, _LEAST_COLUMNS, _MOST_CELLS = 120, 30, 960
# Waiting is known per thread only in total, so that its course needs no detail.
_QUEUE_COLUMNS = 40


class CpuStay(Struct, frozen=True, kw_only=True):
    """A thread on a CPU, from one time to a later one, both in [0, 1] of the launch."""

    cpu: int
    begin: float
    end: float


class Track(Struct, frozen=True, kw_only=True):
    """The CPUs of one thread over time.

    Attributes:
        ink: The number of its colour, below `INKS`. Threads of one colour are drawn as one.
        name: Of its process, or of itself: part of the title of its colour.
        stays: Where it was seen; it used CPU time in all of them.
        share: Its CPU time as a share of its stays. 1 if it is unknown.
        waiting: The time that it was ready and waited for a CPU, as a share of its stays; above 1
            if it waited while it was not seen, too.
    """

    ink: int
    name: str
    stays: tuple[CpuStay, ...]
    share: float = 1.0
    waiting: float = 0.0


class CpuTime(Struct, frozen=True, kw_only=True):
    """One launch.

    Attributes:
        cpus: Their number; from the top, each is one row or part of one.
        tracks: One per thread.
        stolen: What the hypervisor took from CPUs, as tracks; they lie above the others.
        throttled: The share of the waiting that a CPU quota causes.
        since, until: Where what is known begins and the launch ends, as shares of the width.
        per_waiting: The height of one waiting thread, as a share of the CPUs' height.
        cores, nodes: CPUs with which another core or another node begins.
    """

    cpus: int
    tracks: tuple[Track, ...]
    stolen: tuple[Track, ...] = ()
    throttled: float = 0.0
    since: float = 0.0
    until: float = 1.0
    per_waiting: float = 0.0
    cores: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    alt_text: str

    @property
    def cpus_per_row(self) -> int:
        """How many CPUs, at most, share a row."""
        return -(-self.cpus // _MOST_ROWS)

    @property
    def most_waiting(self) -> float:
        """How many threads wait when most do."""
        return max(map(sum, zip(*_queues(self.tracks).values(), strict=True)), default=0.0)

    @property
    def queue(self) -> float:
        """The height of those that wait, as a share of the CPUs' height."""
        return self.most_waiting * self.per_waiting


def cpu_time_svg(drawn: CpuTime) -> str:
    """Draw a launch: the filled share of a row is the share of time for which its CPUs were used.

    A CPU runs one thread at a time: where several shared one, they take turns from column to
    column, so that the area of each colour is the CPU time of its threads. Those that wait hang
    below the CPUs.
    """
    rows = -(-drawn.cpus // drawn.cpus_per_row)
    most = max(_LEAST_COLUMNS, min(_MOST_COLUMNS, _MOST_CELLS // rows))
    columns = max(8, round(most * drawn.until))
    # Columns of the launch to units of the drawing, which is `most` wide.
    scale = most * drawn.until / columns
    height = _SIZE * drawn.cpus_per_row / drawn.cpus
    running: dict[int, list[str]] = {}
    stolen: list[str] = []
    owed: dict[int, float] = {}
    for row in range(rows):
        cpus = range(row * drawn.cpus_per_row, min(drawn.cpus, (row + 1) * drawn.cpus_per_row))
        bottom = cpus.stop * _SIZE / drawn.cpus
        by_ink, taken = _row(drawn.tracks, cpus, columns), _row(drawn.stolen, cpus, columns)
        turns = list(_turns(by_ink, owed, columns))
        per_cpu = height / drawn.cpus_per_row
        for ink in by_ink:
            tops = [bottom - per_cpu * used * (whose == ink) for whose, used in turns]
            running.setdefault(ink, []).extend(_blocks([bottom] * columns, tops, scale))
        for shares in taken.values():
            bottoms = [bottom - per_cpu * used for _, used in turns]
            free = [
                min(share, len(cpus) - used) for share, (_, used) in zip(shares, turns, strict=True)
            ]
            tops = [y - per_cpu * share for y, share in zip(bottoms, free, strict=True)]
            stolen += _blocks(bottoms, tops, scale)
    width, whole = f"{most:g}", f"{_SIZE * (1 + drawn.queue):.0f}"
    end = f"{most * drawn.until:.1f}"
    return svg(
        most,
        round(_SIZE * (1 + drawn.queue)),
        drawn.alt_text,
        path("past", f"M{end} 0H{width}V{whole}H0V{_SIZE}H{end}z"),
        path("past", f"M0 0H{most * drawn.since:.1f}V{_SIZE}H0z" if drawn.since else ""),
        *_titled(drawn.tracks, "h", running, ""),
        path("stolen", "".join(stolen)),
        *_waiting(drawn, most * drawn.until / _QUEUE_COLUMNS),
        *(
            path(kind, "".join(f"M0 {cpu * _SIZE / drawn.cpus:.1f}H{end}" for cpu in begins))
            for kind, begins in (
                ("core", drawn.cores if drawn.cpus <= _MOST_ROWS else ()),
                ("node", drawn.nodes),
            )
        ),
    )


def _waiting(drawn: CpuTime, scale: float) -> Iterator[str]:
    """Those that wait, below the CPUs: first those that a quota holds back."""
    per_thread = drawn.per_waiting * _SIZE
    if not per_thread:
        return
    queues = _queues(drawn.tracks)
    tops = [float(_SIZE)] * _QUEUE_COLUMNS
    if drawn.throttled:
        every = map(sum, zip(*queues.values(), strict=True))
        ends = [_SIZE + number * drawn.throttled * per_thread for number in every]
        yield path("throttled", "".join(_blocks(ends, tops, scale)))
        tops = ends
    paths: dict[int, list[str]] = {}
    for ink, numbers in sorted(queues.items()):
        ends = [
            y + number * (1 - drawn.throttled) * per_thread
            for y, number in zip(tops, numbers, strict=True)
        ]
        paths[ink] = list(_blocks(ends, tops, scale))
        tops = ends
    yield from _titled(drawn.tracks, "wait h", paths, ", waiting for a CPU")


def _titled(
    tracks: Iterable[Track], kind: str, paths: dict[int, list[str]], doing: str
) -> Iterator[str]:
    names: dict[int, dict[str, None]] = {}
    for track in tracks:
        names.setdefault(track.ink, {})[track.name] = None
    for ink, blocks in sorted(paths.items()):
        if blocks:
            title = escape(", ".join(names[ink]) + doing)
            yield (
                f'<path class="{kind}{ink}" aria-hidden="true" d="{"".join(blocks)}">'
                f"<title>{title}</title></path>"
            )


def _row(tracks: Iterable[Track], cpus: range, columns: int) -> dict[int, list[float]]:
    """How many of these CPUs each ink uses, in each column."""
    stays = ((track, stay) for track in tracks for stay in track.stays if stay.cpu in cpus)
    row: dict[int, list[float]] = {}
    for own in grouped(stays, lambda pair: pair[1].cpu).values():
        for ink, heights in _shared(own, columns).items():
            before = row.get(ink, [0.0] * columns)
            row[ink] = [had + more for had, more in zip(before, heights, strict=True)]
    return row


def _turns(
    by_ink: dict[int, list[float]], owed: dict[int, float], columns: int
) -> Iterator[tuple[int | None, float]]:
    """Whose turn each column is, and how much of it is used.

    It is the turn of the one that lags behind most of those that used the column. What it is owed
    remains so for the next row.
    """
    for column in range(columns):
        shares = {ink: heights[column] for ink, heights in by_ink.items() if heights[column]}
        for ink, share in shares.items():
            owed[ink] = owed.get(ink, 0.0) + share
        used = sum(shares.values())
        whose = max(shares, key=lambda ink: (owed[ink], -ink), default=None)
        if whose is not None:
            owed[whose] -= used
        yield whose, used


def _shared(stays: Sequence[tuple[Track, CpuStay]], columns: int) -> dict[int, list[float]]:
    """The share of each column of one CPU that each ink uses.

    The CPU time of a thread is known in total only, so that threads may seem to use more than a CPU
    at one time and less at another. What exceeds the CPU is moved to the times at which these
    threads were seen there as well.
    """
    by_ink: dict[int, list[float]] = {}
    for track, stay in stays:
        heights = by_ink.setdefault(track.ink, [0.0] * columns)
        _spread(heights, stay.begin, stay.end, track.share)
    used = [sum(heights) for heights in zip(*by_ink.values(), strict=True)]
    seen = _seen([stay for _, stay in stays], columns)
    factor = _factor(used, seen)
    scales = [min(most / use, factor) if use else 0.0 for use, most in zip(used, seen, strict=True)]
    return {
        ink: [height * scale for height, scale in zip(heights, scales, strict=True)]
        for ink, heights in by_ink.items()
    }


def _queues(tracks: Iterable[Track]) -> dict[int, list[float]]:
    """How many threads of each ink wait over time, in equal parts of the launch."""
    queues: dict[int, list[float]] = {}
    for track in tracks:
        if track.waiting:
            numbers = queues.setdefault(track.ink, [0.0] * _QUEUE_COLUMNS)
            for stay in track.stays:
                _spread(numbers, stay.begin, stay.end, track.waiting)
    return queues


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


def _blocks(bottoms: Sequence[float], tops: Sequence[float], scale: float) -> Iterator[str]:
    """Rectangles between two lines of columns this wide; columns of equal height are one.

    Each begins where the one before it began, as equal steps compress well.
    """
    at, before = 0, (0.0, 0.0)
    ends = zip((round(y, 1) for y in bottoms), (round(y, 1) for y in tops), strict=True)
    for (bottom, top), group in groupby(ends):
        width = sum(1 for _ in group)
        if bottom > top:
            x, right = round(at * scale, 2), round((at + width) * scale, 2)
            begin = (
                f"m{x - before[0]:.4g} {bottom - before[1]:.4g}"
                if any(before)
                else f"M{x:g} {bottom}"
            )
            yield f"{begin}v{top - bottom:.4g}h{right - x:.4g}v{bottom - top:.4g}z"
            before = x, bottom
        at += width
