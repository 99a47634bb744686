"""Why a launch does not count, as pages say it: each thing once, and what became of it since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from corebound.analysis.wording import capital
from corebound.records.launch_record import GOES_ON, Launch, Status
from corebound.stats.interference import is_refused

_STATUSES: tuple[Status, ...] = ("ok", "invalid", "failed", "timed-out", "skipped")


def reason_of(launch: Launch) -> str:
    """Why it is not `ok`, as a sentence; empty where it is."""
    return capital(launch.reason or "")


def evidence_of(launch: Launch) -> tuple[str, ...]:
    """What it was seen by, as far as the reason does not say that already."""
    return tuple(one for one in launch.evidence if one not in (launch.reason or ""))


def mend_of(launch: Launch, others: Iterable[Launch]) -> str:
    """What the user may do; of a launch that was refused, whether it was made again.

    Args:
        launch: The launch.
        others: All launches of its run, or of its cell.
    """
    told = launch.mend or ""
    if not is_refused(launch):
        return told
    again = any(
        one.cell.id == launch.cell.id
        and one.block == launch.block
        and one.attempt == launch.attempt + 1
        for one in others
    )
    became = "It was launched again." if again else "The run ended before it was launched again."
    return f"{became} {told.removeprefix(GOES_ON).lstrip()}".rstrip()


def statuses(launches: Sequence[Launch]) -> tuple[str, ...]:
    """How many came to each status, such as `88 ok` and `3 skipped`; those that profiled apart."""
    counts = Counter(one.status for one in launches if one.kind == "measure")
    said = [f"{counts[status]:,} {status}" for status in _STATUSES if counts[status]]
    profiled = sum(one.kind == "profile" for one in launches)
    if profiled:
        said.append(f"{profiled:,} more that profiled operators")
    return tuple(said)
