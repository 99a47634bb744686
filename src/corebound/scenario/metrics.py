"""Values other than times: what they are, and where in a command's output they are found."""

import re
from typing import Literal

from msgspec import Struct

from corebound.units import significant

Better = Literal["higher", "lower"]
# What launches are judged by: `time` includes a value that a command reports.
JudgedBy = Literal["time", "memory"]
# A step of a path into JSON: a key, an index, or None for every item of a list.
Step = str | int | None

_STEP = re.compile(r"""\[(-?\d+|\*)\]|\["([^"]+)"\]|(?:^|(?<=.)\.)([^.\[\]"]+)""")
_TIME_UNITS = frozenset({"ns", "us", "µs", "ms", "s", "seconds"})
# Rates and other values become times per unit, so that less is better in all that compares them.
_SCALE_NS = 1e9


class Metric(Struct, frozen=True, kw_only=True):
    """What a reported value is; it is a part of the identity of a cell.

    Attributes:
        unit: Its unit; empty for a number without one.
        better: Whether higher or lower values are better.
    """

    name: str
    unit: str
    better: Better

    @property
    def words(self) -> tuple[str, str]:
        """What a better value is called, and what a worse one is called."""
        if self == PEAK_MEMORY:
            return LESS_MEMORY
        if self.better == "higher":
            return "more", "less"
        return ("faster", "slower") if self.unit in _TIME_UNITS else ("less", "more")

    def as_time_ns(self, value: float) -> float:
        """A value above 0 as a time, of which less is better: of a rate, the time of one unit."""
        return _SCALE_NS / value if self.better == "higher" else value * _SCALE_NS

    def from_time_ns(self, time_ns: float) -> float:
        """The value of a time by `as_time_ns`."""
        return _SCALE_NS / time_ns if self.better == "higher" else time_ns / _SCALE_NS

    def span_of(self, times_ns: tuple[float, float]) -> tuple[float, float]:
        """The values of two times by `as_time_ns`, the lower first."""
        low, high = sorted(map(self.from_time_ns, times_ns))
        return low, high

    def text(self, time_ns: float | None) -> str:
        """The value of a time by `as_time_ns`, with its unit; a dash if there is none.

        >>> Metric(name="generation", unit="tokens/s", better="higher").text(1e9 / 18.2)
        '18.2 tokens/s'
        """
        if time_ns is None:
            return "–"
        return f"{significant(self.from_time_ns(time_ns))} {self.unit}".rstrip()


# What any launch can be judged by instead of its time: the peak RSS of all its processes.
PEAK_MEMORY = Metric(name="peak memory", unit="MiB", better="lower")
LESS_MEMORY = ("less memory", "more memory")


def words_of(metric: Metric | None) -> tuple[str, str]:
    """What a better value is called, and what a worse one is called; None stands for times."""
    return metric.words if metric is not None else ("faster", "slower")


def parse_json_path(path: str) -> tuple[Step, ...]:
    """The steps of a path such as `[-1].avg_ts`, `results[*].value` or `["a.b"].c`.

    Raises:
        ValueError: it is not such a path; the message is the part that is wrong.

    >>> parse_json_path('[-1].a["b.c"][*]')
    (-1, 'a', 'b.c', None)
    """
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise ValueError(path[at:])
        index, quoted, key = match.groups()
        steps.append(quoted or key if index is None else None if index == "*" else int(index))
        at = match.end()
    if not steps:
        raise ValueError(path)
    return tuple(steps)
