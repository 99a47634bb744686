"""CPU time that cgroups ration."""

from __future__ import annotations

from collections.abc import Iterator

from corebound.host.checkup.judged import Judged, Seen, Subject
from corebound.host.checkup.quota import quotas
from corebound.units import significant

_QUOTA = Subject(
    check="CPU quota",
    group="CPUs",
    why="once its share of a period is used up the kernel stops every thread until the next,"
    " so times jump by up to a period",
)


def judge(seen: Seen) -> Iterator[Judged]:
    """The tightest quota above us."""
    found = quotas(seen.tree)
    if found is None:
        yield _QUOTA.unavailable("no cgroup with CPU time is mounted here")
        return
    if not found:
        yield _QUOTA.ok("none")
        return
    tightest = min(found, key=lambda quota: quota.cpus)
    throttled = "" if tightest.throttled is None else f", stopped {tightest.throttled} times so far"
    yield _QUOTA.warning(
        f"{significant(tightest.cpus)} CPUs in /{tightest.folder}{throttled}",
        mend="; ".join(quota.lift for quota in found),
        undo="; ".join(quota.again for quota in found),
    )
