"""A history as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A history as columns: what many nights are looked at by.

    Attributes:
        logs: n logarithms of figures in time order; NaN where a night tells nothing.
        errors: Their standard errors by the nights' own launches; 0 where not known.
        starts: The first night of every segment.
    """

    logs: Array
    errors: Array
    starts: tuple[int, ...]
