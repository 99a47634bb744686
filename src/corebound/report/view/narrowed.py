"""That a site was made of a part of the records only."""

from __future__ import annotations

from collections.abc import Sequence


def narrowed_words(only: Sequence[str]) -> str:
    """What every page says then, for a reader may land on any; empty where all is in.

    Args:
        only: Names, or patterns of them, as they were asked for.

    >>> narrowed_words(["io.*", "resnet50"])
    'Only of io.* and resnet50, as --only asked'
    """
    return f"Only of {' and '.join(only)}, as --only asked" if only else ""
