"""Numbers that are the same in every environment, whatever its framework and version of NumPy.

They come from the raw stream of a bit generator, which no version of NumPy changes. The
distributions of `numpy.random.Generator` may change.

Source: NumPy's documentation, "Compatibility policy".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SEED = 20_220_117


class SeededNumbers:
    """A stream of numbers; each call continues where the last one ended."""

    def __init__(self, seed: int = SEED) -> None:
        self._bits = np.random.PCG64(seed)

    def uniform(self, shape: tuple[int, ...], low: float, high: float) -> NDArray[np.float32]:
        """Draw float32 numbers from `low` up to `high`."""
        # 24 bits: as many as a float32 number holds.
        shares = (self._integers(shape) >> np.uint32(8)).astype(np.float32)
        shares *= np.float32((high - low) / 2**24)
        shares += np.float32(low)
        return shares

    def below(self, limit: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Draw whole numbers from 0 up to, but not including, `limit`, below 2**32."""
        wide = self._integers(shape).astype(np.uint64) * np.uint64(limit)
        return (wide >> np.uint64(32)).astype(np.int64)

    def _integers(self, shape: tuple[int, ...]) -> NDArray[np.uint32]:
        count = math.prod(shape)
        raw = self._bits.random_raw((count + 1) // 2).astype("<u8", copy=False)
        return raw.view("<u4")[:count].reshape(shape)
