"""How a change is worded: what was taken back of it, and in which commits it came."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from corebound.analysis.change_history import sizes_word
from corebound.records.history import HistoryPoint
from corebound.stats.history.regressions import Change

_ALL, _PART, _MORE = "undone", "partly undone", "more than undone"


def recovery_words(change: Change) -> str:
    """How much of a change was recovered, and in how many change points: `partly undone`.

    Args:
        change: A change that later change points reverted at least partly.
    """
    how, steps, is_clear = _recovered(change)
    several = f" in {steps} steps, the last" if steps > 1 else ""
    return f"{'' if is_clear else 'perhaps '}{how}{several}"


def left_words(found: Sequence[Change]) -> str:
    """The level after the recoveries relative to before the changes; empty if equal.

    Args:
        found: At least one; all have the same `recovery_words`.
    """
    how = _recovered(found[0])[0]
    if how == _ALL:
        return ""
    since = sizes_word([_since(one) for one in found])
    return f"{'still ' if how == _PART else ''}{since.word} than before it"


def _recovered(change: Change) -> tuple[str, int, bool]:
    """How much was recovered, in how many change points, and whether the last of them is clear."""
    recovery = change.step.recovery
    if recovery is None:
        return "", 0, False
    how = _PART
    if recovery.whole:
        beyond = abs(math.log(recovery.left)) >= math.log1p(change.series.margin)
        how = _MORE if beyond else _ALL
    return how, recovery.steps, change.back_is_clear


def _since(change: Change) -> Change:
    """A change as if it went from the level before it to the level after its recovery."""
    left = change.step.recovery.left if change.step.recovery else change.step.ratio
    return replace(
        change, step=replace(change.step, ratio=left, direction="up" if left > 1 else "down")
    )


def commit_range(last_good: HistoryPoint, first_bad: HistoryPoint) -> str:
    """The commits that a change came in, as a git range; empty if unknown.

    >>> from support.build import a_point
    >>> commit_range(a_point(day=1), a_point(day=17))
    '0000000000..0000000000'
    >>> commit_range(a_point(day=1, commit=None), a_point(day=2, commit=None))
    ''
    """
    good, bad = last_good.commit, first_bad.commit
    if bad is None:
        return ""
    if good is None:
        return f"up to {bad.sha[:10]}"
    return f"{good.sha[:10]}..{bad.sha[:10]}"
