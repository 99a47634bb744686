"""That a site was made of a part of the records only."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.report.view.page import Flag


def narrowed_flags(only: Sequence[str]) -> tuple[Flag, ...]:
    """What stands beside the verdict, which is of that part too; nothing where all is in.

    Args:
        only: Names, or patterns of them, as they were asked for.
    """
    if not only:
        return ()
    return (
        Flag(
            tone="plain",
            sign="–",
            title=f"Only of {' and '.join(only)}",
            detail="as --only asked; verdict, counts and pages leave out all else",
            link="",
        ),
    )
