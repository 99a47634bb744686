"""Beside a verdict: of how many series it says nothing, for they have too few figures."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.model.series import Series
from corebound.stats.too_short import least_figures, too_short


def too_short_words(going: Sequence[Series]) -> str:
    """How many of these series cannot tell a change yet, in a sentence; empty where all can.

    >>> from build import a_series
    >>> too_short_words([a_series([1.0] * 20), a_series([1.0])])[:40]
    '1 of 2 series is too short to tell: a ch'
    """
    short = len(too_short(going))
    if not short:
        return ""
    of = f"All {short:,}" if 1 < short == len(going) else f"{short:,} of {len(going):,}"
    are = "is" if short == 1 else "are"
    needed = f"a change takes {least_figures()} figures under the same circumstances"
    return f"{of} series {are} too short to tell: {needed}."
