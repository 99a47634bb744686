"""Explains why a launch does not count, and whether it was repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from corebound.analysis.wording import capital
from corebound.records.launch_record import GOES_ON, Launch, Status
from corebound.stats.interference import is_refused

_STATUSES: tuple[Status, ...] = ("ok", "invalid", "failed", "timed-out", "skipped")


def reason_of(launch: Launch) -> str:
    """Why a launch is not `ok`, as a sentence; empty if it is `ok`."""
    return capital(launch.reason or "")


def evidence_of(launch: Launch) -> tuple[str, ...]:
    """The evidence for the launch's status that the reason does not already contain."""
    return tuple(one for one in launch.evidence if one not in (launch.reason or ""))


def mend_of(launch: Launch, others: Iterable[Launch]) -> str:
    """How the user can fix it; for a refused launch also whether it was repeated.

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
    """The number of launches per status, such as `88 ok` and `3 skipped`.

    Profiling launches are counted separately.
    """
    counts = Counter(one.status for one in launches if one.kind == "measure")
    said = [f"{counts[status]:,} {status}" for status in _STATUSES if counts[status]]
    profiled = sum(one.kind == "profile" for one in launches)
    if profiled:
        said.append(f"{profiled:,} more that profiled operators")
    return tuple(said)
