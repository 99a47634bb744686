"""What result files of asv say of one benchmark, in columns: a row a file, in it a figure a cell.

asv lists a figure for each combination of parameters, and one alone where there are none. A list
goes behind its column whole and as it is; what figures come to is worked out once, of all files.
"""

from __future__ import annotations

import itertools
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from corebound.exchange.asv_results import DAMAGES, Row
from corebound.exchange.reading import clean
from corebound.model.missing import incomparable
from corebound.model.points import Circumstances

Floats: TypeAlias = NDArray[np.float64]
# The values of each parameter of a benchmark.
Params: TypeAlias = tuple[tuple[str, ...], ...]

_NS = 1e9
# A benchmark of more parameter combinations is damage.
_MOST_CELLS = 1_000_000
# A truth is a number in Python too, but of another type.
_NUMBERS = frozenset((int, float))
_FAILED = "it failed"
_NO_RESULT = "the file has no result for it"


class Column(NamedTuple):
    """One cell in every file, in the order they were read.

    Attributes:
        figures: In the series' unit; NaN where there is none that ratios can be made of.
        lows, highs: asv's interval, NaN where it has none that ratios can be made of.
        launches: What each figure was made of; nothing where asv did not keep it.
        missing: Why there is no figure; None where there is one.
    """

    figures: Floats
    lows: Floats
    highs: Floats
    launches: Sequence[tuple[float, ...]]
    missing: Sequence[str | None]


class Rows:
    """What files say of a benchmark, as long as the values of its parameters stay.

    Attributes:
        params: These, of each parameter; figures are of their product, the last one fastest.
        files: The number of each file.
        circumstances: In which each was measured.
    """

    __slots__ = ("_cells", "_figures", "_highs", "_launches", "_lows", "_odd", "_scale", "_unit",
                 "circumstances", "files", "params")  # fmt: skip

    def __init__(self, params: Params, unit: str) -> None:
        """Begin with no file.

        Args:
            params: As above.
            unit: Of the figures, in asv's words.

        Raises:
            ValueError: there are more combinations than any benchmark has.
        """
        self.params = params
        self.files = array("i")
        self.circumstances: list[Circumstances] = []
        self._cells = math.prod(map(len, params))
        if self._cells > _MOST_CELLS:
            raise ValueError(f"it has {self._cells:,} combinations of parameters")
        self._unit = unit
        self._scale = _NS if unit == "seconds" else 1.0
        # A column may end before the last row does: nothing is said behind its end.
        self._figures = array("d")
        self._lows = array("d")
        self._highs = array("d")
        self._launches: list[tuple[float, ...]] = []
        # Why a figure is no number, by its place in the column.
        self._odd: dict[int, str] = {}

    def add(self, file: int, circumstances: Circumstances, row: Row) -> None:
        """Take a file's row, or nothing of it.

        Raises:
            AttributeError, KeyError, TypeError, ValueError, OverflowError: it is damaged.
        """
        figures, _, _, lows, highs, samples = row
        at = len(self.files) * self._cells
        try:
            if lows and highs:
                self._put(self._lows, at, lows)
                self._put(self._highs, at, highs)
            if samples:
                self._put_samples(at, samples)
            # At last, for it is remembered why there is none.
            self._put_figures(at, figures)
        except DAMAGES:
            for column in (self._lows, self._highs, self._launches):
                del column[at:]
            raise
        self.files.append(file)
        self.circumstances.append(circumstances)

    def _put(self, column: array[float], at: int, told: Any) -> None:
        """Numbers in their places, NaN where there are none."""
        if len(column) != at:
            _fill(column, at)
        own = told if len(told) == self._cells else told[: self._cells]
        try:
            column.fromlist(own)
        except TypeError:
            column.extend([math.nan if one is None else float(one) for one in own])

    def _put_samples(self, at: int, told: Any) -> None:
        # Those of a benchmark without parameters were once not in a list of their own.
        of_one = isinstance(told, list) and isinstance(told[0], int | float)
        own = [told] if of_one else told[: self._cells]
        self._launches.extend(repeat((), at - len(self._launches)))
        self._launches.extend([_finite(one or (), self._scale) for one in own])

    def _put_figures(self, at: int, told: Any) -> None:
        if told is None:
            self._odd.update(zip(range(at, at + self._cells), repeat(_FAILED), strict=False))
            return
        if not isinstance(told, list):
            if not isinstance(told, int | float):
                raise TypeError("its figures are no list")
            told = [told]
        if len(told) != self._cells:
            rest = range(at + len(told), at + self._cells)
            self._odd.update(zip(rest, repeat(_NO_RESULT), strict=False))
            told = told[: self._cells]
        if not _NUMBERS.issuperset(map(type, told)):
            told = [self._number(place, one) for place, one in enumerate(told, at)]
        if len(self._figures) != at:
            _fill(self._figures, at)
        try:
            self._figures.fromlist(told)
        except OverflowError:
            self._figures.extend(map(_double, told))

    def _number(self, place: int, value: Any) -> float:
        """A figure that is one; of another, which is NaN then, it is remembered what it was."""
        if isinstance(value, int | float) and type(value) in _NUMBERS:
            return value
        self._odd[place] = _FAILED if value is None else f"{clean(str(value))[:40]!r} is no number"
        return math.nan

    def column(self, index: int) -> Column:
        """What a combination of parameters came to, all files having been taken."""
        n = len(self.files)
        raw = self._of(self._figures, index)
        with np.errstate(over="ignore"):  # which is an infinite figure
            figures = raw * self._scale
            lows = self._of(self._lows, index) * self._scale
            highs = self._of(self._highs, index) * self._scale
        # Ratios need numbers above 0.
        told = (figures > 0) & (figures < math.inf)
        # A single sample gives an infinite interval, and few that differ much one that ends
        # below 0.
        bounded = told & (lows > 0) & (lows <= highs) & (highs < math.inf)
        missing: list[str | None] = [None] * n
        for at in map(int, np.flatnonzero(~told)):
            missing[at] = self._why(at * self._cells + index, raw[at], figures[at])
        return Column(
            figures=np.where(told, figures, math.nan),
            lows=np.where(bounded, lows, math.nan),
            highs=np.where(bounded, highs, math.nan),
            launches=self._samples(index, told) if self._launches else [()] * n,
            missing=missing,
        )

    def _samples(self, index: int, told: Iterable[bool]) -> list[tuple[float, ...]]:
        every = itertools.chain(self._launches[index :: self._cells], repeat(()))
        # The last one has no end.
        return [made if good else () for made, good in zip(every, told, strict=False)]

    def _of(self, column: array[float], index: int) -> Floats:
        _fill(column, len(self.files) * self._cells)
        return np.array(column[index :: self._cells])

    def _why(self, place: int, raw: float, figure: float) -> str:
        """Why there is no figure to be compared."""
        if place in self._odd:
            return self._odd[place]
        if math.isnan(figure):
            # asv writes it for what was skipped, and for a `track_…` that returns it.
            return "it was skipped or came to NaN"
        if math.isinf(figure):
            return "an infinite figure is none"
        # Where one figure is 0 most are, and a history has millions.
        return sys.intern(incomparable(f"{raw:g} {self._unit}"))


def _fill(column: array[float], n: int) -> None:
    """Have a column of n, NaN where nothing was said."""
    column.extend(repeat(math.nan, n - len(column)))


def _finite(samples: Iterable[Any], scale: float) -> tuple[float, ...]:
    """Samples in the series' unit; none where one of them is no number that can be kept."""
    scaled = tuple([float(one) * scale for one in samples])
    return scaled if all(map(math.isfinite, scaled)) else ()


def _double(value: float) -> float:
    """A number, however many digits it has."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
