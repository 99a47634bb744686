"""How many were compared, in words: what lacks one of its two figures was not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from corebound.report.view.comparing import Compared
from corebound.report.view.words import count


def compared_words(found: Sequence[Compared], noun: tuple[str, str]) -> str:
    """What became of all of them, findings too.

    Args:
        found: What was measured twice.
        noun: What each of them is, one and several.
    """
    unclear, unknown = unclear_in(found), unknown_in(found)
    said = f"{count(len(found) - unknown, *noun)} compared, {unclear:,} without a clear difference"
    return f"{said}; {unknown:,} more not compared, for a figure is missing" if unknown else said


def unclear_words(others: Sequence[Compared]) -> str:
    """Why those that are no findings are none, with how many each."""
    unclear, unknown = unclear_in(others), unknown_in(others)
    parts = [f"No clear difference: {unclear:,}"] if unclear else []
    parts += [f"not compared, for a figure is missing: {unknown:,}"] if unknown else []
    said = "; ".join(parts)
    return said[:1].upper() + said[1:]


def unknown_in(found: Iterable[Compared]) -> int:
    """How many were not compared, for one of their two figures is missing."""
    return sum(one.comparison is None for one in found)


def unclear_in(found: Iterable[Compared]) -> int:
    """How many were compared and do not clearly differ."""
    return sum(one.comparison is not None and not one.is_finding for one in found)
