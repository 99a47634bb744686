"""Names and sort keys of series: in full, or without what a group of them shares."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from corebound.records.history import Series

_NO_CELL = ("", "default")
_ENVIRONMENT = "environment="
# asv's environment names list every requirement. Longer names would fill a title's whole line.
_LONGEST_ENVIRONMENT = 48
_CUT_ENVIRONMENT = 32
_OPEN, _CLOSED, _QUOTES = "([{", ")]}", "\"'"
_NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")

# The sort key of a text with numbers. For each piece: whether it is text, the number, the text.
Natural: TypeAlias = tuple[tuple[bool, float, str], ...]


def series_name(series: Series) -> str:
    """The name of a series within its project."""
    cell = "" if series.cell in _NO_CELL else f"[{series.cell}]"
    return f"{series.scenario}{cell} on {series.host_name}"


def short_cell_names(all_series: Sequence[Series]) -> tuple[str, ...]:
    """Short names of the series of one benchmark, without the benchmark's name; never empty."""
    has_hosts = len({series.host for series in all_series}) > 1
    return tuple(
        ", ".join(filter(None, (own, f"on {series.host_name}" if has_hosts or not own else "")))
        for series, own in zip(all_series, distinct_axes(all_series), strict=True)
    )


def distinct_axes(all_series: Sequence[Series]) -> list[str]:
    """For each series the parameters that not all share; empty if there are none."""
    shared, short_forms = _shared(all_series), long_environments(all_series)
    return [
        ", ".join(short_forms.get(axis, axis) for axis in axes(series.cell) if axis not in shared)
        for series in all_series
    ]


def shared_axes(all_series: Sequence[Series]) -> str:
    """The parameters that all of these series share; `all_series` has at least one."""
    shared, short_forms = _shared(all_series), long_environments(all_series)
    return ", ".join(
        short_forms.get(axis, axis) for axis in axes(all_series[0].cell) if axis in shared
    )


def cell_name(series: Series, short_forms: Mapping[str, str]) -> str:
    """Its parameters and its environment, shortened as in `long_environments`."""
    return ", ".join(short_forms.get(axis, axis) for axis in axes(series.cell))


def parameters(series: Series) -> str:
    """The parameters of a series without its environment."""
    return ", ".join(axis for axis in axes(series.cell) if not axis.startswith(_ENVIRONMENT))


def environments(suite: Iterable[Series]) -> dict[str, str]:
    """The environments of these series, from full name to displayed name; sorted by name."""
    all_series = [*suite]
    names = sorted(
        {
            axis
            for series in all_series
            for axis in axes(series.cell)
            if axis.startswith(_ENVIRONMENT)
        }
    )
    short_forms = long_environments(all_series)
    return {
        name.removeprefix(_ENVIRONMENT): short_forms.get(name, name).removeprefix(_ENVIRONMENT)
        for name in names
    }


def natural_sort_key(series: Series) -> tuple[tuple[str, Natural], ...]:
    """A sort key for series: parameter by parameter, with numbers by their size."""
    return _cell_sort_key(series.cell)


@lru_cache(maxsize=4096)  # cells are mostly used a benchmark at a time
def _cell_sort_key(cell: str) -> tuple[tuple[str, Natural], ...]:
    pairs = [
        axis.rpartition("=") if "=" not in axis else axis.partition("=") for axis in axes(cell)
    ]
    return tuple((name, natural(value)) for name, _, value in pairs)


def natural(text: str) -> Natural:
    """A sort key for texts that orders the numbers in them by size.

    >>> sorted(["100", "-2", "20", "None"], key=natural)
    ['-2', '20', '100', 'None']
    >>> sorted(["float64", "float8", "1e3 B", "20 B"], key=natural)
    ['20 B', '1e3 B', 'float8', 'float64']
    """
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return ((False, number, ""),)
    return tuple(
        (False, float(piece), "") if index % 2 else (True, 0.0, piece)
        for index, piece in enumerate(_NUMBER.split(text))
        if piece
    )


@lru_cache(maxsize=4096)
def axes(cell: str) -> tuple[str, ...]:
    """Split a cell's key into parameters; names and values may contain commas.

    >>> axes("(m, n)=100, 5,variant=d"), axes("shape=[1, 2],kind='a, b'")
    (('(m, n)=100, 5', 'variant=d'), ('shape=[1, 2]', "kind='a, b'"))
    """
    if cell in _NO_CELL:
        return ()
    parts: list[str] = []
    for piece in _pieces(cell):
        if "=" not in piece and parts and "=" in parts[-1]:
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return tuple(axis.strip() for axis in parts)


def _pieces(cell: str) -> list[str]:
    """Split at commas outside brackets and quotes, if these are closed."""
    uncut = cell.split(",")
    if not any(letter in cell for letter in (*_OPEN, *_QUOTES)):
        return uncut
    parts, begin, depth, quote = [], 0, 0, ""
    for at, letter in enumerate(cell):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in _QUOTES:
            quote = letter
        elif letter in _OPEN:
            depth += 1
        elif letter in _CLOSED:
            depth = max(depth - 1, 0)
        elif letter == "," and not depth:
            parts.append(cell[begin:at])
            begin = at + 1
    return uncut if depth or quote else [*parts, cell[begin:]]


def long_environments(all_series: Iterable[Series]) -> dict[str, str]:
    """Short, unique forms of long environment names, by the whole axis."""
    long = {
        axis
        for series in all_series
        for axis in axes(series.cell)
        if axis.startswith(_ENVIRONMENT) and len(axis) > len(_ENVIRONMENT) + _LONGEST_ENVIRONMENT
    }
    cut = {axis: _cut(axis) for axis in sorted(long)}
    cuts = [*cut.values()]
    return {
        axis: f"{short} ({cuts[:index].count(short) + 1})" if cuts.count(short) > 1 else short
        for index, (axis, short) in enumerate(cut.items())
    }


def _cut(axis: str) -> str:
    """Its beginning, cut after a whole requirement if there is one."""
    begin = axis[: len(_ENVIRONMENT) + _CUT_ENVIRONMENT]
    uncut = begin.rpartition("-")[0]
    return f"{uncut if len(uncut) > len(_ENVIRONMENT) else begin}…"


def _shared(all_series: Sequence[Series]) -> frozenset[str]:
    axes_of_all = [frozenset(axes(series.cell)) for series in all_series]
    return frozenset.intersection(*axes_of_all) if axes_of_all else frozenset()
