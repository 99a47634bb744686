"""States how many series have too few values for a verdict."""

from __future__ import annotations

from corebound.stats.history.too_short import least_figures


def too_short_words(short: int, every: int) -> str:
    """A sentence with the number of series that are too short; empty if all are long enough.

    >>> too_short_words(1, 2)[:40]
    '1 of 2 series is too short to tell: a ch'
    """
    if not short:
        return ""
    of = f"All {short:,}" if 1 < short == every else f"{short:,} of {every:,}"
    are = "is" if short == 1 else "are"
    needed = f"a change takes {least_figures()} figures under the same circumstances"
    return f"{of} series {are} too short to tell: {needed}."
