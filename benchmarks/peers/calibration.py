"""Chooses the extra work of slower steps, and measures how much slower they are."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from benchmarks.peers.runtime import Runtime
from benchmarks.peers.workload import write_step

_PROCESSES = 3
# How far a measured ratio may be from the intended one.
_TOLERANCE = 0.002


class Planted(Struct, frozen=True, kw_only=True):
    """A planted slowdown.

    Attributes:
        share: The intended extra work, as a share of the plain step.
        size: The size of the extra work.
        ratio: The measured duration relative to the plain step: the median of processes.
        lowest, highest: The ratios of the processes that differ most.
    """

    share: float
    size: int
    ratio: float = 1.0
    lowest: float = 1.0
    highest: float = 1.0

    @property
    def is_exact(self) -> bool:
        """Whether the ratio is the intended one; it is not if other programs use the CPUs."""
        return abs(self.ratio - 1 - self.share) <= _TOLERANCE

    def __str__(self) -> str:
        text = f"{self.share:.1%} slower: {self.ratio:.4f}"
        return f"{text} ({self.lowest:.4f} to {self.highest:.4f})" if self.size else text


def calibrate(runtime: Runtime, shares: Iterable[float]) -> tuple[Planted, ...]:
    """Find the extra work for each share, and measure the ratio in other processes.

    An operation of the same kind runs after each slower step. Its size is an integer that sets
    its duration, at a resolution of some hundredths of a per cent of the step. That makes every
    slower step slower, not only the mean, and needs no fraction of a layer or of a product. The
    size is the median of those that several processes find, because processes differ. The ratio
    is measured in new processes in which plain and slower steps alternate.
    """
    planted = [Planted(share=0.0, size=0)] if 0.0 in (shares := sorted(set(shares))) else []
    positive = [share for share in shares if share]
    if not positive:
        return tuple(planted)
    with tempfile.TemporaryDirectory() as folder:
        write_step(Path(folder), runtime)

        def in_processes(arguments: dict[str, list[float]]) -> list[tuple[float, ...]]:
            """The values for each share, one from each process."""
            outputs = (
                runtime.run(Path(folder), "calibrate.py", json.dumps(arguments))
                for _ in range(_PROCESSES)
            )
            return list(zip(*map(json.loads, outputs), strict=True))

        sizes = [int(statistics.median(found)) for found in in_processes({"shares": positive})]
        ratios = in_processes({"sizes": [float(size) for size in sizes]})
    for share, size, measured in zip(positive, sizes, ratios, strict=True):
        planted.append(
            Planted(
                share=share,
                size=size,
                ratio=statistics.median(measured),
                lowest=min(measured),
                highest=max(measured),
            )
        )
    return tuple(planted)
