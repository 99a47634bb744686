"""What of the records could not be read, where figures are shown without it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corebound.errors import Fault
from corebound.report.view.page import Flag
from corebound.report.view.words import count


def damaged(faults: Sequence[Fault]) -> Flag | None:
    """How many records were passed over, and where the first of them is.

    >>> damaged([Fault(file="records/host/r1.jsonl", line=20, what="…", mend="…")])
    ... # doctest: +ELLIPSIS
    Flag(..., title='1 record damaged', detail='passed over: r1.jsonl, line 20', link='')
    """
    if not faults:
        return None
    first = faults[0]
    line = "" if first.line is None else f", line {first.line}"
    # Else it is whole, but of a scenario that this version cannot read.
    is_damage = all(one.file.endswith(".jsonl") for one in faults)
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    return Flag(
        tone="bad",
        sign="!",
        title=f"{count(len(faults), 'record')} {'damaged' if is_damage else 'could not be read'}",
        detail=f"passed over: {Path(first.file).name}{line}{more}",
    )
