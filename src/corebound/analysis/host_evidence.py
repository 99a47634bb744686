"""Which hosts show a change, and which do not: the evidence of all of them together."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.triage import CommitEntry
from corebound.analysis.wording import count, listed, relative_speed, speed_bounds
from corebound.records.history import HistoryPoint, Series
from corebound.stats.between_hosts import ClassEstimate, HostValue, estimate_class
from corebound.stats.distributions import student_quantile
from corebound.stats.history.pooled import is_pooled
from corebound.stats.history.regressions import Change
from corebound.stats.history.shift_tests import hodges_lehmann_shift, shift_bounds
from corebound.stats.intervals import CONFIDENCE, NORMAL_REACH, Array

# The points on each side of a change that show how large it is on a host.
_POINTS_BESIDE = 30
# The cells of a commit that are looked at on every host, the largest changes first, and commits.
_MOST_CELLS, _MOST_COMMITS = 3, 50
# Hosts that are named.
_MOST_NAMED = 4
# The probability that any host that shows a change is said not to.
_ALPHA = 0.05

Shows = Literal["yes", "no", "unclear"]


class HostShift(Struct, frozen=True, kw_only=True):
    """How much one host changed with a commit.

    Attributes:
        log: The shift of its values, a logarithm.
        bounds: Its 95 % interval.
        freedom: The degrees of freedom of its error.
        shows: Whether the host shows the change; `unclear` if its values fit both answers.
    """

    name: str
    log: float
    bounds: tuple[float, float]
    freedom: int
    shows: Shows = "unclear"

    @property
    def error(self) -> float:
        """The standard error of `log`."""
        # Equal values have an interval without width, but no value is free of error.
        return max((self.bounds[1] - self.bounds[0]) / 2 / NORMAL_REACH, 1e-9)

    @property
    def text(self) -> str:
        """The host with its change: `arm-3 (1.001× slower, 95 % CI −0.5 to +0.6 %)`."""
        low, high = map(math.exp, self.bounds)
        size = relative_speed(math.exp(-self.log))
        return f"{self.name} ({size}, 95 % CI {speed_bounds(low, high)})"


class HostEvidence(Struct, frozen=True, kw_only=True):
    """A change of one cell on all hosts that measured it before and after.

    Attributes:
        scenario, cell, title: What changed.
        shifts: Of each host, by name.
        estimate: The shift over those hosts that do not contradict it; None for one host.
        others: The shift over those that do; None for fewer than two.
        too_few: The number of hosts with too few values on one side.
    """

    scenario: str
    cell: str
    title: str
    shifts: tuple[HostShift, ...]
    estimate: ClassEstimate | None
    others: ClassEstimate | None
    too_few: int

    def hosts(self, shows: Shows) -> tuple[HostShift, ...]:
        """The hosts with this answer."""
        return tuple(shift for shift in self.shifts if shift.shows == shows)

    @property
    def lines(self) -> tuple[str, ...]:
        """The evidence in words: the size, the hosts that show it, those that do not."""
        yes, no, unclear = (self.hosts(each) for each in ("yes", "no", "unclear"))
        total = len(self.shifts)
        if len(yes) == 1 and not unclear:
            first = f"only on {yes[0].text}"
        else:
            size = f"{_size(self.estimate)} over " if self.estimate is not None else ""
            agreeing = f"{size}{count(len(yes) + len(unclear), 'host')}"
            first = f"{agreeing}; {len(yes)} of {total} show it by themselves"
        lines = [first]
        if len(no) > _MOST_NAMED and self.others is not None:
            names = listed([shift.name for shift in no], _MOST_NAMED)
            size = f"{count(len(no), 'host')}, together {_size(self.others)}"
            lines.append(f"not on {size}: {names}")
        elif no:
            lines.append(f"not on {', '.join(shift.text for shift in no)}")
        return tuple(lines)


def _size(estimate: ClassEstimate) -> str:
    size = relative_speed(math.exp(-estimate.log))
    interval = estimate.interval
    if interval is None:
        return size
    return f"{size} (95 % CI {speed_bounds(*interval.ends)})"


def host_evidence(
    entries: Sequence[CommitEntry], suite: Iterable[Series]
) -> Mapping[str, tuple[HostEvidence, ...]]:
    """The evidence of all hosts for the changes of commits, by the id of the entry.

    Args:
        entries: Changes by commit; those of our own scenarios on several hosts count.
        suite: All series, best in the order of their ids: the points of one host are in memory.
    """
    wanted: dict[tuple[str, str], list[tuple[CommitEntry, Change]]] = {}
    for entry in [each for each in entries if each.project is None][:_MOST_COMMITS]:
        for change in _largest_by_cell(entry):
            key = change.series.scenario, change.series.cell
            wanted.setdefault(key, []).append((entry, change))
    found: dict[tuple[str, str], list[HostShift | None]] = {}
    for series in suite:
        if series.project is None and not is_pooled(series):
            for entry, change in wanted.get((series.scenario, series.cell), ()):
                shift = _shift(series, entry.last_good, entry.first_bad)
                found.setdefault((entry.id, change.id), []).append(shift)
    evidence: dict[str, list[HostEvidence]] = {}
    for entry, change in chain.from_iterable(wanted.values()):
        shifts = found.get((entry.id, change.id), [])
        known = [shift for shift in shifts if shift is not None]
        if len(known) >= 2:
            judged = _judge(change, known, too_few=len(shifts) - len(known))
            evidence.setdefault(entry.id, []).append(judged)
    return {name: tuple(own) for name, own in evidence.items()}


def _largest_by_cell(entry: CommitEntry) -> list[Change]:
    """The change of each cell that changed most; that of several hosts if there is one."""
    cells: dict[tuple[str, str], Change] = {}
    for assessed in entry.leading.changes:
        change = assessed.change
        key = change.series.scenario, change.series.cell
        if key not in cells or (is_pooled(change.series) and not is_pooled(cells[key].series)):
            cells[key] = change
    largest = sorted(cells.values(), key=lambda change: -abs(math.log(change.change_point.ratio)))
    return largest[:_MOST_CELLS]


def _shift(series: Series, good: HistoryPoint, bad: HistoryPoint) -> HostShift | None:
    """How much a host changed between two commits; None with too few values on one side.

    Its own points of the commits count, whatever its clock says; without them, times.
    """
    points = series.points
    moments = points.moments
    shas = [moment.commit.sha if moment.commit else "" for moment in moments]
    times = [moment.at for moment in moments]
    first = _place(shas, bad) if bad.commit else None
    last = _place(shas, good, latest=True) if good.commit else None
    end = bisect_left(times, bad.at) if first is None else first
    begin = bisect_right(times, good.at) if last is None else last + 1
    if not 0 < begin <= end < len(points):
        return None
    key = points.environment_keys[end]

    def logs(indices: Iterable[int]) -> Array:
        own = (at for at in indices if points.environment_keys[at] == key)
        values = (points.values[at] for at in own)
        return np.array([math.log(value) for value in values if not math.isnan(value)])

    before = logs(range(max(0, begin - _POINTS_BESIDE), begin))
    after = logs(range(end, min(len(points), end + _POINTS_BESIDE)))
    if not before.size or not after.size:
        return None
    bounds = shift_bounds(before, after, rho=0.0, own_error=0.0, confidence=CONFIDENCE)
    if bounds is None:
        return None
    return HostShift(
        name=series.host_name,
        log=hodges_lehmann_shift(before, after),
        bounds=bounds,
        freedom=before.size + after.size - 2,
    )


def _place(shas: Sequence[str], point: HistoryPoint, *, latest: bool = False) -> int | None:
    """The first point of a commit, or the last; None without any."""
    sha = point.commit.sha if point.commit else ""
    if sha not in shas:
        return None
    return len(shas) - 1 - shas[::-1].index(sha) if latest else shas.index(sha)


def _judge(change: Change, known: Iterable[HostShift], *, too_few: int) -> HostEvidence:
    by_name = sorted(known, key=lambda shift: shift.name)
    expected = math.log(change.change_point.ratio)
    shifts = tuple(
        replace(shift, shows=_shows(shift, expected, hosts=len(by_name))) for shift in by_name
    )
    return HostEvidence(
        scenario=change.series.scenario,
        cell=change.series.cell,
        title=change.series.title,
        shifts=shifts,
        estimate=_estimate(shift for shift in shifts if shift.shows != "no"),
        others=_estimate(shift for shift in shifts if shift.shows == "no"),
        too_few=too_few,
    )


def _estimate(shifts: Iterable[HostShift]) -> ClassEstimate | None:
    values = [HostValue(log=shift.log, variance=shift.error**2) for shift in shifts]
    return estimate_class(values) if len(values) > 1 else None


def _shows(shift: HostShift, expected: float, *, hosts: int) -> Shows:
    """Whether a host shows a change of the expected size.

    It does if its own interval excludes no change. It does not if its shift is below the expected
    one by more than chance explains in any of so many hosts (Bonferroni).
    """
    sign = math.copysign(1.0, expected)
    low = min(sign * bound for bound in shift.bounds)
    below = abs(expected) - sign * shift.log
    reach = student_quantile(shift.freedom, 1 - _ALPHA / hosts)
    if below > reach * shift.error and low <= 0:
        return "no"
    return "yes" if low > 0 else "unclear"


def evidence_lines(evidence: Sequence[HostEvidence]) -> Iterator[str]:
    """What the hosts show of a commit's changes; of several cells each with its name."""
    for each in evidence:
        cell = f" [{each.cell}]" if each.cell not in {"", "default"} else ""
        name = f"{each.title}{cell}: " if len(evidence) > 1 else ""
        first, *rest = each.lines
        yield f"{name}{first}"
        yield from rest
